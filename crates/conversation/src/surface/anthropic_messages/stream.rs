//! A streamed reply: assembling it from its events.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use super::{block, reply};
use crate::{
    surface::{
        Answer, Reply, Role, SurfaceError, ToolCall,
        blocks::{self, Block},
        fields::{self, number, text, unreadable},
        pieces::{Piece, joined, piece},
        splice::{Member, Node, member},
        sse,
    },
    trajectory::Usage,
};

pub(super) const EXPECTED: &str = "a message stream";

/// One event.
#[derive(Debug)]
pub(super) struct MessageFrame<'a> {
    /// All its bytes.
    pub(super) span: Range<usize>,
    /// Its type.
    pub(super) kind: String,
    /// The block that it is about, and where it says so.
    pub(super) index: Option<(u64, Node<'a>)>,
    /// What a delta adds.
    pub(super) delta: Option<Node<'a>>,
}

/// All that the events say of one block.
#[derive(Debug)]
pub(super) struct BlockTrack<'a> {
    /// As it started.
    pub(super) block: Node<'a>,
    /// Its text, or the JSON text of a tool call's input.
    pub(super) pieces: Vec<Piece>,
}

/// The events of a stream, taken apart.
#[derive(Debug, Default)]
pub(super) struct MessageEvents<'a> {
    /// All of them.
    pub(super) frames: Vec<MessageFrame<'a>>,
    /// Blocks by index.
    pub(super) tracks: BTreeMap<u64, BlockTrack<'a>>,
    /// The block that each index stands for: some gateways give every block the same.
    open: BTreeMap<u64, u64>,
    /// The numbers of the events that name each index.
    by_index: HashMap<u64, Vec<usize>>,
    reply: Reply,
    stop_reason: Option<Piece>,
    usage: Option<Usage>,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(&source)?;
    let finish_reason = events.stop_reason.as_ref().map(|reason| block::finish(&reason.text).to_owned());
    let message = blocks::message(Role::Assistant, events.blocks().iter(), 0);
    let answers = vec![Answer { index: 0, message, finish_reason }];
    Ok(Reply { answers, usage: events.usage, ..events.reply })
}

/// Takes a stream apart.
pub(super) fn take_apart(source: &str) -> Result<MessageEvents<'_>, SurfaceError> {
    let mut events = MessageEvents::default();
    let mut seen = false;
    for (event, span) in sse::objects(source) {
        let root = Node::parse_at(source, span).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let kind = text(&members, "type");
        seen |= events.take(&kind, &members);
        let index = member(&members, "index").and_then(|node| Some((node.value()?, node)));
        if let Some((index, _)) = index {
            events.by_index.entry(index).or_default().push(events.frames.len());
        }
        events.frames.push(MessageFrame { span: event.span, kind, index, delta: member(&members, "delta") });
    }
    if seen { Ok(events) } else { Err(unreadable(EXPECTED, "no event has a `type` of this API")) }
}

impl<'a> MessageEvents<'a> {
    /// Takes in one event; says whether it is one of this API.
    fn take(&mut self, kind: &str, members: &[Member<'a>]) -> bool {
        let index = number(members, "index").unwrap_or_default();
        match kind {
            "message_start" => {
                if let Some(message) = member(members, "message") {
                    self.reply = reply::head(&message.members());
                    self.usage = self.reply.usage;
                }
            }
            "content_block_start" => {
                if let Some(block) = member(members, "content_block") {
                    let next = || self.tracks.keys().next_back().map_or(0, |last| last + 1);
                    let place = if self.tracks.contains_key(&index) { next() } else { index };
                    self.open.insert(index, place);
                    self.tracks.insert(place, BlockTrack::new(block));
                }
            }
            "content_block_delta" => {
                let delta = member(members, "delta").map(|delta| delta.members()).unwrap_or_default();
                if let Some(track) = self.open.get(&index).and_then(|place| self.tracks.get_mut(place)) {
                    let said = ["text", "partial_json"].iter().find_map(|key| member(&delta, key));
                    track.pieces.extend(said.and_then(|node| piece(&node)));
                }
            }
            "message_delta" => {
                let delta = member(members, "delta").map(|delta| delta.members()).unwrap_or_default();
                if let Some(reason) = member(&delta, "stop_reason").and_then(|node| piece(&node)) {
                    self.stop_reason = Some(reason);
                }
                if let Some(usage) = member(members, "usage").and_then(|node| reply::usage(&node)) {
                    self.usage = Some(reply::later(self.usage, usage));
                }
            }
            "content_block_stop" | "message_stop" | "ping" | "error" => {}
            _ => return false,
        }
        true
    }

    /// The events that name an index.
    pub(super) fn frames_of(&self, index: u64) -> impl Iterator<Item = &MessageFrame<'a>> {
        let numbers = self.by_index.get(&index).map(Vec::as_slice).unwrap_or_default();
        numbers.iter().filter_map(|number| self.frames.get(*number))
    }

    /// The blocks, in order.
    pub(super) fn blocks(&self) -> Vec<Block> {
        self.tracks.values().map(BlockTrack::block).collect()
    }
}

impl<'a> BlockTrack<'a> {
    fn new(block: Node<'a>) -> Self {
        // A block may start with text already said.
        let said = block.get("text").and_then(|node| piece(&node)).filter(|piece| !piece.text.is_empty());
        Self { block, pieces: said.into_iter().collect() }
    }

    fn block(&self) -> Block {
        match block::read(&self.block) {
            Block::Text(_) => Block::Text(joined(&self.pieces)),
            Block::Call(call) => {
                let said = joined(&self.pieces);
                // A call without input sends no piece of it, or an empty one.
                let arguments = if said.is_empty() { call.arguments } else { said };
                Block::Call(ToolCall { arguments, ..call })
            }
            other => other,
        }
    }
}
