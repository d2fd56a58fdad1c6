//! What no reader places of a body: a walk over all of its events and objects, apart from the readers.
//!
//! Each surface says in tables which members of its objects are read, and which say nothing of an answer. What stands in no table
//! and may carry a text or a call is [`Unplaced`]. What the tables call read is held against the view: a piece of a reply that
//! stands in no view is unplaced too.

pub(super) mod blocks;
mod held;
mod step;

use std::{collections::BTreeMap, ops::Range};

use super::{
    Reply, Surface, Unplaced, UnplacedKind, body_form,
    splice::{Node, member},
    sse,
};
use held::HeldTexts;
pub use step::{ReadState, RunAccount, StepAccount, edits_unplaced, of_bodies, of_reply_to, of_step};

/// Longest quote of a piece, in characters.
const QUOTE_MAX: usize = 60;
/// Most pieces that one account names.
const UNPLACED_MAX: usize = 100;
/// Deepest nesting in which a text is looked for. What is deeper counts as a text.
pub(super) const DEPTH_MAX: usize = 128;

/// Names under which servers put an answer or a call. In an object that may hold anything, these alone count.
pub(super) const ANSWERING: &[&str] = &[
    "answer",
    "arguments",
    "candidates",
    "choices",
    "completion",
    "content",
    "content_block",
    "delta",
    "function_call",
    "generated_text",
    "generation",
    "item",
    "message",
    "messages",
    "output",
    "output_text",
    "outputs",
    "part",
    "parts",
    "refusal",
    "reply",
    "response",
    "result",
    "text",
    "tool_call",
    "tool_calls",
    "tool_use",
    "transcript",
];

/// What a piece is of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadKind {
    /// A part of its text.
    Text,
    /// The id of a call.
    Id,
    /// A part of the name of a called tool.
    Name,
    /// A part of what a tool is called with.
    Arguments,
}

/// The text that a piece is a part of. Pieces of one text are joined in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceOf {
    /// The answer: its `index` in a stream, its place in a whole reply.
    pub answer: u32,
    /// What the piece is.
    pub kind: ReadKind,
    /// What tells the text from the others of the answer.
    pub text: String,
}

impl PieceOf {
    /// A piece of this text of an answer.
    pub fn new(answer: u32, kind: ReadKind, text: impl Into<String>) -> Self {
        Self { answer, kind, text: text.into() }
    }
}

/// A text that a table calls read.
#[derive(Debug)]
struct ReadText {
    place: String,
    said: String,
}

/// The account of one body, as it is drawn up.
#[derive(Debug, Default)]
pub struct ReadAccount {
    /// The number of the event that is walked over.
    event: Option<usize>,
    /// The element of a request that is walked over, by its bytes.
    element: Option<Range<usize>>,
    unplaced: Vec<UnplacedPiece>,
    read: BTreeMap<PieceOf, ReadText>,
}

/// An unplaced piece, and where the element that holds it stands in the body.
#[derive(Debug)]
pub(super) struct UnplacedPiece {
    pub(super) piece: Unplaced,
    pub(super) element: Range<usize>,
}

/// What earlier events of a stream have opened.
#[derive(Debug, Default)]
pub struct StreamState {
    /// Blocks by index, and the type of each.
    pub(super) blocks: BTreeMap<u64, String>,
    /// The call that a piece without index and id goes on with, by answer.
    pub(super) calls: BTreeMap<u32, String>,
    /// The last piece of a called tool's name, by answer and by the call's id.
    pub(super) names: BTreeMap<(u32, String), String>,
    /// The answers, and whether each has ended.
    pub(super) answers: BTreeMap<u32, bool>,
}

/// What of a reply stands in no view, in the order of the body. `plain` is not packed, and was [read](super::door::reply) as `view`.
pub(super) fn of_reply(surface: &dyn Surface, plain: &[u8], streamed: bool, view: &Reply) -> Vec<Unplaced> {
    let mut account = ReadAccount::default();
    let is_stream = body_form::is_stream(plain, streamed);
    if is_stream {
        let Ok(text) = std::str::from_utf8(plain) else { return Vec::new() };
        let source = sse::single_lines(text);
        let mut state = StreamState::default();
        for (number, (_, span)) in sse::objects(&source).enumerate() {
            account.event = Some(number);
            if let Ok(event) = Node::parse_at(&source, span) {
                surface.account_for_event(&event, &mut state, &mut account);
            }
        }
        account.event = None;
        account.number_answers(&state.answers);
        account.beside_events(surface, plain);
    } else if let Ok(root) = Node::parse(body_form::whole_and_rest(body_form::json(plain)).0) {
        surface.account_for_reply(&root, &mut account);
    }
    account.hold_against(view, is_stream);
    account.unplaced.into_iter().map(|unplaced| unplaced.piece).collect()
}

