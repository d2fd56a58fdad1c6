//! What a server answers, as one message or in a stream of events: reading it, and splicing an edited result into it.

use bytes::Bytes;
use serde_json::json;

use super::{request::no_place, structured::Structured};
use crate::surface::{
    Answer, Message, Part, Reply, Role, SurfaceError,
    fields::{self, text, unreadable},
    rpc,
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a reply of MCP";
/// Why an answer ended where the tool says that it failed.
const TOOL_ERROR: &str = "tool_error";

/// A result, taken apart.
#[derive(Debug)]
struct ParsedResult<'a> {
    parts: Vec<Part>,
    /// Where each text part stands; `None` for a part that is no text.
    places: Vec<Option<Node<'a>>>,
    structured: Option<Structured<'a>>,
    failed: bool,
    /// Whether it is an error of the protocol in the place of a result: read, and never edited.
    is_refusal: bool,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    parsed(fields::source(body, EXPECTED)?, false).map(ParsedResult::reply)
}

pub(super) fn read_stream(body: &[u8]) -> Result<Reply, SurfaceError> {
    parsed(&sse::single_lines(fields::source(body, EXPECTED)?), true).map(ParsedResult::reply)
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let splices = parsed(fields::source(body, EXPECTED)?, false)?.write(before, after)?;
    Ok(splices.apply(body))
}

pub(super) fn write_stream(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let splices = parsed(&source, true)?.write(before, after)?;
    Ok(splices.apply(body))
}

/// The result among the messages of a reply, else the error in its place.
fn parsed(source: &str, streamed: bool) -> Result<ParsedResult<'_>, SurfaceError> {
    let messages = rpc::messages(source, streamed);
    let result = messages.iter().find_map(|message| message.get("result").filter(Node::is_object));
    let found = result.map(|result| ParsedResult::read(&result));
    let found = found.or_else(|| messages.iter().find_map(ParsedResult::refusal));
    found.ok_or_else(|| unreadable(EXPECTED, "no message has a `result` or an `error`"))
}

impl<'a> ParsedResult<'a> {
    fn read(result: &Node<'a>) -> Self {
        let members = result.members();
        let (mut parts, mut places) = (Vec::new(), Vec::new());
        for element in contents(result) {
            let place = text_place(&element);
            parts.push(match place.and_then(|place| place.string()) {
                Some(text) => Part::Text(text.into_owned()),
                None => Part::Opaque(text(&element.members(), "type")),
            });
            places.push(place);
        }
        if parts.is_empty() {
            // What a server tells of itself: the names say enough.
            parts.extend(
                members
                    .iter()
                    .filter(|member| member.key != "_meta")
                    .map(|member| Part::Opaque(member.key.to_string())),
            );
            places.resize(parts.len(), None);
        }
        let texts: Vec<String> = parts.iter().filter_map(Part::as_text).map(str::to_owned).collect();
        let structured = member(&members, "structuredContent").filter(Node::is_object);
        let structured = structured.map(|content| Structured::read(content, &texts));
        if let Some(Structured::Own(content)) = &structured {
            parts.retain(|part| *part != Part::Opaque("structuredContent".to_owned()));
            places.resize(parts.len(), None);
            parts.push(Part::Text(content.raw().to_owned()));
            places.push(None);
        }
        let failed = member(&members, "isError").is_some_and(|failed| failed.raw() == "true");
        Self { parts, places, structured, failed, is_refusal: false }
    }

    /// A message that refuses a request: its words stand for a result.
    fn refusal(message: &Node<'a>) -> Option<Self> {
        let said = rpc::refusal(message)?.string()?.into_owned();
        Some(Self {
            parts: vec![Part::Text(said)],
            places: vec![None],
            structured: None,
            failed: true,
            is_refusal: true,
        })
    }

    fn reply(self) -> Reply {
        let finish = if self.failed { TOOL_ERROR } else { Answer::STOPPED };
        let message = Message { parts: self.parts, origin: Some(0), ..Message::text_of(Role::Tool, "") };
        let answer = Answer { index: 0, message, finish_reason: Some(finish.to_owned()) };
        // The id of the message is its client's, and says nothing of the result.
        Reply { answers: vec![answer], ..Reply::default() }
    }

    fn write(&self, before: &Reply, after: &Reply) -> Result<Splices, SurfaceError> {
        let ([old], [new]) = (before.answers.as_slice(), after.answers.as_slice()) else {
            return Err(no_place("a tool gives one result"));
        };
        if !new.message.tool_calls.is_empty() {
            return Err(no_place("the result of a tool calls no tools"));
        }
        let mut splices = Splices::default();
        let edited = fields::new_texts(&old.message.parts, &new.message.parts);
        if edited.iter().all(Option::is_none) {
            if old.message.parts == new.message.parts {
                return Ok(splices);
            }
            return Err(no_place("the result has no text"));
        }
        if self.is_refusal {
            return Err(no_place("an error of the protocol is no result of a tool"));
        }
        for (place, text) in self.places.iter().zip(&edited) {
            if let (Some(place), Some(text)) = (place, text) {
                splices.replace(place.span(), encode_string(text));
            }
        }
        if let Some(structured) = &self.structured {
            let parts = self.parts.iter().zip(&edited);
            let texts = parts.filter_map(|(part, edited)| edited.as_deref().or(part.as_text()));
            structured.write(&texts.collect::<Vec<_>>(), &mut splices)?;
        }
        Ok(splices)
    }
}

/// The contents of a result, whichever request it answers.
fn contents<'a>(result: &Node<'a>) -> Vec<Node<'a>> {
    let members = result.members();
    if let Some(list) = ["content", "contents"].iter().find_map(|key| member(&members, key)) {
        return list.elements();
    }
    let messages = member(&members, "messages").map(|messages| messages.elements()).unwrap_or_default();
    messages.iter().filter_map(|message| message.get("content")).collect()
}

/// Where the text of a content stands.
pub(super) fn text_place<'a>(element: &Node<'a>) -> Option<Node<'a>> {
    let place = element.get("text").or_else(|| element.get("resource")?.get("text"))?;
    place.string().is_some().then_some(place)
}

pub(super) fn compose(reply: &Reply) -> Bytes {
    let answer = reply.answers.first();
    let texts = answer.into_iter().flat_map(|answer| answer.message.parts.iter().filter_map(Part::as_text));
    let content: Vec<_> = texts.map(|text| json!({"type": "text", "text": text})).collect();
    let failed = answer.is_some_and(|answer| answer.finish_reason.as_deref() == Some(TOOL_ERROR));
    let result = json!({"content": content, "isError": failed});
    Bytes::from(json!({"jsonrpc": "2.0", "id": null, "result": result}).to_string())
}
