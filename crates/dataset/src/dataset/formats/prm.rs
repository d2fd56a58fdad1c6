//! Process reward models: stepwise supervision. Every step up to the erroneous one, which is labelled
//! false; what follows it is neither right nor wrong and is left out.

use serde_json::json;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    admit::culprit,
    format::split_field,
    render::{Inputs, render_steps},
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::{dataset::Sample, trajectory::StepIndex};

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("prompt", Type::Text),
    Needed("completions", Type::List(&Type::Text)),
    Needed("labels", Type::List(&Type::Flag)),
    Needed("id", Type::Text),
    May("split", SPLIT),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Prm;

impl Format for Prm {
    fn name(&self) -> &'static str {
        "prm"
    }
    fn description(&self) -> &'static str {
        "stepwise supervision: `prompt`, `completions` up to the one error, `labels`"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn trains(&self) -> bool {
        true
    }
    fn fits(&self, sample: &Sample) -> Result<(), Unfit> {
        wrong_step(sample).map(drop)
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let first = wrong_step(sample)?;
        let told = render_steps(sample, context.options.inputs_or(Inputs::New));
        let shown = sample.steps.iter().zip(&told).take_while(|(step, _)| first.is_none_or(|first| step.step <= first));
        let one = |(step, told): (&crate::dataset::SampleStep, &super::render::RenderedStep)| {
            (format!("{}: {}", step.agent, told.both_parts()), Some(step.step) != first)
        };
        let (completions, labels): (Vec<String>, Vec<bool>) = shown.map(one).unzip();
        let mut row =
            json!({"prompt": sample.task.question, "completions": completions, "labels": labels, "id": sample.id});
        if let Some(fields) = row.as_object_mut() {
            fields.extend(split_field(sample));
        }
        Ok(vec![WrittenPiece::row(row)])
    }
}

/// The step that is wrong; none of a clean run.
fn wrong_step(sample: &Sample) -> Result<Option<StepIndex>, Unfit> {
    let Some(truth) = &sample.label else { return Ok(None) };
    let step = culprit(sample)?.step.ok_or(Unfit("no labelled step"))?;
    if truth.others.iter().chain(&truth.not_shown).any(|other| other.step.is_some_and(|other| other < step)) {
        // It was altered, so it is not right; the failure does not need it, so it is not wrong.
        return Err(Unfit("a failure before whose error something else was planted"));
    }
    Ok(Some(step))
}
