//! Fields of documents that nobody vouches for: what has another type is not there.

use serde_json::Value;

use crate::{
    surface::{Message, Role, Tool, ToolCall},
    trajectory::Usage,
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

/// A whole number, also one that is written as a text, as OTLP writes them, or with a point and zeros.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    let number = |text: &str| {
        let whole = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
        whole.map_or(text, |(whole, _)| whole).parse().ok()
    };
    value.as_u64().or_else(|| number(&value.as_number()?.to_string())).or_else(|| number(value.as_str()?.trim()))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_another_type_is_not_there() {
        assert_eq!(text(&json!({"a": 1}), "a"), None);
        assert_eq!(list(&json!({"a": "b"}), "a").len(), 0);
        assert_eq!(
            (whole_number(&json!("12")), whole_number(&json!(12)), whole_number(&json!(-1))),
            (Some(12), Some(12), None)
        );
        assert_eq!(usage(None, None), None);
        for said in ["2026-11-24T00:04:54.5+00:00", "2026-11-24T00:04:54.5Z", "2026-11-24T00:04:54.5"] {
            assert_eq!(time(&json!({ "t": said }), "t"), Some(1_795_478_694_500_000_000), "{said}");
        }
        assert_eq!(time(&json!({"t": "yesterday"}), "t"), None);
    }
}
