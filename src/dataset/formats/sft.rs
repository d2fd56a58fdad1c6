//! Supervised fine-tuning of a tracer: `messages` of attribution prompt and answer, one row a line; TRL, LLaMA-Factory,
//! Axolotl and the hosted services read it. Clean runs teach that nobody erred.

use serde_json::json;

use super::{Context, Format, Piece, Shape, Unfit, prompt};
use crate::dataset::Sample;

/// Writes rows.
#[derive(Debug)]
pub(super) struct Sft;

impl Format for Sft {
    fn name(&self) -> &'static str {
        "sft"
    }
    fn about(&self) -> &'static str {
        "supervised fine-tuning: `messages` of attribution prompt and answer JSON, steps from 0"
    }
    fn shape(&self) -> Shape {
        Shape::Lines
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &Context<'_>) -> Result<Vec<Piece>, Unfit> {
        let asked = context.options.prompt(sample)?;
        let row = json!({
            "messages": [
                {"role": "user", "content": asked.text},
                {"role": "assistant", "content": prompt::answer(sample).to_string()},
            ],
            "id": sample.id,
        });
        Ok(vec![Piece::row(&row).cut(asked.cut)])
    }
}
