//! A structured value held against the messages that were read of it: a text that stands in none of them has no place.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use super::{
    account::TraceAccount,
    fields::{holds_text, text},
    parts::is_known,
};
use crate::{surface::Message, trajectory::UnplacedKind};

/// How deep values may lie in each other. What is deeper is named and not looked into.
const DEEPEST: usize = 64;
/// Members that say nothing of an answer: counts, causes, thoughts, what was set for the call, tools on offer.
const ASIDE: &[&str] = &[
    "additional_kwargs",
    "annotations",
    "cache_control",
    "citationMetadata",
    "citations",
    "config",
    "created",
    "created_at",
    "createdAt",
    "encrypted_content",
    "error",
    "extra_body",
    "extra_headers",
    "finish_reason",
    "finishReason",
    "functions",
    "generation_config",
    "generation_info",
    "generationConfig",
    "groundingMetadata",
    "headers",
    "id",
    "invalid_tool_calls",
    "invocation_params",
    "llm_output",
    "logprobs",
    "metadata",
    "model",
    "modelVersion",
    "name",
    "provider",
    "provider_specific_fields",
    "providerMetadata",
    "providerOptions",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "reasoningContent",
    "response_format",
    "response_metadata",
    "role",
    "safety_settings",
    "safetyRatings",
    "service_tier",
    "signature",
    "stop",
    "stop_sequences",
    "stopSequences",
    "summary",
    "system_fingerprint",
    "tags",
    "text_format",
    "thinking",
    "thoughtSignature",
    "timestamp",
    "tool_choice",
    "tool_config",
    "tool_definitions",
    "toolChoice",
    "toolConfig",
    "tools",
    "type",
    "usage",
    "usage_metadata",
    "usageMetadata",
];

/// A value of a trace, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceValue<'a> {
    /// The name of the attribute or field.
    pub(super) place: &'a str,
    /// What stands there.
    pub(super) value: &'a Value,
}

impl<'a> TraceValue<'a> {
    /// What stands at a place.
    pub(super) fn at(place: &'a str, value: &'a Value) -> Self {
        Self { place, value }
    }
}

/// Names what of a value stands in no message that was read of it.
pub(super) fn hold(from: TraceValue<'_>, read: &[Message], account: &mut TraceAccount) {
    if holds_text(from.value) {
        let texts = ReadTexts::new(read);
        HeldWalk { texts: &texts, account }.value(from.value, from.place, UnplacedKind::Member, 0);
    }
}

/// Names the members of an object that hold text and are not among the known.
pub(super) fn members(of: &Value, known: &[&str], account: &mut TraceAccount) {
    for (name, value) in of.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) && holds_text(value) {
            account.cannot_place(name, UnplacedKind::Member, value);
        }
    }
}

/// The texts of messages: whole, by line, and those of JSON in them.
#[derive(Debug, Default)]
struct ReadTexts<'a>(HashSet<Cow<'a, str>>);

impl<'a> ReadTexts<'a> {
    fn new(read: &'a [Message]) -> Self {
        let mut texts = Self::default();
        for message in read {
            message.parts.iter().filter_map(|part| part.as_text()).for_each(|said| texts.add(said));
            message.tool_calls.iter().for_each(|call| texts.add(&call.arguments));
        }
        texts
    }

    fn add(&mut self, said: &'a str) {
        self.0.insert(said.into());
        self.0.extend(said.lines().map(Cow::from));
        if let Some(inner) = json(said) {
            self.leaves(inner, 0);
        }
    }

    fn leaves(&mut self, value: Value, depth: usize) {
        match value {
            Value::String(said) => drop(self.0.insert(said.into())),
            Value::Array(all) if depth < DEEPEST => all.into_iter().for_each(|inner| self.leaves(inner, depth + 1)),
            Value::Object(fields) if depth < DEEPEST => {
                fields.into_iter().for_each(|(_, inner)| self.leaves(inner, depth + 1));
            }
            _ => {}
        }
    }

