//! What a campaign leaves for others: verified labels beside their runs, and the dataset.

use std::collections::BTreeSet;

use super::{
    Progress,
    bench::CellBench,
    chain::Chain,
    concluded::Concluded,
    conclusion::ChainConclusion,
    ended::{Class, EndedCell},
    error::CampaignError,
    funnel::{ConcludedChain, InjectedRun, TaskState},
    markdown,
    report::CampaignReport,
    report_sums::{ReportContext, ReportSums},
    rows_before::RowsBefore,
};
use crate::{
    dataset::{self, Sample, SampleKind, SampleLine, UnrecordedFacts, Writer},
    recording::{self, Masked},
    ruling,
    trajectory::{Evidence, Tally},
    viewer,
};

impl CellBench {
    /// Writes each label of a chain with where it stands and what was executed for it; that of a run of no claim says what was
    /// delivered.
    pub(super) fn write_labels(&self, chain: &ConcludedChain) -> Result<(), CampaignError> {
        for attempt in &chain.attempts {
            let (Some(ended), Some(task)) = (&attempt.ended, chain.tasks.first()) else { continue };
            let (Some(label), Some(evidence)) = (ended.label.clone(), evidence(attempt, task)) else {
                self.restore_label(ended)?;
                continue;
            };
            ruling::settle_proof(&self.state.run_dir(&ended.run), label, attempt.standing, evidence)?;
        }
        Ok(())
    }

    /// Writes what was delivered to a run as its label, if that says else; not where another rule has found one since.
    pub(super) fn restore_label(&self, ended: &EndedCell) -> Result<(), CampaignError> {
        let Some(own) = &ended.label else { return Ok(()) };
        Ok(ruling::restore(&self.state.run_dir(&ended.run), own)?)
    }

    /// The samples of a chain: the clean run of a task that has a failure or a benign injection, then these. With them the
    /// number of those that are left out, for an agent repeats the order that was planted in it.
    pub(super) fn sample_lines(
        &self,
        chain: Chain,
        concluded: &ConcludedChain,
    ) -> Result<(Vec<SampleLine>, usize), CampaignError> {
        let line = |sample: &Sample| {
            let path = self.state.root().join(dataset::FILE);
            SampleLine::from_sample(sample).map_err(|error| CampaignError::Unwritten { path, why: error.to_string() })
        };
        let Some(reference) = concluded.tasks.first().and_then(|task| task.reference.as_ref()) else {
            let lines = self.natural_samples(chain, concluded)?.iter().map(line).collect::<Result<_, _>>()?;
            return Ok((lines, 0));
        };
        let kept: Vec<_> = concluded.attempts.iter().filter_map(sample_kind).collect();
        // Runs of one claim that came to the same outcome are one sample, and so are runs of several that hold the same: what is
        // made anew in each run (ids, times) makes claims of them, and no data.
        let mut known = BTreeSet::new();
        let mut samples: Vec<Sample> = Vec::new();
        for (attempt, ended, kind) in kept.iter().filter(|(one, _, kind)| known.insert((one.claim, *kind))) {
            let kind = *kind;
            let sample = self.sample(chain, ended, kind, Some(reference.to_string()))?;
            let same = kept.iter().filter(|(other, _, of)| (other.claim, *of) == (attempt.claim, kind));
            let labels = same.filter_map(|(_, other, _)| other.label.as_ref());
            let place = samples.iter().position(|earlier| earlier.is_same_run(&sample)).unwrap_or(samples.len());
            if place == samples.len() {
                samples.push(sample);
            }
            if let Some(truth) = samples.get_mut(place).and_then(|sample| sample.label.as_mut()) {
                labels.for_each(|label| truth.declare(label));
            }
        }
        let all = samples.len();
        samples.retain(|sample| !sample.repeats_an_order());
        let left_out = all - samples.len();
        if let Some(twin) = self.state.ended(reference)?.filter(|_| !samples.is_empty()) {
            samples.insert(0, self.sample(chain, &twin, SampleKind::Clean, None)?);
        }
        samples.extend(self.decoy_samples(chain, concluded)?);
        let lines = samples.iter().map(line).collect::<Result<_, _>>()?;
        Ok((lines, left_out))
    }

    /// The samples of the decoys that were delivered, with what the proof made of them: it stands in no label beside a run.
    fn decoy_samples(&self, chain: Chain, concluded: &ConcludedChain) -> Result<Vec<Sample>, CampaignError> {
        let mut samples = Vec::new();
        for decoy in concluded.decoys.iter().filter(|decoy| decoy.delivered) {
            let (Some(ended), Some(task)) = (&decoy.ended, concluded.tasks.first()) else { continue };
            let twin = task.reference.as_ref().map(ToString::to_string);
            let mut recording = recording::read(&self.state.run_dir(&ended.run))?;
            let proof = ended.label.clone().zip(evidence(decoy, task));
            recording.label = proof.map(|(label, evidence)| ruling::proven(label, decoy.standing, evidence));
            samples
                .push(Sample::from_recording(&recording, self.sample_facts(chain, ended, SampleKind::Decoy, twin)?)?);
        }
        Ok(samples)
    }

    pub(super) fn sample(
        &self,
        chain: Chain,
        ended: &EndedCell,
        kind: SampleKind,
        clean_twin: Option<String>,
    ) -> Result<Sample, CampaignError> {
        let recording = recording::read(&self.state.run_dir(&ended.run))?;
        Ok(Sample::from_recording(&recording, self.sample_facts(chain, ended, kind, clean_twin)?)?)
    }

