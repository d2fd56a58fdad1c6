//! A reply, whole or in frames: reading it, splicing an edited view into it, and replies of our own.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::surface::{
    Answer, Message, Part, Reply, Role, SurfaceError,
    fields::{self, text, unreadable},
    openai_chat,
    pieces::{Piece, joined, piece, spread},
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a completion";
const EXPECTED_STREAM: &str = "a completion stream";

/// Fields beside the text that describe it token by token; they go when the text changes.
const TOKEN_FIELDS: &[&str] = &["logprobs", "token_ids", "prompt_logprobs"];

/// All that is said of one choice.
#[derive(Debug, Default)]
struct TextTrack<'a> {
    pieces: Vec<Piece>,
    finish: Option<Piece>,
    choices: Vec<Node<'a>>,
}

/// A reply, taken apart.
#[derive(Debug, Default)]
struct ParsedReply<'a> {
    reply: Reply,
    tracks: BTreeMap<u32, TextTrack<'a>>,
    seen: bool,
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    take_whole(fields::source(body, EXPECTED)?).map(ParsedReply::reply)
}

pub(super) fn read_stream(body: &[u8]) -> Result<Reply, SurfaceError> {
    take_frames(&sse::single_lines(fields::source(body, EXPECTED_STREAM)?)).map(ParsedReply::reply)
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let said = take_whole(fields::source(body, EXPECTED)?)?;
    said.write(before, after).map(|splices| splices.apply(body))
}

pub(super) fn write_stream(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EXPECTED_STREAM)?);
    let said = take_frames(&source)?;
    said.write(before, after).map(|splices| splices.apply(body))
}

fn take_whole(source: &str) -> Result<ParsedReply<'_>, SurfaceError> {
    let mut said = ParsedReply::default();
    said.take(&Node::parse_at(source, 0..source.len()).map_err(|detail| unreadable(EXPECTED, detail))?);
    if said.seen { Ok(said) } else { Err(unreadable(EXPECTED, "`choices` is missing or is no list")) }
}

fn take_frames(source: &str) -> Result<ParsedReply<'_>, SurfaceError> {
    let mut said = ParsedReply::default();
    for (_, span) in sse::objects(source) {
        said.take(&Node::parse_at(source, span).map_err(|detail| unreadable(EXPECTED_STREAM, detail))?);
    }
    if said.seen { Ok(said) } else { Err(unreadable(EXPECTED_STREAM, "no frame has `choices`")) }
}

impl<'a> ParsedReply<'a> {
    fn take(&mut self, root: &Node<'a>) {
        let members = root.members();
        let Some(choices) = member(&members, "choices").filter(Node::is_array) else { return };
        self.seen = true;
        if self.reply.id.is_empty() {
            self.reply.id = text(&members, "id");
            self.reply.model = text(&members, "model");
        }
        if let Some(usage) = member(&members, "usage").and_then(|node| openai_chat::usage(&node)) {
            self.reply.usage = Some(usage);
        }
        for (position, choice) in choices.elements().into_iter().enumerate() {
            let fields = choice.members();
            let index = member(&fields, "index").and_then(|index| index.value());
            let index = index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX));
            let track = self.tracks.entry(index).or_default();
            track.pieces.extend(member(&fields, "text").and_then(|node| piece(&node)));
            if let Some(finish) = member(&fields, "finish_reason").and_then(|node| piece(&node)) {
                track.finish = Some(finish);
            }
            track.choices.push(choice);
        }
    }

    fn reply(self) -> Reply {
        let answer = |(index, track): (&u32, &TextTrack<'_>)| Answer {
            index: *index,
            message: Message {
                parts: vec![Part::Text(joined(&track.pieces))],
                origin: Some(0),
                ..Message::text_of(Role::Assistant, String::new())
            },
            finish_reason: track.finish.as_ref().map(|finish| finish.text.clone()),
        };
        Reply { answers: self.tracks.iter().map(answer).collect(), ..self.reply }
    }

    fn write(&self, before: &Reply, after: &Reply) -> Result<Splices, SurfaceError> {
        let mut splices = Splices::default();
        for (old, new) in before.answers.iter().zip(&after.answers) {
            let Some(track) = self.tracks.get(&old.index).filter(|_| old != new) else { continue };
            if !new.message.tool_calls.is_empty() {
                return Err(SurfaceError::NoPlace("a completion makes no tool calls".to_owned()));
            }
            if old.message.text() != new.message.text() {
                if track.pieces.is_empty() {
                    return Err(SurfaceError::NoPlace("the choice has no `text`".to_owned()));
                }
                spread(&track.pieces, &new.message.text(), &mut splices);
                for choice in &track.choices {
                    openai_chat::drop_fields(&choice.members(), TOKEN_FIELDS, &mut splices);
                }
            }
            if let (true, Some(place), Some(reason)) =
                (old.finish_reason != new.finish_reason, &track.finish, &new.finish_reason)
            {
                splices.replace(place.span.clone(), encode_string(reason));
            }
        }
        Ok(splices)
    }
}

pub(super) fn compose(reply: &Reply, created: u64) -> Bytes {
    let choice = |answer: &Answer| json!({"text": answer.message.text(), "index": answer.index, "logprobs": null, "finish_reason": finish(answer)});
    let choices: Value = reply.answers.iter().map(choice).collect();
    Bytes::from(object(reply, created, &choices, Some(openai_chat::usage_object(reply))).to_string())
}

pub(super) fn compose_stream(reply: &Reply, created: u64, with_usage: bool) -> Vec<Bytes> {
    let frame = |choices: Value, usage: Value| {
        Bytes::from(format!("data: {}\n\n", object(reply, created, &choices, with_usage.then_some(usage))))
    };
    let mut frames = Vec::new();
    for answer in &reply.answers {
        let text = answer.message.text();
        let pieces = fields::words(&text).map(|piece| (piece, None)).chain([("", finish(answer))]);
        for (piece, finish) in pieces {
            let choice = json!({"text": piece, "index": answer.index, "logprobs": null, "finish_reason": finish});
            frames.push(frame(json!([choice]), Value::Null));
        }
    }
    if with_usage {
        frames.push(frame(json!([]), openai_chat::usage_object(reply)));
    }
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    frames
}

/// Why an answer ended; it cannot wait for tools.
fn finish(answer: &Answer) -> Option<&str> {
    answer.finish_reason.as_deref().map(|reason| if reason == Answer::CALLS { Answer::STOPPED } else { reason })
}

fn object(reply: &Reply, created: u64, choices: &Value, usage: Option<Value>) -> Value {
    let serial = reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial);
    let mut object = json!({
        "id": format!("cmpl-{serial}"), "object": "text_completion", "created": created, "model": reply.model,
        "choices": choices,
    });
    if let (Some(usage), Some(members)) = (usage, object.as_object_mut()) {
        members.insert("usage".to_owned(), usage);
    }
    object
}
