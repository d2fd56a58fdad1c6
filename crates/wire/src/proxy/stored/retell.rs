//! A request that goes on from what the upstream keeps otherwise than its program was told it: marked, or told again.

use std::collections::HashSet;

use bytes::Bytes;

use super::{PriorEdits, RetoldChange, StoredEdit};
use crate::{
    proxy::{
        error::Interrupted,
        lock::locked,
        open_step::OpenStep,
        upstream::{AlteredReply, ReplyChange, UpstreamError},
    },
    recording::Inject,
    surface::{Conversation, Surface, door, splice::Node},
    trajectory::{RETELL, Side},
};

/// Says so in the record when a request goes on from what the upstream keeps and an injection had changed on its way:
/// the model then goes on from what it said, not from what the program was told, and so do all that go on from there.
pub(in crate::proxy) fn note_divergence(step: &mut OpenStep, conversation: Option<&Conversation>) {
    let Some(asked) = conversation.filter(|asked| asked.goes_on()) else { return };
    let diverged = locked(&step.run.retold).diverged_in(asked);
    for id in diverged {
        let number = step.numbers.step;
        step.run.recorder.note(&format!("step {number} goes on from `{id}`, which the upstream keeps unedited"));
        step.storage.diverged = true;
    }
}

/// The request as it says what its program was told, and how it reads then; `None` where the upstream keeps the same.
///
/// # Errors
/// The request cannot be recorded; or it continues from a replacement that it cannot send: the upstream would continue from the original.
pub(in crate::proxy) fn request(
    step: &mut OpenStep,
    asked: Option<&Conversation>,
    body: &Bytes,
) -> Result<Option<(Bytes, Conversation)>, Interrupted> {
    let (Some(asked), Some(surface)) = (asked, step.surface) else { return Ok(None) };
    let number = step.numbers.step;
    let before = {
        let retold = locked(&step.run.retold);
        if !retold.remembers {
            return Ok(None);
        }
        retold.before(asked)
    };
    let (change, written) = match before {
        PriorEdits::Unedited => return Ok(None),
        PriorEdits::InPart(change) => (change, Err("not all that was said before is known here".to_owned())),
        PriorEdits::Edited((change, told)) => {
            let written = surface.retell(body, &told).and_then(|written| {
                let mut read = door::request(surface, &written)?;
                step.run.name_results(&mut read);
                Ok((written, read))
            });
            (change, written.map_err(|error| error.to_string()))
        }
    };
    let (written, read) = match written {
        Ok(written) => written,
        Err(why) => {
            let from = asked.continues.as_ref().or(asked.thread.as_ref()).map_or("", String::as_str);
            let words = format!(
                "step {number} goes on from `{from}`, which the upstream keeps unedited; it could not be told what its program was told: {why}"
            );
            step.run.recorder.note(&words);
            if change == RetoldChange::Replacement {
                return Err(UpstreamError::Diverged(words).into());
            }
            step.storage.diverged = true;
            return Ok(None);
        }
    };
    step.run.recorder.inject(Inject {
        step: number,
        attempt: step.numbers.attempt,
        // A replacement is none of a plan's.
        injection: if let RetoldChange::Injection(number) = change { number } else { 0 },
        side: Side::Request,
        operator: RETELL,
        failure_mode: None,
        speaker: None,
        seed: step.run.plan.as_ref().map_or(0, |plan| plan.seed),
        draw: None,
        planned: true,
        matched: true,
        applied: true,
        before: Some(body),
        after: Some(&written),
    })?;
    step.storage.retold = true;
    step.run.recorder.note(&format!("step {number} tells the upstream what its program was told, not what it keeps"));
    Ok(Some((written, read)))
}

/// A reply as the upstream keeps it, and as the program gets it.
pub(in crate::proxy) struct Retelling<'a> {
    pub(in crate::proxy) kept: &'a [u8],
    pub(in crate::proxy) told: &'a [u8],
    pub(in crate::proxy) streamed: bool,
}

