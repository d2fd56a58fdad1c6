//! Intervals of steps, from rows of the same methods whose truth is known.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

use serde_json::Value;

use super::{arguments::AttributeArgs, logs::Logs};
use crate::{
    attribution::{
        Attributed,
        methods::{Calibrated, CalibrationRow, StepScores},
    },
    cli::{Exit, Failure},
    dataset::{self, Dataset},
    score::{Gold, PredictedAnswer, Prediction, read},
};

/// The calibration of each method.
pub(super) type Calibrations = BTreeMap<String, Calibrated>;

/// Reads the calibration rows of each method; none where none are named.
pub(super) fn read(arguments: &AttributeArgs, methods: &[&str]) -> Result<Calibrations, Failure> {
    let mut calibrations = Calibrations::new();
    let (Some(rows), Some(dataset)) = (&arguments.calibrate, &arguments.calibrate_gold) else {
        return Ok(calibrations);
    };
    let usage = |error: String| Failure::new(Exit::Usage, format!("{}: {error}", rows.display()));
    let text = std::fs::read_to_string(rows).map_err(|error| usage(format!("cannot be read: {error}")))?;
    let golds = golds(dataset)?;
    for method in methods {
        let chosen = read::of_method(&text, Some(method)).map_err(|error| usage(error.to_string()))?;
        let predictions = read::predictions(&chosen).map_err(|error| usage(error.to_string()))?;
        let scores = scored(&chosen);
        let known: Vec<CalibrationRow> =
            predictions.iter().filter_map(|prediction| row(prediction, &golds, &scores)).collect();
        let calibrated = Calibrated::calibrate(&known, arguments.alpha);
        let none = || {
            usage(format!(
                "none of the rows of `{method}` is about a run of {} with a labelled step",
                dataset.display()
            ))
        };
        calibrations.insert((*method).to_owned(), calibrated.ok_or_else(none)?);
    }
    Ok(calibrations)
}

fn golds(path: &Path) -> Result<BTreeMap<String, Gold>, Failure> {
    let mut golds = BTreeMap::new();
    for placed in Dataset::open(path)?.numbered_samples() {
        golds.extend(dataset::gold(&placed?.sample).map(|gold| (gold.id.clone(), gold)));
    }
    Ok(golds)
}

/// What each row gives its predictions, by run.
fn scored(text: &str) -> BTreeMap<String, Vec<Option<f64>>> {
    let mut scores = BTreeMap::new();
    for row in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let score = |found: &Value| found.get("score").and_then(Value::as_f64);
        let predictions = row.get("predictions").and_then(Value::as_array);
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
        scores.insert(id.to_owned(), predictions.into_iter().flatten().map(score).collect());
    }
    scores
}

fn row(
    prediction: &Prediction,
    golds: &BTreeMap<String, Gold>,
    scores: &BTreeMap<String, Vec<Option<f64>>>,
) -> Option<CalibrationRow> {
    let gold = golds.get(&prediction.id)?;
    let truth: Vec<u32> = gold.culprits.iter().filter_map(|culprit| culprit.step).collect();
    let steps = u32::try_from(gold.speakers.len()).ok().filter(|steps| *steps > 0)?;
    let said = match &prediction.answer {
        PredictedAnswer::Unparsed(_) => &[],
        answer => answer.guesses(),
    };
    let none = Vec::new();
    let given = scores.get(&prediction.id).unwrap_or(&none);
    let named = said.iter().enumerate().filter_map(|(rank, guess)| {
        let step = u32::try_from(guess.step?).ok()?;
        Some((step, score(given.get(rank).copied().flatten(), rank)))
    });
    (!truth.is_empty()).then(|| CalibrationRow { scores: named.collect(), truth, steps })
}

/// A prediction without a score has the one of its rank.
fn score(given: Option<f64>, rank: usize) -> f64 {
    given.unwrap_or_else(|| 1.0 / (1.0 + u32::try_from(rank).map_or(f64::MAX, f64::from)))
}

/// Gives each row its interval.
pub(super) fn apply(calibrations: &Calibrations, logs: &Logs, rows: &mut [Vec<Attributed>]) {
    for (log, rows) in logs.runs.iter().zip(rows) {
        let steps = u32::try_from(log.run.turns.len()).unwrap_or(u32::MAX);
        for row in rows {
            let Some(calibrated) = calibrations.get(&row.method) else { continue };
            let named = row.predictions.iter().enumerate();
            let scores: StepScores =
                named.filter_map(|(rank, found)| Some((found.step?, score(found.score, rank)))).collect();
            row.interval = Some(calibrated.interval(&scores, steps));
        }
    }
}

/// How well the intervals did on the rows that they come from, each by all the others.
pub(super) fn write(calibrations: &Calibrations, alpha: f64, out: &mut dyn Write) -> io::Result<()> {
    for (method, calibrated) in calibrations {
        writeln!(
            out,
            "{method}: intervals at {:.0} %, from {} labelled runs: each left out in turn, they held the true step in {} of {} and \
             were {:.1} steps wide",
            (1.0 - alpha) * 100.0,
            calibrated.rows(),
            calibrated.covered,
            calibrated.rows(),
            calibrated.width
        )?;
    }
    Ok(())
}
