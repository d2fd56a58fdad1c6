//! A request body: reading it in one pass or whole, and splicing an edited view into it.

use std::borrow::Cow;

use bytes::Bytes;

use super::message;
use crate::surface::{
    Conversation, LazyMessage, Message, Outline, RequiredFormat, Role, Sampling, SurfaceError, Tool, ToolChoice,
    fields::{self, entries, owned, unreadable},
    message::text_of,
    scan,
    splice::{Listed, Member, Node, Splices, encode_string, member},
};

const EXPECTED: &str = "a chat completion request";

/// Reads what identity needs in one pass, skipping what it does not. The last of equal keys counts.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'_>, SurfaceError> {
    let mut outline = Outline::default();
    let mut heard = None;
    scan::object(body, |key, rest| {
        if *key == *b"messages" && rest.starts_with(b"[") {
            let mut messages = Outline { messages: Vec::with_capacity(16), ..Outline::default() };
            let after = scan::array(rest, |message| outline_next(message, &mut messages));
            heard = after.map(|_| messages);
            return after;
        }
        let (value, after) = scan::skip(rest)?;
        match key.as_ref() {
            b"model" => outline.model = scan::string(value).unwrap_or_default(),
            b"user" => outline.user = scan::string(value),
            b"tools" => {
                outline.tools = scan::elements(value).filter_map(tool_name).collect();
                outline.tool_text = std::str::from_utf8(value).unwrap_or_default().into();
            }
            b"metadata" => outline.metadata = metadata(value),
            b"response_format" => outline.format = format_name(value),
            b"messages" => heard = None,
            _ => {}
        }
        Some(after)
    });
    if !body.trim_ascii_end().ends_with(b"}") {
        return Err(unreadable(EXPECTED, "the object does not end"));
    }
    let heard = heard.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    let Outline { prompts, names, messages: said, quotes, .. } = heard;
    Ok(Outline { prompts, names, messages: said, quotes, ..outline })
}

/// Takes the message that the text begins with into the outline; gives what follows it.
fn outline_next<'a>(text: &'a [u8], outline: &mut Outline<'a>) -> Option<&'a [u8]> {
    let (mut role, mut name, mut answers, mut content, mut calls) = (Role::Other, None, None, None, None);
    let member = |key: scan::Key<'a>, rest: &'a [u8]| {
        let (value, after) = scan::skip(rest)?;
        match key.as_ref() {
            b"role" => role = role_of(value),
            b"name" => name = scan::string(value),
            b"tool_call_id" => answers = scan::string(value),
            b"content" => content = Some(value),
            b"tool_calls" => calls = Some(value),
            _ => {}
        }
        Some(after)
    };
    let after =
        if text.starts_with(b"{") { scan::object(text, member) } else { scan::skip(text).map(|(_, after)| after) };
    outline.quotes.extend(calls.into_iter().flat_map(scan::elements).filter_map(|call| named(call, "id")));
    outline.quotes.extend(answers.clone());
    if matches!(role, Role::System | Role::Developer) {
        outline.prompts.push(content.map(text_of).unwrap_or_default());
        outline.names.extend(name.clone());
    }
    outline.messages.push(LazyMessage::raw(role, name, answers, content, calls));
    after
}

/// The role that a raw value names. All but hardly any are written without escapes and need no decoding.
fn role_of(raw: &[u8]) -> Role {
    match raw {
        b"\"user\"" => Role::User,
        b"\"assistant\"" => Role::Assistant,
        b"\"tool\"" => Role::Tool,
        _ => fields::role(scan::string(raw).as_deref()),
    }
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let mut messages = None;
    let members = root.members_visiting("messages", |list| {
        let mut read = Vec::new();
        let after = scan::array(list, |text| {
            let (message, after) = message::read(text, read.len())?;
            read.push(message);
            Some(after)
        });
        messages = after.map(|_| read);
        after
    });
    // The last of equal keys counts, and it may be no list.
    let messages = messages.filter(|_| member(&members, "messages").is_some_and(|last| last.is_array()));
    let messages = messages.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    let text = |key: &str| member(&members, key).and_then(|v| v.string()).map(Cow::into_owned);
    let number = |key: &str| member(&members, key).and_then(|v| v.value::<u64>());
    Ok(Conversation {
        model: text("model").unwrap_or_default(),
        quotes: messages.iter().flat_map(Message::call_ids).cloned().collect(),
        refers: Vec::new(),
        messages,
        tools: member(&members, "tools").map(|tools| read_tools(&tools)).unwrap_or_default(),
        stream: member(&members, "stream").is_some_and(|v| v.raw() == "true"),
        stream_usage: member(&members, "stream_options")
            .and_then(|o| o.get("include_usage"))
            .is_some_and(|v| v.raw() == "true"),
        choices: number("n").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        format: member(&members, "response_format").map(|v| format(&v)).unwrap_or_default(),
        tool_choice: member(&members, "tool_choice").map(|v| tool_choice(&v)).unwrap_or_default(),
        max_tokens: number("max_completion_tokens").or_else(|| number("max_tokens")),
        stop: member(&members, "stop").map(|v| fields::strings(&v)).unwrap_or_default(),
        sampling: Sampling {
            temperature: member(&members, "temperature").and_then(|v| v.value()),
            top_p: member(&members, "top_p").and_then(|v| v.value()),
            seed: member(&members, "seed").and_then(|v| v.value()),
        },
        metadata: member(&members, "metadata").map(|v| owned(entries(&v))).unwrap_or_default(),
        user: text("user"),
        ..Conversation::default()
    })
}

