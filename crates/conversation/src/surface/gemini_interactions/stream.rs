//! A streamed reply: assembling it from its events.

use std::{collections::BTreeMap, ops::Range};

use super::{
    reply,
    step::{self, StepKind},
};
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

/// What a streamed reply is called.
pub(super) const EXPECTED: &str = "a stream of an interaction";

/// One event.
#[derive(Debug)]
pub(super) struct StepFrame<'a> {
    /// All its bytes.
    pub(super) span: Range<usize>,
    /// Its type.
    pub(super) kind: String,
    /// The step that it is about, and where it says so.
    pub(super) index: Option<(u64, Node<'a>)>,
    /// The type of what it adds.
    pub(super) delta: String,
}

/// All that the events say of one step.
#[derive(Debug)]
pub(super) struct StepTrack<'a> {
    /// As it started.
    pub(super) step: Node<'a>,
    /// Its text, or the JSON text of a call's arguments.
    pub(super) pieces: Vec<Piece>,
    /// What signs a thought.
    signature: String,
}

/// The events of a stream, taken apart.
#[derive(Debug, Default)]
pub(super) struct StepEvents<'a> {
    /// All of them.
    pub(super) frames: Vec<StepFrame<'a>>,
    /// Steps by index.
    pub(super) tracks: BTreeMap<u64, StepTrack<'a>>,
    /// Where events say how far the interaction is.
    pub(super) statuses: Vec<Piece>,
    /// The interaction as the last event has it.
    pub(super) ended: Option<Node<'a>>,
    reply: Reply,
    usage: Option<Usage>,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED)?);
    let events = take_apart(&source)?;
    let status = events.statuses.last().and_then(|status| step::finish(&status.text));
    let message = blocks::message(Role::Assistant, events.blocks().iter(), 0);
    let answers = vec![Answer { index: 0, message, finish_reason: status.map(str::to_owned) }];
    Ok(Reply { answers, usage: events.usage, ..events.reply })
}

/// The type of an event.
pub(super) fn kind_of(members: &[Member<'_>]) -> String {
    text(members, "event_type")
}

/// Takes a stream apart.
pub(super) fn take_apart(source: &str) -> Result<StepEvents<'_>, SurfaceError> {
    let mut events = StepEvents::default();
    let mut is_answer = false;
    for (event, span) in sse::objects(source) {
        let root = Node::parse_at(source, span).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let kind = kind_of(&members);
        is_answer |= events.take(&kind, &members);
        let index = member(&members, "index").and_then(|node| Some((node.value()?, node)));
        let delta = member(&members, "delta").map(|delta| text(&delta.members(), "type")).unwrap_or_default();
        events.frames.push(StepFrame { span: event.span, kind, index, delta });
    }
    if is_answer { Ok(events) } else { Err(unreadable(EXPECTED, "no event has an `event_type` of this API")) }
}

impl<'a> StepEvents<'a> {
    /// Takes in one event; says whether it is one of this API.
    fn take(&mut self, kind: &str, members: &[Member<'a>]) -> bool {
        let index = number(members, "index").unwrap_or_default();
        match kind {
            "interaction.created" | "interaction.completed" => {
                let Some(interaction) = member(members, "interaction") else { return true };
                let inner = interaction.members();
                self.head(&inner);
                self.ended = (kind == "interaction.completed").then_some(interaction);
            }
            "interaction.status_update" => self.head(members),
            "step.start" => {
                if let Some(step) = member(members, "step") {
                    self.tracks.insert(index, StepTrack::new(step));
                }
            }
            "step.delta" => {
                let delta = member(members, "delta").map(|delta| delta.members()).unwrap_or_default();
                if let Some(track) = self.tracks.get_mut(&index) {
                    track.take(&delta);
                }
            }
            "step.stop" | "error" => {}
            _ => return false,
        }
        true
    }

    /// What an event says of the interaction besides its steps.
    fn head(&mut self, members: &[Member<'a>]) {
        let Reply { id, model, usage, .. } = reply::head(members);
        for (new, place) in [(id, &mut self.reply.id), (model, &mut self.reply.model)] {
            if !new.is_empty() {
                *place = new;
            }
        }
        self.usage = usage.or(self.usage);
        self.statuses.extend(member(members, "status").and_then(|status| piece(&status)));
    }

    /// The events that name an index.
    pub(super) fn frames_of(&self, index: u64) -> impl Iterator<Item = &StepFrame<'a>> {
        self.frames.iter().filter(move |frame| frame.index.is_some_and(|(own, _)| own == index))
    }

    /// The blocks, in order.
    pub(super) fn blocks(&self) -> Vec<Block> {
        self.tracks.values().map(StepTrack::block).collect()
    }

    /// The steps, in order, as a whole reply has them.
    pub(super) fn whole_steps(&self) -> Vec<String> {
        self.tracks.values().map(StepTrack::whole).collect()
    }
}

impl<'a> StepTrack<'a> {
    fn new(step: Node<'a>) -> Self {
        // A step may start with text already said.
        let text_of = |content: &Node<'a>| content.get("text").and_then(|node| piece(&node));
        let said = if step::kind(&step) == StepKind::Model { step::contents(&step) } else { Vec::new() };
        let pieces = said.iter().filter_map(text_of).filter(|piece| !piece.text.is_empty()).collect();
        Self { step, pieces, signature: String::new() }
    }

    fn take(&mut self, delta: &[Member<'a>]) {
        let (key, place) = match (text(delta, "type").as_str(), step::kind(&self.step)) {
            ("text", StepKind::Model) => ("text", &mut self.pieces),
            ("arguments_delta", StepKind::Call) => ("arguments", &mut self.pieces),
            ("thought_signature", _) => {
                self.signature.push_str(&text(delta, "signature"));
                return;
            }
            _ => return,
        };
        place.extend(member(delta, key).and_then(|node| piece(&node)));
    }

    fn block(&self) -> Block {
        match step::kind(&self.step) {
            StepKind::Model if !self.pieces.is_empty() => Block::Text(joined(&self.pieces)),
            StepKind::Call => {
                let call = step::call(&self.step);
                let said = joined(&self.pieces);
                // A call without arguments sends no piece of them.
                let arguments = if said.is_empty() { call.arguments } else { said };
                Block::Call(ToolCall { arguments, ..call })
            }
            _ => Block::Other(text(&self.step.members(), "type")),
        }
    }

    fn whole(&self) -> String {
        match self.block() {
            Block::Text(text) => step::output(Role::Assistant, &text).to_string(),
            Block::Call(call) => step::function_call(&call).to_string(),
            Block::Other(kind) if kind == "thought" && !self.signature.is_empty() => {
                serde_json::json!({"type": kind, "signature": self.signature}).to_string()
            }
            Block::Result { .. } | Block::Other(_) => self.step.raw().to_owned(),
        }
    }
}

/// Token counts without the rest: the last that events say.
pub(super) fn usage_of(body: &[u8], streamed: bool) -> Option<Usage> {
    let counted = |root: &Node<'_>| {
        let inner = root.get("interaction");
        [Some(*root), inner].into_iter().flatten().find_map(|holder| reply::usage(&holder.get("usage")?))
    };
    if !streamed {
        return counted(&Node::parse(body).ok()?);
    }
    sse::events(body).iter().rev().find_map(|event| counted(&Node::parse(body.get(event.data.first()?.clone())?).ok()?))
}
