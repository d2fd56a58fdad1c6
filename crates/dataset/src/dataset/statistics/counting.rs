//! Counts samples as they come.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{AgentFacts, LabelFacts, Lengths, Position, Probed, Statistics, Summary, TwinFacts};
use crate::{
    dataset::{Grounds, Index, LabelledError, PlacedSample, Sample, SampleKind, SampleMessage, Truth},
    trajectory::{CatchState, FailureMode, PrincipalKind, Side},
};

/// What has been counted.
#[derive(Debug, Default)]
pub(super) struct SampleCounts {
    statistics: Statistics,
    /// Where each sample stands.
    pub(super) index: Index,
    pub(super) grounds: Grounds,
    tasks: BTreeSet<u64>,
    agents: BTreeMap<(String, String), (u64, u64)>,
    steps: Vec<u64>,
    characters: Vec<u64>,
    /// Clean runs by id: failures that name them.
    clean: HashMap<String, u64>,
    /// Twins that failures name.
    named: HashMap<String, u64>,
    unpaired: u64,
}

impl SampleCounts {
    pub(super) fn add(&mut self, placed: &PlacedSample) {
        let sample = &placed.sample;
        self.index.add(placed);
        self.grounds.add(sample);
        let statistics = &mut self.statistics;
        statistics.samples += 1;
        count(&mut statistics.kinds, format!("{:?}", sample.kind).to_lowercase());
        let split = sample.split.map_or_else(|| "none".to_owned(), |split| format!("{split:?}").to_lowercase());
        count(&mut statistics.splits, split);
        count(&mut statistics.systems, sample.system.clone());
        count(&mut statistics.backends, sample.backend.clone());
        self.tasks.insert(twox_hash::XxHash3_64::oneshot(sample.task.id.as_bytes()));
        self.lengths(sample);
        for step in &sample.steps {
            self.agents.entry((sample.system.clone(), step.agent.to_string())).or_default().0 += 1;
        }
        match sample.kind {
            SampleKind::Clean => drop(self.clean.insert(sample.id.clone(), 0)),
            SampleKind::Failure => self.failure(sample),
            SampleKind::Benign | SampleKind::Decoy => {}
        }
    }

    fn lengths(&mut self, sample: &Sample) {
        self.steps.push(sample.steps.len() as u64);
        let said = sample.steps.iter().flat_map(|step| {
            let new = step.input.iter().flat_map(|input| &input.messages);
            new.chain(&step.output).flat_map(SampleMessage::texts)
        });
        self.characters.push(said.map(|text| text.chars().count() as u64).sum());
    }

    fn failure(&mut self, sample: &Sample) {
        match &sample.clean_twin {
            Some(twin) => *self.named.entry(twin.clone()).or_default() += 1,
            None => self.unpaired += 1,
        }
        let Some(label) = &sample.label else { return };
        self.label(label);
        for error in &label.errors {
            self.agents.entry((sample.system.clone(), error.agent.to_string())).or_default().1 += 1;
            self.position(sample, error);
        }
    }

    fn label(&mut self, label: &Truth) {
        let facts = &mut self.statistics.labels;
        count(&mut facts.definitions, label.definition.clone());
        *facts.errors_per_sample.entry(label.errors.len() as u64).or_default() += 1;
        facts.others += label.others.len() as u64;
        facts.not_shown += label.not_shown.len() as u64;
        for missed in label.missed_catch.iter().filter(|found| found.state == CatchState::Missed) {
            count(&mut facts.missed_catch, missed.agent.to_string());
        }
        for error in &label.errors {
            facts.errors += 1;
            count(&mut facts.culprits, error.culprit.name().to_owned());
            for mode in error.modes() {
                count(&mut facts.modes, format!("{} {}", mode.code, mode.name));
            }
            if let Some(side) = error.side {
                let side = if side == Side::Request { "request" } else { "response" };
                count(&mut facts.sides, side.to_owned());
            }
            if let Some(operator) = &error.operator {
                count(&mut facts.manipulators, operator.clone());
            }
        }
    }

    fn position(&mut self, sample: &Sample, error: &LabelledError) {
        let position = &mut self.statistics.position;
        let Some(step) = error.step else { return };
        *position.step.entry(step).or_default() += 1;
        let tenth = (step as usize * 10).checked_div(sample.steps.len()).unwrap_or_default();
        if let Some(tenth) = position.tenth.get_mut(tenth.min(9)) {
            *tenth += 1;
        }
        position.first_call += u64::from(error.call == Some(0));
    }

    pub(super) fn finish(mut self, probe: Vec<Probed>) -> Statistics {
        let culprits = &mut self.statistics.labels.culprits;
        if culprits.keys().all(|name| name == PrincipalKind::Agent.name()) {
            culprits.clear();
        }
        let mut clean = self.clean;
        let mut unpaired = self.unpaired;
        for (twin, failures) in self.named {
            match clean.get_mut(&twin) {
                Some(count) => *count += failures,
                None => unpaired += failures,
            }
        }
        let per_clean: Vec<u64> = clean.into_values().collect();
        let twins = TwinFacts {
            clean: per_clean.len() as u64,
            paired: per_clean.iter().sum(),
            unpaired,
            failures_per_clean: Summary::from_numbers(per_clean),
        };
        let agents = self.agents.into_iter().map(|((system, agent), (steps, errors))| AgentFacts {
            system,
            agent,
            steps,
            errors,
        });
        Statistics {
            tasks: self.tasks.len() as u64,
            agents: agents.collect(),
            labels: evened(self.statistics.labels),
            lengths: Lengths {
                steps: Summary::from_numbers(self.steps),
                characters: Summary::from_numbers(self.characters),
            },
            position: Position { ..self.statistics.position },
            twins,
            probe,
            ..self.statistics
        }
    }
}

/// Adds how even the modes are.
#[expect(clippy::cast_precision_loss, reason = "shares are rounded anyway")]
fn evened(mut labels: LabelFacts) -> LabelFacts {
    let total: u64 = labels.modes.values().sum();
    let share = |count: &u64| *count as f64 / total as f64;
    let entropy: f64 = labels.modes.values().map(share).map(|share| -share * share.ln()).sum();
    // Of one mode it is -0, which the maximum of it and 0 may be too.
    let entropy = if entropy > 0.0 { entropy } else { 0.0 };
    labels.mode_evenness = (total > 0).then(|| entropy / (FailureMode::ALL.len() as f64).ln());
    let has = |mode: &FailureMode| labels.modes.keys().any(|known| known.starts_with(&format!("{} ", mode.code())));
    let missing = FailureMode::ALL.iter().filter(|mode| total > 0 && !has(mode));
    labels.modes_missing = missing.map(|mode| mode.code().to_owned()).collect();
    labels
}

fn count(counts: &mut BTreeMap<String, u64>, key: String) {
    *counts.entry(key).or_default() += 1;
}
