//! State that the upstream keeps: a reply that was edited on its way is stored there as the model said it. Where the
//! plan wants it (`retell`), a later request that goes on from such a reply says it as the program was told.

use std::collections::HashMap;

use bytes::Bytes;

use super::{
    exchange::Interrupted,
    inject,
    open_step::OpenStep,
    run::{Run, locked},
};
use crate::{
    recording::Inject,
    surface::{Conversation, Kept},
    trajectory::Side,
};

/// Bytes of replies and requests that a run keeps for this; later ones cannot be told again.
const BYTES_MAX: usize = 32 << 20;
/// Longest chain of replies that is told again.
const CHAIN_MAX: usize = 1024;

/// What the upstream keeps of a run, as its program was told it.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By the id of a reply.
    replies: HashMap<String, Reply>,
    /// By the id of a conversation: what it is still to be told.
    threads: HashMap<String, (u32, Vec<String>)>,
    bytes: usize,
}

#[derive(Debug)]
struct Reply {
    /// The reply that its request went on from.
    from: Option<String>,
    kept: Kept,
    /// The injection that edited it.
    edited: Option<u32>,
}

/// What a request is to say before its own words, and the injection that makes it so.
type Retold = (u32, Vec<String>);

impl Told {
    fn keep(&mut self, id: String, reply: Reply) {
        let length: usize = reply.kept.asked.iter().chain(&reply.kept.replied).map(String::len).sum();
        if !id.is_empty() && self.bytes + length <= BYTES_MAX {
            self.bytes += length;
            self.replies.insert(id, reply);
        }
    }

    /// All that was said up to and with a reply, where an edit is among it; `None` where nothing was edited, or
    /// something is not known.
    fn up_to(&self, id: &str) -> Option<Retold> {
        let (mut chain, mut next, mut edited) = (Vec::new(), Some(id), None);
        while let Some(id) = next {
            let reply = self.replies.get(id).filter(|_| chain.len() < CHAIN_MAX)?;
            edited = reply.edited.or(edited);
            chain.push(&reply.kept);
            next = reply.from.as_deref();
        }
        let said = chain.iter().rev().flat_map(|kept| kept.asked.iter().chain(&kept.replied));
        Some((edited?, said.cloned().collect()))
    }
}

impl Run {
    fn to_retell(&self, asked: &Conversation) -> Option<Retold> {
        let told = locked(&self.told);
        let thread = asked.thread.as_ref().and_then(|id| told.threads.get(id).cloned());
        thread.or_else(|| told.up_to(asked.continues.as_deref()?))
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
    let Some((injection, told)) = step.run.to_retell(asked) else { return Ok(None) };
    let written = surface.retell(body, &told).and_then(|written| {
        let read = surface.read_request(&written)?;
        Ok((written, read))
    });
    let number = step.numbers.step;
    let (written, read) = match written {
        Ok(written) => written,
        Err(error) => {
            step.run.recorder.note(&format!("step {number} could not be told what its program was told: {error}"));
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

/// Keeps what a step's reply adds to what the upstream keeps, as the program was told it.
pub(super) fn keep(step: &OpenStep, reply: &crate::surface::Reply, delivered: &[u8], streamed: bool) {
    let (Some(asked), Some(surface)) = (&step.asked, step.surface) else { return };
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
    told.keep(reply.id.clone(), Reply { from: request.continues, kept, edited: step.retells });
}

/// Remembers that the upstream keeps another reply than the program got; with `retell` the next request mends it.
pub(super) fn edited(step: &mut OpenStep, hits: &[crate::plan::Hit], id: &str, thread: Option<&String>) {
    let retelling = |hit: &&crate::plan::Hit| inject::injection(step, hit).is_some_and(|injection| injection.retell);
    step.retells = hits.iter().find(retelling).map(|hit| hit.injection);
    if step.retells.is_none() {
        step.run.diverge([id.to_owned()].into_iter().chain(thread.cloned()));
    }
}
