//! A streamed reply: what its events are called, and how its end is edited.

use bytes::Bytes;

use super::{
    reply,
    step::{self, StepKind},
};
use crate::{
    surface::{
        Reply, Role, SurfaceError,
        blocks::{self, Block},
        fields::{self, text},
        pieces::piece,
        splice::{Member, Node, Splices, encode_string, member},
        sse,
        typed_events::{EventForm, EventHead, PieceForm, TypedEvents, edit},
    },
    trajectory::Usage,
};

/// The events of an interaction.
pub(super) const EVENTS: &EventForm = &EventForm {
    expected: "a stream of an interaction",
    kind: "event_type",
    start: "step.start",
    block: "step",
    delta: "step.delta",
    stop: "step.stop",
    others: &["interaction.created", "interaction.completed", "interaction.status_update", "error"],
    ends: &["interaction.status_update", "interaction.completed"],
    text: PieceForm { kind: "text", key: "text", block: "model_output", members: &["annotations", "text", "type"] },
    arguments: PieceForm {
        kind: "arguments_delta",
        key: "arguments",
        block: "function_call",
        members: &["annotations", "arguments", "type"],
    },
    input: "arguments",
    note: "text_annotation_delta",
    empty_text: r#"{"type":"model_output"}"#,
    read: |step, has_pieces| match step::kind(step) {
        StepKind::Model if has_pieces => Block::Text(String::new()),
        StepKind::Call => Block::Call(step::call(step)),
        _ => Block::Other(text(&step.members(), "type")),
    },
    texts: |step| {
        let contents = if step::kind(step) == StepKind::Model { step::contents(step) } else { Vec::new() };
        contents.iter().filter_map(|content| content.get("text")).collect()
    },
    head,
    finish: step::finish,
    made: step::new_step,
};

/// Takes in an event that is about no step.
fn head<'a>(head: &mut EventHead<'a>, kind: &str, members: &[Member<'a>]) {
    let (created, completed) = ("interaction.created", "interaction.completed");
    let interaction = member(members, "interaction").filter(|_| [created, completed].contains(&kind));
    let inner = interaction.map(|interaction| interaction.members());
    if kind == completed && interaction.is_some() {
        head.ended = interaction;
    }
    let Some(members) = inner.as_deref().or_else(|| (kind == "interaction.status_update").then_some(members)) else {
        return;
    };
    let Reply { id, model, usage, .. } = reply::head(members);
    for (new, place) in [(id, &mut head.reply.id), (model, &mut head.reply.model)] {
        if !new.is_empty() {
            *place = new;
        }
    }
    head.reply.usage = usage.or(head.reply.usage);
    head.finishes.extend(member(members, "status").and_then(|status| piece(&status)));
}

/// Splices the edited view into the events of an interaction.
pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = sse::single_lines(fields::source(body, EVENTS.expected)?);
    let events = EVENTS.take_apart(&source)?;
    let (old, new) = before.only_answers(after)?;
    let changes = blocks::compare(&events.blocks(), old, new);
    reply::has_status(&changes)?;
    let mut splices = Splices::default();
    edit::write(&events, &changes, &mut splices);
    let ended = events.head.ended.map(|ended| ended.span()).unwrap_or_default();
    if let (Some(finish), Some(last)) = (&changes.finish, events.head.finishes.last()) {
        // Wherever the last status stands, but in the interaction that ends the stream.
        let same = events.head.finishes.iter().filter(|status| status.text == last.text);
        for status in same.filter(|status| !ended.contains(&status.span.start)) {
            splices.replace(status.span.clone(), encode_string(step::status(finish)));
        }
    }
    if let Some(ended) = &events.head.ended {
        let members = ended.members();
        if reply::steps(&members).is_some() {
            reply::edit(&source, ended, old, new, &mut splices)?;
        } else {
            reply::edit_end(&members, &changes, new, &mut splices);
        }
    }
    Ok(splices.apply(body))
}

/// The steps of a stream, in order, as a whole reply has them.
pub(super) fn whole_steps(events: &TypedEvents<'_>) -> Vec<String> {
    let steps = events.tracks.iter().zip(events.blocks());
    let whole = steps.map(|((number, track), block)| match block {
        Block::Text(text) => step::output(Role::Assistant, &text).to_string(),
        Block::Call(call) => step::function_call(&call).to_string(),
        Block::Other(kind) if kind == "thought" => {
            let deltas = events.frames_of(*number).filter_map(|frame| frame.delta);
            let signature: String = deltas.map(|delta| text(&delta.members(), "signature")).collect();
            if signature.is_empty() {
                return track.start.raw().to_owned();
            }
            serde_json::json!({"type": kind, "signature": signature}).to_string()
        }
        Block::Result { .. } | Block::Other(_) => track.start.raw().to_owned(),
    });
    whole.collect()
}

/// Token counts without the rest: the last that events say.
pub(super) fn usage_of(body: &[u8], streamed: bool) -> Option<Usage> {
    let counted = |root: &Node<'_>| {
        let inner = root.get("interaction");
        [Some(*root), inner].into_iter().flatten().find_map(|holder| reply::usage(&holder.get("usage")?))
    };
    fields::last_counted(body, streamed, counted)
}
