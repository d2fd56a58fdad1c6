//! Rules about shortcuts: what tells a planted error from the clean run without reading for sense. A tracer that learns
//! from such a set learns the planting, and is worth nothing on errors that nobody planted. The set is not wrong for it, so
//! `export` does not refuse it; figures measured on it say less than they seem to.

mod copies;
mod design;
mod ending;
mod figures;
mod giveaway;
mod groups;
mod odd_modes;
mod position;
mod shape;
mod typography;

#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use twox_hash::XxHash3_64;

use super::{Finding, LintReport, NotedFindings, Rule};
use crate::{
    dataset::{
        Dataset, DatasetError, Index, PlacedSample, SampleKind, gold,
        statistics::{FEWEST, pairs},
    },
    score::Gold,
};
use copies::Questions;
use design::PlantedModes;
use ending::LogEnds;
use giveaway::AlteredReplies;
pub(in crate::dataset) use giveaway::giveaways;
use groups::RunGroups;
use odd_modes::Modes;
use position::StepPosition;

/// An area under the curve from which on something tells.
const TELLS: f64 = 0.8;
/// Most failures whose outlines are kept, so that memory is bounded; they are drawn by the hash of their id.
const FAILURES: usize = 4000;

impl Rule {
    /// Whether the rule is about what makes a dataset easy. What it finds is no defect of a sample.
    pub fn is_shortcut(self) -> bool {
        use Rule::{
            GivesItselfAway, ShortcutCopies, ShortcutDesign, ShortcutEnd, ShortcutFigures, ShortcutLength,
            ShortcutPart, ShortcutPosition, ShortcutShape, ShortcutSystem, ShortcutTypography, ShortcutWords,
        };
        matches!(
            self,
            GivesItselfAway
                | ShortcutCopies
                | ShortcutDesign
                | ShortcutEnd
                | ShortcutFigures
                | ShortcutLength
                | ShortcutPart
                | ShortcutPosition
                | ShortcutShape
                | ShortcutSystem
                | ShortcutTypography
                | ShortcutWords
        )
    }
}

/// What is kept of each sample.
#[derive(Default)]
pub(super) struct Shortcuts {
    index: Index,
    groups: RunGroups,
    questions: Questions,
    modes: Modes,
    planted: PlantedModes,
    failures: BTreeMap<(u64, String), Gold>,
}

impl Shortcuts {
    pub(super) fn add(&mut self, placed: &PlacedSample, noted: &NotedFindings<'_>) {
        self.index.add(placed);
        self.modes.add(placed, noted);
        let sample = &placed.sample;
        self.groups.add(sample);
        self.planted.add(sample);
        self.questions.add(sample);
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
        let (mut templates, mut manipulators) = (AlteredReplies::default(), AlteredReplies::default());
        let (mut position, mut ends) = (StepPosition::from_dataset(dataset), LogEnds::default());
        pairs(dataset, &self.index, |pair| {
            position.add(pair);
            ends.add(pair);
            manipulators.add_planted(pair, dataset)?;
            templates.add(&pair.error.template().unwrap_or_default(), pair, dataset)
        })?;
        let mut found: Vec<(Rule, String)> = manipulators.lines().map(|what| (Rule::GivesItselfAway, what)).collect();
        let named = |template: &str, what: String| format!("`{template}`: {what}");
        for (template, what) in templates.by_words() {
            found.push((Rule::ShortcutWords, named(&template, what)));
        }
        for (template, altered) in templates.altered() {
            let length = altered.length().filter(|_| altered.tasks.len() >= FEWEST);
            found.extend(length.map(|what| (Rule::ShortcutLength, named(template, what))));
            found.extend(altered.figures().map(|what| (Rule::ShortcutFigures, named(template, what))));
            found.extend(altered.typed().map(|what| (Rule::ShortcutTypography, named(template, what))));
        }
        found.extend(position.finding().map(|what| (Rule::ShortcutPosition, what)));
        found.extend(ends.finding().map(|what| (Rule::ShortcutEnd, what)));
        found.extend(self.planted.findings().into_iter().map(|what| (Rule::ShortcutDesign, what)));
        found.extend(self.groups.system().map(|what| (Rule::ShortcutSystem, what)));
        found.extend(self.groups.part().map(|what| (Rule::ShortcutPart, what)));
        found.extend(self.questions.finding().map(|what| (Rule::ShortcutCopies, what)));
        report.findings.extend(self.modes.odd());
        let golds: Vec<Gold> = self.failures.into_values().collect();
        found.extend(shape::finding(&golds).map(|what| (Rule::ShortcutShape, what)));
        let file = dataset.files().first().cloned().unwrap_or_default();
        let finding = |(rule, what)| Finding { rule, file: file.clone(), line: 0, sample: String::new(), what };
        report.findings.extend(found.into_iter().map(finding));
        Ok(())
    }
}

/// How long a reply is, its tool calls included.
#[expect(clippy::cast_precision_loss, reason = "a length is far below 2^52")]
fn characters(step: &crate::dataset::SampleStep) -> f64 {
    let texts = step.output.iter().flat_map(super::super::SampleMessage::texts);
    texts.map(|text| text.chars().count()).sum::<usize>() as f64
}
