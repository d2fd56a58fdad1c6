//! Rollouts of a tracer with TRL's GRPO or RLOO: `prompt`, and beside it what a reward function is handed by name.

use serde_json::json;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::PROMPT,
    prompt::AnswerForm,
    render::CUT,
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::dataset::Sample;

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("prompt", Type::List(&PROMPT)),
    Needed("ground_truth", Type::Text),
    Needed("id", Type::Text),
    May("split", SPLIT),
    May("cut", CUT),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Grpo;

impl Format for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }
    fn description(&self) -> &'static str {
        "GRPO: `prompt` messages and `ground_truth` for a reward function, steps from 0"
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
    fn names_modes(&self) -> bool {
        true
    }

    fn trains(&self) -> bool {
        true
    }
    fn holds_question(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let asked = context.options.prompt(sample, AnswerForm::Text)?;
        let row = json!({
            "prompt": asked.messages(),
            "ground_truth": context.options.template.answer(sample).to_string(),
            "id": sample.id,
        });
        Ok(vec![WrittenPiece::asking(row, sample, &asked)])
    }
}
