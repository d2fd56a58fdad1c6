//! One step as the page shows it: what is new in its request, its reply, its tools, what an injection changed in it and
//! where those words went.

use std::collections::HashMap;

use base64::Engine;
use serde_json::{Value, json};

use super::{
    change::{self, ChangePair, Pieces},
    data,
    fresh::{self, SeenMessages},
    opened::OpenedRun,
    step_view::{StepView, TextBlock},
};
use crate::{
    replay::QuotedWords,
    trajectory::{Step, StepIndex},
};

/// A text or body of more bytes is shown by its beginning; the whole is a download.
const LONG: usize = 256 << 10;
/// How much of a long one is shown, in bytes.
const SHOWN: usize = 64 << 10;
/// Later steps that are searched for a step's words.
const LATER: usize = 500;
/// Quotations by which a text is known again.
const QUOTATIONS: usize = 64;

/// A step, read.
pub(super) fn step(opened: &OpenedRun, number: StepIndex) -> Option<Value> {
    let step = opened.step(number)?;
    let told = StepView::new(&step);
    let before = fresh::before(opened.steps(), &step).and_then(|(at, _)| opened.at(at));
    let request = fresh::fresh(told.request(&step.request), before.as_ref());
    let tools = told.conversation(&step.request).map(|asked| asked.tools).unwrap_or_default();
    let tools = tools
        .into_iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}));
    let more = json!({
        "known_by": step.attribution.evidence,
        "since": fresh::since(&request, before.as_ref()),
        "request": request.iter().map(seen_of).collect::<Vec<_>>(),
        "request_bytes": step.request.len(),
        "edited_request": step.request_sent.is_some(),
        "attempts": attempts(opened, &step),
        "tools": tools.collect::<Vec<_>>(),
        "changes": changes(&step),
        "quoted": quoted(opened, &step),
    });
    Some(data::with(data::step_facts(&step), more))
}

fn seen_of(seen: &SeenMessages) -> Value {
    let mut value = block_of(&seen.block);
    if let Some(object) = value.as_object_mut() {
        object.insert("known".to_owned(), seen.known.into());
    }
    value
}

/// A block; of a long text its beginning, and how long it is.
fn block_of(block: &TextBlock) -> Value {
    let whole = block.text.len();
    if whole <= LONG {
        return json!({"who": block.who, "text": block.text});
    }
    json!({"who": block.who, "text": beginning(&block.text), "bytes": whole})
}

/// The beginning of a long text, up to a whole character.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default()
}

fn attempts(opened: &OpenedRun, step: &Step) -> Vec<Value> {
    let told = StepView::new(step);
    let details: HashMap<u32, _> = opened
        .recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.step == step.step)
        .map(|exchange| (exchange.attempt, exchange))
        .collect();
    let attempt = |attempt: &crate::trajectory::Attempt| {
        let detail = details.get(&attempt.attempt);
        let more = json!({
            "edited": attempt.reply_delivered.is_some(),
            "bytes": attempt.delivered().len(),
            "events": detail.map_or(0, |detail| detail.frames.len()),
            "finish_reason": detail.and_then(|detail| detail.finish_reason.clone()),
            "request_headers": detail.map(|detail| &detail.request_headers),
            "reply_headers": detail.map(|detail| &detail.reply_headers),
            "reply": told.reply(attempt.delivered(), attempt.streamed).iter().map(block_of).collect::<Vec<_>>(),
        });
        data::with(data::attempt_facts(attempt, opened.origins().of_attempt(step, attempt)), more)
    };
    step.attempts.iter().map(attempt).collect()
}

/// What injections changed, for the eye.
fn changes(step: &Step) -> Vec<Value> {
    let changed = change::changes(step);
    let side = |changed: change::ShownChange| {
        let planted = step.injected.iter().filter(|error| data::word(&error.side) == changed.side);
        json!({"side": changed.side, "planted": planted.collect::<Vec<_>>(), "pairs": pairs(&changed)})
    };
    changed.into_iter().map(side).collect()
}

