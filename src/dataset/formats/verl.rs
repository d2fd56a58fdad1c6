//! verl's rows, as Aegis trained on them: one row serves SFT (`extra_info.question`, `extra_info.answer`) and RL
//! (`prompt`, `reward_model`). verl reads Parquet: `pandas.read_json(…, lines=True).to_parquet(…)` makes it.

use serde_json::json;

use super::{Context, Format, Piece, Shape, Unfit, pretty, prompt};
use crate::dataset::{Sample, Split};

/// Writes rows.
#[derive(Debug)]
pub(super) struct Verl;

impl Format for Verl {
    fn name(&self) -> &'static str {
        "verl"
    }
    fn about(&self) -> &'static str {
        "verl rows for SFT and RL: prompt, reward model with ground truth, question and answer, steps from 0"
    }
    fn shape(&self) -> Shape {
        Shape::Lines
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &Context<'_>) -> Result<Vec<Piece>, Unfit> {
        let asked = context.options.prompt(sample)?;
        let answer = String::from_utf8(pretty(&prompt::answer(sample), b"  ")).unwrap_or_default();
        let answer = answer.trim_end();
        let split = match sample.split {
            Some(Split::Validation) => "val",
            Some(Split::Test) => "test",
            Some(Split::Train) | None => "train",
        };
        let row = json!({
            "data_source": "maserror/agent_detection",
            "prompt": [{"role": "user", "content": asked.text}],
            "ability": "error_detection",
            "reward_model": {"ground_truth": answer, "style": "structured"},
            "extra_info": {"question": asked.text, "answer": answer, "index": context.number, "split": split,
                "original_id": sample.id},
        });
        Ok(vec![Piece::row(&row).cut(asked.cut)])
    }
}
