//! Rules about a failure beside its clean twin: it is there, it is one, and both are the same up to the first
//! planted step.

use serde_json::json;

use super::{LintReport, NotedFindings, Rule, across::EarlierSamples, is_injected, quoted, reply};
use crate::{
    dataset::{Dataset, DatasetError, Entry, PlacedSample, Sample, SampleKind, SampleMessage, SampleStep, Truth},
    equality::{self, ComparedCall, ComparedContent, ComparedRun, OrderedCall, Parting, Rules},
};

/// Failures and their twins, read by their places.
pub(super) struct Twins<'a> {
    dataset: &'a Dataset,
    across: &'a EarlierSamples,
    /// The twin that was read last: failures of one task stand together.
    last: Option<Sample>,
}

impl<'a> Twins<'a> {
    pub(super) fn new(dataset: &'a Dataset, across: &'a EarlierSamples) -> Self {
        Self { dataset, across, last: None }
    }

    pub(super) fn check(mut self, report: &mut LintReport) -> Result<(), DatasetError> {
        for entry in self.across.paired.iter().filter(|entry| entry.kind != SampleKind::Clean) {
            let sample = self.dataset.at(entry)?;
            let file = self.dataset.files().get(entry.file).cloned().unwrap_or_default();
            let placed = PlacedSample { sample, file: entry.file, line: entry.line, offset: entry.offset };
            let mut noted = NotedFindings::new(report, file, &placed, self.dataset.harvest().is_some());
            self.pair(&placed.sample, &mut noted)?;
        }
        Ok(())
    }

    fn pair(&mut self, sample: &Sample, noted: &mut NotedFindings<'_>) -> Result<(), DatasetError> {
        let Some(id) = &sample.clean_twin else {
            // Of a run that stands alone, the executions without its error show what a twin would.
            if sample.kind == SampleKind::Failure && is_injected(sample) && !noted.of_corpus {
                noted.note(Rule::TwinMissing, "the failure names no clean twin");
            }
            return Ok(());
        };
        let Some(entry) = self.across.ids.get(id).copied() else {
            // Benign runs stand apart; their twins need not be there.
            if sample.kind == SampleKind::Failure {
                noted.note(Rule::TwinMissing, format!("no sample has the id {}", quoted(id)));
            }
            return Ok(());
        };
        let twin = self.read(id, &entry)?;
        compare(sample, twin, noted);
        Ok(())
    }

    fn read(&mut self, id: &str, entry: &Entry) -> Result<&Sample, DatasetError> {
        let kept = self.last.take().filter(|last| last.id == id);
        let twin = match kept {
            Some(kept) => kept,
            None => self.dataset.at(entry)?,
        };
        Ok(self.last.insert(twin))
    }
}

fn compare(sample: &Sample, twin: &Sample, noted: &mut NotedFindings<'_>) {
    if twin.kind != SampleKind::Clean {
        noted.note(Rule::TwinDiffers, format!("{} is no clean run", quoted(&twin.id)));
    } else if twin.task.id != sample.task.id || twin.system != sample.system {
        let what = format!("{} is of task {} and system {}", twin.id, quoted(&twin.task.id), quoted(&twin.system));
        noted.note(Rule::TwinDiffers, what);
    } else if is_injected(sample) {
        // A run whose first edit could not be made left the twin's record without one, and says so.
        let left =
            sample.label.as_ref().and_then(|label| label.evidence.as_ref()).and_then(|evidence| evidence.fork_step);
        if let Some(step) = first_difference(sample, twin).filter(|step| left.is_none_or(|left| *step < left as usize))
        {
            noted.note(
                Rule::PrefixDiffers,
                format!("step {step} is another than the twin's, before anything was planted"),
            );
        }
        reply::check(sample, twin, noted);
    }
}

/// Whether a failure begins as its twin does, up to the first planted step: else the two are no pair.
pub(in crate::dataset) fn shares_beginning(sample: &Sample, twin: &Sample) -> bool {
    !is_injected(sample) || first_difference(sample, twin).is_none()
}

/// The first step up to the first planted one that the twin does not have: same agent, same question and, before that step,
/// same answer, in the same order but for steps that overlapped.
fn first_difference(sample: &Sample, twin: &Sample) -> Option<usize> {
    // A label that points elsewhere says nothing of where the runs part; it has a rule of its own.
    let planted = sample.label.iter().flat_map(Truth::planted);
    let made = |step: u32, agent: &crate::trajectory::AgentName| {
        sample.steps.get(step as usize).is_some_and(|step| step.agent == *agent)
    };
    let edited: Vec<u32> = planted.filter_map(|error| error.step.filter(|step| made(*step, &error.agent))).collect();
    let first = edited.iter().min()?;
    let edited: Vec<usize> = edited.iter().filter_map(|step| usize::try_from(*step).ok()).collect();
    // A clean run does not know yet what its campaign learns from it. Rules that cannot be read excuse nothing.
    let rules = Rules::from_setting(&sample.equality, &sample.id).unwrap_or_default();
    let (sample, twin) = (compared_run(sample, &rules), compared_run(twin, &rules));
    let (Parting::Request(at) | Parting::Answered(at) | Parting::Missing(at)) =
        equality::parting_before(&twin, &sample, usize::try_from(*first).ok()?, &edited)?;
    Some(at)
}

/// The steps as they are compared.
fn compared_run(sample: &Sample, rules: &Rules) -> ComparedRun {
    let reduced = |said: &SampleMessage| {
        let text = if said.role == "tool" { rules.tool_results().reduce(&said.text) } else { said.text.clone() };
        SampleMessage { text, ..said.clone() }
    };
    let call = |(number, step): (u32, &SampleStep)| {
        let input = sample.input(number);
        let mut tools: Vec<&String> = step.tools.iter().collect();
        tools.sort_unstable();
        let said: Option<Vec<SampleMessage>> =
            input.as_ref().map(|said| said.iter().map(|said| reduced(said)).collect());
        let asked = ComparedContent {
            ids: input.iter().flatten().flat_map(|said| ids(said)).collect(),
            value: json!([step.model, tools, said]),
        };
        let answered = step.output.as_ref().map(|said| ComparedContent {
            ids: ids(said).collect(),
            value: json!([step.status, step.finish_reason, said]),
        });
        ComparedCall::new(step.agent.clone(), asked, answered, rules)
    };
    let words = |said: &[&SampleMessage]| said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n");
    let order = |step: &SampleStep| OrderedCall {
        agent: step.agent.clone(),
        instance: step.instance,
        answered: words(&step.output.iter().collect::<Vec<_>>()),
        opened: 0,
        closed: None,
    };
    let overlaps: Vec<bool> = sample.steps.iter().map(|step| step.overlaps).collect();
    let asked = |position: usize| {
        let input = u32::try_from(position).ok().and_then(|number| sample.input(number));
        words(&input.unwrap_or_default())
    };
    let calls = (0..).zip(&sample.steps).map(call).collect();
    ComparedRun::without_clock(calls, sample.steps.iter().map(order).collect(), asked, &overlaps)
}

fn ids(said: &SampleMessage) -> impl Iterator<Item = String> {
    said.calls.iter().map(|call| &call.id).chain(&said.answers).filter(|id| !id.is_empty()).cloned()
}
