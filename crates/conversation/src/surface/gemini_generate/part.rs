//! One part of a content, and why a candidate stopped.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

use serde_json::{Value, json};

use super::spelling::{camel, named, present, spelled};
use crate::surface::{
    Answer, Part, SurfaceError, ToolCall,
    blocks::Block,
    fields::{self, text},
    splice::{Node, Splices, encode_string, member},
};

/// Members that say something of a part beside what it is.
const BESIDE: &[&str] = &["mediaResolution", "partMetadata", "thoughtSignature", "videoMetadata"];
/// Members of a tool's answer that hold its words, where they stand alone.
const WORDS: &[&str] = &["error", "output", "result"];

/// Reads a part.
pub(super) fn read(node: &Node<'_>) -> Block {
    let members = node.members();
    if let Some(call) = present(&members, "functionCall") {
        let members = call.members();
        let args = member(&members, "args").filter(Node::is_object);
        return Block::Call(ToolCall {
            id: text(&members, "id"),
            name: text(&members, "name"),
            arguments: args.map_or("{}", |args| args.raw()).to_owned(),
            origin: None,
        });
    }
    if let Some(result) = present(&members, "functionResponse") {
        let members = result.members();
        let said = member(&members, "response").filter(|response| !response.is_null());
        let parts = said.map(|response| Part::Text(words(&response))).into_iter().collect();
        return Block::Result { call_id: text(&members, "id"), parts };
    }
    match member(&members, "text").and_then(|said| said.string()) {
        Some(_) if fields::is_true(&members, "thought") => Block::Other("thought".to_owned()),
        Some(said) => Block::Text(said.into_owned()),
        None => {
            let kinds = members.iter().map(|member| camel(&member.key));
            let kind = kinds.rev().find(|kind| !BESIDE.contains(&kind.as_ref()));
            Block::Other(kind.map(Cow::into_owned).unwrap_or_default())
        }
    }
}

/// The parts of a content.
pub(super) fn read_all(parts: &Node<'_>) -> Vec<Block> {
    super::spelling::listed(parts).iter().map(read).collect()
}

/// Whose results are whose, where ids are missing. Older models give calls none, and Google's SDKs leave them out of results: the
/// next result of a tool then answers its first call that has none yet.
#[derive(Debug, Default)]
pub(super) struct NumberedCalls {
    /// For each tool, how many calls have no id of their own.
    unnamed: HashMap<String, usize>,
    /// For each tool, the calls that wait for a result.
    open: HashMap<String, VecDeque<String>>,
    /// The ids that there are, in order.
    pub(super) ids: Vec<String>,
}

impl NumberedCalls {
    /// The blocks of a content, their calls and results with ids.
    pub(super) fn numbered(&mut self, parts: &Node<'_>) -> Vec<Block> {
        super::spelling::listed(parts).iter().map(|node| self.name(node, read(node))).collect()
    }

    fn name(&mut self, node: &Node<'_>, mut block: Block) -> Block {
        match &mut block {
            Block::Call(call) => {
                let tool = call.name.clone();
                call.id = self.id(&tool, std::mem::take(&mut call.id));
                self.open.entry(tool).or_default().push_back(call.id.clone());
            }
            Block::Result { call_id, .. } => {
                let tool = answered_tool(node);
                let open = self.open.entry(tool.clone()).or_default();
                let place = if call_id.is_empty() { Some(0) } else { open.iter().position(|id| id == call_id) };
                let answered = place.and_then(|place| open.remove(place));
                *call_id = match answered.filter(|_| call_id.is_empty()) {
                    Some(id) => id,
                    None => self.id(&tool, std::mem::take(call_id)),
                };
            }
            Block::Text(_) | Block::Other(_) => {}
        }
        block
    }

    /// The id that a part gives, or one that is made of its tool and a number.
    fn id(&mut self, tool: &str, own: String) -> String {
        if !own.is_empty() {
            self.ids.push(own.clone());
            return own;
        }
        let count = self.unnamed.entry(tool.to_owned()).or_default();
        *count += 1;
        format!("{tool}#{}", *count - 1)
    }
}

/// The tool that a result is of.
pub(super) fn answered_tool(part: &Node<'_>) -> String {
    named(&part.members(), "functionResponse").map(|result| text(&result.members(), "name")).unwrap_or_default()
}

