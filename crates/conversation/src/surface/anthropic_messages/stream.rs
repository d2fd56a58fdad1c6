//! A streamed reply: what its events are called, and how its end is edited.

use bytes::Bytes;

use super::{
    block::{self, MessageBlocks},
    changes, reply,
};
use crate::surface::{
    Reply, SurfaceError,
    blocks::{self, edit::BlockForm as _},
    fields,
    pieces::piece,
    splice::{Member, Node, Splices, member},
    sse,
    typed_events::{EventForm, EventHead, PieceForm, edit},
};

/// The events of a message.
pub(super) const EVENTS: &EventForm = &EventForm {
    expected: "a message stream",
    kind: "type",
    start: "content_block_start",
    block: "content_block",
    delta: "content_block_delta",
    stop: "content_block_stop",
    others: &["message_start", "message_delta", "message_stop", "ping", "error"],
    ends: &["message_delta", "message_stop"],
    text: PieceForm { kind: "text_delta", key: "text", block: "text", members: &["text", "type"] },
    arguments: PieceForm {
        kind: "input_json_delta",
        key: "partial_json",
        block: "tool_use",
        members: &["partial_json", "type"],
    },
    input: "input",
    note: "citations_delta",
    empty_text: r#"{"type":"text","text":""}"#,
    read: |block, _| block::read(block),
    texts: |block| block.get("text").into_iter().collect(),
    head,
    finish: |reason| Some(block::finish(reason)),
    made: |block| MessageBlocks.new_block(block),
};

/// Takes in an event that is about no block.
fn head<'a>(head: &mut EventHead<'a>, kind: &str, members: &[Member<'a>]) {
    match kind {
        "message_start" => {
            if let Some(message) = member(members, "message") {
                head.reply = reply::head(&message.members());
            }
        }
        "message_delta" => {
            let reason = member(members, "delta").and_then(|delta| delta.get("stop_reason"));
            head.finishes.extend(reason.and_then(|node| piece(&node)));
            if let Some(usage) = member(members, "usage").and_then(|node| reply::usage(&node)) {
                head.reply.usage = Some(reply::later(head.reply.usage, usage));
            }
        }
        _ => {}
    }
}

/// Splices the edited view into the events of a message.
pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EVENTS.expected)?);
    let events = EVENTS.take_apart(&source)?;
    let (old, new) = before.only_answers(after)?;
    let changes = blocks::compare(&events.blocks(), old, new);
    let mut splices = Splices::default();
    edit::write(&events, &changes, &mut splices);
    let mut ends = events.frames.iter().filter(|frame| frame.kind == "message_delta").filter_map(|frame| frame.delta);
    let last = ends.rfind(|delta: &Node<'_>| delta.get("stop_reason").is_some());
    if let (Some(reason), Some(delta)) = (&changes.finish, last) {
        changes::edit_stop(&delta, reason, &mut splices);
    }
    Ok(splices.apply(body))
}
