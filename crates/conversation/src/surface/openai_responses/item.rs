//! One item of a request's `input` or of a response's `output`.

use std::{borrow::Cow, collections::BTreeMap};

use crate::surface::{
    AgentUtterance, Answer, Message, Part, Role, ToolCall,
    fields::{self, string, text},
    splice::{Member, Node, Splices, encode_string, member},
};

/// An item, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// Its id, where it has one.
    pub(super) id: Option<String>,
    /// What it is.
    pub(super) kind: ItemKind,
    /// Whose it is, where the upstream names agents.
    pub(super) speaker: Option<ItemSpeaker>,
}

/// The agent of an item, as the upstream names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ItemSpeaker {
    pub(super) agent: String,
    /// The agent that a message goes to.
    to: Option<String>,
}

impl Item {
    /// Whether the upstream names this agent as the one whose item it is.
    pub(super) fn is_of(&self, agent: &str) -> bool {
        self.speaker.as_ref().is_some_and(|speaker| speaker.agent == agent)
    }
}

/// What an item is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    /// Somebody says something.
    Message {
        /// Who.
        role: Role,
        /// What.
        parts: Vec<Part>,
    },
    /// A call of a tool that the caller runs.
    Call {
        /// The id that the result will name.
        call_id: String,
        /// The tool.
        name: String,
        /// JSON text, or free text for a custom tool.
        arguments: String,
    },
    /// The result of one.
    Result {
        /// The call.
        call_id: String,
        /// What the tool said.
        parts: Vec<Part>,
    },
    /// The model's reasoning: opaque, and bound to the item that follows.
    Reasoning,
    /// Any other item, by its type.
    Other(String),
}

pub(super) const REASONING: &str = "reasoning";

/// Reads an item object.
pub(super) fn read(node: &Node<'_>) -> Item {
    let members = node.members();
    let content = |key: &str| member(&members, key).map(|content| fields::parts(&content)).unwrap_or_default();
    let kind = match member(&members, "type").and_then(|kind| kind.string()).as_deref() {
        Some("message") | None => {
            ItemKind::Message { role: fields::role(string(&members, "role").as_deref()), parts: content("content") }
        }
        Some(kind) if is_call(kind) => ItemKind::Call {
            call_id: text(&members, "call_id"),
            name: text(&members, "name"),
            arguments: member(&members, arguments_key(kind))
                .and_then(|node| fields::arguments(&node))
                .unwrap_or_default(),
        },
        Some("function_call_output" | "custom_tool_call_output") => {
            ItemKind::Result { call_id: text(&members, "call_id"), parts: content("output") }
        }
        // What one agent that the upstream runs says to another.
        Some("agent_message") => ItemKind::Message { role: Role::Other, parts: content("content") },
        Some(REASONING) => ItemKind::Reasoning,
        Some(kind @ "multi_agent_call") => {
            ItemKind::Other(format!("{kind} {} {}", text(&members, "action"), text(&members, "arguments")))
        }
        Some(kind @ "multi_agent_call_output") => {
            let said: Vec<String> =
                content("output").iter().filter_map(|part| part.as_text().map(str::to_owned)).collect();
            ItemKind::Other(format!("{kind} {} {}", text(&members, "action"), said.join(" ")))
        }
        Some(other) => ItemKind::Other(other.to_owned()),
    };
    Item { id: string(&members, "id"), speaker: speaker(&members), kind }
}

/// The agent that an item names as its own. A message between agents is its author's, whoever hands it on.
fn speaker(members: &[Member<'_>]) -> Option<ItemSpeaker> {
    let named = || member(members, "agent")?.get("agent_name")?.string().map(Cow::into_owned);
    let is_between = member(members, "type").is_some_and(|kind| kind.raw() == "\"agent_message\"");
    let author = string(members, "author").filter(|_| is_between);
    Some(ItemSpeaker { agent: author.or_else(named)?, to: string(members, "recipient").filter(|_| is_between) })
}

/// Who says what, where an item names its agent: neighbours of the same agent, to the same one, are one utterance.
pub(super) fn utterances(items: &[Item]) -> Vec<AgentUtterance> {
    if items.iter().all(|item| item.speaker.is_none()) {
        return Vec::new();
    }
    let uttered = items.chunk_by(|one, next| one.speaker == next.speaker).map(|items| {
        let speaker = items.first().and_then(|item| item.speaker.clone());
        let (agent, to) = speaker.map_or((None, None), |speaker| (Some(speaker.agent), speaker.to));
        AgentUtterance { agent, to, message: Message { role: Role::Assistant, name: None, ..message(items.iter(), 0) } }
    });
    uttered.collect()
}

/// Whether a type is that of a call which the caller answers by an output item.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call")
}

/// Where a call of this type holds what it calls the tool with.
pub(super) fn arguments_key(kind: &str) -> &'static str {
    if kind == "custom_tool_call" { "input" } else { "arguments" }
}

/// The ids that an item carries: its own, and that of the tool call that it makes or answers.
pub(super) fn ids(item: &Item) -> impl Iterator<Item = &String> {
    let call = match &item.kind {
        ItemKind::Call { call_id, .. } | ItemKind::Result { call_id, .. } => Some(call_id),
        _ => None,
    };
    call.into_iter().chain(&item.id)
}

