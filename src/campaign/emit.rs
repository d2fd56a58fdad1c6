//! What a campaign leaves for others: verified labels beside their runs, and the dataset.

use std::collections::{BTreeSet, HashMap};

use super::{
    bench::CellBench,
    ended::{Class, EndedCell},
    error::CampaignError,
    funnel::{Concluded, InjectedRun, TaskState},
    markdown,
    report::CampaignReport,
};
use crate::{
    dataset::{About, Claims, Sample, SampleKind, Task, Writer},
    recording,
    trajectory::{Evidence, Label, LabelEntry, LabelStatus, Tally},
    viewer,
};

impl CellBench {
    /// Writes each label of a chain with where it stands and what was executed for it.
    pub(super) fn write_labels(&self, chain: &Concluded) -> Result<(), CampaignError> {
        for attempt in &chain.attempts {
            if let (Some(ended), Some(task)) = (&attempt.ended, chain.tasks.first())
                && let Some(label) = label(attempt, ended, task)
            {
                let dir = self.state.run_dir(&ended.run);
                if recording::read_label(&dir).ok().flatten().as_ref() != Some(&label) {
                    recording::write_label(&dir, &label)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the dataset: the clean run of each task that has a failure, and its failures; benign injections apart.
    /// Returns lines that say what is in it.
    pub(super) fn write_dataset(&self, concluded: &Concluded) -> Result<String, CampaignError> {
        let mut writer = Writer::create(self.state.root())?;
        let mut e_values = Vec::new();
        let mut repeatable = 0;
        let tasks: HashMap<&str, &Task> =
            self.house.campaign.tasks.iter().map(|task| (task.id.as_str(), task)).collect();
        // Attempts are in the order of the tasks.
        let mut left = concluded.attempts.as_slice();
        for task in &concluded.tasks {
            let of_task = |attempt: &&InjectedRun| attempt.system == task.system && attempt.task == task.task;
            let (attempts, rest) = left.split_at(left.iter().take_while(of_task).count());
            left = rest;
            let Some(reference) = &task.reference else { continue };
            let kept: Vec<_> = attempts.iter().filter_map(kept).collect();
            if kept.is_empty() {
                continue;
            }
            if let Some(twin) = self.state.ended(reference)? {
                writer.push(&self.sample(&tasks, &twin, SampleKind::Clean, None)?)?;
            }
            // Runs of one claim that came to the same outcome are one sample.
            let mut known = BTreeSet::new();
            for (attempt, ended, kind) in kept.iter().filter(|(one, _, kind)| known.insert((one.claim, *kind))) {
                let kind = *kind;
                let mut sample = self.sample(&tasks, ended, kind, Some(reference.to_string()))?;
                let same = kept.iter().filter(|(other, _, of)| (other.claim, *of) == (attempt.claim, kind));
                let labels = same.filter_map(|(_, other, _)| other.label.as_ref());
                sample.label.iter_mut().for_each(|truth| labels.clone().for_each(|label| truth.declare(label)));
                let evidence = sample.label.as_ref().and_then(|label| label.evidence.as_ref());
                if kind == SampleKind::Failure {
                    e_values.extend(evidence.and_then(Evidence::e));
                    repeatable += usize::from(evidence.is_some_and(Evidence::is_repeatable));
                }
                writer.push(&sample)?;
            }
        }
        let begun = concluded.claims - concluded.repeated();
        let claims = Claims::of(self.house.campaign.proof.alpha, begun, &e_values, repeatable);
        let said = claims.in_words();
        writer.state(claims);
        writer.miss(concluded.missing_chains);
        let manifest = writer.finish()?;
        let count = |kind| manifest.kinds.get(&kind).copied().unwrap_or_default();
        let (failures, twins) = (count(SampleKind::Failure), count(SampleKind::Clean));
        let path = self.state.root().join(crate::dataset::FILE);
        let benign = match count(SampleKind::Benign) {
            0 => String::new(),
            benign => format!(", {benign} benign apart"),
        };
        let rows = failures + twins;
        let path = path.display();
        Ok(format!(
            "dataset   {path}   {failures} failures, {rows} rows with their clean twins{benign}\n          {said}"
        ))
    }

    /// Writes the report: data, and two pages to read. The second is the viewer's, made of what lies in the directory by now.
    pub(super) fn write_report(&self, report: &CampaignReport) -> Result<(), CampaignError> {
        let unwritten = |error: serde_json::Error| CampaignError::Unwritten {
            path: self.state.root().join("report.json"),
            why: error.to_string(),
        };
        let mut data = serde_json::to_vec_pretty(report).map_err(unwritten)?;
        data.push(b'\n');
        self.state.replace("report.json", &data)?;
        self.state.replace("report.md", markdown::page(report).as_bytes())?;
        let page = viewer::campaign_bundle(self.state.root()).map_err(|error| CampaignError::Unwritten {
            path: self.state.root().join("report.html"),
            why: error.to_string(),
        })?;
        self.state.replace("report.html", page.html.as_bytes())
    }

    fn sample(
        &self,
        tasks: &HashMap<&str, &Task>,
        ended: &EndedCell,
        kind: SampleKind,
        clean_twin: Option<String>,
    ) -> Result<Sample, CampaignError> {
        let campaign = &self.house.campaign;
        let task = tasks.get(ended.task.as_str()).map(|task| Task::clone(task));
        let task = task.ok_or_else(|| CampaignError::Unwritten {
            path: self.state.root().join(crate::dataset::FILE),
            why: format!("cell {} is of task `{}`, which the campaign does not have", ended.run, ended.task),
        })?;
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

fn kept(attempt: &InjectedRun) -> Option<(&InjectedRun, &EndedCell, SampleKind)> {
    let kind = match attempt.class {
        Some(Class::Verified) => SampleKind::Failure,
        Some(Class::Benign) => SampleKind::Benign,
        _ => return None,
    };
    // A fault that changed nothing has no label.
    Some((attempt, attempt.ended.as_ref().filter(|ended| ended.label.is_some())?, kind))
}

/// The label of a run, with what was executed for it; `None` of a run that earned none.
fn label(attempt: &InjectedRun, ended: &EndedCell, task: &TaskState) -> Option<Label> {
    let label = ended.label.clone()?;
    let executed = attempt.executed.clone()?;
    let overdetermined = !attempt.necessity.is_empty() && attempt.necessity.iter().all(|one| !one.necessary);
    let is_error = |entry: &LabelEntry| overdetermined || attempt.necessity.iter().all(|one| one.finds(&entry.error));
    let (errors, others) = label.errors.into_iter().partition(is_error);
    let evidence = Evidence {
        executed: Some(executed),
        necessity: attempt.necessity.clone(),
        overdetermined,
        clean: Tally { passed: task.passed, of: task.runs },
        twin: task.reference.clone(),
        fork_step: attempt.fork_step,
        ..Evidence::default()
    };
    let status = attempt.standing.map_or(LabelStatus::Delivered, LabelStatus::from);
    Some(Label { status, errors, others, evidence: Some(evidence), ..label })
}
