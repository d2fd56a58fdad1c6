//! `aegis runs --since WHEN|RUN`: how often runs fail, and how often each rule sees something, before a moment and from it on.

use crate::cli::printed::{RatesSince, printed};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use jiff::{Span, Timestamp, Zoned, civil::Date, tz::TimeZone};

use crate::{
    cli::{Config, Exit, Failure, Finished, Global, OutputFormat, escape, terminal, watch},
    recording::{self, Recording},
    trajectory::{Interval, nearest},
    verdict::{self, Weight},
    viewer::RunRow,
    watch::{RateRow, RatedRun, Rates, RunShare, WatchSettings, rates, read},
};

/// Compares the runs before and after the cut.
pub(super) fn run(
    rows: &[Arc<RunRow>],
    since: &str,
    rules: &[String],
    config: Option<&Path>,
    global: &Global,
) -> Result<Finished, Failure> {
    let cut = cut(since, rows)?;
    let settings = watch::settings(rules, &[])?;
    let roster = watch::roster(&Config::load(config)?);
    let (mut rated, mut unread, mut planned) = (Vec::new(), Vec::new(), 0);
    for row in rows.iter().filter(|row| row.imported.is_none()) {
        let began: Option<Timestamp> = row.started.parse().ok();
        match (recording::read(&row.dir), began) {
            (Ok(recording), Some(began)) => {
                planned += u32::from(recording.manifest.plan_digest.is_some());
                rated.push(rated_run(&recording, began >= cut, &settings, &roster));
            }
            _ => unread.push(row.key.clone()),
        }
    }
    let rates = rates(&rated);
    if global.format == OutputFormat::Text {
        let written = write(&rates, &mut terminal::stdout());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let changed = rates.rows.iter().filter(|row| row.has_changed()).count();
    let mut summary = format!(
        "{} runs before, {} since {cut}: {changed} of {} rates changed",
        rates.before,
        rates.after,
        rates.rows.len()
    );
    if planned > 0 {
        let _ = write!(summary, "  {planned} of the runs had a plan");
    }
    if !unread.is_empty() {
        let _ = write!(summary, "  {} cannot be read", unread.len());
    }
    let data = printed(&RatesSince { since: cut.to_string(), rates: &rates, planned, unread: &unread });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// The moment that is meant: when a run began, a date, a time, or so long ago.
fn cut(since: &str, rows: &[Arc<RunRow>]) -> Result<Timestamp, Failure> {
    if let Some(row) = rows.iter().find(|row| row.key == since || row.run == since) {
        let unread = |_| Failure::new(Exit::Recording, format!("`{since}` does not say when it began"));
        return row.started.parse().map_err(unread);
    }
    if let Ok(at) = since.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Some(midnight) = since.parse::<Date>().ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok()) {
        return Ok(midnight.timestamp());
    }
    if let Some(ago) = since.parse::<Span>().ok().and_then(|span| Zoned::now().checked_sub(span).ok()) {
        return Ok(ago.timestamp());
    }
    let near = nearest(since, rows.iter().map(|row| row.key.as_str()));
    let near = near.map(|near| format!("; did you mean the run `{near}`?")).unwrap_or_default();
    Err(Failure::new(Exit::Usage, format!("--since `{since}` is no run here, and no time{near}"))
        .hint("a run, 2026-11-24, 2026-11-24T07:00:00Z, or 36h, 7d"))
}

fn rated_run(recording: &Recording, is_after: bool, settings: &WatchSettings, roster: &[String]) -> RatedRun {
    let signs = read(recording, settings.clone(), roster);
    let client = verdict::read(recording);
    let defects = client.calls.iter().flat_map(|call| {
        let defects = call.remarks.iter().filter(|remark| remark.weight == Weight::Defect);
        defects.map(|remark| ("client", call.agent.to_string(), remark.rule.to_owned()))
    });
    let agents: BTreeSet<String> =
        recording.trajectory.steps.iter().map(|step| step.attribution.agent.to_string()).collect();
    RatedRun {
        is_after,
        outcome: recording.manifest.outcome.verdict,
        agents,
        found: signs.into_iter().map(|sign| ("watch", sign.agent.to_string(), sign.rule)).chain(defects).collect(),
    }
}

/// A line a rate; what rose most surely stands first.
fn write(rates: &Rates, out: &mut dyn Write) -> io::Result<()> {
    let name = |row: &RateRow| match &row.agent {
        Some(agent) => format!("{} {}", escape(agent), row.rule),
        None => row.rule.clone(),
    };
    let wide = rates.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).max(20);
    writeln!(out, "{:wide$}  {:<28}{:<28}change", "share of runs", "before", "since")?;
    for row in &rates.rows {
        let change = match (row.change, row.interval) {
            (Some(change), Some(Interval { low, high })) => {
                let mark = if row.has_changed() { "  !" } else { "" };
                format!("{change:+.3} [{low:+.3}, {high:+.3}]{mark}")
            }
            _ => String::new(),
        };
        let line = format!("{:wide$}  {:<28}{:<28}{change}", name(row), share(&row.before), share(&row.after));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn share(share: &RunShare) -> String {
    if share.of == 0 {
        return "no run".to_owned();
    }
    format!("{}/{} [{:.3}, {:.3}]", share.runs, share.of, share.interval.low, share.interval.high)
}