/// What became of the blocks of one side, for the eye.
pub(super) fn pairs(changed: &change::ShownChange) -> Vec<Value> {
    let pair = |pair: ChangePair| match pair {
        ChangePair::Equal(count) => json!({"equal": count}),
        ChangePair::Edited(old, new) => {
            let pieces = if old.text.len().max(new.text.len()) > LONG {
                Pieces::Apart { old: beginning(&old.text).to_owned(), new: beginning(&new.text).to_owned() }
            } else {
                change::pieces(&old.text, &new.text)
            };
            json!({"was": old.who, "who": new.who, "pieces": pieces})
        }
        ChangePair::Gone(old) => json!({"gone": block_of(&old)}),
        ChangePair::Came(new) => json!({"came": block_of(&new)}),
    };
    change::side_by_side(&changed.before, &changed.after).into_iter().map(pair).collect()
}

/// Later steps whose request tells this step's reply again; where an injection changed the reply, those that tell what
/// is new in it. A request that was changed is told again by nobody but its reply.
fn quoted(opened: &OpenedRun, step: &Step) -> Value {
    let texts = |blocks: Vec<TextBlock>| blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n");
    let told = StepView::new(step);
    let said = texts(told.answered());
    let original = step.last_attempt().filter(|attempt| attempt.reply_delivered.is_some());
    let original = original.map(|attempt| texts(told.reply(&attempt.reply, attempt.streamed)));
    let words = QuotedWords::new_in(&said, original.as_deref()).at_most(QUOTATIONS);
    let later = opened.steps().iter().enumerate().filter(|(_, later)| later.step > step.step);
    let left = later.clone().count().saturating_sub(LATER);
    let found = later.take(LATER).filter_map(|(at, _)| {
        if words.count() == 0 {
            return None;
        }
        let later = opened.at(at)?;
        let count = words.quoted_in(&texts(StepView::new(&later).request(&later.request)));
        (count > 0).then(|| json!({"step": later.step, "whole": count == words.count()}))
    });
    json!({"words": if original.is_some() { "new" } else { "all" }, "steps": found.collect::<Vec<_>>(), "unread": left})
}

/// Bodies of a step that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepBody {
    /// The request as the agent sent it.
    Request,
    /// The request as an injection changed it.
    Sent,
    /// The reply of an attempt, as the upstream sent it.
    Reply(u32),
    /// The reply of an attempt, as an injection changed it.
    Delivered(u32),
}

impl StepBody {
    /// From the parts of an address: `request`, `sent`, `reply/0`, `delivered/0`.
    pub(super) fn parse(which: &str, attempt: Option<&str>) -> Option<Self> {
        match (which, attempt) {
            ("request", None) => Some(StepBody::Request),
            ("sent", None) => Some(StepBody::Sent),
            ("reply", Some(attempt)) => attempt.parse().ok().map(StepBody::Reply),
            ("delivered", Some(attempt)) => attempt.parse().ok().map(StepBody::Delivered),
            _ => None,
        }
    }

    /// Its part of an address.
    pub(super) fn path(self) -> String {
        match self {
            StepBody::Request => "request".to_owned(),
            StepBody::Sent => "sent".to_owned(),
            StepBody::Reply(number) => format!("reply/{number}"),
            StepBody::Delivered(number) => format!("delivered/{number}"),
        }
    }

    /// Its bytes in a step; `None` where it has none.
    pub(super) fn bytes(self, step: &Step) -> Option<bytes::Bytes> {
        let attempt = |number| step.attempts.iter().find(|attempt| attempt.attempt == number);
        match self {
            StepBody::Request => Some(step.request.clone()),
            StepBody::Sent => step.request_sent.clone(),
            StepBody::Reply(number) => attempt(number).map(|attempt| attempt.reply.clone()),
            StepBody::Delivered(number) => attempt(number).and_then(|attempt| attempt.reply_delivered.clone()),
        }
    }
}

/// The bytes of a body, for the eye; of a long one its beginning.
pub(super) fn raw(bytes: &[u8]) -> Value {
    let shown = if bytes.len() > LONG { bytes.get(..SHOWN).unwrap_or_default() } else { bytes };
    match std::str::from_utf8(shown) {
        Ok(text) => json!({"bytes": bytes.len(), "shown": shown.len(), "text": text}),
        // A cut may have gone through the last character.
        Err(error) if error.error_len().is_none() && shown.len() < bytes.len() => {
            let text = shown.get(..error.valid_up_to()).and_then(|text| std::str::from_utf8(text).ok());
            json!({"bytes": bytes.len(), "shown": error.valid_up_to(), "text": text})
        }
        Err(_) => {
            let text = base64::engine::general_purpose::STANDARD.encode(shown);
            json!({"bytes": bytes.len(), "shown": shown.len(), "base64": text})
        }
    }
}