    fn sample_facts(
        &self,
        chain: Chain,
        ended: &EndedCell,
        kind: SampleKind,
        clean_twin: Option<String>,
    ) -> Result<UnrecordedFacts, CampaignError> {
        let campaign = &self.context.campaign;
        let task = campaign.tasks.get(chain.task).cloned().ok_or(CampaignError::Lost)?;
        Ok(UnrecordedFacts {
            kind,
            system: ended.system.clone(),
            split: Some(campaign.splits.assign(&task)),
            task,
            final_answer: ended.answer.clone(),
            clean_twin,
        })
    }

    /// Adds up what all chains came to, one after another in the order of the data, and writes data set and report of it.
    /// `of_all` is what holds of them together.
    pub(super) fn write_all(
        &self,
        chains: &[Chain],
        of_all: Concluded,
        told: ReportContext<'_>,
        progress: &dyn Progress,
    ) -> Result<(Concluded, CampaignReport), CampaignError> {
        let (campaign, root) = (&self.context.campaign, self.state.root());
        let mut concluded = of_all;
        let mut sums = ReportSums::begin(root)?;
        let cannot = |source| CampaignError::Directory { path: root.join(dataset::FILE), source };
        let mut before = RowsBefore::read(root).map_err(cannot)?;
        let mut writer = Writer::create(root)?;
        let mut left_out = 0;
        for chain in chains {
            let ChainConclusion { concluded: one, lines, repeating_orders } =
                ChainConclusion::read(root, campaign, *chain)?;
            let expected = campaign.tasks.get(chain.task).map_or("", |task| task.answer.as_str());
            sums.add(&one, expected, concluded.claims)?;
            concluded.add(&one);
            left_out += repeating_orders;
            for line in &lines {
                before.mark_rewritten(&line.text);
                writer.push_line(line)?;
            }
        }
        // A search ends before a call that cannot be paid for, and no refusal tells of it.
        concluded.exhausted |= concluded.unfinished > 0 && self.context.meter.is_spent();
        concluded.lines().iter().for_each(|line| progress.done(line));
        writer.leave_out(left_out);
        let kept = before.keep(root).map_err(cannot)?;
        progress.done(&self.finish_dataset(writer, &concluded)?);
        if let Some(line) = kept {
            progress.done(&line);
        }
        let report = sums.finish(campaign, &concluded, told)?;
        self.write_report(&report)?;
        Ok((concluded, report))
    }

    /// States how sure the labels are, and puts the data set in place. Returns lines that say what is in it.
    fn finish_dataset(&self, mut writer: Writer, concluded: &Concluded) -> Result<String, CampaignError> {
        // A search for a step claims once, at the same bound.
        let natural = concluded.natural.map_or(0, |natural| natural.claims);
        let begun = concluded.claims - concluded.repeated + natural;
        let said = writer.state_begun(self.context.campaign.proof.alpha, begun).in_words();
        writer.miss(concluded.missing_chains);
        writer.state_decoys(concluded.decoys_if_any());
        let manifest = writer.finish()?;
        let count = |kind| manifest.kinds.get(&kind).copied().unwrap_or_default();
        let (failures, twins) = (count(SampleKind::Failure), count(SampleKind::Clean));
        let path = self.state.root().join(dataset::FILE);
        let repeating = match manifest.repeating_orders {
            0 => String::new(),
            runs => format!("\n          {runs} left out: an agent repeats the order that was planted"),
        };
        let benign = match count(SampleKind::Benign) {
            0 => String::new(),
            benign => format!(", {benign} benign apart"),
        };
        let natural = match concluded.natural_labelled() {
            0 => String::new(),
            runs => format!(", {runs} of them natural"),
        };
        let parts = self.context.campaign.splits.empty_parts(&manifest.splits);
        let parts = parts.map(|empty| format!("\n          {empty}")).unwrap_or_default();
        let rows = failures + twins;
        let path = path.display();
        Ok(format!(
            "dataset   {path}   {}{natural}, {rows} rows with their clean twins{benign}{repeating}\n          {said}{parts}",
            dataset::failures(failures)
        ))
    }

    /// Writes the report: data, and a page to read.
    fn write_report(&self, report: &CampaignReport) -> Result<(), CampaignError> {
        let unwritten = |error: serde_json::Error| CampaignError::Unwritten {
            path: self.state.root().join("report.json"),
            why: error.to_string(),
        };
        let mut text = serde_json::to_vec_pretty(report).map_err(unwritten)?;
        text.push(b'\n');
        self.state.replace("report.json", &Masked::new(text))?;
        self.state.replace("report.md", &Masked::new(markdown::page(report)))
    }

    /// Writes the page: the viewer's, made of what lies in the directory by now.
    pub(super) fn write_page(&self) -> Result<(), CampaignError> {
        let page = viewer::campaign_bundle(self.state.root()).map_err(|error| CampaignError::Unwritten {
            path: self.state.root().join("report.html"),
            why: error.to_string(),
        })?;
        self.state.replace("report.html", &page.html)
    }
}

fn sample_kind(attempt: &InjectedRun) -> Option<(&InjectedRun, &EndedCell, SampleKind)> {
    let kind = match attempt.class {
        Some(Class::Verified) => SampleKind::Failure,
        Some(Class::Benign) => SampleKind::Benign,
        _ => return None,
    };
    // A fault that changed nothing has no label.
    Some((attempt, attempt.ended.as_ref().filter(|ended| ended.label.is_some())?, kind))
}

/// What was executed for the label of a run; `None` where nothing was.
fn evidence(attempt: &InjectedRun, task: &TaskState) -> Option<Evidence> {
    Some(Evidence {
        executed: Some(attempt.executed.clone()?),
        necessity: attempt.necessity.clone(),
        clean: Tally { passed: task.passed, of: task.runs },
        twin: task.reference.clone(),
        fork_step: attempt.fork_step,
        ..Evidence::default()
    })
}
