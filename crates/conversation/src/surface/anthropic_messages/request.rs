//! A request body: reading it in one pass or whole.

use super::block;
use crate::surface::{
    Conversation, Message, Outline, RequiredFormat, Role, SurfaceError, Tool, ToolChoice, blocks,
    fields::{self, entries, number, owned, string, text, unreadable},
    parameters::Parameters,
    splice::{Node, member},
};

pub(super) const EXPECTED: &str = "a messages request";

/// What the parameters are called.
pub(super) const PARAMETERS: Parameters =
    Parameters { request: EXPECTED, longest: "max_tokens", stop: Some("stop_sequences"), seed: None };

/// Reads what identity needs.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'static>, SurfaceError> {
    read(body).map(|conversation| Outline::from(&conversation))
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let list = member(&members, "messages").filter(Node::is_array);
    let list = list.ok_or_else(|| unreadable(EXPECTED, "`messages` is missing or is no list"))?;
    let mut messages = Vec::new();
    if let Some(system) = member(&members, "system").filter(|system| !system.is_null()) {
        messages.push(blocks::message(Role::System, block::blocks(&system).iter(), 0));
    }
    for node in list.elements() {
        let fields = node.members();
        let role = fields::role(string(&fields, "role").as_deref());
        let read = member(&fields, "content").map(|content| block::blocks(&content)).unwrap_or_default();
        for group in blocks::groups(&read) {
            let said = read.get(group).unwrap_or_default();
            messages.push(blocks::message(role, said.iter(), messages.len()));
        }
    }
    let metadata = member(&members, "metadata").map(|v| owned(entries(&v))).unwrap_or_default();
    Ok(Conversation {
        model: text(&members, "model"),
        quotes: messages.iter().flat_map(Message::call_ids).cloned().collect(),
        refers: Vec::new(),
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
        sampling: PARAMETERS.sampling(&members),
        user: metadata.iter().find(|(key, _)| key == "user_id").map(|(_, user)| user.clone()),
        metadata,
        ..Conversation::default()
    })
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
fn format(root: &Node<'_>) -> Option<RequiredFormat> {
    let format =
        root.get("output_config").and_then(|config| config.get("format")).or_else(|| root.get("output_format"))?;
    let schema = format.get("schema")?.value()?;
    Some(RequiredFormat::JsonSchema { name: String::new(), schema })
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
