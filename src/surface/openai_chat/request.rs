//! A request body: reading it in one pass or whole, and splicing an edited view into it.

use std::borrow::Cow;

use bytes::Bytes;

use super::{message, unreadable};
use crate::surface::{
    Conversation, Format, Message, Outline, SurfaceError, Tool, ToolChoice, scan,
    splice::{Member, Node, Splices, encode_string, member},
};

const EXPECTED: &str = "a chat completion request";

/// Reads what identity needs, skipping what it does not. Only the last of equal keys counts.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'_>, SurfaceError> {
    let mut outline = Outline::default();
    let mut messages = None;
    for (key, value) in scan::members(body) {
        match key.as_ref() {
            "model" => outline.model = scan::string(value).unwrap_or_default(),
            "user" => outline.user = scan::string(value),
            "tools" => outline.tools = scan::elements(value).filter_map(tool_name).collect(),
            "metadata" => outline.metadata = metadata(value),
            "messages" if value.starts_with(b"[") => messages = Some(value),
            _ => {}
        }
    }
    if !body.trim_ascii_end().ends_with(b"}") {
        return Err(unreadable(EXPECTED, "the object does not end"));
    }
    let messages = messages.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    for message in scan::elements(messages) {
        let (mut role, mut name, mut content) = (None, None, None);
        for (key, value) in scan::members(message) {
            match key.as_ref() {
                "role" => role = scan::string(value),
                "name" => name = scan::string(value),
                "content" => content = Some(value),
                _ => {}
            }
        }
        match role.as_deref() {
            Some("system" | "developer") => {
                outline.prompts.push(content.map(text_of).unwrap_or_default());
                outline.names.extend(name);
            }
            Some("user") if outline.first_user.is_none() => outline.first_user = content.map(text_of),
            _ => {}
        }
    }
    Ok(outline)
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let messages = member(&members, "messages").filter(Node::is_array);
    let messages = messages.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    let text = |key: &str| member(&members, key).and_then(|v| v.string()).map(Cow::into_owned);
    let number = |key: &str| member(&members, key).and_then(|v| v.value::<u64>());
    Ok(Conversation {
        model: text("model").unwrap_or_default(),
        messages: messages.elements().iter().enumerate().map(|(i, node)| message::read(node, i)).collect(),
        tools: member(&members, "tools").map(|tools| read_tools(&tools)).unwrap_or_default(),
        stream: member(&members, "stream").is_some_and(|v| v.raw() == "true"),
        stream_usage: member(&members, "stream_options")
            .and_then(|o| o.get("include_usage"))
            .is_some_and(|v| v.raw() == "true"),
        choices: number("n").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        format: member(&members, "response_format").map(|v| format(&v)).unwrap_or_default(),
        tool_choice: member(&members, "tool_choice").map(|v| tool_choice(&v)).unwrap_or_default(),
        max_tokens: number("max_completion_tokens").or_else(|| number("max_tokens")),
        stop: member(&members, "stop").map(|v| stop(&v)).unwrap_or_default(),
        metadata: member(&members, "metadata").map(|v| owned(metadata(v.raw().as_bytes()))).unwrap_or_default(),
        user: text("user"),
    })
}

/// Splices the edited view into the body.
pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let source = std::str::from_utf8(body).map_err(|error| unreadable(EXPECTED, error.to_string()))?;
    let members = root.members();
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let array =
            member(&members, "messages").ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        write_messages(source, &array, &before.messages, &after.messages, &mut splices);
    }
    if before.tools != after.tools {
        write_tools(source, &root, &members, before, after, &mut splices);
    }
    if before.model != after.model {
        message::set(&root, &members, "model", &encode_string(&after.model), &mut splices);
    }
    Ok(splices.apply(body))
}

fn write_messages(source: &str, array: &Node<'_>, before: &[Message], after: &[Message], splices: &mut Splices) {
    let elements = array.elements();
    let origins: Vec<_> = after.iter().map(|message| message.origin).collect();
    let edit = |position: usize, origin: usize, splices: &mut Splices| {
        if let (Some(old), Some(new), Some(node)) = (before.get(origin), after.get(position), elements.get(origin)) {
            message::edit(source, node, old, new, splices);
        }
    };
    let make = |position: usize| after.get(position).map(message::make).unwrap_or_default().to_string();
    splices.write_array(source, array, &origins, edit, make);
}