/// What of a request no reader places, with the bytes of the element that holds it. `json` is as [`body_form::json`] gives it.
pub(super) fn of_request(surface: &dyn Surface, json: &[u8]) -> Vec<UnplacedPiece> {
    let mut account = ReadAccount::default();
    if let Ok(root) = Node::parse(json) {
        surface.account_for_request(&root, &mut account);
    }
    account.unplaced
}

impl ReadAccount {
    /// Notes a piece that nobody reads.
    pub(super) fn unplaced(&mut self, path: &str, what: UnplacedKind, node: &Node<'_>) {
        let quote = first_words(node, DEPTH_MAX).unwrap_or_else(|| node.raw().chars().take(QUOTE_MAX).collect());
        let element = self.element.clone().unwrap_or_else(|| node.span());
        self.note(path, what, &quote, element);
    }

    fn note(&mut self, path: &str, what: UnplacedKind, quote: &str, element: Range<usize>) {
        if self.unplaced.len() < UNPLACED_MAX {
            let piece = Unplaced { place: self.place(path), what, quote: quote.chars().take(QUOTE_MAX).collect() };
            self.unplaced.push(UnplacedPiece { piece, element });
        }
    }

    /// The place of a member, for people.
    pub(super) fn place(&self, path: &str) -> String {
        match self.event {
            Some(event) => format!("event {event}: {path}"),
            None => path.to_owned(),
        }
    }

    /// Notes a value that nobody reads, where it says anything.
    pub(super) fn unless_silent(&mut self, path: &str, what: UnplacedKind, node: &Node<'_>) {
        if first_words(node, DEPTH_MAX).is_some() {
            self.unplaced(path, what, node);
        }
    }

    /// Walks over an element of a request; what it holds is edited with it or not at all.
    pub(super) fn walk_element(&mut self, element: &Node<'_>, walk: impl FnOnce(&mut Self)) {
        self.element = Some(element.span());
        walk(self);
        self.element = None;
    }

    /// Notes a piece that is read: a string, or, where a tool is called, any value.
    pub(super) fn reads(&mut self, path: &str, of: PieceOf, node: &Node<'_>) {
        match node.string() {
            // A piece that ends within a character is whole only with the next one: an edit of either would spoil it.
            Some(said) if said.contains('\u{fffd}') && node.raw().to_ascii_lowercase().contains("\\ud") => {
                self.unplaced(path, UnplacedKind::Value, node);
                self.reads_text(path, of, &said);
            }
            Some(said) => self.reads_text(path, of, &said),
            None if node.is_null() => {}
            None if of.kind == ReadKind::Arguments && node.is_object() => self.reads_text(path, of, node.raw()),
            None => self.unplaced(path, UnplacedKind::Value, node),
        }
    }

    /// As [`reads`](Self::reads), of the piece's own words.
    pub(super) fn reads_text(&mut self, path: &str, of: PieceOf, said: &str) {
        let place = self.place(path);
        let begun = || ReadText { place, said: String::new() };
        self.read.entry(of).or_insert_with(begun).said.push_str(said);
    }

    /// Notes the id of a call.
    pub(super) fn reads_id(&mut self, path: &str, answer: u32, id: &str) {
        let text = ReadText { place: self.place(path), said: id.to_owned() };
        self.read.entry(PieceOf::new(answer, ReadKind::Id, id)).or_insert(text);
    }

    /// Walks over an object that says what it says in known members only.
    pub(super) fn strict(&mut self, path: &str, node: &Node<'_>, known: &[&str]) {
        if !node.is_object() {
            return self.unless_silent(path, UnplacedKind::Value, node);
        }
        for member in node.members() {
            if !known.contains(&member.key.as_ref()) {
                self.unless_silent(&format!("{path}.{}", member.key), UnplacedKind::Member, &member.value);
            }
        }
    }

    /// Walks over an object that may hold anything beside known members: what bears the name of an answer counts.
    pub(super) fn loose(&mut self, path: &str, node: &Node<'_>, known: &[&str]) {
        for member in node.members() {
            let key = member.key.as_ref();
            if ANSWERING.contains(&key) && !known.contains(&key) {
                self.unless_silent(&joined(path, key), UnplacedKind::Member, &member.value);
            }
        }
    }

    /// Notes members of a request that put words or tools where its surface reads none.
    pub(super) fn elsewhere(&mut self, root: &Node<'_>, keys: &[&str]) {
        for key in keys {
            if let Some(value) = root.get(key) {
                self.unless_silent(key, UnplacedKind::Member, &value);
            }
        }
    }

