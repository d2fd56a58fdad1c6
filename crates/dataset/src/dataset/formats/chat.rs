//! Messages as chat datasets have them.

use serde_json::{Map, Value, json};

use super::schema::{
    Field::{May, Needed},
    Type,
};
use crate::dataset::{Sample, SampleMessage, SampleStep};

/// A message of nothing but text.
pub(super) const PROMPT: Type = Type::Record(&[Needed("role", Type::Text), Needed("content", Type::Text)]);

/// What [`message`] writes.
pub(super) const MESSAGE: Type = Type::Record(&[
    Needed("role", Type::Text),
    Needed("content", Type::Text),
    May(
        "tool_calls",
        Type::List(&Type::Record(&[
            Needed("id", Type::Text),
            Needed("type", Type::OneOf(&["function"])),
            Needed(
                "function",
                Type::Record(&[Needed("name", Type::Text), Needed("arguments", Type::Map(&Type::Json))]),
            ),
        ])),
    ),
    May("tool_call_id", Type::Text),
]);

/// One of what [`tools`] writes.
pub(super) const TOOL: Type = Type::Record(&[
    Needed("type", Type::OneOf(&["function"])),
    Needed(
        "function",
        Type::Record(&[
            Needed("name", Type::Text),
            Needed("description", Type::Text),
            Needed("parameters", Type::Json),
        ]),
    ),
]);

/// A message as TRL, LLaMA-Factory and Axolotl read it: a tool call's arguments are an object there. Arguments that are
/// no JSON object, as an injected call may have, stand under `raw`.
pub(super) fn message(said: &SampleMessage) -> Value {
    let mut message = json!({"role": role(said), "content": said.text});
    if let Some(fields) = message.as_object_mut() {
        if !said.calls.is_empty() {
            let call = |call: &crate::dataset::Called| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": arguments(&call.arguments)}})
            };
            fields.insert("tool_calls".to_owned(), said.calls.iter().map(call).collect());
        }
        fields.extend(said.answers.as_ref().map(|id| ("tool_call_id".to_owned(), id.clone().into())));
    }
    message
}

/// The role of a message, of the four that chat datasets have.
pub(super) fn role(said: &SampleMessage) -> &str {
    match said.role.as_str() {
        "developer" => "system",
        "other" => "user",
        role => role,
    }
}

/// Arguments as an object.
pub(super) fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({"raw": text}),
    }
}

/// The tools that a step was offered, as chat templates take them.
pub(super) fn tools(sample: &Sample, step: &SampleStep) -> Option<Value> {
    let offered = sample.tools.iter().filter(|tool| step.tools.contains(&tool.name));
    let tools: Vec<Value> = offered
        .map(|tool| {
            let mut function = Map::new();
            function.insert("name".to_owned(), tool.name.clone().into());
            function.insert("description".to_owned(), tool.description.clone().into());
            function.insert("parameters".to_owned(), tool.parameters.clone());
            json!({"type": "function", "function": function})
        })
        .collect();
    (!tools.is_empty()).then_some(Value::Array(tools))
}
