//! A request: reading it.

use super::step;
use crate::surface::{
    Conversation, Message, RequiredFormat, Role, Sampling, SurfaceError, Tool, ToolChoice, blocks,
    fields::{self, entries, number, owned, string, text, unreadable},
    splice::{Member, Node, member},
};

/// What a request is called.
pub(super) const EXPECTED: &str = "a request for an interaction";

/// Types of JSON: what has one of them is a schema as it is.
const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// How an input is written.
#[derive(Debug, Clone)]
pub(super) enum InteractionInput<'a> {
    /// One text.
    Text(Node<'a>),
    /// One content, or a list of nothing else: what the user says.
    Contents(Vec<Node<'a>>),
    /// Steps, contents among them.
    Steps(Vec<Node<'a>>),
}

impl<'a> InteractionInput<'a> {
    /// Reads the form of an input.
    pub(super) fn read(node: &Node<'a>) -> Option<Self> {
        if node.string().is_some() {
            return Some(Self::Text(*node));
        }
        if node.is_object() {
            return Some(Self::Contents(vec![*node]));
        }
        let elements = node.is_array().then(|| node.elements())?;
        let are_contents = !elements.is_empty() && elements.iter().all(step::is_content);
        Some(if are_contents { Self::Contents(elements) } else { Self::Steps(elements) })
    }

    fn messages(&self, first: usize) -> Vec<Message> {
        match self {
            Self::Text(node) => {
                let text = node.string().unwrap_or_default().into_owned();
                vec![Message { origin: Some(first), ..Message::text_of(Role::User, text) }]
            }
            Self::Contents(nodes) => {
                let read: Vec<_> = nodes.iter().map(step::content).collect();
                vec![blocks::message(Role::User, read.iter(), first)]
            }
            Self::Steps(nodes) => nodes.iter().zip(first..).map(|(node, origin)| message(node, origin)).collect(),
        }
    }
}

fn message(node: &Node<'_>, origin: usize) -> Message {
    blocks::message(step::kind(node).role(), step::blocks(node).iter(), origin)
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let input = member(&members, "input").and_then(|input| InteractionInput::read(&input));
    let input = input.ok_or_else(|| unreadable(EXPECTED, "`input` is missing, or is neither a text nor contents"))?;
    let mut messages = Vec::new();
    if let Some(prompt) = string(&members, "system_instruction") {
        messages.push(Message { origin: Some(0), ..Message::text_of(Role::System, prompt) });
    }
    messages.extend(input.messages(messages.len()));
    let config = member(&members, "generation_config").map(|config| config.members()).unwrap_or_default();
    let model = string(&members, "model").or_else(|| string(&members, "agent"));
    Ok(Conversation {
        model: model.unwrap_or_default(),
        quotes: messages.iter().flat_map(Message::call_ids).cloned().collect(),
        messages,
        tools: member(&members, "tools").map(|tools| read_tools(&tools)).unwrap_or_default(),
        stream: fields::is_true(&members, "stream"),
        stream_usage: true,
        choices: 1,
        format: format(&members).unwrap_or_default(),
        tool_choice: member(&config, "tool_choice").map(|choice| tool_choice(&choice)).unwrap_or_default(),
        max_tokens: number(&config, "max_output_tokens"),
        stop: member(&config, "stop_sequences").map(|stop| fields::strings(&stop)).unwrap_or_default(),
        sampling: Sampling {
            temperature: member(&config, "temperature").and_then(|value| value.value()),
            top_p: member(&config, "top_p").and_then(|value| value.value()),
            seed: member(&config, "seed").and_then(|value| value.value()),
        },
        metadata: member(&members, "labels").map(|labels| owned(entries(&labels))).unwrap_or_default(),
        continues: string(&members, "previous_interaction_id"),
        ..Conversation::default()
    })
}

fn read_tools(tools: &Node<'_>) -> Vec<Tool> {
    let read = |(origin, node): (usize, Node<'_>)| {
        let members = node.members();
        Tool {
            name: string(&members, "name").unwrap_or_else(|| text(&members, "type")),
            description: text(&members, "description"),
            parameters: member(&members, "parameters").and_then(|schema| schema.value()).unwrap_or_default(),
            origin: Some(origin),
        }
    };
    tools.elements().into_iter().enumerate().map(read).collect()
}

/// The required shape of the answer: an object or a list of them, or a schema as it is.
fn format(members: &[Member<'_>]) -> Option<RequiredFormat> {
    let said = member(members, "response_format").filter(|said| !said.is_null())?;
    let all = if said.is_array() { said.elements() } else { vec![said] };
    let text = all.iter().find(|one| one.get("type").is_none_or(|kind| kind.raw() == "\"text\""));
    if let Some(text) = text.filter(|one| one.get("type").is_some()) {
        let schema = text.get("schema").filter(Node::is_object).and_then(|schema| schema.value());
        let is_json = text.get("mime_type").is_some_and(|kind| kind.raw() == "\"application/json\"");
        let named = |schema| RequiredFormat::JsonSchema { name: String::new(), schema };
        return schema.map(named).or(is_json.then_some(RequiredFormat::JsonObject));
    }
    let is_schema = |one: &&Node<'_>| {
        one.is_object()
            && one.get("type").is_none_or(|kind| kind.string().is_none_or(|kind| TYPES.contains(&kind.as_ref())))
    };
    let schema = all.first().filter(is_schema)?.value()?;
    Some(RequiredFormat::JsonSchema { name: String::new(), schema })
}

fn tool_choice(node: &Node<'_>) -> ToolChoice {
    let allowed = node.get("allowed_tools");
    let mode = node.string().or_else(|| allowed.as_ref()?.get("mode")?.string()).unwrap_or_default();
    let tools = allowed.and_then(|allowed| allowed.get("tools")).map(|tools| fields::strings(&tools));
    match (mode.to_lowercase().as_str(), tools.unwrap_or_default().as_slice()) {
        ("none", _) => ToolChoice::None,
        ("any", [only]) => ToolChoice::Named(only.clone()),
        ("any", _) => ToolChoice::Required,
        _ => ToolChoice::Auto,
    }
}
