//! HumanEval (Chen et al., 2021): functions in Python with unit tests. A row has `task_id`, `prompt` (imports, helpers, the
//! function's head and its description), `entry_point`, `canonical_solution` and `test`, which defines `check(candidate)`.
//! HumanEval+ (Liu et al., 2023) has the same fields with more tests as a table, and as JSON lines the inputs of its tests.

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable, evalplus,
    row::{own_id, own_id_after},
    unit_tests::{check, completion, entry_name},
};
use crate::dataset::Task;

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
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let id = own_id(self.name(), row.text(&["task_id"])?);
        tested(self.name(), id, row, 10.0)
    }
}

/// The set with the tests that `EvalPlus` added.
#[derive(Debug)]
pub(super) struct HumanEvalPlus;

impl TaskSet for HumanEvalPlus {
    fn name(&self) -> &'static str {
        "humanevalplus"
    }
    fn description(&self) -> &'static str {
        "Python functions; HumanEval's fields, or `base_input`, `plus_input`; checked by `command`: their tests run here"
    }
    fn terms(&self) -> SetTerms {
        SetTerms {
            source: "Liu et al., evalplus/evalplus; evalplus/humanevalplus",
            licence: "Apache-2.0",
            keep_private: None,
        }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let id = own_id_after(self.name(), "humaneval", row.text(&["task_id"])?);
        if row.field(&["base_input"]).is_none() {
            return tested(self.name(), id, row, evalplus::TIMEOUT_S);
        }
        let (prompt, solution) = (row.verbatim("prompt")?, row.verbatim("canonical_solution")?);
        let check = evalplus::check(row, prompt, &format!("{prompt}{solution}"))?;
        Ok(completion(self.name(), id, prompt, solution, check))
    }
}

/// A row that brings its tests as code.
fn tested(set: &str, id: String, row: &TaskSetRow<'_>, timeout_s: f64) -> Result<Task, Unusable> {
    let entry = entry_name(row.text(&["entry_point"])?)?;
    let (prompt, test, solution) =
        (row.verbatim("prompt")?, row.verbatim("test")?, row.verbatim("canonical_solution")?);
    let files = vec![("prompt.txt", prompt.to_owned()), ("test.txt", test.to_owned())];
    let check = check(RUNNER.replace("ENTRY_POINT", entry), files, timeout_s);
    Ok(completion(set, id, prompt, solution, check))
}
