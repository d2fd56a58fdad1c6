//! Task sets: JSONL, one task a line (`id`, `question`, `answer`, perhaps `check`, and whatever else it says).

use std::{collections::HashSet, fs, path::Path};

use serde_json::error::Category;

use super::{DatasetError, Task};

/// Most lines of a task set that are named as wrong.
const NAMED: usize = 20;
/// What a line is to be.
const SHAPE: &str = "a task is one line, {\"id\": \"…\", \"question\": \"…\", \"answer\": \"…\"}";

/// Reads a task set.
///
/// # Errors
/// The file cannot be read, or a line is no task; see [`parse_tasks`].
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, DatasetError> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| DatasetError::Io { doing: "read", path: path.to_owned(), source })?;
    parse_tasks(&text, path)
}

/// What is wrong with a line, and for a number where a text belongs what to write. Its place is said elsewhere: the reader
/// knows no line but this one.
fn error_text(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    match error.classify() {
        Category::Eof => return format!("the line ends in the middle, before its closing quote or bracket: {SHAPE}"),
        Category::Syntax if said.starts_with("expected ident") || said.starts_with("expected value") => {
            return format!("this is no JSON: {SHAPE}");
        }
        Category::Syntax | Category::Io => return format!("this is no JSON, {said}: {SHAPE}"),
        Category::Data => {}
    }
    let number = said.split_once("integer `").or_else(|| said.split_once("floating point `"));
    match number.and_then(|(_, rest)| rest.split('`').next()).filter(|_| said.contains("expected a string")) {
        Some(number) => {
            format!("not a task: {said}: `id`, `question` and `answer` are texts, so write \"{number}\"")
        }
        None if said.contains("expected struct Task") => format!("not a task: {SHAPE}"),
        None => format!("not a task: {said}"),
    }
}

/// Reads a task set from its text; `path` is for messages.
///
/// # Errors
/// Lines are no task, ask nothing, or repeat an id: all of them at once, the first 20 by name.
pub fn parse_tasks(text: &str, path: &Path) -> Result<Vec<Task>, DatasetError> {
    let (mut tasks, mut wrong) = (Vec::new(), Vec::new());
    let mut ids = HashSet::new();
    for (number, line) in (1_u64..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match task(line, &mut ids) {
            Ok(task) => tasks.push(task),
            Err(why) => wrong.push((number, why)),
        }
    }
    let more = wrong.len().saturating_sub(NAMED);
    let named = wrong
        .into_iter()
        .take(NAMED)
        .map(|(line, (column, why))| DatasetError::Line { path: path.to_owned(), line, column, why }.to_string());
    let mut named: Vec<String> = named.collect();
    if more > 0 {
        named.push(format!("and {more} more lines of `{}`", path.display()));
    }
    if named.is_empty() { Ok(tasks) } else { Err(DatasetError::Tasks { said: named }) }
}

/// The task of a line; or the column, and what is wrong there.
fn task(line: &str, ids: &mut HashSet<String>) -> Result<Task, (usize, String)> {
    let task: Task =
        serde_json::from_str(line).map_err(|error| (characters(line, error.column()), error_text(&error)))?;
    if task.id.trim().is_empty() || task.question.trim().is_empty() {
        return Err((1, "a task needs an `id` and a `question` that are not empty".to_owned()));
    }
    if !ids.insert(task.id.clone()) {
        return Err((1, format!("task id `{}` stands twice: ids are unique in a task set", task.id)));
    }
    Ok(task)
}

/// The column in characters, as everywhere; the reader counts bytes.
fn characters(line: &str, bytes: usize) -> usize {
    line.char_indices().take_while(|(at, _)| *at < bytes.max(1)).count().max(1)
}
