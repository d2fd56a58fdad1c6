//! Functions in Python that are run against tests: the command that checks an answer, and names that go into code.

use serde_json::Map;

use super::{Unusable, row::task};
use crate::{
    dataset::Task,
    verify::{Check, Command, OnTimeout},
};

/// What every runner reads an answer with.
const ANSWER: &str = include_str!("answer.py");

/// The command that runs `tests.py` beside an answer, with further files.
pub(super) fn check(tests: String, files: Vec<(&str, String)>, timeout_s: f64) -> Check {
    let runner = [("tests.py", tests), ("answer.py", ANSWER.to_owned())];
    Check::Command(Command {
        run: "python3 -B tests.py".to_owned(),
        files: runner.into_iter().chain(files).map(|(name, text)| (name.to_owned(), text)).collect(),
        output_as: Some("solution.py".to_owned()),
        code: true,
        timeout_s,
        memory_mb: 2048,
        on_timeout: OnTimeout::Failure,
    })
}

/// The task to complete a function, of which the prompt has the head.
pub(super) fn completion(set: &str, id: String, prompt: &str, solution: &str, check: Check) -> Task {
    let question = format!(
        "Complete this Python function. Answer with Python code only: the whole function, and the imports that it \
         needs.\n\n```python\n{}\n```",
        prompt.trim()
    );
    task(set, id, question, format!("{prompt}{solution}"), check, Map::new())
}

/// The name of a function, which goes into code as it stands.
pub(super) fn entry_name(entry: &str) -> Result<&str, Unusable> {
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    if !entry.chars().all(plain) || entry.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Unusable::new("`entry_point` is no name of a function"));
    }
    Ok(entry)
}