fn write_tools(
    source: &str,
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    after: &Conversation,
    splices: &mut Splices,
) {
    let make = |tool: &Tool| {
        let function =
            serde_json::json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        serde_json::json!({"type": "function", "function": function})
    };
    let Some(array) = member(members, "tools").filter(Node::is_array) else {
        let tools: serde_json::Value = after.tools.iter().map(make).collect();
        return message::set(root, members, "tools", &tools.to_string(), splices);
    };
    let elements = array.elements();
    let origins: Vec<_> = after.tools.iter().map(|tool| tool.origin).collect();
    let edit = |position: usize, origin: usize, splices: &mut Splices| {
        let (Some(old), Some(new)) = (before.tools.get(origin), after.tools.get(position)) else { return };
        let inner = elements.get(origin).and_then(|e| e.get("function")).map(|f| f.members()).unwrap_or_default();
        for (key, old, new) in [("name", &old.name, &new.name), ("description", &old.description, &new.description)] {
            if let (true, Some(place)) = (old != new, member(&inner, key)) {
                splices.replace(place.span(), encode_string(new));
            }
        }
    };
    splices
        .write_array(source, &array, &origins, edit, |i| after.tools.get(i).map(make).unwrap_or_default().to_string());
}

fn read_tools(tools: &Node<'_>) -> Vec<Tool> {
    let read = |(origin, node): (usize, Node<'_>)| {
        let function = node.get("function").or_else(|| node.get("custom")).map(|f| f.members()).unwrap_or_default();
        let text = |key: &str| member(&function, key).and_then(|v| v.string()).unwrap_or_default().into_owned();
        Tool {
            name: text("name"),
            description: text("description"),
            parameters: member(&function, "parameters").and_then(|p| p.value()).unwrap_or_default(),
            origin: Some(origin),
        }
    };
    tools.elements().into_iter().enumerate().map(read).collect()
}

fn format(node: &Node<'_>) -> Format {
    match node.get("type").and_then(|kind| kind.string()).as_deref() {
        Some("json_object") => Format::JsonObject,
        Some("json_schema") => {
            let inner = node.get("json_schema").map(|schema| schema.members()).unwrap_or_default();
            Format::JsonSchema {
                name: member(&inner, "name").and_then(|name| name.string()).unwrap_or_default().into_owned(),
                schema: member(&inner, "schema").and_then(|schema| schema.value()).unwrap_or_default(),
            }
        }
        _ => Format::Text,
    }
}

fn tool_choice(node: &Node<'_>) -> ToolChoice {
    match node.string().as_deref() {
        Some("none") => ToolChoice::None,
        Some("required") => ToolChoice::Required,
        Some(_) => ToolChoice::Auto,
        None => {
            let name = node.get("function").and_then(|f| f.get("name")).and_then(|name| name.string());
            name.map_or(ToolChoice::Auto, |name| ToolChoice::Named(name.into_owned()))
        }
    }
}

fn stop(node: &Node<'_>) -> Vec<String> {
    match node.string() {
        Some(one) => vec![one.into_owned()],
        None => node.elements().iter().filter_map(super::super::splice::Node::string).map(Cow::into_owned).collect(),
    }
}

fn owned(entries: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Vec<(String, String)> {
    entries.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

/// The text of a message's content, whole or in parts.
fn text_of(content: &[u8]) -> Cow<'_, str> {
    scan::string(content).unwrap_or_else(|| {
        let parts = Node::parse(content).map(|node| message::parts(&node)).unwrap_or_default();
        let texts: Vec<_> = parts.iter().filter_map(crate::surface::Part::as_text).collect();
        Cow::Owned(texts.join("\n"))
    })
}

fn tool_name(tool: &[u8]) -> Option<Cow<'_, str>> {
    let (_, function) = scan::members(tool).filter(|(key, _)| key == "function").last()?;
    let (_, name) = scan::members(function).filter(|(key, _)| key == "name").last()?;
    scan::string(name)
}

fn metadata(object: &[u8]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    scan::members(object).filter_map(|(key, value)| Some((key, scan::string(value)?))).collect()
}
