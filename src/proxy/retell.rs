//! State that the upstream keeps: a reply that was edited on its way is stored there as the model said it, a request as
//! the model got it. A later request that goes on from such a reply is marked in the record, or, where the plan wants it (`retell`), says it as
//! the program was told; a program that fetches it sees what it was told (`fetched`).

use std::collections::HashMap;

use bytes::Bytes;

use super::{
    error::Interrupted,
    inject,
    open_step::OpenStep,
    run::{Run, locked},
};
use crate::{
    recording::Inject,
    surface::{Conversation, Edited, Kept},
    trajectory::Side,
};

/// Bytes of replies and requests that a run keeps for this; later ones cannot be told again.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of edited requests that a run keeps; later ones are listed as the upstream got them.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// Longest chain of replies that is told again.
const CHAIN_MAX: usize = 1024;

/// What the upstream keeps of a run, as its program was told it.
#[derive(Debug, Default)]
pub(super) struct RetoldRun {
    /// By the id of a reply.
    replies: HashMap<String, RetoldReply>,
    /// By the id of a conversation: what it is still to be told.
    threads: HashMap<String, (u32, Vec<String>)>,
    /// Replies that the program was told otherwise.
    pub(super) edited: Edited,
    bytes: usize,
    request_bytes: usize,
}

#[derive(Debug)]
struct RetoldReply {
    /// The reply that its request went on from.
    from: Option<String>,
    /// What it adds; nothing where there was no room for it.
    kept: Option<Kept>,
    /// The injection that edited it.
    edited: Option<u32>,
}

/// What a request is to say before its own words, and the injection that makes it so.
type Retold = (u32, Vec<String>);

/// What is known of all that was said up to a reply.
enum KnownPast {
    /// Nothing of it was edited.
    Unedited,
    /// This, an edit among it.
    Edited(Retold),
    /// Something was edited, but not all that was said is known.
    InPart,
}

impl RetoldRun {
    /// Takes room for so many bytes; whether there is any.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= BYTES_MAX;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// The same for requests: what nobody may ever list takes no room from replies.
    fn take_request(&mut self, bytes: usize) -> bool {
        let fits = self.request_bytes + bytes <= REQUEST_BYTES_MAX;
        self.request_bytes += if fits { bytes } else { 0 };
        fits
    }

    fn keep(&mut self, id: String, from: Option<String>, kept: Kept, edited: Option<u32>) {
        let length: usize = kept.asked.iter().chain(&kept.replied).map(String::len).sum();
        if !id.is_empty() {
            let kept = self.take(length).then_some(kept);
            self.replies.insert(id, RetoldReply { from, kept, edited });
        }
    }

    /// All that was said up to and with a reply.
    fn up_to(&self, id: &str) -> KnownPast {
        let (mut chain, mut next, mut edited, mut whole) = (Vec::new(), Some(id), None, true);
        while let Some(id) = next {
            let Some(reply) = self.replies.get(id).filter(|_| chain.len() < CHAIN_MAX) else {
                whole = false;
                break;
            };
            edited = reply.edited.or(edited);
            whole &= reply.kept.is_some();
            chain.push(&reply.kept);
            next = reply.from.as_deref();
        }
        let said = chain.iter().rev().copied().flatten().flat_map(|kept| kept.asked.iter().chain(&kept.replied));
        match edited {
            None => KnownPast::Unedited,
            Some(injection) if whole => KnownPast::Edited((injection, said.cloned().collect())),
            Some(_) => KnownPast::InPart,
        }
    }
}

impl Run {
    fn to_retell(&self, asked: &Conversation) -> KnownPast {
        let told = locked(&self.told);
        if let Some(thread) = asked.thread.as_ref().and_then(|id| told.threads.get(id).cloned()) {
            return KnownPast::Edited(thread);
        }
        asked.continues.as_deref().map_or(KnownPast::Unedited, |id| told.up_to(id))
    }
}

/// Says so in the record when a request goes on from what the upstream keeps and an injection had changed on its way:
/// the model then goes on from what it said, not from what the program was told, and so do all that go on from there.
pub(super) fn note_divergence(step: &mut OpenStep, conversation: Option<&Conversation>) {
    let kept = conversation.into_iter().flat_map(|asked| [&asked.continues, &asked.thread]).flatten();
    for id in kept.filter(|id| step.run.has_diverged(id)) {
        let number = step.numbers.step;
        step.run.recorder.note(&format!("step {number} goes on from `{id}`, which the upstream keeps unedited"));
        step.diverged = true;
    }
}

/// The request as it says what its program was told, and how it reads then; `None` where the upstream keeps the same.
///
/// # Errors
/// It cannot be recorded.
pub(super) fn request(
    step: &mut OpenStep,
    asked: Option<&Conversation>,
    body: &Bytes,
) -> Result<Option<(Bytes, Conversation)>, Interrupted> {
    let (Some(plan), Some(asked), Some(surface)) = (&step.run.plan, asked, step.surface) else { return Ok(None) };
    if !plan.retells() {
        return Ok(None);
    }
    let number = step.numbers.step;
    let written = match step.run.to_retell(asked) {
        KnownPast::Unedited => return Ok(None),
        KnownPast::InPart => Err("not all that was said before is known here".to_owned()),
        KnownPast::Edited((injection, told)) => {
            let written = surface.retell(body, &told).and_then(|written| {
                let mut read = surface.read_request(&written)?;
                step.run.name_results(&mut read);
                Ok((injection, written, read))
            });
            written.map_err(|error| error.to_string())
        }
    };
    let (injection, written, read) = match written {
        Ok(written) => written,
        Err(why) => {
            let from = asked.continues.as_ref().or(asked.thread.as_ref()).map_or("", String::as_str);
            step.run.recorder.note(&format!(
                "step {number} goes on from `{from}`, which the upstream keeps unedited; it could not be told what its program was told: {why}"
            ));
            step.diverged = true;
            return Ok(None);
        }
    };
    step.run.recorder.inject(Inject {
        step: number,
        attempt: step.numbers.attempt,
        injection,
        side: Side::Request,
        operator: "retell",
        failure_mode: None,
        seed: plan.seed,
        draw: None,
        planned: true,
        matched: true,
        applied: true,
        before: Some(body),
        after: Some(&written),
    })?;
    step.told = true;
    step.run.recorder.note(&format!("step {number} tells the upstream what its program was told, not what it keeps"));
    Ok(Some((written, read)))
}

