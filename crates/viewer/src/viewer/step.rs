//! One step as the page shows it: what is new in its request, its reply, its tools, what an injection changed in it and
//! where those words went.

use std::collections::HashMap;

use base64::Engine;
use serde_json::Value;

use super::{
    change::{self, ChangePair, Pieces},
    data, fresh,
    opened::OpenedRun,
    page_data::{
        PageAttempt, PageBlock, PageChange, PagePair, PageStep, PageTool, PlantedError, QuotedStep, QuotedSteps,
        StoredBody,
    },
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
    let tools = tools.into_iter().map(|tool| PageTool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    });
    Some(data::as_value(&PageStep {
        facts: data::facts_of_step(&step),
        known_by: &step.attribution.evidence,
        since: fresh::since(&request, before.as_ref()),
        request: request
            .into_iter()
            .map(|seen| PageBlock { known: Some(seen.known), ..PageBlock::new(seen.block) })
            .collect(),
        request_bytes: step.request.len(),
        edited_request: step.request_sent.is_some(),
        attempts: attempts(opened, &step),
        tools: tools.collect(),
        changes: changes(&step),
        quoted: quoted(opened, &step),
    }))
}

impl PageBlock {
    /// A block; of a long text its beginning, and how long it is.
    pub(super) fn new(block: TextBlock) -> Self {
        let whole = block.text.len();
        if whole <= LONG {
            return Self { block, bytes: None, known: None };
        }
        let block = TextBlock { text: beginning(&block.text).to_owned(), ..block };
        Self { block, bytes: Some(whole), known: None }
    }
}

/// The beginning of a long text, up to a whole character.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default()
}

fn attempts<'a>(opened: &'a OpenedRun, step: &'a Step) -> Vec<PageAttempt<'a>> {
    let told = StepView::new(step);
    let details: HashMap<u32, _> = opened
        .recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.step == step.step)
        .map(|exchange| (exchange.attempt, exchange))
        .collect();
    let attempt = |attempt: &'a crate::trajectory::Attempt| {
        let detail = details.get(&attempt.attempt);
        PageAttempt {
            facts: data::facts_of_attempt(attempt, opened.origins().of_attempt(step, attempt)),
            edited: attempt.reply_delivered.is_some(),
            bytes: attempt.delivered().len(),
            events: detail.map_or(0, |detail| detail.frames.len()),
            finish_reason: detail.and_then(|detail| detail.finish_reason.as_ref()),
            request_headers: detail.map(|detail| &detail.request_headers),
            reply_headers: detail.map(|detail| &detail.reply_headers),
            reply: told.received(attempt).into_iter().map(PageBlock::new).collect(),
        }
    };
    step.attempts.iter().map(attempt).collect()
}

/// What injections changed, for the eye.
fn changes(step: &Step) -> Vec<PageChange<'_>> {
    let side = |changed: change::ShownChange| {
        let planted = step.injected.iter().filter(|error| data::word(&error.side) == changed.side);
        PageChange {
            side: changed.side.to_owned(),
            planted: planted.map(PlantedError::Recorded).collect(),
            pairs: pairs(&changed.before, &changed.after),
        }
    };
    change::changes(step).into_iter().map(side).collect()
}

/// What became of the blocks of one side, for the eye.
pub(super) fn pairs(before: &[TextBlock], after: &[TextBlock]) -> Vec<PagePair> {
    let pair = |pair: ChangePair| match pair {
        ChangePair::Equal(equal) => PagePair::Equal { equal },
        ChangePair::Edited(old, new) => {
            let pieces = if old.text.len().max(new.text.len()) > LONG {
                Pieces::Apart { old: beginning(&old.text).to_owned(), new: beginning(&new.text).to_owned() }
            } else {
                change::pieces(&old.text, &new.text)
            };
            PagePair::Edited { was: old.who, who: new.who, pieces }
        }
        ChangePair::Gone(old) => PagePair::Gone { gone: PageBlock::new(old) },
        ChangePair::CaseResult(new) => PagePair::CaseResult { came: PageBlock::new(new) },
    };
    change::side_by_side(before, after).into_iter().map(pair).collect()
}

/// Later steps whose request tells this step's reply again; where an injection changed the reply, those that tell what
/// is new in it. A request that was changed is told again by nobody but its reply.
fn quoted(opened: &OpenedRun, step: &Step) -> QuotedSteps {
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
        (count > 0).then(|| QuotedStep { step: later.step, whole: count == words.count() })
    });
    let steps = found.collect();
    QuotedSteps { words: if original.is_some() { "new" } else { "all" }, steps, unread: left }
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
    let body = |shown, text, base64| StoredBody { bytes: bytes.len(), shown, text, base64 };
    let body = match std::str::from_utf8(shown) {
        Ok(text) => body(shown.len(), Some(text.to_owned()), None),
        // A cut may have gone through the last character.
        Err(error) if error.error_len().is_none() && shown.len() < bytes.len() => {
            let whole = shown.get(..error.valid_up_to()).unwrap_or_default();
            body(whole.len(), Some(String::from_utf8_lossy(whole).into_owned()), None)
        }
        Err(_) => body(shown.len(), None, Some(base64::engine::general_purpose::STANDARD.encode(shown))),
    };
    data::as_value(&body)
}
