//! Fields of documents that nobody vouches for: what has another type is not there.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{TraceAccount, parts::is_known};
use crate::{
    surface::{Message, Part, Role, Tool, ToolCall},
    trajectory::{UnplacedKind, Usage},
};

/// What was in messages and has no place in a chat completion.
pub(super) const REASONING: &str = "passages of reasoning";
pub(super) const MEDIA: &str = "parts that are no text";

/// A text that is not empty.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A list; what is none has no elements.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A whole number, also one that is written as a text, as OTLP writes them.
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A time in RFC 3339, in nanoseconds since 1970.
pub(super) fn time(value: &Value, name: &str) -> Option<i64> {
    let said = text(value, name)?;
    // Some writers leave the zone out and mean UTC.
    let read = said.parse::<jiff::Timestamp>().or_else(|_| format!("{said}Z").parse());
    i64::try_from(read.ok()?.as_nanosecond()).ok()
}

/// A time in whichever way logs write it: RFC 3339, also with a blank for the `T`, or a number since 1970 in seconds,
/// milliseconds, microseconds or nanoseconds, told apart by its size; in nanoseconds since 1970.
pub(super) fn moment(value: &Value) -> Option<i64> {
    if let Some(said) = value.as_str() {
        let said = said.trim().replacen(' ', "T", 1);
        return time(&serde_json::json!({ "at": said }), "at").or_else(|| moment(&said.parse::<f64>().ok()?.into()));
    }
    let number = value.as_f64().filter(|number| *number >= 0.0)?;
    // From these on a number of the unit before would lie in the year 5138 and later.
    let scale = [(1e11, 1e9), (1e14, 1e6), (1e17, 1e3)].into_iter().find(|(end, _)| number < *end);
    let nanos = number * scale.map_or(1.0, |(_, scale)| scale);
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (nanos < 9.2e18).then_some(nanos as i64)
}

/// What the user calls the fields of a log, by what they hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames(BTreeMap<String, String>);

impl FieldNames {
    /// Reads `agent=who`.
    ///
    /// # Errors
    /// What was expected.
    pub fn add(&mut self, pair: &str) -> Result<(), String> {
        let known: Vec<&str> = super::log::NAMES.iter().map(|(what, _)| *what).collect();
        let expected = || format!("expected FIELD=NAME, FIELD one of {}; for example `agent=who`", known.join(", "));
        let (what, name) = pair.split_once('=').ok_or_else(expected)?;
        if !known.contains(&what) || name.is_empty() {
            return Err(expected());
        }
        self.0.insert(what.to_owned(), name.to_owned());
        Ok(())
    }

    /// The name of the field that holds this, where the user says it.
    pub fn of(&self, what: &str) -> Option<&str> {
        self.0.get(what).map(String::as_str)
    }
}

/// Whether words may stand in a value: identifiers and flags are none.
pub(super) fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(said) => said.trim().contains(char::is_whitespace) || said.starts_with(['{', '[']),
        Value::Array(all) => all.iter().any(holds_text),
        Value::Object(fields) => fields.values().any(|inner| holds_text(inner) || inner.is_string()),
        _ => false,
    }
}

/// Token counts, where both sides are there or one of them is.
pub(super) fn usage(input: Option<u64>, output: Option<u64>) -> Option<Usage> {
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// Who speaks.
pub(super) fn role(name: &str) -> Role {
    match name {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => Role::Other,
    }
}

/// A value as the text that a model reads: a text as it is, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The arguments of a call as the model wrote them.
pub(super) fn arguments(value: Option<&Value>) -> String {
    value.filter(|value| !value.is_null()).map(as_text).unwrap_or_default()
}

/// A tool call.
pub(super) fn call(id: Option<&str>, name: Option<&str>, arguments: String) -> ToolCall {
    ToolCall {
        id: id.unwrap_or_default().to_owned(),
        name: name.unwrap_or_default().to_owned(),
        arguments,
        origin: None,
    }
}

/// A message without any content yet.
pub(super) fn silent(role: Role) -> Message {
    Message { parts: Vec::new(), ..Message::text_of(role, "") }
}

/// A tool as chat completions describe it, bare or under `function`.
pub(super) fn tool(value: &Value) -> Option<Tool> {
    let function = value.get("function").unwrap_or(value);
    Some(Tool {
        name: text(function, "name")?.to_owned(),
        description: text(function, "description").unwrap_or_default().to_owned(),
        parameters: ["parameters", "input_schema", "inputSchema", "parameters_json_schema"]
            .iter()
            .find_map(|name| function.get(*name))
            .cloned()
            .unwrap_or_default(),
        origin: None,
    })
}

/// Content as most formats write it: a text, or a list of typed parts.
pub(super) fn content(value: &Value, message: &mut Message, account: &mut TraceAccount) {
    match value {
        Value::String(said) if !said.is_empty() => message.parts.push(Part::Text(said.clone())),
        Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate() {
                match (text(part, "type"), text(part, "text")) {
                    (Some("text" | "input_text" | "output_text"), Some(said)) => {
                        message.parts.push(Part::Text(said.to_owned()));
                    }
                    (Some("text"), None) => {}
                    (Some("reasoning" | "thinking"), _) => account.leave_out(REASONING, 1),
                    (kind, _) => match part {
                        Value::String(said) => message.parts.push(Part::Text(said.clone())),
                        _ if kind.is_some_and(|kind| !is_known(kind)) && holds_text(part) => {
                            account.cannot_place(&format!("content[{at}]"), UnplacedKind::Part, part);
                        }
                        _ => account.leave_out(MEDIA, 1),
                    },
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_another_type_is_not_there() {
        assert_eq!(text(&json!({"a": 1}), "a"), None);
        assert_eq!(list(&json!({"a": "b"}), "a").len(), 0);
        assert_eq!((whole(&json!("12")), whole(&json!(12)), whole(&json!(-1))), (Some(12), Some(12), None));
        assert_eq!(usage(None, None), None);
        for said in ["2026-11-24T00:04:54.5+00:00", "2026-11-24T00:04:54.5Z", "2026-11-24T00:04:54.5"] {
            assert_eq!(time(&json!({ "t": said }), "t"), Some(1_795_478_694_500_000_000), "{said}");
        }
        assert_eq!(time(&json!({"t": "yesterday"}), "t"), None);
    }

    #[test]
    fn content_is_a_text_or_parts_and_what_is_neither_is_counted() {
        let said = |value: Value| {
            let (mut message, mut account) = (silent(Role::User), TraceAccount::default());
            content(&value, &mut message, &mut account);
            let unplaced: Vec<String> = account.pieces.iter().map(ToString::to_string).collect();
            (message.text(), account.left_out.into_keys().collect::<Vec<_>>(), unplaced.join(" "))
        };
        assert_eq!(said(json!("a")), ("a".to_owned(), vec![], String::new()));
        let parts = json!([{"type": "text", "text": "a"}, {"type": "image", "image": "x"}, {"type": "reasoning"}, "b",
            {"type": "verse", "lines": "two words"}]);
        let verse = "`content[4]` is an element of an unknown type: two words".to_owned();
        assert_eq!(said(parts), ("a\nb".to_owned(), vec![MEDIA, REASONING], verse));
        assert_eq!(said(json!(7)), (String::new(), vec![], String::new()));
    }
}
