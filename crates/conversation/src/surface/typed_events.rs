//! Streams of typed events that send an answer block by block: an event starts a block, others say it in pieces, one ends it.
//!
//! Messages and Interactions stream so. Each says in an [`EventForm`] what its events are called and what a block is; the events are
//! taken apart, read, edited and composed here.

pub(super) mod edit;

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use serde_json::{Value, json};

use super::{
    Answer, Reply, Role, SurfaceError, ToolCall,
    blocks::{self, Block},
    fields::{self, number, text, unreadable},
    pieces::{Piece, joined, piece},
    splice::{Member, Node, Splices, member},
    sse,
};

/// What a piece of a block is called.
#[derive(Debug)]
pub(super) struct PieceForm {
    /// Its type.
    pub(super) kind: &'static str,
    /// The member that holds its words.
    pub(super) key: &'static str,
    /// The type of block that it is a piece of.
    pub(super) block: &'static str,
    /// All its members that are read or say nothing of an answer.
    pub(super) members: &'static [&'static str],
}

/// What an API calls its events, and what its blocks are.
#[derive(Debug)]
pub(super) struct EventForm {
    /// What such a stream is called.
    pub(super) expected: &'static str,
    /// The member of an event that says its type.
    pub(super) kind: &'static str,
    /// The type of the event that starts a block.
    pub(super) start: &'static str,
    /// Its member that holds the block.
    pub(super) block: &'static str,
    /// The type of an event with a piece, which stands in `delta`.
    pub(super) delta: &'static str,
    /// The type of the event that ends a block.
    pub(super) stop: &'static str,
    /// Other types of events.
    pub(super) others: &'static [&'static str],
    /// Types of events before which a block may still be added.
    pub(super) ends: &'static [&'static str],
    /// Pieces of a text.
    pub(super) text: PieceForm,
    /// Pieces of what a tool is called with.
    pub(super) arguments: PieceForm,
    /// The member of a block that holds what a tool is called with.
    pub(super) input: &'static str,
    /// The type of a piece that points into a text.
    pub(super) note: &'static str,
    /// A text block as it starts, as JSON.
    pub(super) empty_text: &'static str,
    /// Reads a block as it starts; whether pieces of it follow tells whether it is a text, where its type does not.
    pub(super) read: fn(&Node<'_>, bool) -> Block,
    /// The texts that a block starts with.
    pub(super) texts: for<'a> fn(&Node<'a>) -> Vec<Node<'a>>,
    /// Takes in an event that is about no block.
    pub(super) head: for<'a> fn(&mut EventHead<'a>, &str, &[Member<'a>]),
    /// Why an answer stopped, by this API's word, in the words of chat completions.
    pub(super) finish: fn(&str) -> Option<&str>,
    /// A new block.
    pub(super) made: fn(&Block) -> Value,
}

/// One event.
#[derive(Debug)]
pub(super) struct EventFrame<'a> {
    /// All its bytes.
    pub(super) span: Range<usize>,
    /// Its type.
    pub(super) kind: String,
    /// The block that it is about.
    pub(super) block: Option<u64>,
    /// Where it says so.
    pub(super) index: Option<Node<'a>>,
    /// What it adds.
    pub(super) delta: Option<Node<'a>>,
}

/// All that the events say of one block.
#[derive(Debug)]
pub(super) struct BlockTrack<'a> {
    /// As it started.
    pub(super) start: Node<'a>,
    /// Its text, or the JSON text of what a tool is called with.
    pub(super) pieces: Vec<Piece>,
}

/// What events say beside blocks.
#[derive(Debug, Default)]
pub(super) struct EventHead<'a> {
    /// Id, model and counts.
    pub(super) reply: Reply,
    /// Where they say how the answer stands.
    pub(super) finishes: Vec<Piece>,
    /// The whole reply, as the event that ends the stream has it.
    pub(super) ended: Option<Node<'a>>,
}

/// The events of a stream, taken apart.
#[derive(Debug)]
pub(super) struct TypedEvents<'a> {
    form: &'static EventForm,
    /// All of them.
    pub(super) frames: Vec<EventFrame<'a>>,
    /// Blocks by index.
    pub(super) tracks: BTreeMap<u64, BlockTrack<'a>>,
    /// What they say beside blocks.
    pub(super) head: EventHead<'a>,
    /// The block that each index stands for: some gateways give every block the same.
    open: HashMap<u64, u64>,
    /// The numbers of the events about each block.
    by_block: HashMap<u64, Vec<usize>>,
}

impl EventForm {
    /// Assembles a streamed reply.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when no event is one of this API.
    pub(super) fn read(&'static self, body: &[u8]) -> Result<Reply, SurfaceError> {
        let source = sse::single_lines(fields::source(body, self.expected)?);
        let TypedEvents { tracks, head, .. } = self.take_apart(&source)?;
        let blocks: Vec<Block> = tracks.values().map(|track| track.block(self)).collect();
        let message = blocks::message(Role::Assistant, blocks.iter(), 0);
        let finish_reason = head.finishes.last().and_then(|word| (self.finish)(&word.text)).map(str::to_owned);
        Ok(Reply { answers: vec![Answer { index: 0, message, finish_reason }], ..head.reply })
    }

