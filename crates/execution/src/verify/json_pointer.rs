//! `json_pointer`: a value in a JSON output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Case, UnnamedVerdict, normalised::words, excerpt, value::close};

/// Compares the value at a JSON pointer (RFC 6901) of the output's last JSON object or array with the expected answer.
/// The JSON may stand in a fence or in prose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonPointer {
    /// Pointer, for example `/result/total`; empty for the whole.
    pub pointer: String,
    /// Expected value, instead of the task's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
}

/// Places that are tried as the beginning of JSON in prose.
const TRIED: usize = 1000;

impl JsonPointer {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        if !self.pointer.is_empty() && !self.pointer.starts_with('/') {
            return UnnamedVerdict::unknown(format!("`{}` is no JSON pointer: expected it to start with `/`", self.pointer));
        }
        let Some(output) = json_in(case.output) else { return UnnamedVerdict::no_answer("JSON", case) };
        let Some(got) = output.pointer(&self.pointer) else {
            return UnnamedVerdict::new(false, format!("nothing at `{}` in {}", self.pointer, excerpt(&output.to_string())));
        };
        let parsed = || serde_json::from_str(case.expected).unwrap_or_else(|_| Value::from(case.expected));
        let expected = self.equals.clone().unwrap_or_else(parsed);
        let evidence = format!(
            "expected {} at `{}`, got {}",
            excerpt(&expected.to_string()),
            self.pointer,
            excerpt(&got.to_string())
        );
        UnnamedVerdict::new(equal(&expected, got), evidence)
    }
}

/// The whole text as JSON, else the last object or array in it.
fn json_in(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text.trim()) {
        return Some(value);
    }
    let mut last = None;
    let mut end = 0;
    for (place, _) in text.match_indices(['{', '[']).take(TRIED) {
        if place < end {
            continue;
        }
        let rest = text.get(place..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            end = place + values.byte_offset();
            last = Some(value);
        }
    }
    last
}

/// Numbers by value, also written as text; texts by words; the rest by parts.
fn equal(expected: &Value, got: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match (expected, got) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => match (number(expected), number(got)) {
            (Some(a), Some(b)) => close(a, b, 1e-9, 0.0),
            _ => matches!((expected.as_str(), got.as_str()), (Some(a), Some(b)) if words(a) == words(b)) || expected == got,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trajectory::Verdict::{self, Failure, Success, Unknown},
        verify::check_table,
    };

    #[test]
    fn hard_cases() {
        let at = |pointer: &str| {
            let checker = JsonPointer { pointer: pointer.to_owned(), equals: None };
            move |case: &Case<'_>| checker.compare(case)
        };
        let table: &[(&str, &str, Verdict)] = &[
            ("84", r#"{"total": 84.0}"#, Success),
            ("84", r#"{"total": "84"}"#, Success),
            ("84", "Here:\n```json\n{\"total\": 84}\n```\nDone.", Success),
            ("84", r#"{"total": 1} no, rather {"total": 84}"#, Success),
            ("84", r#"{"total": 84, "cut":"#, Failure),
            ("84", r#"{"sum": 84}"#, Failure),
            ("84", "84", Failure),
            ("Paris", r#"{"total": "paris."}"#, Success),
            ("true", r#"{"total": true}"#, Success),
            ("null", r#"{"total": null}"#, Success),
            (r#"{"a":[1,2]}"#, r#"{"total": {"a": [1, 2.0]}}"#, Success),
            (r#"{"a":[1,2]}"#, r#"{"total": {"a": [2, 1]}}"#, Failure),
        ];
        check_table(at("/total"), table);
        check_table(at("/0/a~1b"), &[("1", r#"[{"a/b": 1}]"#, Success)]);
        check_table(at(""), &[("84", "84", Success)]);
        check_table(at("total"), &[("84", r#"{"total": 84}"#, Unknown)]);
        let fixed = JsonPointer { pointer: "/ok".to_owned(), equals: Some(Value::Bool(true)) };
        check_table(|case| fixed.compare(case), &[("whatever", r#"{"ok": true}"#, Success)]);
    }
}
