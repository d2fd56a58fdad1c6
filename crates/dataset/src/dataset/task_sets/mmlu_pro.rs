//! MMLU-Pro (Wang et al., 2024): up to ten choices. A row has `question_id`, `question`, `options`, `answer` (a letter),
//! `answer_index` (from 0), `category` and `src`; `cot_content`, a worked solution, is not taken over.

use serde_json::Value;

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    letters::{check, letter, place, question_text, usable},
    row::{id_of, own_id, task},
};
use crate::dataset::Task;

/// What fills places without a choice in some of its files.
const NONE: &str = "N/A";

/// The set.
#[derive(Debug)]
pub(super) struct MmluPro;

impl TaskSet for MmluPro {
    fn name(&self) -> &'static str {
        "mmlu-pro"
    }
    fn description(&self) -> &'static str {
        "multiple choice, up to ten; `question`, `options`, `answer` or `answer_index`; checked by `choice`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "Wang et al., TIGER-Lab/MMLU-Pro", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["question"])?;
        let options = row.field(&["options"]).and_then(Value::as_array);
        let options: Option<Vec<&str>> =
            options.and_then(|options| options.iter().map(|option| option.as_str().map(str::trim)).collect());
        let mut options = options.ok_or_else(|| Unusable::new("no list of choices in `options`"))?;
        while options.last() == Some(&NONE) {
            options.pop();
        }
        let options = usable(options).ok_or_else(|| Unusable::new("no list of choices in `options`"))?;
        let by_letter = row.text(&["answer"]).ok().and_then(place);
        let by_index =
            row.field(&["answer_index"]).and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        if by_letter.zip(by_index).is_some_and(|(one, other)| one != other) {
            return Err(Unusable::new("`answer` and `answer_index` are not the same choice"));
        }
        let right = by_letter.or(by_index).filter(|place| *place < options.len()).and_then(letter);
        let right = right.ok_or_else(|| Unusable::new("`answer` is none of the choices"))?;
        let id = match row.word("question_id") {
            Ok(own) => own_id(self.name(), &own),
            Err(_) => id_of(self.name(), &[&[question], options.as_slice()].concat()),
        };
        let kept = row.extra_fields(&[("category", "subject"), ("src", "source")]);
        Ok(task(self.name(), id, question_text(question, &options), right, check(&options), kept))
    }
}
