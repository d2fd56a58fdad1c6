//! Parts of messages in every form: text, calls of tools and their results, under whichever names.

use serde_json::Value;

use super::{
    TraceAccount,
    fields::{MEDIA, REASONING, arguments, as_text, call, holds_text, text},
};
use crate::{
    surface::{Message, Part, Role, ToolCall},
    trajectory::UnplacedKind,
};

/// Kinds of parts that are known.
const PARTS: &[&str] = &[
    "text",
    "input_text",
    "output_text",
    "tool_call",
    "tool-call",
    "tool_use",
    "tool_call_response",
    "tool-result",
    "tool_result",
    "reasoning",
    "thinking",
    "redacted_thinking",
    "image",
    "image_url",
    "input_image",
    "file",
    "blob",
    "uri",
    "audio",
];

/// Whether a kind of parts is known.
pub(super) fn is_known(kind: &str) -> bool {
    PARTS.contains(&kind) || matches!(kind, "function_call" | "function_call_output")
}

/// Whether a value is a part, and not a message.
pub(super) fn is_part(value: &Value) -> bool {
    let typed = text(value, "type").is_some_and(|kind| PARTS.contains(&kind));
    let bedrock = ["text", "toolUse", "toolResult", "functionCall", "functionResponse", "function_call"];
    typed || (text(value, "role").is_none() && bedrock.iter().any(|name| value.get(*name).is_some()))
}

/// A message's parts: the message itself, and one for each tool result among them, which come first.
pub(super) fn parts(all: &[Value], mut own: Message, account: &mut TraceAccount) -> Vec<Message> {
    let mut results = Vec::new();
    for part in all {
        match text(part, "type").unwrap_or_default() {
            "tool_call" | "tool-call" | "tool_use" | "function_call" => own.tool_calls.push(called(part)),
            "tool_call_response" | "tool-result" | "tool_result" | "function_call_output" => {
                results.push(result(part, &own));
            }
            "reasoning" | "thinking" | "redacted_thinking" => account.leave_out(REASONING, 1),
            _ => untyped(part, &mut own, &mut results, account),
        }
    }
    let is_silent = own.parts.is_empty() && own.tool_calls.is_empty();
    // The results of a message that is a tool's answer to one call are that answer.
    let own = (!is_silent || results.is_empty()).then_some(own);
    results.into_iter().chain(own).collect()
}

/// A part that is text, or names what it is by its field.
fn untyped(part: &Value, own: &mut Message, results: &mut Vec<Message>, account: &mut TraceAccount) {
    let made = ["toolUse", "functionCall", "function_call"].iter().find_map(|name| part.get(*name));
    let answered = ["toolResult", "functionResponse", "function_response"].iter().find_map(|name| part.get(*name));
    let is_text = matches!(text(part, "type"), None | Some("text" | "input_text" | "output_text"));
    let said = ["text", "content"].iter().find_map(|name| part.get(*name)).filter(|said| is_text && !said.is_null());
    match (part, said) {
        (Value::String(said), _) => own.parts.push(Part::Text(said.clone())),
        (_, Some(said)) => own.parts.push(Part::Text(as_text(said))),
        _ if made.is_some() => own.tool_calls.extend(made.map(called)),
        _ if answered.is_some() => results.extend(answered.map(|answered| result(answered, own))),
        _ if is_text && text(part, "type").is_some() => {}
        _ if part.get("reasoningContent").is_some() => account.leave_out(REASONING, 1),
        // What an unknown part says is named where its value is held against what was read.
        _ if text(part, "type").is_some_and(|kind| !is_known(kind)) && holds_text(part) => {}
        _ => account.leave_out(MEDIA, 1),
    }
}

/// A tool call, under whichever names.
pub(super) fn called(made: &Value) -> ToolCall {
    let function = made.get("function").filter(|function| function.is_object()).unwrap_or(made);
    let id = ["id", "tool_call_id", "toolCallId", "toolUseId", "call_id"].iter().find_map(|name| text(made, name));
    let name = ["name", "toolName", "tool_name"].iter().find_map(|name| text(function, name));
    let given = ["arguments", "args", "input", "parameters"].iter().find_map(|name| function.get(*name));
    call(id, name, arguments(given))
}

/// What a tool answered.
fn result(part: &Value, own: &Message) -> Message {
    let names = ["response", "result", "output", "content", "value"];
    let said = names.iter().find_map(|name| part.get(*name)).map(result_text).unwrap_or_default();
    let ids = ["id", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id"];
    let id = ids.iter().find_map(|name| text(part, name)).map(str::to_owned);
    Message {
        answers_call: id.or_else(|| own.answers_call.clone()),
        name: own.name.clone(),
        ..Message::text_of(Role::Tool, said)
    }
}

/// The text of a result: its texts where it is a list of parts or a typed value, else all of it.
fn result_text(value: &Value) -> String {
    match value {
        Value::Array(all) if !all.is_empty() && all.iter().all(|part| text(part, "text").is_some()) => {
            all.iter().filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) if fields.len() == 2 && fields.contains_key("type") && fields.contains_key("value") => {
            fields.get("value").map(as_text).unwrap_or_default()
        }
        other => as_text(other),
    }
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
    use crate::foreign::fields::silent;

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
