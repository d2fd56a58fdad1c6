//! The strict score: predictions joined with labels by id, every figure beside its interval and the trivial rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    accuracy::{Accuracy, Judged, accuracy},
    answer_sets::{agent_sets, agents_of, mode_sets, pair_sets},
    baseline::{Baseline, baselines},
    gold::Gold,
    interval::Share,
    prediction::{PredictedAnswer, Prediction},
    sets::{SetScore, SetTally},
    shape::{self, Unseen},
    table::{Table, tables},
};
use crate::trajectory::nearest;

/// Seed of the bootstrap, so that two scorings of the same files say the same.
const SEED: u64 = 0;

/// Why nothing can be scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// There is no label to measure against.
    #[error("the gold data holds no run: nothing to score against")]
    NoGold,
    /// Two gold runs have one id, so that predictions cannot be told apart.
    #[error("two gold runs have the id `{0}`: give every run its own, or score each file on its own")]
    DuplicateGold(String),
    /// No prediction is about a gold run.
    #[error("none of {predictions} predictions is about a gold run: `{first}` is not among {golds} gold ids such as `{example}`{}",
        .nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoneMatch {
        /// How many predictions there are.
        predictions: usize,
        /// The first one's id.
        first: String,
        /// How many gold runs there are.
        golds: usize,
        /// One of them.
        example: String,
        /// The one most like the first prediction's.
        nearest: Option<String>,
    },
}

/// What share of the gold runs was answered at all.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Coverage {
    /// Runs with an answer that was read; `answered.of` is the denominator of everything.
    pub answered: Share,
    /// Runs whose answer says that nobody failed.
    pub nobody: usize,
    /// Runs without an error in which somebody is blamed, of those that have a prediction.
    pub false_alarms: Share,
    /// Runs with text in which no answer was found: neither wrong nor right.
    pub unparsed: usize,
    /// Runs without a prediction.
    pub missing: usize,
    /// Predictions about runs that the gold data does not have.
    pub unknown: usize,
    /// Predictions that a later one for the same run replaced.
    pub replaced: usize,
}

/// Everything there is to say about a prediction file.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// How much was answered.
    pub coverage: Coverage,
    /// First guess against label.
    pub accuracy: Accuracy,
    /// F1 of (agent, failure mode) pairs; `None` where no label knows a mode.
    pub pair: Option<SetScore>,
    /// F1 of agents; `None` where no label knows one.
    pub agent: Option<SetScore>,
    /// F1 of failure modes; `None` where no label knows one.
    pub mode: Option<SetScore>,
    /// The same by length, mode and system.
    pub tables: Vec<Table>,
    /// What rules without a model score here.
    pub baselines: Vec<Baseline>,
    /// What a reader of the figures should know.
    pub warnings: Vec<String>,
}

/// Scores predictions strictly. `base` is the number that the predictions give the first step: 0, or 1.
///
/// # Errors
/// [`ScoreError`] when predictions and gold cannot be joined.
pub fn evaluate(golds: &[Gold], predictions: &[Prediction], base: i64) -> Result<Report, ScoreError> {
    let index = index(golds)?;
    let mut answers: Vec<Option<&PredictedAnswer>> = vec![None; golds.len()];
    let (mut unknown, mut replaced) = (Vec::new(), 0);
    for prediction in predictions {
        match index.get(prediction.id.as_str()).and_then(|row| answers.get_mut(*row)) {
            Some(slot) => replaced += usize::from(slot.replace(&prediction.answer).is_some()),
            None => unknown.push(prediction),
        }
    }
    if let (Some(first), Some(example)) = (predictions.first(), golds.first())
        && unknown.len() == predictions.len()
    {
        return Err(ScoreError::NoneMatch {
            predictions: predictions.len(),
            first: first.id.clone(),
            golds: golds.len(),
            example: example.id.clone(),
            nearest: nearest(&first.id, index.keys().copied()).map(str::to_owned),
        });
    }
    let rows: Vec<Judged<'_>> =
        golds.iter().zip(&answers).map(|(gold, answer)| Judged { gold, answer: *answer, base }).collect();
    let (pairs, agents, modes) = (pair_sets(&rows), agent_sets(&rows), mode_sets(&rows));
    let per_mode = modes.as_ref().map(SetTally::classes).unwrap_or_default();
    let mut warnings = warnings(&rows);
    warnings.extend(shape::probe(golds, Unseen::Task).err().map(|why| format!("the shape probe is left out: {why}")));
    warnings.extend(unknown.first().map(|first| {
        format!(
            "{} predictions are about runs that the gold data does not have, such as `{}` on line {}",
            unknown.len(),
            first.id,
            first.line
        )
    }));
    Ok(Report {
        coverage: coverage(&rows, unknown.len(), replaced),
        accuracy: accuracy(&rows),
        pair: pairs.map(|tally| tally.with_intervals(SEED)),
        agent: agents.map(|tally| tally.with_intervals(SEED)),
        mode: modes.map(|tally| tally.with_intervals(SEED)),
        tables: tables(&rows, &per_mode),
        baselines: baselines(golds),
        warnings,
    })
}

/// Gold rows by id, and by the name of the file they came from where only one has it.
pub(super) fn index(golds: &[Gold]) -> Result<BTreeMap<&str, usize>, ScoreError> {
    if golds.is_empty() {
        return Err(ScoreError::NoGold);
    }
    let mut files: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    for (row, gold) in golds.iter().enumerate() {
        if let Some(raw) = &gold.raw {
            files.entry(raw.file.as_str()).and_modify(|only| *only = None).or_insert(Some(row));
        }
    }
    let mut index: BTreeMap<&str, usize> = files.into_iter().filter_map(|(file, row)| Some((file, row?))).collect();
    let mut seen = BTreeSet::new();
    for (row, gold) in golds.iter().enumerate() {
        if !seen.insert(gold.id.as_str()) {
            return Err(ScoreError::DuplicateGold(gold.id.clone()));
        }
        index.insert(&gold.id, row);
    }
    Ok(index)
}

fn coverage(rows: &[Judged<'_>], unknown: usize, replaced: usize) -> Coverage {
    let answers = || rows.iter().map(|row| row.answer);
    let unparsed = answers().filter(|answer| matches!(answer, Some(PredictedAnswer::Unparsed(_)))).count();
    let missing = answers().filter(Option::is_none).count();
    let says_nobody = |answer: &PredictedAnswer| matches!(answer, PredictedAnswer::Set(guesses) if guesses.is_empty());
    let clean = || rows.iter().filter(|row| row.gold.culprits.is_empty() && row.answer.is_some());
    let blamed = clean().filter(|row| row.answer.is_some_and(|answer| !answer.claimed().is_empty())).count();
    Coverage {
        answered: Share::new(rows.len() - unparsed - missing, rows.len()),
        nobody: answers().flatten().filter(|answer| says_nobody(answer)).count(),
        false_alarms: Share::new(blamed, clean().count()),
        unparsed,
        missing,
        unknown,
        replaced,
    }
}

fn warnings(rows: &[Judged<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    let absent = rows.iter().filter(|row| {
        !row.gold.speakers.is_empty()
            && agents_of(row.gold).iter().any(|agent| !row.gold.cast().iter().any(|speaker| speaker.key == *agent))
    });
    let absent = absent.count();
    if absent > 0 {
        warnings.push(format!("{absent} gold labels name an agent that never speaks in its run"));
    }
    if (1..100).contains(&rows.len()) {
        warnings.push(format!("{} runs are few: read the intervals, not the figures", rows.len()));
    }
    warnings
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
