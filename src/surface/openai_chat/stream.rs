//! A streamed reply: assembling it, and splicing an edited view into its frames.
//!
//! No frame is added, dropped or moved, so ids, order and end marker stay as the upstream sent them. Edited
//! text goes where the old text differed: frames that carry only unchanged text keep their bytes.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{message, reply};
use crate::surface::{
    Answer, Message, Part, Reply, Role, SurfaceError, ToolCall,
    fields::{self, unreadable},
    pieces::{Piece, joined, piece, spread},
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a chat completion stream";

/// One choice of one frame.
#[derive(Debug)]
struct Delta<'a> {
    choice: Node<'a>,
    delta: Node<'a>,
}

/// All that the frames say of one choice.
#[derive(Debug, Default)]
struct ChoiceTrack<'a> {
    deltas: Vec<Delta<'a>>,
    content: Vec<Piece>,
    calls: BTreeMap<u64, CallTrack>,
    finish: Option<Piece>,
}

/// All that the frames say of one tool call.
#[derive(Debug, Default)]
struct CallTrack {
    id: Option<Piece>,
    name: Vec<Piece>,
    arguments: Vec<Piece>,
}

/// The frames of a stream, taken apart.
#[derive(Debug, Default)]
struct Frames<'a> {
    reply: Reply,
    tracks: BTreeMap<u32, ChoiceTrack<'a>>,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let frames = take_apart(fields::source(body, EXPECTED)?)?;
    let mut reply = frames.reply;
    reply.answers = frames.tracks.iter().map(|(index, track)| track.answer(*index)).collect();
    Ok(reply)
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let frames = take_apart(source)?;
    let mut splices = Splices::default();
    for (old, new) in before.answers.iter().zip(&after.answers) {
        if old == new {
            continue;
        }
        let track =
            frames.tracks.get(&old.index).ok_or_else(|| SurfaceError::NoPlace(format!("no choice {}", old.index)))?;
        track.write(source, old, new, &mut splices)?;
    }
    Ok(splices.apply(body))
}

fn take_apart(source: &str) -> Result<Frames<'_>, SurfaceError> {
    let mut frames = Frames::default();
    let mut seen = false;
    for event in sse::events(source.as_bytes()) {
        let [span] = event.data.as_slice() else { continue };
        if source.get(span.clone()) == Some("[DONE]") {
            continue;
        }
        let root = Node::parse_at(source, span.clone()).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let Some(choices) = member(&members, "choices") else { continue };
        seen = true;
        if frames.reply.id.is_empty() {
            frames.reply.id = fields::text(&members, "id");
            frames.reply.model = fields::text(&members, "model");
        }
        if let Some(usage) = member(&members, "usage").and_then(|node| reply::usage(&node)) {
            frames.reply.usage = Some(usage);
        }
        for (position, choice) in choices.elements().into_iter().enumerate() {
            let index = choice.get("index").and_then(|index| index.value());
            let index = index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX));
            frames.tracks.entry(index).or_default().take(choice);
        }
    }
    if seen { Ok(frames) } else { Err(unreadable(EXPECTED, "no frame has `choices`")) }
}

impl<'a> ChoiceTrack<'a> {
    fn take(&mut self, choice: Node<'a>) {
        let members = choice.members();
        if let Some(finish) = member(&members, "finish_reason").and_then(|node| piece(&node)) {
            self.finish = Some(finish);
        }
        let Some(delta) = member(&members, "delta") else { return };
        let inside = delta.members();
        self.content.extend(member(&inside, "content").and_then(|node| piece(&node)));
        for (position, call) in
            member(&inside, "tool_calls").map(|c| c.elements()).unwrap_or_default().iter().enumerate()
        {
            let fields = call.members();
            let track = self.calls.entry(call_index(call, position)).or_default();
            if let Some(id) = member(&fields, "id").and_then(|node| piece(&node)) {
                track.id.get_or_insert(id);
            }
            // Custom tools carry `custom.input` where functions carry `function.arguments`.
            let function = member(&fields, "function").or_else(|| member(&fields, "custom"));
            let function = function.map(|f| f.members()).unwrap_or_default();
            track.name.extend(member(&function, "name").and_then(|node| piece(&node)));
            let arguments = member(&function, "arguments").or_else(|| member(&function, "input"));
            track.arguments.extend(arguments.and_then(|node| piece(&node)));
        }
        self.deltas.push(Delta { choice, delta });
    }

    fn answer(&self, index: u32) -> Answer {
        let call = |(origin, track): (usize, &CallTrack)| ToolCall {
            id: track.id.as_ref().map(|id| id.text.clone()).unwrap_or_default(),
            name: joined(&track.name),
            arguments: joined(&track.arguments),
            origin: Some(origin),
        };
        let tool_calls: Vec<_> = self.calls.values().enumerate().map(call).collect();
        let text = joined(&self.content);
        // Beside tool calls, an empty opening text is what a whole reply writes as null.
        let silent = text.is_empty() && (!tool_calls.is_empty() || self.content.is_empty());
        let parts = if silent { Vec::new() } else { vec![Part::Text(text)] };
        let message = Message { parts, tool_calls, origin: Some(0), ..Message::text_of(Role::Assistant, "") };
        Answer { index, message, finish_reason: self.finish.as_ref().map(|finish| finish.text.clone()) }
    }

