//! A score for people: columns, each figure with its interval, the rules without a model beneath.

use std::io::{self, Write};

use crate::{
    cli::escape,
    score::{Baseline, Interval, Report, Scored, SetScore, Share, Table, public::Public},
};

pub(super) fn write(scored: &Scored, out: &mut dyn Write) -> io::Result<()> {
    if let Some(public) = &scored.public {
        write_public(public, out)?;
    }
    match &scored.strict {
        Some(report) => write_report(report, out),
        None => Ok(()),
    }
}

fn write_public(public: &Public, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", public.scorer)?;
    for figure in &public.figures {
        writeln!(out, "  {:<52} {:>10}", figure.name, figure.shown)?;
    }
    writeln!(out, "  What to know about it:")?;
    for quirk in public.quirks {
        writeln!(out, "  - {quirk}")?;
    }
    writeln!(out)
}

fn write_report(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let coverage = &report.coverage;
    writeln!(out, "strict")?;
    line(out, "answered", &coverage.answered)?;
    let counts = [
        ("say that nobody failed", coverage.nobody),
        ("could not be read", coverage.unparsed),
        ("have no prediction", coverage.missing),
    ];
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        writeln!(out, "    {count} {what}")?;
    }
    if coverage.false_alarms.of > 0 {
        line(out, "clean runs blamed", &coverage.false_alarms)?;
    }
    let accuracy = &report.accuracy;
    for (name, share) in [
        ("agent", &accuracy.agent),
        ("step", &accuracy.step),
        ("agent and step", &accuracy.joint),
        ("agent, of answered", &accuracy.agent_of_answered),
        ("step, of answered", &accuracy.step_of_answered),
    ] {
        line(out, name, share)?;
    }
    for (share, far) in accuracy.step_within.iter().zip(1..) {
        line(out, &format!("step ±{far}"), share)?;
    }
    for top in &accuracy.top {
        line(out, &format!("agent in top {}", top.k), &top.agent)?;
        line(out, &format!("step in top {}", top.k), &top.step)?;
    }
    if let Some(mean) = accuracy.mean_step_distance {
        writeln!(out, "  {:<24} {mean:>6.2} steps  over {} answers", "mean distance", accuracy.step_distances)?;
    }
    for (name, set) in [("pair", &report.pair), ("agent", &report.agent), ("mode", &report.mode)] {
        if let Some(set) = set {
            write_set(out, name, set)?;
        }
    }
    for table in &report.tables {
        write_table(out, table)?;
    }
    write_baselines(out, &report.baselines)?;
    report.warnings.iter().try_for_each(|warning| writeln!(out, "note: {}", escape(warning)))
}

/// A share of nothing is not written.
fn line(out: &mut dyn Write, name: &str, share: &Share) -> io::Result<()> {
    if share.of == 0 {
        return Ok(());
    }
    let Interval { low, high } = share.interval;
    let percent = share.share * 100.0;
    writeln!(
        out,
        "  {name:<24} {percent:>6.2} %  [{:.1}, {:.1}]  {}/{}",
        low * 100.0,
        high * 100.0,
        share.hits,
        share.of
    )
}

fn write_set(out: &mut dyn Write, name: &str, set: &SetScore) -> io::Result<()> {
    for (kind, figures, interval) in
        [("micro", set.micro, set.micro_f1_interval), ("macro", set.macro_, set.macro_f1_interval)]
    {
        let interval = interval.map(|ends| format!("[{:.1}, {:.1}]", ends.low * 100.0, ends.high * 100.0));
        writeln!(
            out,
            "  {:<24} {:>6.2}    {}  precision {:.2}, recall {:.2}",
            format!("{name} {kind} F1"),
            figures.f1 * 100.0,
            interval.unwrap_or_default(),
            figures.precision * 100.0,
            figures.recall * 100.0
        )?;
    }
    Ok(())
}

fn write_table(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    // Runs hold clean ones too, and labels that name no agent or no step: each rate says what it is of.
    let by = format!("by {}", table.by);
    writeln!(out, "\n  {by:<16} {:>5}  {:<24}  {:<24}  both", "runs", "agent", "step")?;
    for row in &table.rows {
        let mode = row.mode.map(|figures| format!("  F1 {:.1}", figures.f1 * 100.0)).unwrap_or_default();
        let (agent, step, joint) = (cell(&row.agent), cell(&row.step), cell(&row.joint));
        let line = format!("  {:<16} {:>5}  {agent:<24}  {step:<24}  {joint:<24}{mode}", escape(&row.value), row.runs);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A share in a table, with what it is of.
fn cell(share: &Share) -> String {
    let Share { hits, of, share, interval: Interval { low, high } } = share;
    if *of == 0 {
        return "-".to_owned();
    }
    format!("{:>5.1} [{:.1}, {:.1}] {hits}/{of}", share * 100.0, low * 100.0, high * 100.0)
}

fn write_baselines(out: &mut dyn Write, rules: &[Baseline]) -> io::Result<()> {
    writeln!(out, "\n  {:<50} {:>7} {:>7} {:>7} {:>7}", "rules without a model", "agent", "step", "both", "mode")?;
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value * 100.0));
    for rule in rules {
        let name = if rule.hindsight { format!("{} *", rule.rule) } else { rule.rule.to_owned() };
        let (agent, step, joint, mode) = (cell(rule.agent), cell(rule.step), cell(rule.joint), cell(rule.mode));
        writeln!(out, "  {name:<50} {agent:>7} {step:>7} {joint:>7} {mode:>7}")?;
    }
    if rules.iter().any(|rule| rule.pair_f1.is_some() || rule.mode_f1.is_some()) {
        let heads = ["pair µ", "pair M", "agent µ", "agent M", "mode µ", "mode M"].map(|head| format!("{head:>7}"));
        writeln!(out, "\n  {:<50} {}", "F1 of these rules, micro and macro", heads.join(" "))?;
        for rule in rules.iter().filter(|rule| [rule.pair_f1, rule.agent_f1, rule.mode_f1].iter().any(Option::is_some))
        {
            let cells = [rule.pair_f1, rule.agent_f1, rule.mode_f1]
                .map(|f1| format!("{:>7} {:>7}", cell(f1.map(|f1| f1.micro)), cell(f1.map(|f1| f1.macro_))));
            writeln!(out, "  {:<50} {}", rule.rule, cells.join(" "))?;
        }
    }
    writeln!(out, "  * chosen by looking at these labels; rules have no interval: they are computed from these runs")
}
