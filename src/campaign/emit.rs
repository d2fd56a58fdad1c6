//! What a campaign leaves for others: verified labels beside their runs, and the dataset.

use std::collections::BTreeSet;

use super::{
    bench::Bench,
    ended::{Class, Ended},
    error::CampaignError,
    funnel::{Attempt, Concluded, TaskState},
    html, markdown,
    report::Report,
};
use crate::{
    dataset::{About, Kind, Sample, Writer},
    recording,
    trajectory::{Evidence, Label, LabelStatus, StepIndex, Tally},
};

impl Bench {
    /// Writes the labels that are proven, each with what proves it.
    pub(super) fn write_labels(&self, concluded: &Concluded) -> Result<(), CampaignError> {
        for attempt in concluded.attempts.iter().filter(|attempt| attempt.class == Some(Class::Verified)) {
            let Some(ended) = &attempt.ended else { continue };
            let task = concluded.tasks.iter().find(|task| task.system == attempt.system && task.task == attempt.task);
            if let (Some(label), Some(task)) = (&ended.label, task) {
                let evidence = Some(evidence(attempt, label, task));
                let proven = Label { status: LabelStatus::Verified, evidence, ..label.clone() };
                recording::write_label(&self.state.run_dir(&ended.run), &proven)?;
            }
        }
        Ok(())
    }

    /// Writes the dataset: the clean run of each task that has a failure, and its failures; benign injections apart.
    /// Returns a line that says what is in it.
    pub(super) fn write_dataset(&self, concluded: &Concluded) -> Result<String, CampaignError> {
        let mut writer = Writer::create(self.state.root())?;
        for task in &concluded.tasks {
            let Some(reference) = &task.reference else { continue };
            let of_task = |attempt: &&Attempt| attempt.system == task.system && attempt.task == task.task;
            let kept: Vec<(&Ended, Kind)> = concluded.attempts.iter().filter(of_task).filter_map(kept).collect();
            if kept.is_empty() {
                continue;
            }
            if let Some(twin) = self.state.ended(reference)? {
                writer.push(&self.sample(&twin, Kind::Clean, None)?)?;
            }
            // Two plans that came to the same edit of the same run are one sample.
            let mut known = BTreeSet::new();
            for (ended, kind) in kept.into_iter().filter(|(ended, _)| known.insert(edits(ended))) {
                writer.push(&self.sample(ended, kind, Some(reference.to_string()))?)?;
            }
        }
        let manifest = writer.finish()?;
        let count = |kind| manifest.kinds.get(&kind).copied().unwrap_or_default();
        let (failures, twins) = (count(Kind::Failure), count(Kind::Clean));
        let path = self.state.root().join(crate::dataset::FILE);
        let benign = match count(Kind::Benign) {
            0 => String::new(),
            benign => format!(", {benign} benign apart"),
        };
        let rows = failures + twins;
        Ok(format!("dataset   {}   {failures} failures, {rows} rows with their clean twins{benign}", path.display()))
    }

    /// Writes the report: data, and two pages to read.
    pub(super) fn write_report(&self, report: &Report) -> Result<(), CampaignError> {
        let mut data = serde_json::to_vec_pretty(report).unwrap_or_default();
        data.push(b'\n');
        self.state.replace("report.json", &data)?;
        self.state.replace("report.md", markdown::page(report).as_bytes())?;
        self.state.replace("report.html", html::page(report).as_bytes())
    }

    fn sample(&self, ended: &Ended, kind: Kind, clean_twin: Option<String>) -> Result<Sample, CampaignError> {
        let campaign = &self.house.campaign;
        let task = campaign.tasks.iter().find(|task| task.id == ended.task).cloned().unwrap_or_default();
        let recording = recording::read(&self.state.run_dir(&ended.run))?;
        let about = About {
            kind,
            system: ended.system.clone(),
            split: Some(campaign.splits.of(&task)),
            task,
            final_answer: ended.answer.clone(),
            clean_twin,
        };
        Ok(Sample::of(&recording, about)?)
    }
}

fn kept(attempt: &Attempt) -> Option<(&Ended, Kind)> {
    let kind = match attempt.class {
        Some(Class::Verified) => Kind::Failure,
        Some(Class::Benign) => Kind::Benign,
        _ => return None,
    };
    // A fault that changed nothing has no label.
    Some((attempt.ended.as_ref().filter(|ended| ended.label.is_some())?, kind))
}

/// What was really altered, by the hashes of what it was and became.
fn edits(ended: &Ended) -> Vec<(StepIndex, String, String)> {
    let errors = ended.label.iter().flat_map(|label| &label.errors);
    errors.map(|entry| (entry.error.step, entry.error.before.clone(), entry.error.after.clone())).collect()
}

/// What proves a label.
fn evidence(attempt: &Attempt, label: &Label, task: &TaskState) -> Evidence {
    let (passed, of) = attempt.controls.unwrap_or_default();
    let needed = attempt.needed.iter().filter(|(_, needed)| **needed).map(|(injection, _)| *injection);
    Evidence {
        clean: Tally { passed: task.passed, of: task.runs },
        controls: Tally { passed, of },
        twin: task.reference.clone(),
        fork_step: label.errors.iter().map(|entry| entry.error.step).min(),
        needed: needed.collect(),
        ..Evidence::default()
    }
}
