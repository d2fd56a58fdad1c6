//! Task sets: JSONL, one task a line (`id`, `question`, `answer`, perhaps `check`, and whatever else it says).

use std::{collections::HashSet, fs, path::Path};

use super::{DatasetError, Task};

/// Reads a task set.
///
/// # Errors
/// The file cannot be read, or a line is no task; see [`parse_tasks`].
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, DatasetError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| DatasetError::Io { doing: "read", path: path.to_owned(), source })?;
    parse_tasks(&text, path)
}

/// What is wrong with a line, and for a number where a text belongs what to write.
fn told(error: &serde_json::Error) -> String {
    let error = error.to_string();
    let number = error.split_once("integer `").or_else(|| error.split_once("floating point `"));
    match number.and_then(|(_, rest)| rest.split('`').next()).filter(|_| error.contains("expected a string")) {
        Some(number) => format!("{error}: `id`, `question` and `answer` are texts, so write \"{number}\""),
        None => error,
    }
}

/// Reads a task set from its text; `path` is for messages.
///
/// # Errors
/// A line is no task, asks nothing, or repeats an id.
pub fn parse_tasks(text: &str, path: &Path) -> Result<Vec<Task>, DatasetError> {
    let mut tasks = Vec::new();
    let mut ids = HashSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |column, why: String| DatasetError::Line { path: path.to_owned(), line: number, column, why };
        let task: Task = serde_json::from_str(line)
            .map_err(|error| wrong(error.column(), format!("not a task: {}", told(&error))))?;
        if task.id.trim().is_empty() || task.question.trim().is_empty() {
            return Err(wrong(1, "a task needs an `id` and a `question` that are not empty".to_owned()));
        }
        if !ids.insert(task.id.clone()) {
            return Err(wrong(1, format!("task id `{}` stands twice: ids are unique in a task set", task.id)));
        }
        tasks.push(task);
    }
    Ok(tasks)
}
