//! MBPP (Austin et al., 2021): small tasks in Python with assertions. A row has `task_id`, `text` (`prompt` in the sanitised
//! part), `code`, `test_list`, and `test_setup_code` or `test_imports`. MBPP+ (Liu et al., 2023) has `test`, a script, as a
//! table, and as JSON lines the inputs of its tests.

use serde_json::{Map, Value};

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable, evalplus,
    row::{own_id_after, task},
    unit_tests::check,
};
use crate::dataset::Task;

/// What runs the assertions.
const RUNNER: &str = include_str!("mbpp.py");

/// Tasks of MBPP+ whose arguments are tuples, sets or complex numbers, which JSON has not.
const NOT_JSON: [u32; 62] = [
    2, 63, 64, 70, 75, 94, 106, 115, 116, 120, 124, 132, 143, 222, 237, 250, 252, 259, 261, 272, 273, 278, 299, 307,
    394, 399, 400, 401, 405, 409, 413, 417, 421, 424, 429, 438, 444, 445, 446, 470, 473, 560, 579, 580, 596, 614, 615,
    616, 617, 630, 720, 722, 726, 740, 744, 750, 753, 763, 780, 791, 808, 809,
];
/// Functions of MBPP+ whose results its authors compare by a rule of their own.
const OWN_RULE: [&str; 7] = [
    "are_equivalent",
    "sum_div",
    "surface_Area",
    "digit_distance_nums",
    "check_str",
    "text_match_three",
    "text_starta_endb",
];

/// The set.
#[derive(Debug)]
pub(super) struct Mbpp;

impl TaskSet for Mbpp {
    fn name(&self) -> &'static str {
        "mbpp"
    }
    fn description(&self) -> &'static str {
        "small Python tasks; `text` or `prompt`, `code`, `test_list`; checked by `command`: their assertions run here"
    }
    fn terms(&self) -> SetTerms {
        SetTerms {
            source: "Austin et al., google-research/mbpp; google-research-datasets/mbpp",
            licence: "CC-BY-4.0",
            keep_private: None,
        }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let shown = assertions(row)?;
        asserted(self.name(), row, &shown, &shown, 10.0)
    }
}

/// The set with the tests that `EvalPlus` added.
#[derive(Debug)]
pub(super) struct MbppPlus;

impl TaskSet for MbppPlus {
    fn name(&self) -> &'static str {
        "mbppplus"
    }
    fn description(&self) -> &'static str {
        "small Python tasks; `prompt`, `code`, `test_list`, `test`, or `base_input`, `plus_input`; checked by `command`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms {
            source: "Liu et al., evalplus/evalplus; evalplus/mbppplus",
            licence: "Apache-2.0",
            keep_private: None,
        }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        if row.field(&["base_input"]).is_none() {
            return asserted(self.name(), row, &assertions(row)?, row.verbatim("test")?, evalplus::TIMEOUT_S);
        }
        let own = row.word("task_id")?;
        let number = own.rsplit('/').next().and_then(|number| number.parse().ok());
        if number.is_none_or(|number| NOT_JSON.contains(&number)) {
            return Err(Unusable::new("its arguments are not those of JSON: read the table evalplus/mbppplus instead"));
        }
        if OWN_RULE.contains(&row.text(&["entry_point"])?) {
            return Err(Unusable::new(
                "its results are compared by a rule of their own: read evalplus/mbppplus instead",
            ));
        }
        let (prompt, solution) = (row.text(&["prompt"])?, row.verbatim("canonical_solution")?);
        let check = evalplus::check(row, "", solution)?;
        let asked = prompt.trim_matches('"').trim();
        let question =
            format!("{asked}\n\nAnswer with Python code only: the whole function, and the imports that it needs.");
        let id = own_id_after(self.name(), "mbpp", &own);
        Ok(task(self.name(), id, question, solution.to_owned(), check, Map::new()))
    }
}

/// A row that brings its tests as code, of which some are shown: they say what the function is called.
fn asserted(set: &str, row: &TaskSetRow<'_>, shown: &str, run: &str, timeout_s: f64) -> Result<Task, Unusable> {
    let asked = row.text(&["text", "prompt"])?;
    let code = row.verbatim("code")?;
    let own = row.word("task_id")?;
    let setup = row.text(&["test_setup_code"]).unwrap_or_default();
    let imports = texts(row, "test_imports").unwrap_or_default().join("\n");
    let tests =
        [imports.as_str(), setup, run].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    let question =
        format!("{asked}\n\nAnswer with Python code only. It is to pass these tests:\n\n```python\n{shown}\n```");
    let check = check(RUNNER.to_owned(), vec![("test.txt", tests)], timeout_s);
    Ok(task(set, own_id_after(set, "mbpp", &own), question, code.to_owned(), check, Map::new()))
}

/// The assertions that a row lists.
fn assertions(row: &TaskSetRow<'_>) -> Result<String, Unusable> {
    let listed = texts(row, "test_list").filter(|listed| !listed.is_empty());
    Ok(listed.ok_or_else(|| Unusable::new("no list in `test_list`"))?.join("\n"))
}

/// A list of texts.
fn texts<'a>(row: &TaskSetRow<'a>, name: &str) -> Option<Vec<&'a str>> {
    row.field(&[name])?.as_array()?.iter().map(Value::as_str).collect()
}