/// Splices the edited view into the body.
pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parsed_before(source);
    let mut messages = None;
    let members = root.members_visiting("messages", |list| {
        let (listed, after) = root.listed_at(list)?;
        messages = Some(listed);
        Some(after)
    });
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let messages = messages.ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        write_messages(source, &messages, &before.messages, &after.messages, &mut splices);
    }
    if before.tools != after.tools && !after.tools.is_empty() {
        write_tools(source, &root, &members, before, after, &mut splices);
    }
    parameters(&root, &members, before, after, &mut splices);
    if after.tools.is_empty() && !before.tools.is_empty() {
        // An empty offer is refused by backends, and so is a choice without one.
        fields::remove_members(source, &root, &members, &["tools", "tool_choice", "parallel_tool_calls"], &mut splices);
    } else if before.tool_choice != after.tool_choice {
        fields::set(&root, &members, "tool_choice", &choice_text(&after.tool_choice), &mut splices);
    }
    Ok(splices.apply(body))
}

/// Writes the parameters that differ.
fn parameters(
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    after: &Conversation,
    splices: &mut Splices,
) {
    let mut set = |differs: bool, key: &str, value: serde_json::Value| {
        if differs {
            fields::set(root, members, key, &value.to_string(), splices);
        }
    };
    // The newer name where the request uses it, or neither.
    let longest = if member(members, "max_tokens").is_some() { "max_tokens" } else { "max_completion_tokens" };
    let (old, new) = (before.sampling, after.sampling);
    set(before.model != after.model, "model", after.model.as_str().into());
    set(before.max_tokens != after.max_tokens, longest, after.max_tokens.into());
    set(before.stop != after.stop, "stop", after.stop.clone().into());
    set(old.temperature != new.temperature, "temperature", new.temperature.into());
    set(old.top_p != new.top_p, "top_p", new.top_p.into());
    set(old.seed != new.seed, "seed", new.seed.into());
}

fn choice_text(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "\"auto\"".to_owned(),
        ToolChoice::None => "\"none\"".to_owned(),
        ToolChoice::Required => "\"required\"".to_owned(),
        ToolChoice::Named(name) => serde_json::json!({"type": "function", "function": {"name": name}}).to_string(),
    }
}

fn write_messages(source: &str, list: &Listed<'_>, before: &[Message], after: &[Message], splices: &mut Splices) {
    let origins: Vec<_> = after.iter().map(|message| message.origin).collect();
    let edit = |position: usize, origin: usize, splices: &mut Splices| {
        if let (Some(old), Some(new), Some(node)) = (before.get(origin), after.get(position), list.elements.get(origin))
        {
            message::edit(source, node, old, new, splices);
        }
    };
    let make = |position: usize| after.get(position).map(message::make).unwrap_or_default().to_string();
    splices.write_array(source, list, &origins, edit, make);
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
        return fields::set(root, members, "tools", &tools.to_string(), splices);
    };
    let tools = array.listed();
    let origins: Vec<_> = after.tools.iter().map(|tool| tool.origin).collect();
    let edit = |position: usize, origin: usize, splices: &mut Splices| {
        let (Some(old), Some(new)) = (before.tools.get(origin), after.tools.get(position)) else { return };
        let inner = tools.elements.get(origin).and_then(|tool| tool.get("function").or_else(|| tool.get("custom")));
        let Some(inner) = inner else { return };
        for (key, old, new) in [("name", &old.name, &new.name), ("description", &old.description, &new.description)] {
            if old != new {
                fields::set(&inner, &inner.members(), key, &encode_string(new), splices);
            }
        }
    };
    let make = |position: usize| after.tools.get(position).map(make).unwrap_or_default().to_string();
    splices.write_array(source, &tools, &origins, edit, make);
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

fn format(node: &Node<'_>) -> RequiredFormat {
    match node.get("type").and_then(|kind| kind.string()).as_deref() {
        Some("json_object") => RequiredFormat::JsonObject,
        Some("json_schema") => {
            let inner = node.get("json_schema").map(|schema| schema.members()).unwrap_or_default();
            RequiredFormat::JsonSchema {
                name: member(&inner, "name").and_then(|name| name.string()).unwrap_or_default().into_owned(),
                schema: member(&inner, "schema").and_then(|schema| schema.value()).unwrap_or_default(),
            }
        }
        _ => RequiredFormat::Text,
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

/// A string member of a raw object.
fn named<'a>(object: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
    let (_, value) = scan::members(object).filter(|(name, _)| **name == *key.as_bytes()).last()?;
    scan::string(value)
}

/// What a required shape is called.
fn format_name(raw: &[u8]) -> Cow<'_, str> {
    let Ok(node) = Node::parse(raw) else { return Cow::Borrowed("") };
    match node.get("type").and_then(|kind| kind.string()) {
        Some(kind) if kind == "json_schema" => {
            node.get("json_schema").and_then(|schema| schema.get("name")).and_then(|name| name.string()).unwrap_or(kind)
        }
        Some(kind) if kind == "text" => Cow::Borrowed(""),
        kind => kind.unwrap_or_default(),
    }
}

fn tool_name(tool: &[u8]) -> Option<Cow<'_, str>> {
    let (_, function) = scan::members(tool).filter(|(key, _)| **key == *b"function").last()?;
    named(function, "name")
}

fn metadata(object: &[u8]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    scan::members(object).filter_map(|(key, value)| Some((scan::text_of_key(key)?, scan::string(value)?))).collect()
}
