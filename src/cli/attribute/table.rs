//! Methods side by side where the truth is known: each figure with its interval, what it took, and the rules without a model.

use crate::cli::printed::MeasuredMethod;
use std::{
    collections::HashSet,
    io::{self, Write},
};

use super::logs::Logs;
use crate::{
    attribution::Attributed,
    cli::{Exit, Failure, escape},
    score::{self, Gold, Report, Share, read},
};

/// One method over all runs.
pub(super) struct MethodFigures {
    pub(super) name: String,
    pub(super) report: Option<Report>,
    pub(super) runs: usize,
    pub(super) abstained: usize,
    pub(super) calls: u64,
    pub(super) tokens: u64,
    pub(super) cost: Option<f64>,
    cut: u64,
}

/// Measures each method against the labels, where there are any.
pub(super) fn measured(logs: &Logs, rows: &[Vec<Attributed>]) -> Result<Vec<MethodFigures>, Failure> {
    // Of failures that nobody labelled nothing is right or wrong.
    let golds: Vec<Gold> = logs.runs.iter().filter_map(|log| log.gold.clone()).collect();
    let labelled: HashSet<&str> = golds.iter().map(|gold| gold.id.as_str()).collect();
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter().flatten() {
        if !names.contains(&row.method) {
            names.push(row.method.clone());
        }
    }
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| Failure::new(Exit::Infrastructure, error);
    names
        .into_iter()
        .map(|name| {
            let own: Vec<&Attributed> = rows.iter().flatten().filter(|row| row.method == name).collect();
            let mut text = String::new();
            for row in own.iter().filter(|row| labelled.contains(row.id.as_str())) {
                text.push_str(&serde_json::to_string(row).map_err(|error| failed(error.into()))?);
                text.push('\n');
            }
            // As `score` would read the file that --out writes.
            let report = if golds.is_empty() {
                None
            } else {
                // Of clean runs only tracers are asked.
                let asked: HashSet<&str> = own.iter().map(|row| row.id.as_str()).collect();
                let golds: Vec<Gold> = golds.iter().filter(|gold| asked.contains(gold.id.as_str())).cloned().collect();
                let predictions = read::predictions(&text).map_err(|error| failed(error.into()))?;
                score::evaluate(&golds, &predictions, 0).ok()
            };
            let costs: Vec<f64> = own.iter().filter_map(|row| row.cost).collect();
            Ok(MethodFigures {
                report,
                runs: own.len(),
                abstained: own.iter().filter(|row| row.abstained.is_some()).count(),
                calls: own.iter().map(|row| row.calls).sum(),
                tokens: own.iter().map(|row| row.tokens_in + row.tokens_out).sum(),
                cost: (!costs.is_empty()).then(|| costs.iter().sum()),
                cut: own.iter().filter(|row| row.cuts.steps > 0).count() as u64,
                name,
            })
        })
        .collect()
}

impl MethodFigures {
    /// The same as data.
    pub(super) fn data(&self) -> MeasuredMethod<'_> {
        MeasuredMethod {
            method: &self.name,
            runs: self.runs,
            abstained: self.abstained,
            calls: self.calls,
            tokens: self.tokens,
            cost: self.cost,
            cut: self.cut,
            accuracy: self.report.as_ref().map(|report| &report.accuracy),
        }
    }
}

pub(super) fn write(figures: &[MethodFigures], rows: &[Vec<Attributed>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<15} {:>18} {:>18} {:>7} {:>7} {:>7} {:>9} {:>7} {:>9} {:>9}",
        "method", "agent", "step", "±1", "±3", "±5", "abstained", "calls", "tokens", "money"
    )?;
    for method in figures {
        let accuracy = method.report.as_ref().map(|report| &report.accuracy);
        let near = |far: usize| {
            let share = accuracy.and_then(|accuracy| accuracy.step_within.get(far - 1));
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share.share * 100.0))
        };
        writeln!(
            out,
            "{:<15} {:>18} {:>18} {:>7} {:>7} {:>7} {:>9} {:>7} {:>9} {:>9}",
            method.name,
            cell(accuracy.map(|accuracy| &accuracy.agent)),
            cell(accuracy.map(|accuracy| &accuracy.step)),
            near(1),
            near(3),
            near(5),
            format!("{}/{}", method.abstained, method.runs),
            method.calls,
            method.tokens,
            method.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.4}"))
        )?;
    }
    let report = figures.iter().find_map(|method| method.report.as_ref());
    for rule in report.map(|report| report.baselines.as_slice()).unwrap_or_default() {
        let cell = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0));
        if rule.agent.is_none() && rule.step.is_none() {
            continue;
        }
        let star = if rule.hindsight { " *" } else { "" };
        writeln!(out, "  {:<52}{star:<2} agent {:>5}  step {:>5}", rule.rule, cell(rule.agent), cell(rule.step))?;
    }
    if report.is_some() {
        writeln!(
            out,
            "percent of all runs, with 95 % intervals; the indented rules need no model, * was chosen by these labels"
        )?;
    }
    for warning in report.map(|report| report.warnings.as_slice()).unwrap_or_default() {
        writeln!(out, "note: {}", escape(warning))?;
    }
    for method in figures.iter().filter(|method| method.cut > 0) {
        writeln!(
            out,
            "note: {} logs were cut for {}: --context says how much a judge can read",
            method.cut, method.name
        )?;
    }
    why(rows, out)?;
    disagreement(rows, out)
}

/// Why methods abstained, by kind.
fn why(rows: &[Vec<Attributed>], out: &mut dyn Write) -> io::Result<()> {
    let mut kinds: std::collections::BTreeMap<(&str, &str), (usize, &str)> = std::collections::BTreeMap::new();
    for row in rows.iter().flatten() {
        if let Some(why) = &row.abstained {
            kinds.entry((&row.method, why.name())).or_insert((0, why.reason())).0 += 1;
        }
    }
    for ((method, kind), (count, said)) in kinds {
        let said: String = said.chars().take(80).collect();
        writeln!(out, "note: {method}: {count} {kind}, such as: {}", escape(&said))?;
    }
    Ok(())
}

/// How often methods name the same step.
fn disagreement(rows: &[Vec<Attributed>], out: &mut dyn Write) -> io::Result<()> {
    let steps = |rows: &[Attributed]| -> Vec<Option<u32>> {
        let own = rows.iter().filter(|row| row.method != crate::attribution::methods::COMBINED);
        own.map(|row| row.predictions.first().and_then(|found| found.step)).collect()
    };
    let compared = rows.iter().map(|rows| steps(rows)).filter(|steps| steps.len() > 1);
    let same = |steps: &Vec<Option<u32>>| {
        steps.first().is_some_and(|first| first.is_some() && steps.iter().all(|step| step == first))
    };
    let (all, agreed) = (compared.clone().count(), compared.filter(same).count());
    if all > 0 {
        writeln!(out, "all methods name the same step in {agreed} of {all} runs")?;
    }
    Ok(())
}

fn cell(share: Option<&Share>) -> String {
    let Some(share) = share.filter(|share| share.of > 0) else { return "-".to_owned() };
    let (low, high) = (share.interval.low * 100.0, share.interval.high * 100.0);
    format!("{:.1} [{low:.0}, {high:.0}]", share.share * 100.0)
}
