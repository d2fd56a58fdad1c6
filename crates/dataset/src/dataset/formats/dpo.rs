//! Preference pairs of the agents' own replies: at the first step at which a failure and its clean twin differ, the
//! clean reply is chosen and the failed one rejected, under the prompt that both had.

use serde_json::{Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::{MESSAGE, TOOL, message, tools},
    format::split_field,
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::{
    dataset::{DatasetError, LabelledError, Sample, SampleMessage, SampleStep, Truth, lint::shares_beginning},
    recording::Recording,
    trajectory::{Attribution, Step},
};

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("prompt", Type::List(&MESSAGE)),
    Needed("chosen", Type::List(&MESSAGE)),
    Needed("rejected", Type::List(&MESSAGE)),
    Needed("id", Type::Text),
    Needed("agent", Type::Text),
    Needed("step", Type::Whole),
    May("tools", Type::List(&TOOL)),
    May("split", SPLIT),
]);

/// Why a failure is no pair with its twin.
pub(super) const NO_PAIR: Unfit = Unfit("a failure whose beginning is not its twin's");

/// Writes rows.
#[derive(Debug)]
pub(super) struct Dpo;

impl Format for Dpo {
    fn name(&self) -> &'static str {
        "dpo"
    }
    fn description(&self) -> &'static str {
        "preference pairs at the divergence of twins: `prompt`, `chosen` (clean), `rejected` (failed)"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn wants_twin(&self) -> bool {
        true
    }
    fn names_modes(&self) -> bool {
        true
    }

    fn trains(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let twin = context.twin.as_ref().ok_or(Unfit("no clean twin in the dataset"))?;
        if !shares_beginning(sample, twin) {
            return Err(NO_PAIR);
        }
        let (failed, clean) = divergence(sample, twin).ok_or(Unfit("never differs from its twin"))?;
        let planted = |errors: &[LabelledError]| errors.iter().any(|error| error.step == Some(failed.step));
        let besides = |truth: &Truth| planted(&truth.others) || planted(&truth.not_shown);
        if sample.label.as_ref().is_some_and(|truth| besides(truth) && !planted(&truth.errors)) {
            return Err(Unfit("a failure that differs from its twin first where it does not need to"));
        }
        let (Some(rejected), Some(chosen)) = (&failed.output, &clean.output) else {
            return Err(Unfit("no reply at the divergence"));
        };
        let mut row =
            row(twin, clean, sample, failed, chosen, rejected).ok_or(Unfit("no known prompt at the divergence"))?;
        if let Some(fields) = row.as_object_mut() {
            fields.extend(split_field(sample));
        }
        Ok(vec![WrittenPiece::row(row)])
    }
}

/// A row: the prompt is that of a step of the first sample, the ids are those of the second.
fn row(
    asked: &Sample,
    at: &SampleStep,
    sample: &Sample,
    failed: &SampleStep,
    chosen: &SampleMessage,
    rejected: &SampleMessage,
) -> Option<Value> {
    let prompt = asked.input(at.step)?;
    let mut row = json!({
        "prompt": prompt.into_iter().map(message).collect::<Vec<_>>(),
        "chosen": [message(chosen)],
        "rejected": [message(rejected)],
        "id": sample.id,
        "agent": failed.agent,
        "step": failed.step,
    });
    if let Some(fields) = row.as_object_mut() {
        fields.extend(tools(asked, at).map(|tools| ("tools".to_owned(), tools)));
    }
    Some(row)
}

/// The pair of the call of one step in two recordings that asked the same there: what the second run said is chosen. `None` where both said
/// the same, or one says nothing.
///
/// # Errors
/// [`DatasetError`] when a recording holds what no row can.
pub fn preference(failed: &Recording, accepted: &Recording, at: &Step) -> Result<Option<Value>, DatasetError> {
    let Attribution { agent, instance, .. } = &at.attribution;
    let (failed, accepted) = (Sample::alone(&without_label(failed))?, Sample::alone(&without_label(accepted))?);
    let of = |sample: &'_ Sample| {
        let is_it = |step: &&SampleStep| step.agent == *agent && step.instance == *instance && step.call == at.call;
        sample.steps.iter().find(is_it).cloned()
    };
    let (Some(one), Some(other)) = (of(&failed), of(&accepted)) else { return Ok(None) };
    let (Some(rejected), Some(chosen)) = (&one.output, &other.output) else { return Ok(None) };
    if rejected == chosen {
        return Ok(None);
    }
    Ok(row(&failed, &one, &failed, &one, chosen, rejected))
}

/// The recording without a label: a pair is no claim.
fn without_label(recording: &Recording) -> Recording {
    Recording { label: None, ..recording.clone() }
}

/// The first step of a failure whose reply is not that of the same call in the twin, with the twin's.
pub(super) fn divergence<'a>(sample: &'a Sample, twin: &'a Sample) -> Option<(&'a SampleStep, &'a SampleStep)> {
    let same = |a: &SampleStep, b: &SampleStep| a.agent == b.agent && a.instance == b.instance && a.call == b.call;
    let words = |step: &SampleStep| {
        step.output.as_ref().map(|output| {
            let calls: Vec<_> = output.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
            (output.text.clone(), calls)
        })
    };
    sample.steps.iter().find_map(|step| {
        let other = twin.steps.iter().find(|other| same(step, other))?;
        (words(step) != words(other)).then_some((step, other))
    })
}