/// What holds the words of a tool's answer: its one member, or the whole object.
fn holder<'a>(response: &Node<'a>) -> Node<'a> {
    match response.members().as_slice() {
        [only] if WORDS.contains(&only.key.as_ref()) => only.value,
        _ => *response,
    }
}

fn words(response: &Node<'_>) -> String {
    let holder = holder(response);
    holder.string().map_or_else(|| holder.raw().to_owned(), std::borrow::Cow::into_owned)
}

/// Writes other words into a tool's answer. The API takes objects only.
pub(super) fn edit_words(part: &Node<'_>, text: &str, splices: &mut Splices) {
    let Some(result) = named(&part.members(), "functionResponse") else { return };
    let members = result.members();
    let Some(response) = member(&members, "response").filter(Node::is_object) else {
        return fields::set(&result, &members, "response", &answer(text).to_string(), splices);
    };
    let holder = holder(&response);
    let is_whole = holder.span() == response.span();
    let value = Node::parse(text.as_bytes()).ok().filter(|value| value.string().is_none());
    let fits = value.is_some_and(|value| holder.string().is_none() && (!is_whole || value.is_object()));
    let written = match (fits, is_whole) {
        (true, _) => text.to_owned(),
        (false, true) => answer(text).to_string(),
        (false, false) => encode_string(text),
    };
    splices.replace(holder.span(), written);
}

/// A tool's answer of our own.
pub(super) fn answer(text: &str) -> Value {
    json!({"result": text})
}

/// A part that says a text.
pub(super) fn text_part(text: &str) -> Value {
    json!({"text": text})
}

/// A part that calls a tool. Arguments that are no object become an empty one: the API has no other place for them.
pub(super) fn call_part(call: &ToolCall) -> Value {
    let args: Option<Value> = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    let mut made = json!({"name": call.name, "args": args.unwrap_or_else(|| json!({}))});
    let has_id = !call.id.is_empty() && !call.id.contains('#');
    if let (true, Some(made)) = (has_id, made.as_object_mut()) {
        made.insert("id".to_owned(), call.id.as_str().into());
    }
    json!({"functionCall": made})
}

/// Writes another text into a part.
pub(super) fn edit_text(part: &Node<'_>, text: &str, splices: &mut Splices) {
    fields::set(part, &part.members(), "text", &encode_string(text), splices);
}

/// Writes another call into a part. Its signature stays.
///
/// # Errors
/// [`SurfaceError::NoPlace`] for arguments that are no object: the API has no other place for them.
pub(super) fn edit_call(
    part: &Node<'_>,
    old: &ToolCall,
    new: &ToolCall,
    splices: &mut Splices,
) -> Result<(), SurfaceError> {
    let Some(call) = named(&part.members(), "functionCall") else { return Ok(()) };
    let members = call.members();
    for (key, old, new) in [("id", &old.id, &new.id), ("name", &old.name, &new.name)] {
        if old != new {
            fields::set(&call, &members, &spelled(&members, key, &members), &encode_string(new), splices);
        }
    }
    if old.arguments != new.arguments {
        fields::set(&call, &members, "args", fields::object(&new.arguments)?, splices);
    }
    Ok(())
}

/// Writes a whole call into a part that had a piece of one. Its signature stays.
///
/// # Errors
/// As of [`edit_call`].
pub(super) fn write_call(part: &Node<'_>, new: &ToolCall, splices: &mut Splices) -> Result<(), SurfaceError> {
    fields::object(&new.arguments)?;
    if let (Some(call), Some(made)) = (named(&part.members(), "functionCall"), call_part(new).get("functionCall")) {
        splices.replace(call.span(), made.to_string());
    }
    Ok(())
}

/// Why a candidate stopped, in the words of chat completions; words of this API alone stay as they are.
pub(super) fn finish(reason: &str, has_calls: bool) -> &str {
    match reason {
        "STOP" if has_calls => Answer::CALLS,
        "STOP" => Answer::STOPPED,
        "MAX_TOKENS" => Answer::CUT,
        "SAFETY" => Answer::FILTERED,
        other => other,
    }
}

/// The same in this API's words.
pub(super) fn finish_reason(finish: &str) -> &str {
    match finish {
        Answer::STOPPED | Answer::CALLS => "STOP",
        Answer::CUT => "MAX_TOKENS",
        Answer::FILTERED => "SAFETY",
        other => other,
    }
}
