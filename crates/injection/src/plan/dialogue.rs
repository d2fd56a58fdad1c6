//! How the checks of a plan write messages: `role: text`, `role(name): text`, `tool(name): result`,
//! `assistant calls name({"a": 1})`.

use crate::surface::{Message, Role, ToolCall};

/// Role words and what they mean.
const ROLES: &[(&str, Role)] = &[
    ("system", Role::System),
    ("developer", Role::Developer),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
];

/// Adds the message that a line writes. Calls of one answer stand in consecutive lines; a tool result belongs to the
/// first call of that tool that has none.
///
/// # Errors
/// What was expected, in words.
pub(super) fn push(messages: &mut Vec<Message>, line: &str) -> Result<(), String> {
    if let Some(call) = line.strip_prefix("assistant calls ") {
        let call = read_call(call, messages.iter().map(|message| message.tool_calls.len()).sum())?;
        match messages.last_mut().filter(|last| last.role == Role::Assistant) {
            Some(last) => last.tool_calls.push(call),
            None => messages.push(Message {
                tool_calls: vec![call],
                parts: Vec::new(),
                ..Message::text_of(Role::Assistant, "")
            }),
        }
        return Ok(());
    }
    let unreadable = || format!("`{}` is not a message: expected `role: text`, for example `user: hello`", short(line));
    let (speaker, text) = line.split_once(':').ok_or_else(unreadable)?;
    let (word, name) = match speaker.split_once('(') {
        Some((word, name)) => (word, Some(name.strip_suffix(')').ok_or_else(unreadable)?)),
        None => (speaker, None),
    };
    let Some((_, role)) = ROLES.iter().find(|(known, _)| *known == word.trim()) else {
        let known: Vec<&str> = ROLES.iter().map(|(word, _)| *word).collect();
        return Err(format!("unknown role `{}`: expected one of {}", short(word), known.join(", ")));
    };
    let mut message = Message::text_of(*role, text.strip_prefix(' ').unwrap_or(text));
    match (role, name) {
        (Role::Tool, None) => return Err("a tool result names its tool: expected `tool(name): result`".to_owned()),
        (Role::Tool, Some(name)) => message.answers_call = Some(open_call(messages, name)?),
        (_, name) => message.name = name.map(str::to_owned),
    }
    messages.push(message);
    Ok(())
}

/// Reads a tool call: `name({"a": 1})`. `number` makes its id.
///
/// # Errors
/// What was expected, in words.
pub(super) fn read_call(text: &str, number: usize) -> Result<ToolCall, String> {
    let parts = text.trim().split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
    match parts {
        Some((name, arguments)) if !name.trim().is_empty() => Ok(ToolCall {
            id: format!("call_{number}"),
            name: name.trim().to_owned(),
            arguments: arguments.to_owned(),
            origin: None,
        }),
        _ => Err(format!("`{}` is not a tool call: expected `name({{\"a\": 1}})`", short(text))),
    }
}

/// The messages as lines that [`push`] reads.
pub(super) fn lines(messages: &[Message]) -> Vec<String> {
    let calls: Vec<&ToolCall> = messages.iter().flat_map(|message| &message.tool_calls).collect();
    let mut lines = Vec::new();
    for message in messages {
        let role = ROLES.iter().find(|(_, role)| *role == message.role).map_or("other", |(word, _)| word);
        let answered = message.answers_call.as_ref().and_then(|id| calls.iter().find(|call| call.id == *id));
        let name = answered.map(|call| call.name.as_str()).or(message.name.as_deref());
        let name = name.map(|name| format!("({name})")).unwrap_or_default();
        if message.tool_calls.is_empty() || !message.text().is_empty() {
            lines.push(format!("{role}{name}: {}", message.text()));
        }
        lines.extend(message.tool_calls.iter().map(|call| format!("assistant calls {}", written(call))));
    }
    lines
}

/// A tool call as [`read_call`] reads it.
pub(super) fn written(call: &ToolCall) -> String {
    format!("{}({})", call.name, call.arguments)
}

fn open_call(messages: &[Message], tool: &str) -> Result<String, String> {
    let answered = |id: &str| messages.iter().any(|message| message.answers_call.as_deref() == Some(id));
    let mut calls = messages.iter().flat_map(|message| &message.tool_calls);
    let call = calls.find(|call| call.name == tool && !answered(&call.id));
    call.map(|call| call.id.clone())
        .ok_or_else(|| format!("no open call of `{}`: expected `assistant calls {0}(…)` before", short(tool)))
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[&str]) -> Result<Vec<Message>, String> {
        let mut messages = Vec::new();
        text.iter().try_for_each(|line| push(&mut messages, line))?;
        Ok(messages)
    }

    #[test]
    fn lines_read_back() {
        for text in [
            vec!["system: be: brief", "user(planner): é\nx", "assistant: ok"],
            vec!["user: q", "assistant calls f({\"a\": 1})", "assistant calls f()", "tool(f): 1", "tool(f): 2"],
            vec!["assistant: thinking", "assistant calls f({})", "tool(f): "],
            vec![],
        ] {
            let messages = read(&text).expect("reads");
            assert_eq!(lines(&messages), text);
        }
        let two = read(&["assistant calls f(1)", "assistant calls f(2)", "tool(f): b"]).expect("reads");
        assert_eq!(two.len(), 2);
        assert_eq!(two.last().and_then(|result| result.answers_call.clone()), Some("call_0".to_owned()));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (line, expected) in [
            ("hello", "expected `role: text`"),
            ("", "expected `role: text`"),
            ("bot: x", "unknown role `bot`"),
            ("user(x: y", "expected `role: text`"),
            ("tool: x", "names its tool"),
            ("tool(f): x", "no open call of `f`"),
            ("assistant calls f", "not a tool call"),
            ("assistant calls (1)", "not a tool call"),
        ] {
            let error = read(&[line]).expect_err(line);
            assert!(error.contains(expected), "{error}");
        }
    }
}
