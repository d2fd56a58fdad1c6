//! HumanEval (Chen et al., 2021): functions in Python with unit tests. A row has `task_id`, `prompt` (imports, helpers, the
//! function's head and its description), `entry_point`, `canonical_solution` and `test`, which defines `check(candidate)`.

use serde_json::Map;

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{own_id, task},
};
use crate::{
    dataset::Task,
    verify::{Check, Command, OnTimeout},
};

/// What runs the tests. An answer is the whole function or its body alone; what the prompt imports and defines is there
/// in both cases, as in the set's own way of checking.
const RUNNER: &str = include_str!("humaneval.py");

/// The set.
#[derive(Debug)]
pub(super) struct HumanEval;

impl TaskSet for HumanEval {
    fn name(&self) -> &'static str {
        "humaneval"
    }
    fn description(&self) -> &'static str {
        "Python functions; `prompt`, `entry_point`, `test`; checked by `command`: their unit tests run here"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "OpenAI, human-eval; openai/openai_humaneval", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: Options) -> Result<Task, Unusable> {
        let (own, entry) = (row.text(&["task_id"])?, row.text(&["entry_point"])?);
        let (prompt, test, solution) =
            (row.verbatim("prompt")?, row.verbatim("test")?, row.verbatim("canonical_solution")?);
        let plain = |c: char| c.is_alphanumeric() || c == '_';
        if !entry.chars().all(plain) || entry.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Unusable::new("`entry_point` is no name of a function"));
        }
        let files = [
            ("tests.py", RUNNER.replace("ENTRY_POINT", entry)),
            ("prompt.txt", prompt.to_owned()),
            ("test.txt", test.to_owned()),
        ];
        let check = Check::Command(Command {
            run: "python3 -B tests.py".to_owned(),
            files: files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            output_as: Some("solution.py".to_owned()),
            code: true,
            timeout_s: 10.0,
            memory_mb: 2048,
            on_timeout: OnTimeout::Failure,
        });
        let question = format!(
            "Complete this Python function. Answer with Python code only: the whole function, and the imports that it \
             needs.\n\n```python\n{}\n```",
            prompt.trim()
        );
        let id = own_id(self.name(), own);
        Ok(task(self.name(), id, question, format!("{prompt}{solution}"), check, Map::new()))
    }
}
