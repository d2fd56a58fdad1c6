//! Where the errors are, beside where a draw would have put them: by what the campaign's sampler declares
//! (`report.json` beside the dataset), or evenly over the steps of the clean run.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    dataset::{Dataset, Sample, SampleStep, statistics::TwinPair},
    recording::RunFile,
};

/// The campaign's report beside a dataset.
const REPORT: &str = "report.json";
/// Fewest errors that are looked at.
const FEWEST: f64 = 40.0;
/// How many standard deviations above the draw a place must be: of some dozens of places none is there by chance.
const SPREADS: f64 = 4.0;
/// How much of all errors must be there beyond the draw.
const BEYOND: f64 = 0.15;

/// Errors by place, and what a draw would have put there.
#[derive(Default)]
pub(super) struct StepPosition {
    declared: HashMap<String, String>,
    counts: BTreeMap<GuessedPlace, Count>,
    errors: f64,
    by_declaration: f64,
}

/// A place that one can guess without reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GuessedPlace {
    Step(usize),
    FromTheEnd(usize),
}

#[derive(Default, Clone, Copy)]
struct Count {
    found: f64,
    drawn: f64,
    variance: f64,
}

impl StepPosition {
    /// Reads what the sampler declares; without a report, nothing is declared.
    pub(super) fn from_dataset(dataset: &Dataset) -> Self {
        let beside = dataset.files().first().and_then(|file| file.parent()).map(|dir| dir.join(REPORT));
        let report = beside.and_then(|path| RunFile::bytes(&path).ok());
        let report: Value = report.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let rows = report.get("cells").and_then(Value::as_array).into_iter().flatten();
        let declared = rows
            .filter_map(|row| Some((row.get("run")?.as_str()?.to_owned(), row.get("position")?.as_str()?.to_owned())));
        Self { declared: declared.collect(), ..Self::default() }
    }

    pub(super) fn add(&mut self, pair: &TwinPair<'_>) {
        let declared = self.declared.get(&pair.failure.id).map(String::as_str);
        let steps = pair.twin.steps.len();
        let Some(at) = pair.twin.steps.iter().position(|step| std::ptr::eq(step, pair.other)) else { return };
        self.errors += 1.0;
        self.by_declaration += if declared.is_some() { 1.0 } else { 0.0 };
        for (step, chance) in chances(pair.twin, declared).into_iter().enumerate() {
            for spot in [GuessedPlace::Step(step), GuessedPlace::FromTheEnd(steps - 1 - step)] {
                let count = self.counts.entry(spot).or_default();
                count.found += if step == at { 1.0 } else { 0.0 };
                count.drawn += chance;
                count.variance += chance * (1.0 - chance);
            }
        }
    }

    /// The place that holds most beyond the draw, in words.
    pub(super) fn finding(&self) -> Option<String> {
        let beyond = |count: &Count| count.found - count.drawn;
        let told =
            |count: &&Count| beyond(count) > SPREADS * count.variance.sqrt() && beyond(count) > BEYOND * self.errors;
        let all = self.counts.iter().filter(|(_, count)| self.errors >= FEWEST && told(count));
        let (spot, count) = all.max_by(|(_, a), (_, b)| beyond(a).total_cmp(&beyond(b)))?;
        let place = match spot {
            GuessedPlace::Step(step) => format!("step {step}"),
            GuessedPlace::FromTheEnd(0) => "the last step of the clean run".to_owned(),
            GuessedPlace::FromTheEnd(steps) => format!("{steps} steps before the last of the clean run"),
        };
        let draw = if self.by_declaration > 0.0 {
            format!("the positions that the campaign declares for {:.0} of them", self.by_declaration)
        } else {
            "a draw over all steps".to_owned()
        };
        Some(format!(
            "{:.0} of {:.0} errors are at {place}; {draw} would give {:.0}",
            count.found, self.errors, count.drawn
        ))
    }
}

/// How likely each step of the clean run is to be drawn: agents evenly, then by what is declared of their calls; all steps
/// evenly where nothing is.
fn chances(twin: &Sample, declared: Option<&str>) -> Vec<f64> {
    let speaker = |step: &SampleStep| (step.agent.clone(), step.instance);
    let mut calls: HashMap<_, u32> = HashMap::new();
    twin.steps.iter().for_each(|step| *calls.entry(speaker(step)).or_default() += 1);
    let agents = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    let all = u32::try_from(twin.steps.len()).unwrap_or(u32::MAX);
    let chance = |step: &SampleStep| {
        let own = calls.get(&speaker(step)).copied().unwrap_or(1);
        match declared {
            Some("uniform") => 1.0 / f64::from(agents) / f64::from(own),
            Some(_) if step.call == 0 => 1.0 / f64::from(agents),
            Some(_) => 0.0,
            None => 1.0 / f64::from(all),
        }
    };
    twin.steps.iter().map(chance).collect()
}
