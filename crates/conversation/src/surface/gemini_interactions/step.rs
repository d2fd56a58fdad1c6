//! One step of an interaction, or one content: reading and editing it.

use serde_json::{Value, json};

use crate::surface::{
    Part, Role, SurfaceError, ToolCall,
    blocks::Block,
    fields::{self, text},
    splice::{Node, Splices, encode_string, member},
    typed_events::edit_words,
};

/// Types of contents, which stand within steps; in an input they may stand alone.
const CONTENTS: &[&str] = &["audio", "document", "file", "image", "text", "video"];

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// What the user says: a step, a turn of an older version, or a content alone.
    User,
    /// What the model says, in the same forms.
    Model,
    /// A call of a function that the caller runs.
    Call,
    /// The result of one.
    Result,
    /// What is thought, and what the upstream does itself.
    Other,
}

/// What a step is, by its type; by its role where it is a turn.
pub(super) fn kind(node: &Node<'_>) -> StepKind {
    let members = node.members();
    match text(&members, "type").as_str() {
        "model_output" => StepKind::Model,
        "function_call" => StepKind::Call,
        "function_result" => StepKind::Result,
        "" if member(&members, "role").is_some_and(|role| matches!(role.raw(), "\"model\"" | "\"assistant\"")) => {
            StepKind::Model
        }
        kind if matches!(kind, "" | "user_input") || CONTENTS.contains(&kind) => StepKind::User,
        _ => StepKind::Other,
    }
}

/// Whether a node is a content and no step.
pub(super) fn is_content(node: &Node<'_>) -> bool {
    CONTENTS.contains(&text(&node.members(), "type").as_str())
}

impl StepKind {
    /// Who speaks in it.
    pub(super) fn role(self) -> Role {
        match self {
            Self::User => Role::User,
            Self::Result => Role::Tool,
            Self::Model | Self::Call | Self::Other => Role::Assistant,
        }
    }
}

/// The contents of a step: a list, one that stands alone, or the node itself where it is one.
pub(super) fn contents<'a>(node: &Node<'a>) -> Vec<Node<'a>> {
    if is_content(node) {
        return vec![*node];
    }
    match node.get("content") {
        Some(content) if content.is_object() => vec![content],
        Some(content) => content.elements(),
        None => Vec::new(),
    }
}

/// Reads a content.
pub(super) fn content(node: &Node<'_>) -> Block {
    let members = node.members();
    match text(&members, "type").as_str() {
        "text" => Block::Text(text(&members, "text")),
        other => Block::Other(other.to_owned()),
    }
}

/// Reads a call.
pub(super) fn call(node: &Node<'_>) -> ToolCall {
    let members = node.members();
    let arguments = member(&members, "arguments").and_then(|said| fields::arguments(&said));
    ToolCall {
        id: text(&members, "id"),
        name: text(&members, "name"),
        arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
        origin: None,
    }
}

/// What a step says.
pub(super) fn blocks(node: &Node<'_>) -> Vec<Block> {
    match kind(node) {
        StepKind::User | StepKind::Model => match node.get("content").and_then(|content| content.string()) {
            Some(text) => vec![Block::Text(text.into_owned())],
            None => contents(node).iter().map(content).collect(),
        },
        StepKind::Call => vec![Block::Call(call(node))],
        StepKind::Result => {
            let members = node.members();
            let parts = member(&members, "result").map(|result| result_parts(&result)).unwrap_or_default();
            vec![Block::Result { call_id: text(&members, "call_id"), parts }]
        }
        StepKind::Other => vec![Block::Other(text(&node.members(), "type"))],
    }
}

fn result_parts(result: &Node<'_>) -> Vec<Part> {
    if result.is_object() { vec![Part::Text(result.raw().to_owned())] } else { fields::parts(result) }
}

