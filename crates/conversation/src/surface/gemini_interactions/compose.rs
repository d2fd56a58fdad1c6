//! Replies and errors of our own.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{step, stream::EVENTS};
use crate::{
    surface::{Answer, ErrorBody, Reply, blocks, splice::encode_string},
    trajectory::Usage,
};

pub(super) fn whole_reply(reply: &Reply, created: u64) -> Bytes {
    let answer = reply.answers.first();
    let steps: Vec<Value> = answer.map(blocks::of_answer).unwrap_or_default().iter().map(step::new_step).collect();
    Bytes::from(interaction(reply, status(answer), Some(steps), reply.usage, created).to_string())
}

/// An interaction while it is made.
pub(super) fn unfinished(reply: &Reply, created: u64, status: &str) -> Bytes {
    Bytes::from(interaction(reply, status, Some(Vec::new()), None, created).to_string())
}

pub(super) fn stream(reply: &Reply, created: u64) -> Vec<Bytes> {
    let answer = reply.answers.first();
    let begun = interaction(reply, "in_progress", None, None, created);
    let mut events = vec![json!({"event_type": "interaction.created", "interaction": begun})];
    let blocks = answer.map(blocks::of_answer).unwrap_or_default();
    events.extend((0..).zip(&blocks).flat_map(|(index, block)| EVENTS.block_events(index, block)));
    let ended = interaction(reply, status(answer), None, reply.usage, created);
    events.push(json!({"event_type": "interaction.completed", "interaction": ended}));
    let frames = events.iter().map(|event| EVENTS.frame(event).into());
    frames.chain([Bytes::from_static(b"event: done\ndata: [DONE]\n\n")]).collect()
}

fn interaction(reply: &Reply, status: &str, steps: Option<Vec<Value>>, usage: Option<Usage>, created: u64) -> Value {
    let serial = reply.id.split_once(['-', '_']).map_or(reply.id.as_str(), |(_, serial)| serial);
    let at = i64::try_from(created).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let at = at.unwrap_or_default().to_string();
    let mut made = json!({
        "id": format!("v1_{serial}"), "object": "interaction", "model": reply.model, "status": status,
        "created": at, "updated": at,
    });
    if let Some(made) = made.as_object_mut() {
        if let Some(steps) = steps {
            made.insert("steps".to_owned(), steps.into());
        }
        if let Some(Usage { input, output }) = usage {
            let counts =
                json!({"total_input_tokens": input, "total_output_tokens": output, "total_tokens": input + output});
            made.insert("usage".to_owned(), counts);
        }
    }
    made
}

fn status(answer: Option<&Answer>) -> &str {
    answer.and_then(|answer| answer.finish_reason.as_deref()).map_or("completed", step::status)
}

/// The code of an error is the word of its status, in small letters.
pub(super) fn error(error: &ErrorBody<'_>) -> Bytes {
    let code = error.kind.to_lowercase();
    Bytes::from(json!({"error": {"code": code, "message": error.message}}).to_string())
}

pub(super) fn error_frame(error: &ErrorBody<'_>) -> Bytes {
    let (code, message) = (encode_string(&error.kind.to_lowercase()), encode_string(error.message));
    let data = format!("{{\"event_type\":\"error\",\"error\":{{\"code\":{code},\"message\":{message}}}}}");
    Bytes::from(format!("event: error\ndata: {data}\n\n"))
}