    /// Takes a stream apart. `source` has the data of events on single lines.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when no event is one of this API.
    pub(super) fn take_apart<'a>(&'static self, source: &'a str) -> Result<TypedEvents<'a>, SurfaceError> {
        let mut events = TypedEvents {
            form: self,
            frames: Vec::new(),
            tracks: BTreeMap::new(),
            head: EventHead::default(),
            open: HashMap::new(),
            by_block: HashMap::new(),
        };
        let mut is_answer = false;
        for (event, span) in sse::objects(source) {
            let root = Node::parse_at(source, span).map_err(|detail| unreadable(self.expected, detail))?;
            is_answer |= events.take(event.span, &root.members());
        }
        let missing = || unreadable(self.expected, format!("no event has a `{}` of this API", self.kind));
        if is_answer { Ok(events) } else { Err(missing()) }
    }

    /// An event as it is sent.
    pub(super) fn frame(&self, event: &Value) -> String {
        let kind = event.get(self.kind).and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    }

    /// The event with a piece of a block.
    fn delta_event(&self, index: u64, form: &PieceForm, words: &str) -> Value {
        json!({self.kind: self.delta, "index": index, "delta": {"type": form.kind, form.key: words}})
    }

    /// The events of a new block.
    pub(super) fn block_events(&self, index: u64, block: &Block) -> Vec<Value> {
        let mut made = (self.made)(block);
        let (words, form) = if let Block::Text(text) = block {
            made = serde_json::from_str(self.empty_text).unwrap_or_default();
            (text.clone(), &self.text)
        } else {
            let input = made.get_mut(self.input).map(|input| std::mem::replace(input, json!({})));
            (input.unwrap_or_default().to_string(), &self.arguments)
        };
        let mut events = vec![json!({self.kind: self.start, "index": index, self.block: made})];
        events.extend(fields::words(&words).map(|word| self.delta_event(index, form, word)));
        events.push(json!({self.kind: self.stop, "index": index}));
        events
    }
}

impl<'a> TypedEvents<'a> {
    /// Takes in one event; says whether it is one of this API.
    fn take(&mut self, span: Range<usize>, members: &[Member<'a>]) -> bool {
        let (form, kind) = (self.form, text(members, self.form.kind));
        let index = number(members, "index");
        let delta = member(members, "delta");
        let own = index.unwrap_or_default();
        if kind == form.start {
            if let Some(start) = member(members, form.block) {
                let next = || self.tracks.keys().next_back().map_or(0, |last| last + 1);
                let place = if self.tracks.contains_key(&own) { next() } else { own };
                self.open.insert(own, place);
                self.tracks.insert(place, BlockTrack::new(form, start));
            }
        } else if kind == form.delta {
            let track = self.open.get(&own).and_then(|place| self.tracks.get_mut(place));
            if let (Some(track), Some(delta)) = (track, &delta) {
                track.take(form, delta);
            }
        } else {
            (form.head)(&mut self.head, &kind, members);
        }
        let is_answer =
            [form.start, form.delta, form.stop].contains(&kind.as_str()) || form.others.contains(&kind.as_str());
        let block = index.map(|index| self.open.get(&index).copied().unwrap_or(index));
        if let Some(block) = block {
            self.by_block.entry(block).or_default().push(self.frames.len());
        }
        let index = member(members, "index").filter(|_| index.is_some());
        self.frames.push(EventFrame { span, kind, block, index, delta });
        is_answer
    }

    /// The events about a block.
    pub(super) fn frames_of(&self, block: u64) -> impl Iterator<Item = &EventFrame<'a>> {
        let numbers = self.by_block.get(&block).map(Vec::as_slice).unwrap_or_default();
        numbers.iter().filter_map(|number| self.frames.get(*number))
    }

    /// The blocks, in order.
    pub(super) fn blocks(&self) -> Vec<Block> {
        self.tracks.values().map(|track| track.block(self.form)).collect()
    }
}

impl<'a> BlockTrack<'a> {
    fn new(form: &EventForm, start: Node<'a>) -> Self {
        // A block may start with a text.
        let texts = (form.texts)(&start).into_iter().filter_map(|node| piece(&node));
        Self { start, pieces: texts.filter(|piece| !piece.text.is_empty()).collect() }
    }

    fn take(&mut self, form: &EventForm, delta: &Node<'a>) {
        let piece_form = match (form.read)(&self.start, true) {
            Block::Text(_) => &form.text,
            Block::Call(_) => &form.arguments,
            Block::Result { .. } | Block::Other(_) => return,
        };
        let members = delta.members();
        if text(&members, "type") == piece_form.kind {
            self.pieces.extend(member(&members, piece_form.key).and_then(|node| piece(&node)));
        }
    }

    /// The block that the events make.
    pub(super) fn block(&self, form: &EventForm) -> Block {
        match (form.read)(&self.start, !self.pieces.is_empty()) {
            Block::Text(_) => Block::Text(joined(&self.pieces)),
            Block::Call(call) => {
                let words = joined(&self.pieces);
                // A call without arguments sends no piece of them, or an empty one.
                let arguments = if words.is_empty() { call.arguments } else { words };
                Block::Call(ToolCall { arguments, ..call })
            }
            other => other,
        }
    }
}

/// Writes another string into a member that a block has, where it differs.
pub(super) fn edit_words(block: &Node<'_>, key: &str, words: &str, splices: &mut Splices) {
    if let Some(place) = block.get(key).filter(|place| place.string().as_deref() != Some(words)) {
        splices.replace(place.span(), super::splice::encode_string(words));
    }
}
