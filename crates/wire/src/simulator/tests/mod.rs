//! The simulator's abilities, through its whole reading of conversations.

mod frameworks;
mod properties;
mod roles;
mod schema;
mod wire;

use serde_json::{Value, json};

use super::reply;
use crate::surface::{Conversation, Message, RequiredFormat, Role, Tool, ToolCall, ToolChoice};

const PENCILS: &str =
    "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";

/// A conversation from lines such as `system: …`, `user: …`, `user/critic: …`, `assistant: …`,
/// `call calculator {"a":1}`, `tool: …` (which answers the last call).
fn conversation(lines: &[&str]) -> Conversation {
    let mut messages: Vec<Message> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if let Some(call) = line.strip_prefix("call ") {
            let (name, arguments) = call.split_once(' ').expect("a name and arguments");
            let mut message = Message::text_of(Role::Assistant, "");
            let id = format!("call{number}");
            message.tool_calls.push(ToolCall {
                id,
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                origin: None,
            });
            messages.push(message);
            continue;
        }
        let (who, text) = line.split_once(": ").expect("a role");
        let (role, name) = who.split_once('/').map_or((who, None), |(role, name)| (role, Some(name.to_owned())));
        let role = match role {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => panic!("role {other}"),
        };
        let mut message = Message::text_of(role, text);
        message.name = name;
        if role == Role::Tool {
            let called = messages.iter().rev().find_map(|m| m.tool_calls.first()).expect("a call");
            message.answers_call = Some(called.id.clone());
        }
        messages.push(message);
    }
    Conversation { messages, choices: 1, ..Conversation::default() }
}

/// What is said: the text, then each call as `name{arguments}`.
fn reply_text(conversation: &Conversation) -> String {
    let (reply, _) = reply::give(conversation, 0);
    let message = &reply.answers[0].message;
    let calls = message.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments));
    let text = Some(message.text()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

fn says(lines: &[&str]) -> String {
    reply_text(&conversation(lines))
}

fn tool(name: &str, description: &str, parameters: Value) -> Tool {
    Tool { name: name.to_owned(), description: description.to_owned(), parameters, origin: None }
}

fn calculator() -> Tool {
    let parameters =
        json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    tool("calculator", "Evaluate an arithmetic expression such as 3 * (4 + 5).", parameters)
}

fn transfer(to: &str, description: &str) -> Tool {
    tool(&format!("transfer_to_{to}"), description, json!({"type": "object", "properties": {}}))
}

fn with_tools(lines: &[&str], tools: &[Tool]) -> Conversation {
    Conversation { tools: tools.to_vec(), ..conversation(lines) }
}

fn with_schema(lines: &[&str], schema: Value) -> Conversation {
    Conversation { format: RequiredFormat::JsonSchema { name: "out".to_owned(), schema }, ..conversation(lines) }
}

fn choosing(conversation: Conversation, tool_choice: ToolChoice) -> Conversation {
    Conversation { tool_choice, ..conversation }
}
