//! A reply: its chunks taken apart, and the view of what they say together.
//!
//! A reply comes whole as one chunk, streamed as events that hold one each, and streamed without `alt=sse` as a list of chunks.

use std::collections::BTreeMap;

use super::{
    part,
    partial::PartialArguments,
    spelling::{listed, named, present},
};
use crate::{
    surface::{
        Answer, Reply, Role, SurfaceError, ToolCall,
        blocks::{self, Block},
        fields::{self, number, string, unreadable},
        pieces::{Piece, joined, piece},
        splice::{Member, Node, member},
        sse,
    },
    trajectory::Usage,
};

/// What a whole reply is called.
pub(super) const EXPECTED: &str = "a reply of generateContent";
/// Members of which each chunk of a reply has one.
pub(super) const ANSWERS: &[&str] = &["candidates", "promptFeedback", "usageMetadata", "modelVersion"];

/// All that the chunks say of one part of a candidate.
#[derive(Debug)]
pub(super) struct PartTrack {
    /// As it was read first.
    pub(super) block: Block,
    /// The pieces of its text.
    pub(super) pieces: Vec<Piece>,
    /// Where its first part stands.
    pub(super) at: usize,
    /// What it calls, where that comes in pieces.
    pub(super) partial: Option<PartialArguments>,
}

/// A candidate within one chunk.
#[derive(Debug)]
pub(super) struct CandidateChunk<'a> {
    /// The candidate.
    pub(super) node: Node<'a>,
    /// For each of its parts, the track that it belongs to; in a stream an empty text beside no other is of none.
    pub(super) tracks: Vec<Option<usize>>,
}

/// All that the chunks say of one candidate.
#[derive(Debug, Default)]
pub(super) struct CandidateTrack<'a> {
    /// Its parts, over all chunks.
    pub(super) parts: Vec<PartTrack>,
    /// Where it stands.
    pub(super) chunks: Vec<CandidateChunk<'a>>,
    /// Why it stopped, and where it last says so.
    pub(super) finish: Option<Piece>,
}

/// The chunks of a reply, taken apart.
#[derive(Debug, Default)]
pub(super) struct ReplyChunks<'a> {
    /// Candidates by index.
    pub(super) candidates: BTreeMap<u32, CandidateTrack<'a>>,
    reply: Reply,
    /// Why the prompt was blocked.
    blocked: Option<String>,
}

/// The chunks of a body, in order. `source` has the data of events on single lines.
pub(super) fn chunks(source: &str, is_stream: bool) -> Result<Vec<Node<'_>>, SurfaceError> {
    if is_stream {
        let parsed = sse::objects(source).map(|(_, span)| Node::parse_at(source, span));
        return parsed.collect::<Result<_, _>>().map_err(|detail| unreadable(EXPECTED, detail));
    }
    Ok(listed(&Node::parse(source.as_bytes()).map_err(|detail| unreadable(EXPECTED, detail))?))
}

/// Takes a reply apart.
pub(super) fn take_apart(source: &str, is_stream: bool) -> Result<ReplyChunks<'_>, SurfaceError> {
    let mut taken = ReplyChunks::default();
    let mut is_answer = false;
    let chunks = chunks(source, is_stream)?;
    let is_stream = is_stream || source.trim_start().starts_with('[');
    for chunk in chunks {
        let members = chunk.members();
        if ANSWERS.iter().any(|key| named(&members, key).is_some()) {
            is_answer = true;
            taken.take(&members, is_stream);
        }
    }
    if is_answer { Ok(taken) } else { Err(unreadable(EXPECTED, "nothing in it is a candidate of this API")) }
}

/// Reads a reply.
pub(super) fn read(body: &[u8], is_stream: bool) -> Result<Reply, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let source = if is_stream { sse::single_lines(source) } else { source.into() };
    Ok(take_apart(&source, is_stream)?.view())
}

