//! What the fields of a log are called: their usual names, and those that the user says.

use std::collections::BTreeMap;

/// What an entry's fields are called, by what they hold, the surest first. `--map FIELD=NAME` puts another before them.
pub(super) const NAMES: &[(&str, &[&str])] = &[
    (
        "agent",
        &["agent", "agent_name", "agent_id", "speaker", "sender", "name", "author", "actor", "from", "source", "role"],
    ),
    ("content", &["content", "text", "message", "output", "response", "body", "msg", "answer", "utterance"]),
    ("time", &["timestamp", "time", "ts", "created_at", "createdAt", "datetime", "date"]),
    ("inputs", &["inputs", "input", "prompt", "request", "messages"]),
    ("error", &["error", "exception"]),
    ("model", &["model", "model_name"]),
    ("run", &["run", "run_id", "trace_id", "session_id", "conversation_id", "thread_id"]),
];

/// What the user calls the fields of a log, by what they hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames(BTreeMap<String, String>);

impl FieldNames {
    /// Reads `agent=who`.
    ///
    /// # Errors
    /// What was expected.
    pub fn add(&mut self, pair: &str) -> Result<(), String> {
        let known: Vec<&str> = NAMES.iter().map(|(what, _)| *what).collect();
        let expected = || format!("expected FIELD=NAME, FIELD one of {}; for example `agent=who`", known.join(", "));
        let (what, name) = pair.split_once('=').ok_or_else(expected)?;
        if !known.contains(&what) || name.is_empty() {
            return Err(expected());
        }
        self.0.insert(what.to_owned(), name.to_owned());
        Ok(())
    }

    /// The name of the field that holds this, where the user says it.
    pub fn get(&self, what: &str) -> Option<&str> {
        self.0.get(what).map(String::as_str)
    }
}