/// Writes another text into a content. Annotations of the old one go.
pub(super) fn edit_text(content: &Node<'_>, text: &str, splices: &mut Splices) {
    let members = content.members();
    fields::set(content, &members, "text", &encode_string(text), splices);
    if let Some(list) = member(&members, "annotations").filter(|list| !list.elements().is_empty()) {
        splices.replace(list.span(), "[]");
    }
}

/// Writes other texts into the contents of a step, where they stay as many.
pub(super) fn edit_texts(step: &Node<'_>, old: &[Part], new: &[Part], splices: &mut Splices) {
    let members = step.members();
    let nodes = contents(step);
    if old.len() == new.len() && nodes.len() == old.len() {
        for (node, text) in nodes.iter().zip(fields::new_texts(old, new)) {
            if let Some(text) = text {
                edit_text(node, &text, splices);
            }
        }
        return;
    }
    let said: Vec<_> = new.iter().filter_map(Part::as_text).collect();
    let is_plain = member(&members, "content").is_some_and(|content| content.string().is_some());
    let text = said.join("\n");
    let written = if is_plain { encode_string(&text) } else { json!([text_content(&text)]).to_string() };
    fields::set(step, &members, "content", &written, splices);
}

/// Writes another call into a step.
///
/// # Errors
/// [`SurfaceError::NoPlace`] for arguments that are no object: the API has no other place for them.
pub(super) fn edit_call(step: &Node<'_>, new: &ToolCall, splices: &mut Splices) -> Result<(), SurfaceError> {
    edit_words(step, "id", &new.id, splices);
    edit_words(step, "name", &new.name, splices);
    if call(step).arguments != new.arguments {
        let members = step.members();
        fields::set(step, &members, "arguments", fields::object(&new.arguments)?, splices);
    }
    Ok(())
}

/// Writes another result into a step.
pub(super) fn edit_result(step: &Node<'_>, old: &[Part], new: &[Part], splices: &mut Splices) {
    let members = step.members();
    let Some(result) = member(&members, "result").filter(Node::is_object) else {
        return fields::edit_parts(step, &members, "result", old, new, "\"\"", splices);
    };
    let said: Vec<_> = new.iter().filter_map(Part::as_text).collect();
    let said = said.join("\n");
    let is_object = Node::parse(said.as_bytes()).is_ok_and(|value| value.is_object());
    splices.replace(result.span(), if is_object { said } else { encode_string(&said) });
}

/// A content that says a text.
pub(super) fn text_content(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A step that says a text.
pub(super) fn output(role: Role, text: &str) -> Value {
    let kind = if role == Role::Assistant { "model_output" } else { "user_input" };
    json!({"type": kind, "content": [text_content(text)]})
}

/// A step that calls a function. Arguments that are no object become an empty one.
pub(super) fn function_call(call: &ToolCall) -> Value {
    let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    let arguments = arguments.unwrap_or_else(|| json!({}));
    json!({"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments})
}

/// A new step of the model's.
pub(super) fn new_step(block: &Block) -> Value {
    match block {
        Block::Text(text) => output(Role::Assistant, text),
        Block::Call(call) => function_call(call),
        Block::Result { .. } | Block::Other(_) => Value::Null,
    }
}

/// Why an interaction stopped by its status, in the words of chat completions; `None` while it goes on.
pub(super) fn finish(status: &str) -> Option<&str> {
    use crate::surface::Answer;
    match status {
        "in_progress" | "queued" => None,
        "completed" => Some(Answer::STOPPED),
        "requires_action" => Some(Answer::CALLS),
        "incomplete" | "budget_exceeded" | "requires_continuation" => Some(Answer::CUT),
        other => Some(other),
    }
}

/// The status by the word for why a model stopped.
pub(super) fn status(finish: &str) -> &str {
    use crate::surface::Answer;
    match finish {
        Answer::STOPPED => "completed",
        Answer::CALLS => "requires_action",
        Answer::CUT => "incomplete",
        other => other,
    }
}
