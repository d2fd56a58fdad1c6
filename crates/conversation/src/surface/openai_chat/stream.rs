//! A streamed reply: assembling it, and splicing an edited view into its frames.
//!
//! No frame is added, dropped or moved, so ids, order and end marker stay as the upstream sent them. Edited
//! text goes where the old text differed: frames that carry only unchanged text keep their bytes.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::{message, reply};
use crate::surface::{
    Answer, Message, Part, Reply, Role, SurfaceError, ToolCall,
    fields::{self, unreadable},
    pieces::{Piece, joined, piece, spread},
    splice::{Member, Node, Splices, encode_string, member},
    sse,
};
use crate::trajectory::Usage;

const EXPECTED: &str = "a chat completion stream";

/// One choice of one frame.
#[derive(Debug)]
struct FrameChoice<'a> {
    choice: Node<'a>,
    delta: Node<'a>,
    /// For each element of its `tool_calls`, the number of the call that it is a piece of.
    calls: Vec<usize>,
}

/// All that the frames say of one choice.
#[derive(Debug, Default)]
struct ChoiceTrack<'a> {
    deltas: Vec<FrameChoice<'a>>,
    content: Vec<Piece>,
    calls: Vec<CallTrack>,
    numbers: CallNumbers,
    finish: Option<Piece>,
}

/// The number of the last call of each `index`, of each id, and of both.
#[derive(Debug, Default)]
struct CallNumbers {
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    both: HashMap<(u64, String), usize>,
}

impl CallNumbers {
    /// A call has said its id.
    fn named(&mut self, number: usize, index: Option<u64>, id: &str) {
        let last = |earlier: &mut usize| *earlier = number.max(*earlier);
        self.by_id.entry(id.to_owned()).and_modify(last).or_insert(number);
        if let Some(index) = index {
            self.both.entry((index, id.to_owned())).and_modify(last).or_insert(number);
        }
    }

    /// The last call of this id, and of this `index` where one is stated.
    fn find(&self, index: Option<u64>, id: &str) -> Option<usize> {
        match index {
            Some(index) => self.both.get(&(index, id.to_owned())).copied(),
            None => self.by_id.get(id).copied(),
        }
    }
}

/// All that the frames say of one tool call.
#[derive(Debug, Default)]
struct CallTrack {
    /// The `index` that its first piece states; some servers state none, or 0 for each call.
    index: Option<u64>,
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
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let frames = take_apart(&source)?;
    let mut reply = frames.reply;
    reply.answers = frames.tracks.iter().map(|(index, track)| track.answer(*index)).collect();
    Ok(reply)
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = &*sse::single_lines(fields::source(body, EXPECTED)?);
    let frames = take_apart(source)?;
    let mut splices = Splices::default();
    for (old, new) in before.answers.iter().zip(&after.answers) {
        if old == new {
            continue;
        }
        let track =
            frames.tracks.get(&old.index).ok_or_else(|| SurfaceError::NoPlace(format!("no choice {}", old.index)))?;
        let mut own = Splices::default();
        track.write(source, old, new, &mut own)?;
        splices.append(own);
    }
    Ok(splices.apply(body))
}

