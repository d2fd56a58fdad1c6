//! From what an ability says to a reply: alternatives, stop strings, length, usage, ids. All of it is a function of
//! the conversation and the seed.

use super::{ability, reading::ReadConversation, utterance::Utterance, vectors};
use crate::{
    surface::{Answer, Conversation, Message, Part, Reply, Role, ToolCall, Vectors},
    trajectory::Usage,
};

/// What the simulator says to what it cannot read.
pub(super) const UNREAD: &str = "I cannot find a task in this that I can work on.";

/// A reply, and which ability gave it; `None` where nothing could be read.
pub(super) fn give(conversation: &Conversation, seed: u64) -> (Reply, Option<&'static str>) {
    if let Some(asked) = conversation.vectors {
        return (embedded(conversation, asked), Some("vectors"));
    }
    let reading = ReadConversation::read(conversation, seed);
    let found = ability::ALL.iter().find_map(|ability| Some((ability.name, (ability.run)(&reading)?)));
    let (name, said) = match found {
        Some((name, said)) => (Some(name), said),
        None => (None, Utterance::text(UNREAD)),
    };
    let id = identity(conversation, seed);
    let alternatives = conversation.choices.clamp(1, 128);
    let answers: Vec<Answer> = (0..alternatives).map(|index| answer(conversation, &said, index, &id)).collect();
    let input = conversation.messages.iter().map(message_tokens).sum::<u64>() + tools_tokens(conversation) + 3;
    let output = answers.iter().map(|answer| message_tokens(&answer.message)).sum();
    let reply = Reply {
        id: format!("chatcmpl-{id}"),
        model: conversation.model.clone(),
        answers,
        usage: Some(Usage { input, output }),
        ..Reply::default()
    };
    (reply, name)
}

/// The reply to texts that are to become vectors.
fn embedded(conversation: &Conversation, asked: Vectors) -> Reply {
    let usage = Usage { input: conversation.messages.iter().map(message_tokens).sum(), output: 0 };
    Reply {
        model: conversation.model.clone(),
        usage: Some(usage),
        vectors: vectors::embed(conversation, asked),
        base64: asked.base64,
        ..Reply::default()
    }
}

fn answer(conversation: &Conversation, said: &Utterance, index: u32, id: &str) -> Answer {
    let (text, cut) = shortened(&said.text, conversation);
    let call = |(number, (name, arguments)): (usize, &(String, serde_json::Value))| ToolCall {
        id: format!("call_{}{index}{number}", id.get(..20).unwrap_or(id)),
        name: name.clone(),
        arguments: arguments.to_string(),
        origin: None,
    };
    let tool_calls: Vec<ToolCall> = if cut { Vec::new() } else { said.calls.iter().enumerate().map(call).collect() };
    let reason = match (cut, tool_calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    };
    let parts = if text.is_empty() && !tool_calls.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
    let message = Message { role: Role::Assistant, name: None, parts, tool_calls, answers_call: None, origin: None };
    Answer { index, message, finish_reason: Some(reason.to_owned()) }
}

/// The text up to the first stop string and within the token limit; whether the limit cut it.
fn shortened(text: &str, conversation: &Conversation) -> (String, bool) {
    let stops = conversation.stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop.as_str()));
    let text = stops.min().and_then(|end| text.get(..end)).unwrap_or(text);
    let most =
        conversation.max_tokens.and_then(|tokens| usize::try_from(tokens.saturating_mul(4)).ok()).unwrap_or(usize::MAX);
    let short: String = text.chars().take(most).collect();
    let cut = short.len() < text.len();
    (short, cut)
}

/// About four characters a token, and at least one.
fn tokens(characters: usize) -> u64 {
    (characters as u64).div_ceil(4).max(1)
}

fn message_tokens(message: &Message) -> u64 {
    let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    tokens(message.text().chars().count() + calls) + 3
}

fn tools_tokens(conversation: &Conversation) -> u64 {
    let size =
        |tool: &crate::surface::Tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    conversation.tools.iter().map(|tool| tokens(size(tool))).sum()
}

/// 24 hex digits that depend on the conversation and the seed alone.
fn identity(conversation: &Conversation, seed: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(conversation.model.as_bytes());
    for message in &conversation.messages {
        let text = message.text();
        let calls =
            message.tool_calls.iter().flat_map(|call| [call.id.as_str(), call.name.as_str(), call.arguments.as_str()]);
        let call = message.answers_call.as_deref();
        let name = message.name.as_deref();
        for field in calls.chain(call).chain(name).chain([text.as_str()]) {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        hasher.update(&[message.role as u8]);
    }
    hasher.finalize().to_hex().chars().take(24).collect()
}
