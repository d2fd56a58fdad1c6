//! What a trace found of a run: `trace.json`, as far as steps are marked by it.

use std::path::Path;

use serde::Deserialize;

use crate::{
    recording::RunFile,
    trajectory::{AgentName, StepIndex},
};

/// What a trace writes beside the run.
pub(super) const TRACE_FILE: &str = "trace.json";

/// The steps that a trace named.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Traced {
    earliest_flip: Option<TracedName>,
    commitment: Option<TracedName>,
    flips: Vec<TracedName>,
    coupled: Vec<TracedName>,
    not_found: Option<String>,
    steps: Vec<TracedStep>,
}

/// The executions that a trace made for a step.
#[derive(Debug, Deserialize)]
struct TracedStep {
    step: StepIndex,
    #[serde(default)]
    #[serde(rename = "null_runs")]
    control_runs: Vec<String>,
    #[serde(default)]
    treated_runs: Vec<String>,
}

/// A step that a trace named.
#[derive(Debug, Deserialize)]
struct TracedName {
    step: StepIndex,
    agent: AgentName,
    #[serde(default)]
    instance: u32,
}

impl Traced {
    /// What lies beside the run; `None` where it was not traced, or by another version.
    pub fn read(run_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&RunFile::bytes(&run_dir.join(TRACE_FILE)).ok()?).ok()
    }

    /// One line: what was found.
    pub fn line(&self) -> String {
        let place = |named: &TracedName| format!("{} at step {}", named.agent.numbered(named.instance), named.step);
        let one =
            |name: &str, named: &Option<TracedName>| named.as_ref().map(|named| format!("{name}: {}", place(named)));
        let named = [one("earliest flip", &self.earliest_flip), one("commitment", &self.commitment)];
        let mut parts: Vec<String> = named.into_iter().flatten().collect();
        for (name, steps) in [("flips", &self.flips), ("coupled", &self.coupled)] {
            if parts.is_empty() && !steps.is_empty() {
                parts.push(format!("{name}: {}", steps.iter().map(place).collect::<Vec<_>>().join(", ")));
            }
        }
        let nothing = || self.not_found.clone().unwrap_or_else(|| "nothing found".to_owned());
        if parts.is_empty() { nothing() } else { parts.join("; ") }
    }

    /// How many executions it made.
    pub fn executions(&self) -> usize {
        self.steps.iter().map(|step| step.control_runs.len() + step.treated_runs.len()).sum()
    }

    /// The step that an execution was made for: up to it, a record answered.
    pub(super) fn made_for(&self, run: &str) -> Option<StepIndex> {
        let holds = |step: &&TracedStep| step.control_runs.iter().chain(&step.treated_runs).any(|one| one == run);
        self.steps.iter().find(holds).map(|step| step.step)
    }

    /// The words for what a step was found to be, each one of `earliest flip`, `commitment`, `flip`, `coupled`.
    pub(super) fn finding_words(&self, step: StepIndex) -> Vec<&'static str> {
        let is = |named: &Option<TracedName>| named.as_ref().is_some_and(|named| named.step == step);
        let among = |steps: &[TracedName]| steps.iter().any(|named| named.step == step);
        let (first, last) = (is(&self.earliest_flip), is(&self.commitment));
        let marks = [
            (first, "earliest flip"),
            (last, "commitment"),
            (!first && !last && among(&self.flips), "flip"),
            (among(&self.coupled), "coupled"),
        ];
        marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect()
    }

    /// What marks a step.
    pub fn mark(&self, step: StepIndex) -> Option<String> {
        let marks = self.finding_words(step);
        (!marks.is_empty()).then(|| format!("◀ {}", marks.join(", ")))
    }
}
