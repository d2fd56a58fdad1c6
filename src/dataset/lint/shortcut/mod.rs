//! Rules about shortcuts: what tells a planted error from the clean run without reading for sense. A tracer that learns
//! from such a set learns the planting, and is worth nothing on errors that nobody planted. The set is not wrong for it, so
//! `export` does not refuse it; figures measured on it say less than they seem to.

mod figures;
mod position;
mod shape;

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use twox_hash::XxHash3_64;

use super::{Finding, LintReport, Rule};
use crate::{
    dataset::{
        Dataset, DatasetError, Index, PlacedSample, SampleKind, gold,
        statistics::{FEWEST, Replies, TwinPair, pairs},
    },
    score::Gold,
};
use figures::ToldFigures;
use position::StepPosition;

/// An area under the curve from which on something tells.
const TELLS: f64 = 0.8;
/// Lengths of altered replies over the twins', at the median, that are no tell.
const LENGTHS: (f64, f64) = (0.5, 2.0);
/// Most failures whose outlines are kept, so that memory is bounded; they are drawn by the hash of their id.
const FAILURES: usize = 4000;

impl Rule {
    /// Whether the rule is about what makes a dataset easy. What it finds is no defect of a sample.
    pub fn is_shortcut(self) -> bool {
        use Rule::{ShortcutFigures, ShortcutLength, ShortcutPosition, ShortcutShape, ShortcutWords};
        matches!(self, ShortcutFigures | ShortcutLength | ShortcutPosition | ShortcutShape | ShortcutWords)
    }
}

/// What is kept of each sample.
#[derive(Debug, Default)]
pub(super) struct Shortcuts {
    index: Index,
    failures: BTreeMap<(u64, String), Gold>,
}

/// What the altered replies of one template have in common.
#[derive(Default)]
struct Altered {
    tasks: BTreeSet<String>,
    lengths: Vec<f64>,
    figures: ToldFigures,
}

impl Shortcuts {
    pub(super) fn add(&mut self, placed: &PlacedSample) {
        self.index.add(placed);
        let sample = &placed.sample;
        if let Some(gold) = gold(sample).filter(|_| sample.kind == SampleKind::Failure) {
            self.failures.insert((XxHash3_64::oneshot(sample.id.as_bytes()), sample.id.clone()), gold);
            if self.failures.len() > FAILURES {
                self.failures.pop_last();
            }
        }
    }

    /// Looks at the set as a whole; one with a line that is no sample is not looked at.
    pub(super) fn check(self, dataset: &Dataset, report: &mut LintReport) -> Result<(), DatasetError> {
        if report.findings.iter().any(|found| found.rule == Rule::NotASample) {
            return Ok(());
        }
        let mut replies = Replies::default();
        let mut altered: BTreeMap<String, Altered> = BTreeMap::new();
        let mut position = StepPosition::of(dataset);
        pairs(dataset, &self.index, |pair| {
            let template = pair.error.template().unwrap_or_default();
            replies.pair(template.clone(), pair);
            position.add(pair);
            altered.entry(template).or_default().add(pair, dataset)
        })?;
        let mut found = words(&replies);
        for (template, altered) in altered.iter().filter(|(_, altered)| altered.tasks.len() >= FEWEST) {
            found.extend(altered.length(template).map(|what| (Rule::ShortcutLength, what)));
            found.extend(altered.figures.tells(template).map(|what| (Rule::ShortcutFigures, what)));
        }
        found.extend(position.tells().map(|what| (Rule::ShortcutPosition, what)));
        let golds: Vec<Gold> = self.failures.into_values().collect();
        found.extend(shape::tells(&golds).map(|what| (Rule::ShortcutShape, what)));
        let file = dataset.files().first().cloned().unwrap_or_default();
        let finding = |(rule, what)| Finding { rule, file: file.clone(), line: 0, sample: String::new(), what };
        report.findings.extend(found.into_iter().map(finding));
        Ok(())
    }
}

/// Templates whose replies a classifier of words tells from the twins'.
fn words(replies: &Replies) -> Vec<(Rule, String)> {
    let probed = replies.each().into_iter().filter_map(|probed| {
        let (auc, (low, high)) = (probed.auc?, probed.interval?);
        let tells: Vec<String> = probed.tells.iter().map(|tell| super::quoted(tell)).collect();
        let what = format!(
            "`{}`: words tell {} altered replies from the twins' with an area under the curve of {auc:.2} \
             [{low:.2}, {high:.2}]: {}",
            probed.manipulator,
            probed.injected,
            tells.join(", ")
        );
        (auc > TELLS && low > 0.5).then_some((Rule::ShortcutWords, what))
    });
    probed.collect()
}

impl Altered {
    fn add(&mut self, pair: &TwinPair<'_>, dataset: &Dataset) -> Result<(), DatasetError> {
        self.tasks.insert(pair.failure.task.id.clone());
        self.lengths.push((characters(pair.step) + 1.0) / (characters(pair.other) + 1.0));
        self.figures.add(pair, dataset)
    }

    fn length(&self, template: &str) -> Option<String> {
        let mut sorted = self.lengths.clone();
        sorted.sort_by(f64::total_cmp);
        let median = *sorted.get(sorted.len() / 2)?;
        let what = format!(
            "`{template}`: altered replies are {median:.2} times as long as the twins' at the median of {}; \
             {} to {} are no tell",
            sorted.len(),
            LENGTHS.0,
            LENGTHS.1
        );
        (median < LENGTHS.0 || median > LENGTHS.1).then_some(what)
    }
}

/// How long a reply is, its tool calls included.
#[expect(clippy::cast_precision_loss, reason = "a length is far below 2^52")]
fn characters(step: &crate::dataset::SampleStep) -> f64 {
    let texts = step.output.iter().flat_map(super::super::Said::texts);
    texts.map(|text| text.chars().count()).sum::<usize>() as f64
}
