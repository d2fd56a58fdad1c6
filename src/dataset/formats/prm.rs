//! Process reward models: TRL's stepwise supervision. Every step up to the erroneous one, which is labelled
//! false; what follows it is neither right nor wrong and is left out.

use serde_json::json;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    admit::culprit,
    foreign::spoken,
    schema::{Field::Needed, Type},
};
use crate::dataset::Sample;

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("prompt", Type::Text),
    Needed("completions", Type::List(&Type::Text)),
    Needed("labels", Type::List(&Type::Flag)),
    Needed("id", Type::Text),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Prm;

impl Format for Prm {
    fn name(&self) -> &'static str {
        "prm"
    }
    fn about(&self) -> &'static str {
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
    fn pieces(&self, sample: &Sample, _: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let first = match &sample.label {
            Some(truth) => {
                let step = culprit(sample)?.step.ok_or(Unfit("no labelled step"))?;
                if truth.others.iter().any(|other| other.step.is_some_and(|other| other < step)) {
                    // It was altered, so it is not right; the failure does not need it, so it is not wrong.
                    return Err(Unfit("a failure before whose error something else was planted"));
                }
                Some(step)
            }
            None => None,
        };
        let shown = sample.steps.iter().take_while(|step| first.is_none_or(|first| step.step <= first));
        let (completions, labels): (Vec<String>, Vec<bool>) =
            shown.map(|step| (format!("{}: {}", step.agent, spoken(step)), Some(step.step) != first)).unzip();
        let row =
            json!({"prompt": sample.task.question, "completions": completions, "labels": labels, "id": sample.id});
        Ok(vec![WrittenPiece::row(row)])
    }
}
