//! Preference pairs of the agents' own replies: at the first step at which a failure and its clean twin differ, the
//! clean reply is chosen and the failed one rejected, under the prompt that both had.

use serde_json::json;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::{MESSAGE, TOOL, message, tools},
    format::split_field,
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::dataset::{LabelledError, Sample, SampleStep};

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

/// Writes rows.
#[derive(Debug)]
pub(super) struct Dpo;

impl Format for Dpo {
    fn name(&self) -> &'static str {
        "dpo"
    }
    fn about(&self) -> &'static str {
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
    fn trains(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let twin = context.twin.as_ref().ok_or(Unfit("no clean twin in the dataset"))?;
        let (failed, clean) = divergence(sample, twin).ok_or(Unfit("never differs from its twin"))?;
        let planted = |errors: &[LabelledError]| errors.iter().any(|error| error.step == Some(failed.step));
        if sample.label.as_ref().is_some_and(|truth| planted(&truth.others) && !planted(&truth.errors)) {
            return Err(Unfit("a failure that differs from its twin first where it does not need to"));
        }
        let (Some(rejected), Some(chosen)) = (&failed.output, &clean.output) else {
            return Err(Unfit("no reply at the divergence"));
        };
        let prompt = twin.input(clean.step).ok_or(Unfit("no known prompt at the divergence"))?;
        let mut row = json!({
            "prompt": prompt.into_iter().map(message).collect::<Vec<_>>(),
            "chosen": [message(chosen)],
            "rejected": [message(rejected)],
            "id": sample.id,
            "agent": failed.agent,
            "step": failed.step,
        });
        if let Some(fields) = row.as_object_mut() {
            fields.extend(tools(twin, clean).map(|tools| ("tools".to_owned(), tools)));
            fields.extend(split_field(sample));
        }
        Ok(vec![WrittenPiece::row(row)])
    }
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