    /// Whether a text was read; texts that were joined are told by their lines.
    fn contains(&self, said: &str) -> bool {
        self.0.contains(said) || said.lines().all(|line| line.trim().is_empty() || self.0.contains(line))
    }
}

struct HeldWalk<'a> {
    texts: &'a ReadTexts<'a>,
    account: &'a mut TraceAccount,
}

impl HeldWalk<'_> {
    fn value(&mut self, value: &Value, place: &str, kind: UnplacedKind, depth: usize) {
        if self.account.is_full() || !holds_text(value) {
            return;
        }
        if depth > DEEPEST {
            return self.account.cannot_place(place, UnplacedKind::Value, value);
        }
        match value {
            Value::String(said) if self.texts.contains(said) => {}
            Value::String(said) => match json(said) {
                Some(inner) => self.value(&inner, place, kind, depth + 1),
                None => self.account.cannot_place(place, kind, value),
            },
            Value::Array(all) => {
                for (at, inner) in all.iter().enumerate() {
                    let of = if kind == UnplacedKind::Part { kind } else { element(inner) };
                    self.value(inner, &format!("{place}[{at}]"), of, depth + 1);
                }
            }
            Value::Object(_) if is_beside(value) => {}
            Value::Object(fields) => {
                for (name, inner) in fields.iter().filter(|(name, _)| !ASIDE.contains(&name.as_str())) {
                    self.value(inner, &format!("{place}.{name}"), kind, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// JSON in a text, where it is a list or an object.
pub(super) fn json(said: &str) -> Option<Value> {
    let may_be = said.trim_start().starts_with(['[', '{']);
    may_be
        .then(|| serde_json::from_str::<Value>(said).ok())
        .flatten()
        .filter(|inner| inner.is_array() || inner.is_object())
}

/// What an unplaced text in an element of a list is of.
fn element(value: &Value) -> UnplacedKind {
    let spoken = value.get("role").is_some() || value.get("content").is_some();
    match text(value, "type") {
        Some(kind) if !spoken && !is_known(kind) => UnplacedKind::Part,
        _ => UnplacedKind::Member,
    }
}

/// Whether an object is a part that is known to hold none of what was said: it is counted as left out.
fn is_beside(value: &Value) -> bool {
    let kinds = [
        "reasoning",
        "thinking",
        "redacted_thinking",
        "image",
        "image_url",
        "input_image",
        "file",
        "input_file",
        "blob",
        "uri",
        "audio",
        "input_audio",
        "video",
    ];
    let is_of_kind = text(value, "type").is_some_and(|kind| kinds.contains(&kind));
    is_of_kind || ["inlineData", "inline_data", "fileData", "file_data"].iter().any(|name| value.get(*name).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::surface::{Role, ToolCall};

    #[test]
    fn what_stands_in_no_message_is_named_by_its_place() {
        let mut read = Message::text_of(Role::Assistant, "It is 42.\nOr so.");
        let arguments = json!({"q": "two words"}).to_string();
        read.tool_calls = vec![ToolCall { id: "1".into(), name: "f".into(), arguments, origin: None }];
        let annex = "a whole sentence";
        for (value, expected) in [
            (json!("It is 42.\nOr so."), vec![]),
            (json!({"content": ["It is 42.", "Or so."], "args": {"q": "two words"}}), vec![]),
            (json!({"role": "assistant", "annex": annex, "flag": "word"}), vec![("v.annex", UnplacedKind::Member)]),
            (json!([{"type": "verse", "lines": [annex]}]), vec![("v[0].lines[0]", UnplacedKind::Part)]),
            (json!([{"type": "image", "alt": annex}, {"type": "reasoning", "text": annex}]), vec![]),
            (json!({"usage": {"note": annex}, "tools": [{"description": annex}]}), vec![]),
            (json!(json!({"inner": annex}).to_string()), vec![("v.inner", UnplacedKind::Member)]),
        ] {
            let mut account = TraceAccount::default();
            hold(TraceValue::at("v", &value), std::slice::from_ref(&read), &mut account);
            let found: Vec<_> = account.pieces.iter().map(|piece| (piece.place.as_str(), piece.what)).collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
