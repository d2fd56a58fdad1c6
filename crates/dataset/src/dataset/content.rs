//! What a request or a reply says, as a hash: equal for equal content, whatever ids, times and counts a backend puts
//! around it. The bytes themselves are hashed in the run's recording and label.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::surface::{Conversation, Message, Part, Reply, RequiredFormat, ToolChoice};

/// The hash of what a request asks. What only tells how the answer is to travel, or names what the upstream keeps, is
/// not in it.
pub(super) fn of_request(asked: &Conversation) -> String {
    let mut ids = Ids::default();
    let format = match &asked.format {
        RequiredFormat::Text => json!("text"),
        RequiredFormat::JsonObject => json!("json_object"),
        RequiredFormat::JsonSchema { name, schema } => json!({"name": name, "schema": schema}),
    };
    let choice = match &asked.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({ "name": name }),
    };
    let tools = asked.tools.iter().map(|tool| json!([tool.name, tool.description, tool.parameters]));
    hash(&json!({
        "model": asked.model,
        "messages": asked.messages.iter().map(|message| ids.message(message)).collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "format": format,
        "tool_choice": choice,
        "alternatives": asked.choices,
        "max_tokens": asked.max_tokens,
        "stop": asked.stop,
        "temperature": asked.sampling.temperature,
        "top_p": asked.sampling.top_p,
        "seed": asked.sampling.seed,
    }))
}

/// The hash of what a reply answers, streamed or whole.
pub(super) fn of_reply(reply: &Reply) -> String {
    let mut ids = Ids::default();
    let answers = reply
        .answers
        .iter()
        .map(|answer| json!([answer.index, ids.message(&answer.message), answer.finish_reason]))
        .collect::<Vec<_>>();
    hash(&json!({"model": reply.model, "answers": answers}))
}

/// The hash of bytes that no surface reads, or in whose reading an edit does not show.
pub(super) fn of_bytes(body: &[u8]) -> String {
    blake3::hash(body).to_hex().to_string()
}

fn hash(content: &Value) -> String {
    of_bytes(content.to_string().as_bytes())
}

/// Ids of tool calls by order of appearance: a backend draws new ones each time, which result answers which call stays.
#[derive(Debug, Default)]
struct Ids<'a>(HashMap<&'a str, usize>);

impl<'a> Ids<'a> {
    fn number(&mut self, id: &'a str) -> usize {
        let next = self.0.len();
        *self.0.entry(id).or_insert(next)
    }

    fn message(&mut self, message: &'a Message) -> Value {
        let parts = message.parts.iter().map(|part| match part {
            Part::Text(text) => json!({ "text": text }),
            Part::Opaque(what) => json!({ "opaque": what }),
        });
        let parts: Vec<Value> = parts.collect();
        let role = super::SampleMessage::from(message).role;
        let answers = message.answers_call.as_deref().map(|id| self.number(id));
        let calls = message.tool_calls.iter().map(|call| json!([self.number(&call.id), call.name, call.arguments]));
        let calls: Vec<Value> = calls.collect();
        json!({"role": role, "name": message.name, "parts": parts, "calls": calls, "answers": answers})
    }
}