impl<'a> ReplyChunks<'a> {
    fn take(&mut self, members: &[Member<'a>], is_stream: bool) {
        for (key, place) in [("modelVersion", &mut self.reply.model), ("responseId", &mut self.reply.id)] {
            if let Some(said) = named(members, key).and_then(|node| node.string()) {
                *place = said.into_owned();
            }
        }
        if let Some(usage) = named(members, "usageMetadata").and_then(|node| usage(&node)) {
            self.reply.usage = Some(usage);
        }
        if let Some(feedback) = present(members, "promptFeedback") {
            let reason = named(&feedback.members(), "blockReason").and_then(|reason| reason.string());
            self.blocked = reason.map(std::borrow::Cow::into_owned).or(self.blocked.take());
        }
        for candidate in member(members, "candidates").map(|list| list.elements()).unwrap_or_default() {
            let index = number(&candidate.members(), "index").and_then(|index| u32::try_from(index).ok());
            self.candidates.entry(index.unwrap_or_default()).or_default().take(candidate, is_stream);
        }
    }

    /// What they say together.
    fn view(self) -> Reply {
        let answer = |(index, track): (&u32, &CandidateTrack<'_>)| {
            let message = blocks::message(Role::Assistant, track.blocks().iter(), 0);
            let has_calls = !message.tool_calls.is_empty();
            let finish = track.finish.as_ref().map(|reason| part::finish(&reason.text, has_calls).to_owned());
            Answer { index: *index, message, finish_reason: finish }
        };
        let mut answers: Vec<Answer> = self.candidates.iter().map(answer).collect();
        if let (true, Some(_)) = (answers.is_empty(), &self.blocked) {
            // A blocked prompt has no candidate: the one that was asked for is filtered.
            let message = blocks::message(Role::Assistant, std::iter::empty(), 0);
            answers.push(Answer { index: 0, message, finish_reason: Some(Answer::FILTERED.to_owned()) });
        }
        Reply { answers, ..self.reply }
    }
}

impl<'a> CandidateTrack<'a> {
    /// Takes in what one chunk says of it. A text that a chunk begins with goes on with the one that the last ended with.
    fn take(&mut self, candidate: Node<'a>, is_stream: bool) {
        let members = candidate.members();
        if let Some(reason) = named(&members, "finishReason").and_then(|node| piece(&node)) {
            self.finish = Some(reason);
        }
        let parts = member(&members, "content").and_then(|content| content.get("parts"));
        let mut tracks = Vec::new();
        for (at, node) in parts.map(|parts| listed(&parts)).unwrap_or_default().into_iter().enumerate() {
            let block = part::read(&node);
            let call = present(&node.members(), "functionCall");
            let last = self.parts.last_mut().filter(|last| last.goes_on_with(&block, at == 0, call.as_ref()));
            let said =
                matches!(block, Block::Text(_)).then(|| node.get("text")).flatten().and_then(|text| piece(&text));
            match last {
                Some(last) => {
                    last.pieces.extend(said);
                    if let (Some(partial), Some(call)) = (&mut last.partial, &call) {
                        partial.take(call);
                    }
                }
                None if is_stream && block == Block::Text(String::new()) => {
                    tracks.push(None);
                    continue;
                }
                None => {
                    let partial = call.and_then(|call| PartialArguments::begun(&call));
                    let (pieces, at) = (said.into_iter().collect(), node.span().start);
                    self.parts.push(PartTrack { block, pieces, at, partial });
                }
            }
            tracks.push(Some(self.parts.len() - 1));
        }
        self.chunks.push(CandidateChunk { node: candidate, tracks });
    }

    /// Its parts, over all chunks.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let block = |track: &PartTrack| match (&track.block, &track.partial) {
            (Block::Text(_), _) => Block::Text(joined(&track.pieces)),
            (Block::Call(call), Some(partial)) => Block::Call(ToolCall { arguments: partial.json(), ..call.clone() }),
            (other, _) => other.clone(),
        };
        self.parts.iter().map(block).collect()
    }
}

impl PartTrack {
    /// `is_first`: whether the next part is the first of its chunk. `call`: what it calls.
    fn goes_on_with(&self, next: &Block, is_first: bool, call: Option<&Node<'_>>) -> bool {
        match (&self.block, next) {
            (Block::Text(_), Block::Text(_)) => is_first,
            (Block::Other(kind), Block::Other(next)) => is_first && kind == "thought" && next == "thought",
            _ => self.partial.as_ref().zip(call).is_some_and(|(partial, call)| partial.goes_on_with(call)),
        }
    }
}

/// Token counts. What was thought was answered, and what tools put into the prompt was asked.
fn usage(node: &Node<'_>) -> Option<Usage> {
    let members = node.members();
    let sum = |keys: [&str; 2]| {
        let counts: Vec<u64> = keys.iter().filter_map(|key| named(&members, key)?.value()).collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<u64>())
    };
    let input = sum(["promptTokenCount", "toolUsePromptTokenCount"]);
    let output = sum(["candidatesTokenCount", "thoughtsTokenCount"]);
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// Token counts without the rest: the last that the chunks say.
pub(super) fn usage_of(body: &[u8], is_stream: bool) -> Option<Usage> {
    let counted = |json: &Node<'_>| usage(&named(&json.members(), "usageMetadata")?);
    if !is_stream {
        return listed(&Node::parse(body).ok()?).iter().rev().find_map(counted);
    }
    fields::last_counted(body, is_stream, counted)
}

/// The role that a content names.
pub(super) fn role(name: &str) -> Role {
    match name {
        "model" => Role::Assistant,
        "function" | "tool" => Role::Tool,
        "system" => Role::System,
        _ => Role::User,
    }
}

/// The role of a content.
pub(super) fn role_of(content: &[Member<'_>]) -> Role {
    string(content, "role").map_or(Role::User, |name| role(&name))
}
