//! The tasks of a campaign: JSON lines of id, question, answer, extra.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A task with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id, different from every other task's.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// What is right.
    #[serde(default, deserialize_with = "text_of")]
    pub answer: String,
    /// What else belongs to it: placeholders `{extra.KEY}` and checkers read it.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// A task of text only.
    pub fn of(id: &str, question: &str, answer: &str) -> Self {
        Self { id: id.to_owned(), question: question.to_owned(), answer: answer.to_owned(), extra: Map::new() }
    }

    /// The same with an entry of `extra`.
    #[must_use]
    pub fn with_extra(mut self, key: &str, value: &str) -> Self {
        self.extra.insert(key.to_owned(), value.into());
        self
    }

    /// An entry of `extra` as text; empty if there is none.
    pub(super) fn extra(&self, key: &str) -> String {
        match self.extra.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }
}

/// Reads the tasks of a file.
///
/// # Errors
/// What is wrong with the first bad line, with its number, 1-based.
pub(super) fn read(text: &str, file: &str) -> Result<Vec<Task>, String> {
    let mut tasks: Vec<Task> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = number + 1;
        let task: Task = serde_json::from_str(line)
            .map_err(|error| format!("{file}:{at}:{}: {}", error.column(), in_words(&error.to_string())))?;
        if task.id.trim().is_empty() {
            return Err(format!("{file}:{at}: the task has an empty `id`"));
        }
        if tasks.iter().any(|known| known.id == task.id) {
            return Err(format!("{file}:{at}: a task `{}` stands above already", task.id));
        }
        tasks.push(task);
    }
    if tasks.is_empty() { Err(format!("{file} holds no task")) } else { Ok(tasks) }
}

/// The message without serde's own place, which is said before it.
fn in_words(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

/// An answer may be written as a number.
fn text_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_bad_ones_named() {
        let good = "{\"id\":\"a\",\"question\":\"q\",\"answer\":4}\n\n{\"id\":\"b\",\"question\":\"q\",\"extra\":{\"k\":[1]}}\n";
        let tasks = read(good, "t.jsonl").expect("tasks");
        assert_eq!(
            (tasks[0].answer.as_str(), tasks[1].extra("k").as_str(), tasks[1].extra("x").as_str()),
            ("4", "[1]", "")
        );
        for (text, said) in [
            ("", "t.jsonl holds no task"),
            ("{\"id\":\"a\"}", "t.jsonl:1:10: missing field `question`"),
            ("\n{\"id\":\"a\",\"question\":\"q\",\"anser\":\"1\"}", "t.jsonl:2:31: unknown field `anser`"),
            ("{\"id\":\" \",\"question\":\"q\"}", "empty `id`"),
            (&good.replace('b', "a"), "t.jsonl:3: a task `a` stands above"),
        ] {
            let error = read(text, "t.jsonl").expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