/// What the upstream keeps of a request.
#[derive(Debug)]
pub(super) struct KeptRequest {
    /// The reply and the conversation that it goes on from.
    from: (Option<String>, Option<String>),
    /// As its program sent it and as the upstream got it, where that is another.
    edit: Option<(Bytes, Bytes)>,
    /// Whether its bytes have been counted.
    counted: bool,
}

/// What the upstream keeps of a request, where that, or what it goes on from, is not as its program sent it.
pub(super) fn asked(
    step: &OpenStep,
    conversation: Option<&Conversation>,
    own: &Bytes,
    got: &Bytes,
) -> Option<KeptRequest> {
    let (surface, asked) = (step.surface?, conversation?);
    let is_edited = own.as_ptr() != got.as_ptr();
    if !is_edited && locked(&step.run.told).edited.sent_all() || !surface.stores(got) {
        return None;
    }
    let edit = is_edited.then(|| (own.clone(), got.clone()));
    Some(KeptRequest { from: (asked.continues.clone(), asked.thread.clone()), edit, counted: false })
}

/// Remembers what the upstream keeps of a step's request, now that the id of its reply is known.
pub(super) fn keep_request(step: &OpenStep, reply: &crate::surface::Reply) {
    let (Some(kept), Some(surface)) = (&step.kept_request, step.surface) else { return };
    let mut told = locked(&step.run.told);
    let edit = kept.edit.as_ref().map(|(own, got)| (&own[..], &got[..]));
    let fits = kept.counted || edit.is_none_or(|(own, got)| told.take_request(own.len() + got.len()));
    told.edited.keep_request(surface, reply, kept.from.clone(), edit.filter(|_| fits));
    drop(told);
    if !fits {
        let id = &reply.id;
        step.run.recorder.note(&format!("whoever fetches what `{id}` was asked sees it as the upstream got it"));
    }
}

/// Remembers it for a reply of which only the id is known yet.
pub(super) fn keep_early(step: &mut OpenStep, reply: &crate::surface::Reply) {
    keep_request(step, reply);
    if let Some(kept) = &mut step.kept_request {
        kept.counted = true;
    }
}

/// Keeps what a step's reply adds to what the upstream keeps, as the program was told it.
pub(super) fn keep(step: &OpenStep, reply: &crate::surface::Reply, delivered: &[u8], streamed: bool) {
    let (Some(asked), Some(surface)) = (&step.asked, step.surface) else { return };
    if !surface.stores(asked) {
        return;
    }
    let (Ok(kept), Ok(request)) = (surface.kept(asked, delivered, streamed), surface.read_request(asked)) else {
        return;
    };
    let mut told = locked(&step.run.told);
    if let Some(thread) = request.thread {
        if step.told {
            told.threads.remove(&thread);
        }
        if let Some(injection) = step.retells {
            let pending = told.threads.entry(thread).or_insert((injection, Vec::new()));
            pending.1.extend(kept.replied.iter().cloned());
        }
    }
    told.keep(reply.id.clone(), request.continues, kept, step.retells);
}

/// A reply as the upstream keeps it, and as the program gets it.
pub(super) struct Retelling<'a> {
    pub(super) kept: &'a [u8],
    pub(super) told: &'a [u8],
    pub(super) streamed: bool,
}

/// Remembers that the upstream keeps another reply than the program gets. With `retell` the next request mends that;
/// without it, what goes on from there is marked.
pub(super) fn edited(
    step: &mut OpenStep,
    change: &Retelling<'_>,
    hits: &[crate::plan::Hit],
    asked: Option<&Conversation>,
) {
    let Some(surface) = step.surface.filter(|_| step.stored) else { return };
    let Retelling { kept, told, streamed } = *change;
    let read = if streamed { surface.read_stream(kept) } else { surface.read_reply(kept) };
    // What cannot be read is kept under no id that anybody could learn.
    let Ok(read) = read else { return };
    let retelling = |hit: &&crate::plan::Hit| inject::injection(step, hit).is_some_and(|injection| injection.retell);
    step.retells = hits.iter().find(retelling).map(|hit| hit.injection).or(step.retells);
    if step.retells.is_none() {
        step.run.diverge([read.id.clone()].into_iter().chain(asked.and_then(|asked| asked.thread.clone())));
    }
    let mut state = locked(&step.run.told);
    let remembered = state.take(told.len()) && state.edited.keep(surface, kept, told, streamed).is_ok();
    drop(state);
    if !remembered {
        let number = step.numbers.step;
        let id = read.id;
        step.run.recorder.note(&format!("step {number}: whoever fetches `{id}` sees what the model said, unedited"));
    }
}
