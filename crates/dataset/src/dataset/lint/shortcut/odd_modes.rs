//! Modes that stand alone: one kind of edit of one agent is declared under one mode nearly always, and under another once.

use std::collections::BTreeMap;

use super::super::{Finding, NotedFindings, Rule, quoted};
use crate::dataset::{PlacedSample, SampleKind};

/// Labels of one mode from which on another of the same edit is odd, for each of that other.
const USUAL: usize = 8;

/// What an edit is known by, beside its mode.
type DeclaredEdit = (String, String, String, Option<u64>, Option<u32>);

/// Labels by edit and mode.
#[derive(Default)]
pub(super) struct Modes(BTreeMap<DeclaredEdit, BTreeMap<String, Vec<Finding>>>);

impl Modes {
    pub(super) fn add(&mut self, placed: &PlacedSample, noted: &NotedFindings<'_>) {
        let sample = &placed.sample;
        let Some(label) = sample.label.as_ref().filter(|_| sample.kind != SampleKind::Clean) else { return };
        for error in label.planted() {
            let (Some(operator), Some(mode)) = (error.planted_by(), &error.failure_mode) else { continue };
            // One edit that is declared under several modes is odd in none of them, and a model writes for each mode anew.
            if !error.other_modes.is_empty() || operator == "rewrite_with_model" {
                continue;
            }
            let side = error.side.map(|side| format!(" {side:?}")).unwrap_or_default();
            let edit = (
                sample.system.clone(),
                error.agent.to_string(),
                operator.to_owned() + &side,
                label.seed,
                error.injection,
            );
            let what = format!("`{operator}` of `{}` is {} here", error.agent, quoted(&mode.code));
            let finding = noted.finding(Rule::OddMode, what);
            self.0.entry(edit).or_default().entry(mode.code.clone()).or_default().push(finding);
        }
    }

    /// The labels whose mode is odd.
    pub(super) fn odd(self) -> Vec<Finding> {
        self.0.into_values().flat_map(odd_of).collect()
    }
}

/// The labels of one edit whose mode is odd.
fn odd_of(modes: BTreeMap<String, Vec<Finding>>) -> Vec<Finding> {
    let usual = modes.iter().max_by_key(|(_, found)| found.len());
    let Some((usual, count)) = usual.map(|(mode, found)| (mode.clone(), found.len())) else { return Vec::new() };
    let odd = modes.into_values().filter(|found| found.len() * USUAL <= count).flatten();
    let beside = |mut finding: Finding| {
        finding.what = format!("{}, and {usual} in {count} other labels of the same edit", finding.what);
        finding
    };
    odd.map(beside).collect()
}
