//! A request body: reading it in one pass or whole, and splicing an edited view into it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message;
use crate::surface::{
    Conversation, Format, Message, Outline, Role, Said, Sampling, SurfaceError, Tool, ToolChoice,
    fields::{self, entries, owned, unreadable},
    said::text_of,
    splice::{Member, Node, Splices, decode_string, encode_string, member},
};

const EXPECTED: &str = "a chat completion request";

/// Reads what identity needs. A body with duplicate keys is read whole instead.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'_>, SurfaceError> {
    let Ok(raw) = serde_json::from_slice::<RawRequest<'_>>(body) else {
        return read(body).map(|conversation| Outline::from(&conversation));
    };
    let mut outline = Outline {
        model: raw.model.and_then(string).unwrap_or_default(),
        user: raw.user.and_then(string),
        tools: raw.tools.map(tool_names).unwrap_or_default(),
        metadata: raw.metadata.map(|raw| entries(&at_zero(raw))).unwrap_or_default(),
        tool_text: raw.tools.map(|tools| tools.get().into()).unwrap_or_default(),
        format: raw.response_format.map(format_name).unwrap_or_default(),
        said: Vec::with_capacity(raw.messages.len()),
        ..Outline::default()
    };
    for raw in &raw.messages {
        let role = fields::role(raw.role.and_then(string).as_deref());
        let name = raw.name.and_then(string);
        outline.quotes.extend(raw.tool_calls.map(call_ids).unwrap_or_default());
        outline.quotes.extend(raw.tool_call_id.and_then(string));
        match role {
            Role::System | Role::Developer => {
                outline.prompts.push(raw.content.map(text_of).unwrap_or_default());
                outline.names.extend(name.clone());
            }
            Role::User if outline.first_user.is_none() => outline.first_user = raw.content.map(text_of),
            _ => {}
        }
        outline.said.push(Said::raw(role, name, raw.tool_call_id.and_then(string), raw.content, raw.tool_calls));
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
    let messages: Vec<_> = messages.elements().iter().enumerate().map(|(i, node)| message::read(node, i)).collect();
    Ok(Conversation {
        model: text("model").unwrap_or_default(),
        quotes: messages.iter().flat_map(Message::call_ids).cloned().collect(),
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
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let source = std::str::from_utf8(body).map_err(|error| unreadable(EXPECTED, error.to_string()))?;
    let members = root.members();
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let array =
            member(&members, "messages").ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        write_messages(source, &array, &before.messages, &after.messages, &mut splices);
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
        return fields::set(root, members, "tools", &tools.to_string(), splices);
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

/// The members that the outline looks at; all others are skipped.
#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<RawMessage<'a>>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Option<&'a RawValue>,
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    decode_string(raw.get())
}

/// A raw value as a node whose spans nobody uses.
fn at_zero(raw: &RawValue) -> Node<'_> {
    Node::detached(raw)
}

/// What a required shape is called.
fn format_name(raw: &RawValue) -> Cow<'_, str> {
    let node = at_zero(raw);
    match node.get("type").and_then(|kind| kind.string()) {
        Some(kind) if kind == "json_schema" => {
            node.get("json_schema").and_then(|schema| schema.get("name")).and_then(|name| name.string()).unwrap_or(kind)
        }
        Some(kind) if kind == "text" => Cow::Borrowed(""),
        kind => kind.unwrap_or_default(),
    }
}

fn tool_names(tools: &RawValue) -> Vec<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct RawTool<'a> {
        #[serde(borrow, default)]
        function: Option<RawFunction<'a>>,
    }
    #[derive(Deserialize)]
    struct RawFunction<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
    }
    let tools = serde_json::from_str::<Vec<RawTool<'_>>>(tools.get()).unwrap_or_default();
    tools.into_iter().filter_map(|tool| tool.function?.name.and_then(string)).collect()
}

fn call_ids(calls: &RawValue) -> Vec<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct RawCall<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    let calls = serde_json::from_str::<Vec<RawCall<'_>>>(calls.get()).unwrap_or_default();
    calls.into_iter().filter_map(|call| call.id.and_then(string)).collect()
}
