//! Supervised fine-tuning of a tracer: `messages` of attribution prompt and answer, one row a line; TRL, LLaMA-Factory,
//! Axolotl and the hosted services read it. Clean runs teach that nobody erred. An answer may be a call of a
//! tool; then the row has `tools` too.

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, ExportOptions, Format, Unfit, WrittenPiece,
    chat::{MESSAGE, PROMPT, TOOL},
    prompt::{self, AnswerForm},
    render::CUT,
    schema::{
        Field::{May, Needed},
        SPLIT, Type,
    },
};
use crate::dataset::Sample;

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("messages", Type::List(&MESSAGE)),
    May("tools", Type::List(&TOOL)),
    Needed("id", Type::Text),
    May("split", SPLIT),
    May("cut", CUT),
]);

/// What a row holds whose answer is text.
const PLAIN: Type = Type::Record(&[
    Needed("messages", Type::List(&PROMPT)),
    Needed("id", Type::Text),
    May("split", SPLIT),
    May("cut", CUT),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Sft;

impl Format for Sft {
    fn name(&self) -> &'static str {
        "sft"
    }
    fn description(&self) -> &'static str {
        "supervised fine-tuning: `messages` of attribution prompt and answer JSON, steps from 0"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn columns(&self, options: &ExportOptions) -> Type {
        if options.answer == AnswerForm::Call { ROW } else { PLAIN }
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
        let asked = context.options.prompt(sample, context.options.answer)?;
        let answer = context.options.template.answer(sample);
        let mut row = Map::new();
        let mut messages = asked.messages();
        if context.options.answer == AnswerForm::Call {
            let call = json!({"id": "call_0", "type": "function",
                "function": {"name": prompt::TOOL_NAME, "arguments": answer}});
            messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
            row.insert("tools".to_owned(), json!([prompt::tool()]));
        } else {
            messages.push(json!({"role": "assistant", "content": answer.to_string()}));
        }
        row.insert("messages".to_owned(), messages.into());
        row.insert("id".to_owned(), sample.id.clone().into());
        Ok(vec![WrittenPiece::asking(Value::Object(row), sample, &asked)])
    }
}
