//! A request body: reading it in one pass or whole.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;

use super::{
    item::{self, Item, ItemKind, ItemSpeaker},
    socket,
};
use crate::surface::{
    Conversation, Message, Outline, RequiredFormat, Role, SurfaceError, Tool, ToolChoice,
    fields::{self, entries, number, owned, string, text, unreadable},
    logprobs,
    parameters::Parameters,
    splice::{Member, Node, Splices, encode_string, member},
};

pub(super) const EXPECTED: &str = "a responses request";

/// What the parameters are called.
pub(super) const PARAMETERS: Parameters =
    Parameters { request: EXPECTED, longest: "max_output_tokens", stop: None, seed: None };

/// Members that make a request without `input` whole.
const STANDS_IN: &[&str] = &["previous_response_id", "conversation", "prompt"];

/// Reads what identity needs.
pub(super) fn outline(body: &[u8]) -> Result<Outline<'static>, SurfaceError> {
    read(body).map(|conversation| Outline::from(&conversation))
}

/// What is to be included in the reply, for its tokens' log-probabilities.
const LOGPROBS: &str = "message.output_text.logprobs";

/// The request with a question for the log-probabilities of the reply's tokens.
pub(super) fn ask_logprobs(body: &[u8]) -> Option<Bytes> {
    let wanted = encode_string(LOGPROBS);
    let root = Node::parse(body).ok()?;
    let Some(included) = root.get("include").filter(|include| !include.is_null()) else {
        return logprobs::add_request(body, &[("include", &format!("[{wanted}]"))], &["include", "top_logprobs"]);
    };
    let names = included.elements();
    let own = names.iter().any(|name| name.string().as_deref() == Some(LOGPROBS));
    if own || !included.is_array() || root.get("top_logprobs").is_some() {
        return None;
    }
    let mut splices = Splices::default();
    let at = names.last().map_or(included.span().start + 1, |last| last.span().end);
    splices.replace(at..at, if names.is_empty() { wanted } else { format!(",{wanted}") });
    Some(splices.apply(body))
}

/// Reads the whole view.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let input = member(&members, "input").filter(|input| !input.is_null());
    match &input {
        Some(input) if input.is_array() || input.string().is_some() => {}
        None if STANDS_IN.iter().any(|key| member(&members, key).is_some_and(|v| !v.is_null())) => {}
        _ => return Err(unreadable(EXPECTED, "`input` is missing or is neither a text nor a list")),
    }
    let listed = input.map(|input| input.elements()).unwrap_or_default();
    let items: Vec<Item> = listed.iter().map(item::read).collect();
    Ok(Conversation {
        model: text(&members, "model"),
        messages: messages(&members, &items),
        tools: member(&members, "tools").map(|tools| read_tools(&tools)).unwrap_or_default(),
        // A message of a WebSocket is answered by events, whatever it says.
        stream: fields::is_true(&members, "stream") || socket::is_message(body),
        // The event that ends a stream always says it.
        stream_usage: true,
        choices: 1,
        format: member(&members, "text").and_then(|text| text.get("format")).map(|v| format(&v)).unwrap_or_default(),
        tool_choice: member(&members, "tool_choice").map(|v| tool_choice(&v)).unwrap_or_default(),
        max_tokens: number(&members, "max_output_tokens"),
        stop: Vec::new(),
        metadata: member(&members, "metadata").map(|v| owned(entries(&v))).unwrap_or_default(),
        user: string(&members, "user"),
        continues: string(&members, "previous_response_id"),
        sampling: PARAMETERS.sampling(&members),
        thread: member(&members, "conversation")
            .and_then(|v| v.string().or_else(|| v.get("id")?.string()))
            .map(Cow::into_owned),
        quotes: items.iter().flat_map(item::ids).cloned().collect(),
        refers: listed.iter().filter_map(item::referred).collect(),
        vectors: None,
    })
}

/// The messages: the instructions, then what the input says.
fn messages(members: &[Member<'_>], items: &[Item]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut push = |message: Message| {
        let origin = Some(messages.len());
        messages.push(Message { origin, ..message });
    };
    if let Some(instructions) = string(members, "instructions") {
        push(Message::text_of(Role::System, instructions));
    }
    if let Some(input) = string(members, "input") {
        push(Message::text_of(Role::User, input));
    }
    for group in groups(items) {
        push(item::message(items.get(group).unwrap_or_default().iter(), 0));
    }
    messages
}

/// Runs of items that are one message: a model's words with the calls that follow them and the reasoning before
/// either, anything else by itself.
pub(super) fn groups(items: &[Item]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    // Whose the last group is, if it is a model's and still open for calls.
    let mut open: Option<&Option<ItemSpeaker>> = None;
    // Reasoning that waits for the item it belongs to.
    let mut waiting = 0;
    for (at, item) in items.iter().enumerate() {
        match (&item.kind, groups.last_mut()) {
            (ItemKind::Reasoning, _) => {
                waiting += 1;
                continue;
            }
            (ItemKind::Call { .. }, Some(last)) if open == Some(&item.speaker) => last.end = at + 1,
            _ => groups.push(at - waiting..at + 1),
        }
        waiting = 0;
        let is_open = matches!(item.kind, ItemKind::Call { .. } | ItemKind::Message { role: Role::Assistant, .. });
        open = is_open.then_some(&item.speaker);
    }
    if waiting > 0 {
        groups.push(items.len() - waiting..items.len());
    }
    groups
}

fn read_tools(tools: &Node<'_>) -> Vec<Tool> {
    let read = |(origin, node): (usize, Node<'_>)| {
        let members = node.members();
        // The upstream's own tools have no name, only a type.
        let name = string(&members, "name").unwrap_or_else(|| text(&members, "type"));
        Tool {
            name,
            description: text(&members, "description"),
            parameters: member(&members, "parameters").and_then(|p| p.value()).unwrap_or_default(),
            origin: Some(origin),
        }
    };
    tools.elements().into_iter().enumerate().map(read).collect()
}

fn format(node: &Node<'_>) -> RequiredFormat {
    let members = node.members();
    match string(&members, "type").as_deref() {
        Some("json_object") => RequiredFormat::JsonObject,
        Some("json_schema") => RequiredFormat::JsonSchema {
            name: text(&members, "name"),
            schema: member(&members, "schema").and_then(|schema| schema.value()).unwrap_or_default(),
        },
        _ => RequiredFormat::Text,
    }
}

fn tool_choice(node: &Node<'_>) -> ToolChoice {
    match node.string().as_deref() {
        Some("none") => ToolChoice::None,
        Some("required") => ToolChoice::Required,
        Some(_) => ToolChoice::Auto,
        None => string(&node.members(), "name").map_or(ToolChoice::Auto, ToolChoice::Named),
    }
}
