//! GSM8K (Cobbe et al., 2021): word problems. A row has `question` and `answer`, a solution whose last line is `#### 42`.

use serde_json::Map;

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{id_of, task},
};
use crate::{
    dataset::Task,
    verify::{Check, Numeric},
};

/// What stands before the answer proper.
const MARK: &str = "####";

/// The set.
#[derive(Debug)]
pub(super) struct Gsm8k;

impl TaskSet for Gsm8k {
    fn name(&self) -> &'static str {
        "gsm8k"
    }
    fn description(&self) -> &'static str {
        "word problems; `question`, and `answer` with `#### 42`; checked by `numeric`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "OpenAI, grade-school-math; openai/gsm8k", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["question"])?;
        let solution = row.text(&["answer"])?;
        let (_, answer) = solution.rsplit_once(MARK).ok_or_else(|| Unusable::new("no `####` before an answer"))?;
        let answer: String = answer.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
        if answer.parse::<f64>().is_err() {
            return Err(Unusable::new("no number behind `####`"));
        }
        let id = id_of(self.name(), &[question]);
        Ok(task(self.name(), id, question.to_owned(), answer, Check::Numeric(Numeric::default()), Map::new()))
    }
}