/// The id of an item of which nothing stands here: the upstream puts what it has kept in its place. The type may be left out, and
/// may be that of the item instead of `item_reference`.
pub(super) fn referred(node: &Node<'_>) -> Option<String> {
    let members = node.members();
    let is_content = |member: &Member<'_>| {
        !matches!(member.key.as_ref(), "id" | "type" | "status")
            && !matches!(member.value.raw(), "null" | "[]" | "\"\"")
    };
    string(&members, "id").filter(|_| !members.iter().any(is_content))
}

/// What consecutive items say as one message. `origin` is the message's.
pub(super) fn message<'i>(items: impl Iterator<Item = &'i Item>, origin: usize) -> Message {
    let mut message =
        Message { parts: Vec::new(), origin: Some(origin), ..Message::text_of(Role::Assistant, String::new()) };
    for item in items {
        message.name = item.speaker.as_ref().map(|speaker| speaker.agent.clone()).or(message.name.take());
        match &item.kind {
            ItemKind::Message { role, parts } => {
                message.role = *role;
                message.parts.extend(parts.iter().cloned());
            }
            ItemKind::Call { call_id, name, arguments } => message.tool_calls.push(ToolCall {
                id: call_id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
                origin: Some(message.tool_calls.len()),
            }),
            ItemKind::Result { call_id, parts } => {
                message.role = Role::Tool;
                message.answers_call = Some(call_id.clone());
                message.parts.extend(parts.iter().cloned());
            }
            ItemKind::Reasoning => message.parts.push(Part::Opaque(REASONING.to_owned())),
            ItemKind::Other(kind) => {
                message.role = Role::Other;
                message.parts.push(Part::Opaque(kind.clone()));
            }
        }
    }
    message
}

/// The one answer that the items of a response are.
pub(super) fn answer(items: &[Item], finish: Option<Cow<'_, str>>) -> Answer {
    let mut message = message(items.iter(), 0);
    (message.role, message.name) = (Role::Assistant, None);
    let finish_reason = finish.map(|finish| match finish {
        // A response that ended by itself says nothing of its calls.
        Cow::Borrowed(Answer::STOPPED) if !message.tool_calls.is_empty() => Answer::CALLS.to_owned(),
        other => other.into_owned(),
    });
    Answer { index: 0, message, finish_reason }
}

/// Why a response ended, in the words of chat completions; nothing while it has not.
pub(super) fn finish(response: &Node<'_>) -> Option<Cow<'static, str>> {
    let members = response.members();
    match member(&members, "status").and_then(|status| status.string())?.as_ref() {
        "completed" => Some(Cow::Borrowed(Answer::STOPPED)),
        "incomplete" => {
            let details = member(&members, "incomplete_details").map(|details| details.members()).unwrap_or_default();
            Some(match string(&details, "reason") {
                Some(reason) if reason != "max_output_tokens" => Cow::Owned(reason),
                _ => Cow::Borrowed(Answer::CUT),
            })
        }
        "failed" => Some(Cow::Borrowed("error")),
        "in_progress" | "queued" => None,
        other => Some(Cow::Owned(other.to_owned())),
    }
}

/// What becomes of an item's text, call and status.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ItemEdit {
    /// New texts, by place in the content.
    pub(super) texts: BTreeMap<usize, String>,
    /// The call that it becomes.
    pub(super) call: Option<ToolCall>,
    /// Its new status.
    pub(super) status: Option<&'static str>,
}

impl ItemEdit {
    /// A call that becomes this one.
    pub(super) fn of_call(call: &ToolCall) -> Self {
        Self { call: Some(call.clone()), ..Self::default() }
    }

    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Edits an item object. An item that has only just been added says neither its text nor its arguments yet: what is
/// empty stays so.
pub(super) fn edit(node: &Node<'_>, edit: &ItemEdit, splices: &mut Splices) {
    let members = node.members();
    let content = member(&members, "content").map(|content| content.elements()).unwrap_or_default();
    for (at, text) in &edit.texts {
        if let Some(part) = content.get(*at) {
            edit_part(part, text, splices);
        }
    }
    if let Some(call) = &edit.call {
        let arguments = arguments_key(&text(&members, "type"));
        for (key, new) in [("call_id", &call.id), ("name", &call.name), (arguments, &call.arguments)] {
            let old = member(&members, key).and_then(|old| Some((old, fields::arguments(&old)?)));
            if let Some((place, old)) = old
                && old != new.as_str()
                && !(key == arguments && old.is_empty() && text(&members, "status") == "in_progress")
            {
                splices.replace(place.span(), encode_string(new));
            }
        }
    }
    // What is under way says how it ends when it does.
    let ended = member(&members, "status").filter(|place| place.raw() != "\"in_progress\"");
    if let (Some(status), Some(place)) = (edit.status, ended) {
        splices.replace(place.span(), encode_string(status));
    }
}

/// Edits the text of a content part. What points into the old text goes.
pub(super) fn edit_part(part: &Node<'_>, text: &str, splices: &mut Splices) {
    let members = part.members();
    let Some(place) = member(&members, "text") else { return };
    splices.replace(place.span(), encode_string(text));
    for key in ["annotations", "logprobs"] {
        if let Some(list) = member(&members, key).filter(|list| list.is_array() && !list.elements().is_empty()) {
            splices.replace(list.span(), "[]");
        }
    }
}
