//! A request body: reading it in one pass or whole.

use std::{borrow::Cow, ops::Range};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{self, Block};
use crate::surface::{
    Conversation, Format, Message, Outline, Role, SurfaceError, Tool, ToolChoice,
    fields::{self, entries, number, owned, string, text, unreadable},
    splice::{Node, decode_string, member},
};

pub(super) const EXPECTED: &str = "a messages request";

/// Reads what identity needs. A body with duplicate keys is read whole instead.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'_>, SurfaceError> {
    let Ok(raw) = serde_json::from_slice::<RawRequest<'_>>(body) else {
        return read(body).map(|conversation| Outline::from(&conversation));
    };
    let metadata = raw.metadata.map(|raw| entries(&Node::detached(raw))).unwrap_or_default();
    let mut outline = Outline {
        model: raw.model.and_then(decoded).unwrap_or_default(),
        prompts: raw.system.map(said).into_iter().collect(),
        tools: raw.tools.map(tool_names).unwrap_or_default(),
        user: metadata.iter().find(|(key, _)| key == "user_id").map(|(_, user)| user.clone()),
        metadata,
        ..Outline::default()
    };
    for raw in &raw.messages {
        let role = raw.role.and_then(decoded);
        let Some(content) = raw.content else { continue };
        match role.as_deref() {
            Some("system") => outline.prompts.push(said(content)),
            Some("user") if outline.first_user.is_none() => outline.first_user = first_said(content),
            _ => {}
        }
        if content.get().starts_with('[') {
            outline.quotes.extend(quoted(content));
        }
    }
    Ok(outline)
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let list = member(&members, "messages").filter(Node::is_array);
    let list = list.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    let mut messages = Vec::new();
    if let Some(system) = member(&members, "system").filter(|system| !system.is_null()) {
        messages.push(block::message(Role::System, block::blocks(&system).iter(), 0));
    }
    for node in list.elements() {
        let fields = node.members();
        let role = fields::role(string(&fields, "role").as_deref());
        let blocks = member(&fields, "content").map(|content| block::blocks(&content)).unwrap_or_default();
        for group in groups(&blocks) {
            let said = blocks.get(group).unwrap_or_default();
            messages.push(block::message(role, said.iter(), messages.len()));
        }
    }
    let metadata = member(&members, "metadata").map(|v| owned(entries(&v))).unwrap_or_default();
    Ok(Conversation {
        model: text(&members, "model"),
        quotes: messages.iter().flat_map(Message::call_ids).cloned().collect(),
        messages,
        tools: member(&members, "tools").map(|tools| read_tools(&tools)).unwrap_or_default(),
        stream: fields::is_true(&members, "stream"),
        // The events that start and end a stream always say it.
        stream_usage: true,
        choices: 1,
        format: format(&root).unwrap_or_default(),
        tool_choice: member(&members, "tool_choice").map(|v| tool_choice(&v)).unwrap_or_default(),
        max_tokens: number(&members, "max_tokens"),
        stop: member(&members, "stop_sequences").map(|v| fields::strings(&v)).unwrap_or_default(),
        user: metadata.iter().find(|(key, _)| key == "user_id").map(|(_, user)| user.clone()),
        metadata,
        ..Conversation::default()
    })
}

/// Runs of blocks that are one message: a tool result by itself, the blocks between results together.
pub(super) fn groups(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, block) in blocks.iter().enumerate() {
        let result = matches!(block, Block::Result { .. });
        match groups.last_mut() {
            Some(last) if open && !result => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
        open = !result;
    }
    if groups.is_empty() {
        groups.push(0..0);
    }
    groups
}

fn read_tools(tools: &Node<'_>) -> Vec<Tool> {
    let read = |(origin, node): (usize, Node<'_>)| {
        let members = node.members();
        Tool {
            name: text(&members, "name"),
            description: text(&members, "description"),
            parameters: member(&members, "input_schema").and_then(|p| p.value()).unwrap_or_default(),
            origin: Some(origin),
        }
    };
    tools.elements().into_iter().enumerate().map(read).collect()
}

/// The schema that the answer must fit, where one is set.
fn format(root: &Node<'_>) -> Option<Format> {
    let format =
        root.get("output_config").and_then(|config| config.get("format")).or_else(|| root.get("output_format"))?;
    let schema = format.get("schema")?.value()?;
    Some(Format::JsonSchema { name: String::new(), schema })
}

fn tool_choice(node: &Node<'_>) -> ToolChoice {
    let members = node.members();
    match string(&members, "type").as_deref() {
        Some("none") => ToolChoice::None,
        Some("any") => ToolChoice::Required,
        Some("tool") => ToolChoice::Named(text(&members, "name")),
        _ => ToolChoice::Auto,
    }
}

/// The members that the outline looks at; all others are skipped.
#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<RawMessage<'a>>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

fn decoded(raw: &RawValue) -> Option<Cow<'_, str>> {
    decode_string(raw.get())
}

/// All text of a content.
fn said(content: &RawValue) -> Cow<'_, str> {
    decoded(content).unwrap_or_else(|| {
        let blocks = block::blocks(&Node::detached(content));
        Cow::Owned(block::message(Role::User, blocks.iter(), 0).text())
    })
}

/// What a user says first in a content, apart from tool results.
fn first_said(content: &RawValue) -> Option<Cow<'_, str>> {
    if let Some(text) = decoded(content) {
        return Some(text);
    }
    let blocks = block::blocks(&Node::detached(content));
    let mut groups = groups(&blocks).into_iter().map(|group| blocks.get(group).unwrap_or_default());
    let own = groups.find(|group| !matches!(group, [Block::Result { .. }]))?;
    Some(Cow::Owned(block::message(Role::User, own.iter(), 0).text()))
}

/// The ids of the tool calls that a list of blocks makes or answers.
fn quoted(content: &RawValue) -> Vec<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct RawBlock<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        tool_use_id: Option<&'a RawValue>,
    }
    fn id<'a>(block: &RawBlock<'a>) -> Option<&'a RawValue> {
        match block.kind?.get() {
            "\"tool_use\"" => block.id,
            "\"tool_result\"" => block.tool_use_id,
            _ => None,
        }
    }
    let blocks = serde_json::from_str::<Vec<RawBlock<'_>>>(content.get()).unwrap_or_default();
    blocks.iter().filter_map(|block| id(block).and_then(decoded)).collect()
}

fn tool_names(tools: &RawValue) -> Vec<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct RawTool<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
    }
    let tools = serde_json::from_str::<Vec<RawTool<'_>>>(tools.get()).unwrap_or_default();
    tools.into_iter().filter_map(|tool| tool.name.and_then(decoded)).collect()
}