    /// Walks over an event of a type that no table knows.
    pub(super) fn unknown_event(&mut self, kind: &str, node: &Node<'_>) {
        for member in node.members() {
            if ANSWERING.contains(&member.key.as_ref()) {
                self.unless_silent(&joined(kind, &member.key), UnplacedKind::Event, &member.value);
            }
        }
    }

    /// Notes what of a stream stands where clients see it each in their own way: behind its end marker, and in lines that are no
    /// field of an event.
    fn beside_events(&mut self, surface: &dyn Surface, plain: &[u8]) {
        let mut is_over = false;
        for (number, event) in sse::events(plain).into_iter().enumerate() {
            let bytes = |span: &Range<usize>| plain.get(span.clone()).unwrap_or_default().trim_ascii();
            let data = event.data.iter().map(bytes);
            if is_over && data.clone().any(|data| data.starts_with(b"{") && !surface.is_end_marker(data)) {
                let quote = String::from_utf8_lossy(bytes(&event.span));
                self.note(&format!("event {number}, behind the end of the stream"), UnplacedKind::Event, &quote, 0..0);
            }
            is_over |= data.clone().any(|data| surface.is_end_marker(data));
            for line in sse::strange_lines(bytes(&event.span)).filter(|line| line.contains(&b'{')) {
                let quote = String::from_utf8_lossy(line);
                self.note(&format!("a line of event {number} that is no field"), UnplacedKind::Event, &quote, 0..0);
            }
        }
    }

    /// Answers are numbered from 0, and where one ends, all do. Other numbers are none of answers.
    fn number_answers(&mut self, answers: &BTreeMap<u32, bool>) {
        let gaps = answers.keys().zip(0..).any(|(index, number)| *index != number);
        let ended = answers.values().filter(|ended| **ended).count();
        if gaps || (ended > 0 && ended < answers.len()) {
            let numbers: Vec<_> = answers.keys().map(u32::to_string).collect();
            self.note("choices[].index", UnplacedKind::Index, &numbers.join(", "), 0..0);
        }
    }

    /// Holds what is called read against the view.
    fn hold_against(&mut self, view: &Reply, is_stream: bool) {
        for call in view.answers.iter().flat_map(|answer| &answer.message.tool_calls) {
            let values = serde_json::Deserializer::from_str(&call.arguments).into_iter::<serde::de::IgnoredAny>();
            if values.take(2).flatten().count() > 1 {
                self.note(&format!("the call of `{}`", call.name), UnplacedKind::Call, &call.arguments, 0..0);
            }
            if call.name.is_empty() {
                // A piece of another call, or of none: whose it is, clients see each in their own way.
                self.note("a call without a name", UnplacedKind::Call, &call.arguments, 0..0);
            }
        }
        let mut held = HeldTexts::from_reply(view, is_stream);
        for (of, text) in std::mem::take(&mut self.read) {
            if self.unplaced.len() >= UNPLACED_MAX {
                break;
            }
            if !text.said.is_empty() && !held.hold(&of, &text.said) {
                let what = if of.kind == ReadKind::Id { UnplacedKind::Call } else { UnplacedKind::Missing };
                self.note(&text.place, what, &text.said, 0..0);
            }
        }
    }
}

/// The first words of a value, where it has any.
pub(super) fn first_words(node: &Node<'_>, depth: usize) -> Option<String> {
    if let Some(text) = node.string() {
        return (!text.trim().is_empty()).then(|| text.chars().take(QUOTE_MAX).collect());
    }
    if !node.is_object() && !node.is_array() {
        return None;
    }
    let Some(depth) = depth.checked_sub(1) else { return Some(node.raw().chars().take(QUOTE_MAX).collect()) };
    if node.is_object() {
        // What a thing is called is not what it says.
        let is_name = |key: &str| matches!(key, "type" | "id" | "object" | "role" | "status" | "model" | "item_id");
        return node
            .members()
            .iter()
            .filter(|member| !is_name(&member.key))
            .find_map(|inner| first_words(&inner.value, depth));
    }
    node.elements().iter().find_map(|inner| first_words(inner, depth))
}

/// The path of a member.
pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A member of a node, and the path to it.
pub(super) fn inner<'a>(path: &str, node: &Node<'a>, key: &str) -> Option<(String, Node<'a>)> {
    member(&node.members(), key).map(|node| (joined(path, key), node))
}

/// The elements of an array, and the path to each.
pub(super) fn elements<'a>(path: &str, node: &Node<'a>) -> Vec<(String, Node<'a>)> {
    let at = |(number, element): (usize, Node<'a>)| (format!("{path}[{number}]"), element);
    node.elements().into_iter().enumerate().map(at).collect()
}