    fn write(&self, source: &str, old: &Answer, new: &Answer, splices: &mut Splices) -> Result<(), SurfaceError> {
        let (before, after) = (old.message.text(), new.message.text());
        if before != after {
            self.write_text(&after, splices)?;
        }
        if old.message.tool_calls != new.message.tool_calls {
            self.write_calls(source, &old.message.tool_calls, &new.message.tool_calls, splices)?;
        }
        if let (true, Some(place), Some(reason)) =
            (old.finish_reason != new.finish_reason, &self.finish, &new.finish_reason)
        {
            splices.replace(place.span.clone(), encode_string(reason));
        }
        if old.message != new.message {
            // Frames that say what they said keep what describes it.
            let touched: Vec<_> = self.deltas.iter().filter(|delta| splices.touch(&delta.choice.span())).collect();
            for delta in touched {
                reply::drop_token_fields(&delta.choice.members(), splices);
            }
        }
        Ok(())
    }

    fn write_text(&self, after: &str, splices: &mut Splices) -> Result<(), SurfaceError> {
        if !self.content.is_empty() {
            spread(&self.content, after, splices);
            return Ok(());
        }
        let opening = self.deltas.first().ok_or_else(|| SurfaceError::NoPlace("the choice has no delta".to_owned()))?;
        fields::set(&opening.delta, &opening.delta.members(), "content", &encode_string(after), splices);
        Ok(())
    }

    fn write_calls(
        &self,
        source: &str,
        before: &[ToolCall],
        after: &[ToolCall],
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        // Old call → its new number; the first new call that came from it keeps its frames.
        let place_of = |origin: usize| after.iter().position(|call| call.origin == Some(origin));
        let added: Vec<_> =
            after.iter().enumerate().filter(|(i, call)| call.origin.and_then(place_of) != Some(*i)).collect();
        for (origin, (track, old)) in self.calls.values().zip(before).enumerate() {
            if let Some(new) = place_of(origin).and_then(|place| after.get(place)) {
                track.write(old, new, splices);
            }
        }
        let order: Vec<u64> = self.calls.keys().copied().collect();
        let last = self.deltas.iter().rposition(|delta| delta.delta.get("tool_calls").is_some_and(|c| c.is_array()));
        for (number, delta) in self.deltas.iter().enumerate() {
            let Some(array) = delta.delta.get("tool_calls").filter(Node::is_array) else { continue };
            let elements = array.elements();
            let mut kept = Vec::new();
            for (position, call) in elements.iter().enumerate() {
                let origin = order.iter().position(|index| *index == call_index(call, position));
                let Some(place) = origin.and_then(place_of) else { continue };
                kept.push((position, place, call));
            }
            let mut origins: Vec<_> = kept.iter().map(|(position, ..)| Some(*position)).collect();
            let tail: &[_] = if Some(number) == last { &added } else { &[] };
            origins.extend(tail.iter().map(|_| None));
            if origins.is_empty() {
                splices.replace(array.span(), "null");
                continue;
            }
            let renumber = |at: usize, _: usize, splices: &mut Splices| {
                let Some((position, place, call)) = kept.get(at) else { return };
                if let (true, Some(index)) = (call_index(call, *position) != *place as u64, call.get("index")) {
                    splices.replace(index.span(), place.to_string());
                }
            };
            let make = |at: usize| tail.get(at - kept.len()).map(|(i, call)| whole_call(*i, call)).unwrap_or_default();
            splices.write_array(source, &array.listed(), &origins, renumber, make);
        }
        if last.is_none() && !added.is_empty() {
            let opening =
                self.deltas.first().ok_or_else(|| SurfaceError::NoPlace("the choice has no delta".to_owned()))?;
            let calls: Vec<_> = added.iter().map(|(i, call)| whole_call(*i, call)).collect();
            let members = opening.delta.members();
            fields::set(&opening.delta, &members, "tool_calls", &format!("[{}]", calls.join(",")), splices);
        }
        Ok(())
    }
}

impl CallTrack {
    fn write(&self, old: &ToolCall, new: &ToolCall, splices: &mut Splices) {
        if let (true, Some(id)) = (old.id != new.id, &self.id) {
            splices.replace(id.span.clone(), encode_string(&new.id));
        }
        if old.name != new.name {
            spread(&self.name, &new.name, splices);
        }
        if old.arguments != new.arguments {
            spread(&self.arguments, &new.arguments, splices);
        }
    }
}

fn call_index(call: &Node<'_>, position: usize) -> u64 {
    call.get("index").and_then(|index| index.value()).unwrap_or(position as u64)
}

/// A tool call that comes in one delta.
fn whole_call(index: usize, call: &ToolCall) -> String {
    let mut value = message::make_call(call);
    if let Some(object) = value.as_object_mut() {
        object.insert("index".to_owned(), index.into());
    }
    value.to_string()
}
