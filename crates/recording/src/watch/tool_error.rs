//! Errors that tools answer with: how they are told, and which of them a second try may well not meet.

use serde_json::Value;

/// Words of an error that a second try may well not meet.
pub(super) const PASSING: &[&str] =
    &["timed out", "timeout", "rate limit", "temporar", "try again", "unavailable", "429", "502", "503", "504"];

/// Whether a tool's result is an error, by its form: nothing that merely talks of errors.
pub(super) fn is_error(text: &str) -> bool {
    let text = text.trim();
    if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
        let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value != "";
        let says = |name: &str, words: &[&str]| {
            fields.get(name).and_then(Value::as_str).is_some_and(|value| words.contains(&value.to_lowercase().as_str()))
        };
        return fields.get("error").is_some_and(is_set)
            || fields.get("isError") == Some(&Value::Bool(true))
            || fields.get("success") == Some(&Value::Bool(false))
            || says("status", &["error", "failed", "failure"]);
    }
    let start: String = text.chars().take(64).flat_map(char::to_lowercase).collect();
    let named = start.split([':', ' ', '\n', '(']).next().unwrap_or_default();
    let begins = ["error", "exception", "traceback", "failed", "toolerror", "fatal"].contains(&named)
        || (named.len() > 5 && named.ends_with("error") && start.starts_with(&format!("{named}:")));
    begins || start.starts_with("error executing") || text.contains("Traceback (most recent call last)")
}
