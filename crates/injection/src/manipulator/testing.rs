//! What the tables of this room's tests are written in.

use super::{Adaptive, Context, Manipulator, ManipulatorError, edited_reply, edited_request};
use crate::surface::{Answer, Conversation, Message, Reply, RequiredFormat, Role, ToolCall};

/// A request from `role: text` lines separated by `|`. An assistant line `calls name` makes a tool call with the id
/// `id-name`; a tool line `name= text` answers it.
pub(crate) fn request(lines: &str) -> Conversation {
    let messages = lines.split('|').filter(|line| !line.is_empty()).map(message).collect();
    Conversation { messages, choices: 1, ..Conversation::default() }
}

fn message(line: &str) -> Message {
    let (role, text) = line.split_once(": ").expect("`role: text`");
    let role = match role {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => panic!("role {other}"),
    };
    if let Some(name) = text.strip_prefix("calls ") {
        let mut message = Message::text_of(role, "");
        message.parts.clear();
        message.tool_calls.push(call(name, "{}"));
        return message;
    }
    match text.split_once("= ").filter(|_| role == Role::Tool) {
        Some((name, text)) => Message { answers_call: Some(format!("id-{name}")), ..Message::text_of(role, text) },
        None => Message::text_of(role, text),
    }
}

/// A tool call with the id `id-name`.
pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: format!("id-{name}"), name: name.to_owned(), arguments: arguments.to_owned(), origin: None }
}

/// The messages of a request in the form that [`request`] reads.
pub(crate) fn lines(conversation: &Conversation) -> String {
    let line = |message: &Message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            _ => "tool",
        };
        match (message.tool_calls.first(), &message.answers_call) {
            (Some(call), _) => format!("{role}: calls {}", call.name),
            (None, Some(id)) => format!("{role}: {}= {}", id.trim_start_matches("id-"), message.text()),
            (None, None) => format!("{role}: {}", message.text()),
        }
    };
    conversation.messages.iter().map(line).collect::<Vec<_>>().join("|")
}

/// A reply of one answer that ended by itself.
pub(crate) fn reply(text: &str) -> Reply {
    let message = Message::text_of(Role::Assistant, text);
    let answer = Answer { index: 0, message, finish_reason: Some("stop".to_owned()) };
    Reply { answers: vec![answer], ..Reply::default() }
}

/// A context without history, with a draw of 0.
pub(crate) fn context(conversation: &Conversation) -> Context<'_> {
    Context { agent: "solver", conversation, earlier: &[], draw: 0, adaptive: Adaptive::default() }
}

/// Edits a request of `|`-separated lines, with these earlier answers.
pub(crate) fn edit(
    manipulator: &dyn Manipulator,
    messages: &str,
    earlier: &[(&str, &str)],
) -> Result<String, ManipulatorError> {
    let conversation = request(messages);
    let earlier: Vec<_> = earlier.iter().map(|(agent, text)| ((*agent).to_owned(), (*text).to_owned())).collect();
    let context = Context { earlier: &earlier, ..context(&conversation) };
    edited_request(manipulator, &conversation, &context).map(|edited| lines(&edited))
}

/// Edits an answer of this text in this format.
pub(crate) fn answer(
    manipulator: &dyn Manipulator,
    text: &str,
    format: RequiredFormat,
    draw: u64,
) -> Result<Answer, ManipulatorError> {
    let conversation = Conversation { format, ..Conversation::default() };
    let context = Context { draw, ..context(&conversation) };
    let mut edited = edited_reply(manipulator, &reply(text), None, &context)?;
    Ok(edited.answers.remove(0))
}
