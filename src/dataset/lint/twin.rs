//! Rules about a failure beside its clean twin: it is there, it is one, and both are the same up to the first error.

use std::collections::HashMap;

use super::{Noted, Report, Rule, across::Across, is_injected, quoted};
use crate::dataset::{Called, Dataset, DatasetError, Entry, Kind, Placed, Said, Sample};

/// Failures and their twins, read by their places.
pub(super) struct Twins<'a> {
    dataset: &'a Dataset,
    across: &'a Across,
    /// The twin that was read last: failures of one task stand together.
    last: Option<Sample>,
}

impl<'a> Twins<'a> {
    pub(super) fn of(dataset: &'a Dataset, across: &'a Across) -> Self {
        Self { dataset, across, last: None }
    }

    pub(super) fn check(mut self, report: &mut Report) -> Result<(), DatasetError> {
        for entry in self.across.paired.iter().filter(|entry| entry.kind != Kind::Clean) {
            let sample = self.dataset.at(entry)?;
            let file = self.dataset.files().get(entry.file).cloned().unwrap_or_default();
            let placed = Placed { sample, file: entry.file, line: entry.line, offset: entry.offset };
            let mut noted = Noted::new(report, file, &placed);
            self.pair(&placed.sample, &mut noted)?;
        }
        Ok(())
    }

    fn pair(&mut self, sample: &Sample, noted: &mut Noted<'_>) -> Result<(), DatasetError> {
        let Some(id) = &sample.clean_twin else {
            if sample.kind == Kind::Failure && is_injected(sample) {
                noted.note(Rule::TwinMissing, "the failure names no clean twin");
            }
            return Ok(());
        };
        let Some(entry) = self.across.ids.get(id).copied() else {
            // Benign runs stand apart; their twins need not be there.
            if sample.kind == Kind::Failure {
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

fn compare(sample: &Sample, twin: &Sample, noted: &mut Noted<'_>) {
    if twin.kind != Kind::Clean {
        noted.note(Rule::TwinDiffers, format!("{} is no clean run", quoted(&twin.id)));
    } else if twin.task.id != sample.task.id || twin.system != sample.system {
        let what = format!("{} is of task {} and system {}", twin.id, quoted(&twin.task.id), quoted(&twin.system));
        noted.note(Rule::TwinDiffers, what);
    } else if is_injected(sample)
        && let Some(step) = first_difference(sample, twin)
    {
        noted.note(Rule::PrefixDiffers, format!("step {step} is another than the twin's, before the first error"));
    }
}

/// The first step up to the first error that the twin does not have: same agent and call, same question, and, before
/// the error, same answer.
fn first_difference(sample: &Sample, twin: &Sample) -> Option<u32> {
    // A label that points elsewhere says nothing of where the runs part; it has a rule of its own.
    let errors = sample.label.iter().flat_map(|label| &label.errors);
    let made = |step: u32, agent: &crate::trajectory::AgentName| {
        sample.steps.get(step as usize).is_some_and(|step| step.agent == *agent)
    };
    let first = errors.filter_map(|error| error.step.filter(|step| made(*step, &error.agent))).min()?;
    let mut ids = Ids::default();
    (0..).zip(&sample.steps).take_while(|(index, _)| *index <= first).find_map(|(index, step)| {
        let its = |other: &&crate::dataset::SampleStep| {
            (&other.agent, other.instance, other.call) == (&step.agent, step.instance, step.call)
        };
        let place = twin.steps.iter().position(|other| its(&other));
        let other = place.and_then(|place| twin.steps.get(place));
        let asked = place.and_then(|place| u32::try_from(place).ok()).and_then(|place| twin.input(place));
        let asked = match (sample.input(index), asked) {
            (Some(one), Some(other)) => ids.same_messages(&one, &other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let mut answered = || match (&step.output, other.and_then(|other| other.output.as_ref())) {
            (Some(one), Some(other)) => ids.same_message(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let same = other.is_some() && asked && (index == first || answered());
        (!same).then_some(index)
    })
}

/// The ids of tool calls in two runs, one beside the other. A program may make ids of its own, new ones in each run;
/// what counts is that a result answers the same call.
#[derive(Debug, Default)]
struct Ids<'a> {
    there: HashMap<&'a str, &'a str>,
    here: HashMap<&'a str, &'a str>,
}

impl<'a> Ids<'a> {
    fn same(&mut self, one: &'a str, other: &'a str) -> bool {
        *self.there.entry(one).or_insert(other) == other && *self.here.entry(other).or_insert(one) == one
    }

    fn same_messages(&mut self, one: &[&'a Said], other: &[&'a Said]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(&one, &other)| self.same_message(one, other))
    }

    fn same_message(&mut self, one: &'a Said, other: &'a Said) -> bool {
        let Said { role, name, text, calls, answers, opaque } = one;
        let said = (role, name, text, opaque) == (&other.role, &other.name, &other.text, &other.opaque);
        let answers = match (answers, &other.answers) {
            (Some(one), Some(other)) => self.same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let call = |(one, other): (&'a Called, &'a Called)| {
            (&one.name, &one.arguments) == (&other.name, &other.arguments) && self.same(&one.id, &other.id)
        };
        said && answers && calls.len() == other.calls.len() && calls.iter().zip(&other.calls).all(call)
    }
}
