//! verl's rows, as Aegis trained on them: one row serves SFT (`extra_info.question`, `extra_info.answer`) and RL
//! (`prompt`, `reward_model`). verl reads Parquet: name the file `….parquet`.

use serde_json::json;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::PROMPT,
    pretty,
    prompt::AnswerForm,
    render::CUT,
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::dataset::{Sample, Split};

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("data_source", Type::Text),
    Needed("prompt", Type::List(&PROMPT)),
    Needed("ability", Type::Text),
    Needed("reward_model", Type::Record(&[Needed("ground_truth", Type::Text), Needed("style", Type::Text)])),
    May("split", SPLIT),
    May("cut", CUT),
    Needed(
        "extra_info",
        Type::Record(&[
            Needed("question", Type::Text),
            Needed("answer", Type::Text),
            Needed("index", Type::Whole),
            Needed("split", Type::OneOf(&["train", "val", "test"])),
            Needed("original_id", Type::Text),
        ]),
    ),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Verl;

impl Format for Verl {
    fn name(&self) -> &'static str {
        "verl"
    }
    fn description(&self) -> &'static str {
        "verl rows for SFT and RL: prompt, reward model with ground truth, question and answer, steps from 0"
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
        let answer = String::from_utf8(pretty(&context.options.template.answer(sample), b"  ")).unwrap_or_default();
        let answer = answer.trim_end();
        let split = match sample.split {
            Some(Split::Validation) => "val",
            Some(Split::Test) => "test",
            Some(Split::Train) | None => "train",
        };
        let row = json!({
            "data_source": "maserror/agent_detection",
            "prompt": asked.messages(),
            "ability": "error_detection",
            "reward_model": {"ground_truth": answer, "style": "structured"},
            "extra_info": {"question": asked.text, "answer": answer, "index": context.number, "split": split,
                "original_id": sample.id},
        });
        Ok(vec![WrittenPiece::asking(row, sample, &asked)])
    }
}