/// Remembers that the upstream keeps another reply than the program gets, by these injections. With `retell` the next request mends that;
/// without it, what goes on from there is marked.
pub(in crate::proxy) fn edited(
    step: &mut OpenStep,
    change: &Retelling<'_>,
    injections: &[u32],
    asked: Option<&Conversation>,
) {
    let Some(surface) = step.surface.filter(|_| step.storage.reply) else { return };
    let read = door::reply(surface, change.kept, change.streamed);
    // What cannot be read is kept under no id that anybody could learn.
    let Ok(read) = read else { return };
    let retelling = |number: &&u32| step.injection(**number).is_some_and(|injection| injection.retell);
    let retells = injections.iter().find(retelling).copied().map(RetoldChange::Injection);
    step.storage.retells = retells.or(step.storage.retells);
    let ids: Vec<String> = asked.and_then(|asked| asked.thread.clone()).into_iter().chain([read.id]).collect();
    let operator = |injection: u32| step.injection(injection).map(|injection| injection.name.clone());
    let edits: Vec<StoredEdit> = injections
        .iter()
        .filter_map(|&injection| {
            let (step, attempt) = (step.numbers.step, step.numbers.attempt);
            Some(StoredEdit { step, attempt, injection, operator: operator(injection)?, ids: ids.clone() })
        })
        .collect();
    let mut state = locked(&step.run.retold);
    state.edits.extend(edits);
    state.items.extend(changed_items(surface, change));
    if step.storage.retells.is_none() {
        state.diverge(ids);
    }
}

/// Remembers that the program gets another form of a recorded reply than the upstream stores, for the requests that continue from it.
pub(in crate::proxy) fn given_otherwise(step: &mut OpenStep, reply: &AlteredReply) {
    let (Some(surface), Some(asked)) = (step.surface, &step.storage.request_body) else { return };
    if !surface.stores(asked) {
        return;
    }
    let read = |body: &[u8]| door::reply(surface, body, reply.streamed);
    let (Ok(kept), Ok(given)) = (read(&reply.kept), read(&reply.given)) else { return };
    let thread = door::request(surface, asked).ok().and_then(|asked| asked.thread);
    if kept.id != given.id && thread.is_none() {
        // Another run's reply, which the upstream keeps by its own id.
        return;
    }
    let planned = || {
        let plan = step.run.plan.as_ref()?;
        let numbers = plan.settled.iter().flat_map(|settled| &settled.injections);
        numbers.copied().find(|&number| step.injection(number).is_some_and(|injection| injection.retell))
    };
    let change = match reply.by {
        ReplyChange::Replacement => Some(RetoldChange::Replacement),
        ReplyChange::NeutralChange => Some(RetoldChange::NeutralChange),
        ReplyChange::RecordedInjection(number) => Some(RetoldChange::Injection(number)),
        ReplyChange::Injection => planned().map(RetoldChange::Injection),
    };
    let change_of_items = Retelling { kept: &reply.kept, told: &reply.given, streamed: reply.streamed };
    let mut state = locked(&step.run.retold);
    state.items.extend(changed_items(surface, &change_of_items));
    if change.is_none() {
        state.diverge(thread.into_iter().chain([kept.id]));
    }
    drop(state);
    step.storage.retells = change.or(step.storage.retells);
}

/// The ids of the items that the upstream keeps otherwise than the program got them.
fn changed_items(surface: &dyn Surface, change: &Retelling<'_>) -> Vec<String> {
    let items =
        |reply: &[u8]| surface.stored_items(b"{}", reply, change.streamed).map(|kept| kept.reply).unwrap_or_default();
    let told: HashSet<String> = items(change.told).into_iter().collect();
    let id_of = |item: &String| Some(Node::parse(item.as_bytes()).ok()?.get("id")?.string()?.into_owned());
    items(change.kept).iter().filter(|item| !told.contains(*item)).filter_map(id_of).collect()
}