fn take_apart(source: &str) -> Result<Frames<'_>, SurfaceError> {
    let mut frames = Frames::default();
    let mut seen = false;
    for (_, span) in sse::objects(source) {
        let root = Node::parse_at(source, span).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let Some(choices) = member(&members, "choices") else { continue };
        seen = true;
        if frames.reply.id.is_empty() {
            frames.reply.id = fields::text(&members, "id");
            frames.reply.model = fields::text(&members, "model");
        }
        // Some servers count within the choice, or beside it in an object of their own.
        let places = [member(&members, "x_groq").and_then(|own| own.get("usage")), member(&members, "usage")];
        let within = choices.elements().into_iter().map(|choice| choice.get("usage"));
        if let Some(usage) = within.chain(places).flatten().filter_map(|node| reply::usage(&node)).next_back()
            // Some gateways end with a frame of zeros.
            && (usage != Usage::default() || frames.reply.usage.is_none())
        {
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
        if let Some(content) = member(&inside, "content") {
            self.content.extend(delta_text(&content));
        }
        let elements = member(&inside, "tool_calls").map(|c| c.elements()).unwrap_or_default();
        let mut calls = Vec::with_capacity(elements.len());
        for (position, call) in elements.iter().enumerate() {
            let fields = call.members();
            let number = self.call_of(&fields, (elements.len() > 1).then_some(position));
            calls.push(number);
            let Some(track) = self.calls.get_mut(number) else { continue };
            let id = member(&fields, "id").and_then(|node| piece(&node)).filter(|id| !id.text.is_empty());
            if let (None, Some(id)) = (&track.id, id) {
                self.numbers.named(number, track.index, &id.text);
                track.id = Some(id);
            }
            // Custom tools carry `custom.input` where functions carry `function.arguments`.
            let function = member(&fields, "function").or_else(|| member(&fields, "custom"));
            let function = function.map(|f| f.members()).unwrap_or_default();
            track.name.extend(member(&function, "name").and_then(|node| piece(&node)));
            let arguments = member(&function, "arguments").or_else(|| member(&function, "input"));
            let said = |node: Node<'_>| Some(Piece { span: node.span(), text: fields::arguments(&node)? });
            track.arguments.extend(arguments.and_then(said));
        }
        self.deltas.push(FrameChoice { choice, delta, calls });
    }

    /// The number of the call that an element is a piece of; a new call where it is the first. Servers that state no index, or
    /// the same for each call, tell calls apart by id, or by a name that comes again after whole arguments. `position`: the
    /// element's place, where a frame has several.
    fn call_of(&mut self, fields: &[Member<'_>], position: Option<usize>) -> usize {
        let index = member(fields, "index").and_then(|index| index.value().or_else(|| index.string()?.parse().ok()));
        let id = fields::string(fields, "id").filter(|id| !id.is_empty());
        let function = member(fields, "function").or_else(|| member(fields, "custom"));
        let is_named =
            function.and_then(|function| function.get("name")?.string()).is_some_and(|name| !name.is_empty());
        let continued = |track: &CallTrack| match (&id, &track.id) {
            (Some(id), Some(known)) => *id == known.text,
            // Without ids, a name after whole arguments begins the next call.
            (None, None) => !(is_named && track.is_whole()),
            (None, Some(_)) => !(is_named && index.is_none() && track.is_whole()),
            (Some(_), None) => track.name.is_empty() || !is_named,
        };
        let known = match (index, position) {
            (Some(index), _) => self.numbers.by_index.get(&index).copied(),
            (None, Some(position)) if id.is_none() => (position < self.calls.len()).then_some(position),
            (None, _) => self.calls.len().checked_sub(1),
        };
        let known = known.filter(|number| self.calls.get(*number).is_some_and(continued));
        let known = known.or_else(|| self.numbers.find(index, id.as_ref()?));
        known.unwrap_or_else(|| {
            let number = self.calls.len();
            self.calls.push(CallTrack { index, ..CallTrack::default() });
            if let Some(index) = index {
                self.numbers.by_index.insert(index, number);
            }
            number
        })
    }

    /// The first `index`, where the calls are numbered without gaps from there.
    fn first_index(&self) -> Option<u64> {
        let first = self.calls.first().map_or(Some(0), |track| track.index)?;
        let in_order = |(number, track): (u64, &CallTrack)| track.index == Some(first + number);
        (0..).zip(&self.calls).all(in_order).then_some(first)
    }

    fn answer(&self, index: u32) -> Answer {
        let call = |(origin, track): (usize, &CallTrack)| ToolCall {
            id: track.id.as_ref().map(|id| id.text.clone()).unwrap_or_default(),
            name: joined(&track.name),
            arguments: joined(&track.arguments),
            origin: Some(origin),
        };
        let tool_calls: Vec<_> = self.calls.iter().enumerate().map(call).collect();
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
            let spans: Vec<_> = self.deltas.iter().map(|delta| delta.choice.span()).collect();
            for (delta, _) in self.deltas.iter().zip(splices.touch(&spans)).filter(|(_, touched)| *touched) {
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
        let mut places = HashMap::new();
        for (place, origin) in after.iter().enumerate().filter_map(|(place, call)| Some((place, call.origin?))) {
            places.entry(origin).or_insert(place);
        }
        let place_of = |origin: usize| places.get(&origin).copied();
        let added: Vec<_> =
            after.iter().enumerate().filter(|(i, call)| call.origin.and_then(place_of) != Some(*i)).collect();
        for (origin, (track, old)) in self.calls.iter().zip(before).enumerate() {
            if let Some(new) = place_of(origin).and_then(|place| after.get(place)) {
                track.write(old, new, splices);
            }
        }
        let first = self.first_index();
        let number = |place: usize| first.unwrap_or_default() + place as u64;
        let last = self.deltas.iter().rposition(|delta| delta.delta.get("tool_calls").is_some_and(|c| c.is_array()));
        for (frame, delta) in self.deltas.iter().enumerate() {
            let Some(array) = delta.delta.get("tool_calls").filter(Node::is_array) else { continue };
            let elements = array.elements();
            let mut kept = Vec::new();
            for (position, call) in elements.iter().enumerate() {
                let Some(origin) = delta.calls.get(position).copied() else { continue };
                let Some(place) = place_of(origin) else { continue };
                kept.push(RetainedCall { position, origin, place, node: *call });
            }
            let mut origins: Vec<_> = kept.iter().map(|call| Some(call.position)).collect();
            let tail: &[_] = if Some(frame) == last { &added } else { &[] };
            origins.extend(tail.iter().map(|_| None));
            if origins.is_empty() {
                splices.replace(array.span(), "null");
                continue;
            }
            let renumber = |at: usize, _: usize, splices: &mut Splices| {
                let Some(call) = kept.get(at).filter(|call| call.origin != call.place) else { return };
                if let (Some(first), Some(index)) = (first, call.node.get("index")) {
                    splices.replace(index.span(), (first + call.place as u64).to_string());
                }
            };
            let make =
                |at: usize| tail.get(at - kept.len()).map(|(i, call)| whole_call(number(*i), call)).unwrap_or_default();
            splices.write_array(source, &array.listed(), &origins, renumber, make);
        }
        if last.is_none() && !added.is_empty() {
            let opening =
                self.deltas.first().ok_or_else(|| SurfaceError::NoPlace("the choice has no delta".to_owned()))?;
            let calls: Vec<_> = added.iter().map(|(i, call)| whole_call(number(*i), call)).collect();
            let members = opening.delta.members();
            fields::set(&opening.delta, &members, "tool_calls", &format!("[{}]", calls.join(",")), splices);
        }
        Ok(())
    }
}

impl CallTrack {
    /// Whether its arguments so far are a whole JSON value.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&joined(&self.arguments)).is_ok()
    }

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

/// An element of a frame's `tool_calls` that stays.
struct RetainedCall<'a> {
    /// Its place in the frame.
    position: usize,
    /// The number of its call before the edit.
    origin: usize,
    /// The number of its call after the edit.
    place: usize,
    node: Node<'a>,
}

/// The text of a delta's content: a string, or the text parts of a list. Thinking in such a list is no answer.
fn delta_text(content: &Node<'_>) -> Vec<Piece> {
    if let Some(text) = piece(content) {
        return vec![text];
    }
    let is_text =
        |part: &Node<'_>| part.get("type").and_then(|kind| kind.string()).is_none_or(|kind| is_text_part(&kind));
    let texts = content.elements().into_iter().filter(is_text);
    texts.filter_map(|part| piece(&part).or_else(|| piece(&part.get("text")?))).collect()
}

/// Whether a part of a content list says the answer.
pub(super) fn is_text_part(kind: &str) -> bool {
    matches!(kind, "text" | "output_text")
}

/// A tool call that comes in one delta.
fn whole_call(index: u64, call: &ToolCall) -> String {
    let mut value = message::make_call(call);
    if let Some(object) = value.as_object_mut() {
        object.insert("index".to_owned(), index.into());
    }
    value.to_string()
}
