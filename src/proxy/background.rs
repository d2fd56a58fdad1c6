//! Replies that are made in the background: their request is answered at once by an id, and their program fetches them
//! by it until they are made. Their step stays open until then, so that what a plan wants of the reply is done to the
//! reply, when it is first fetched whole; every later fetch shows the same (`fetched`). A look at a reply that is still
//! being made passes untouched.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use hyper::{Response, header, http::response::Parts};

use super::{
    Limits, Proxy, decode,
    delivery::Delivery,
    exchange::{Interrupted, closed, deliver},
    faults,
    gather::{gather, joined},
    headers,
    inject::{self, Decided},
    open_step::OpenStep,
    reshape,
    run::{Run, locked},
    socket::Link,
    upstream::ReceivedBody,
};
use crate::{
    fault::Disturbance,
    surface::{Conversation, Progress, Surface},
    trajectory::CloseCause,
};

/// Replies that are awaited at once, of all runs; what is due to a further one is recorded as failed.
const AWAITED_MAX: usize = 4096;
const NEVER_FETCHED: &str = "the reply is made in the background, and was not fetched before the run ended";

/// The replies that are awaited, by their ids.
#[derive(Debug, Default)]
pub(super) struct Background(Mutex<HashMap<String, Arc<Awaited>>>);

/// A reply that is made in the background.
#[derive(Debug)]
pub(super) struct Awaited {
    id: String,
    pub(super) run: Arc<Run>,
    surface: &'static dyn Surface,
    /// Whether a plan wants anything of it.
    pub(super) is_due: bool,
    /// Taken by whoever fetches it first; the others wait until what is due to it is done.
    held: tokio::sync::Mutex<Option<Postponed>>,
}

/// A step whose reply is still to come.
#[derive(Debug)]
struct Postponed {
    step: OpenStep,
    decision: Decided,
    conversation: Option<Conversation>,
}

/// What a fetch of an awaited reply comes to.
pub(super) enum Fetched {
    /// This goes to the client.
    Delivered(Box<Response<Delivery>>),
    /// A fetch like any other.
    Plain(Response<ReceivedBody>),
}

impl Background {
    /// The reply that a path fetches, if it is awaited.
    pub(super) fn at(&self, path: &str) -> Option<Arc<Awaited>> {
        let id = path.trim_end_matches('/').rsplit('/').next()?;
        locked(&self.0).get(id).cloned()
    }

    /// Gives up the replies of these runs: their steps end with what their programs saw of them.
    pub(super) fn give_up(&self, of: impl Fn(&Run) -> bool) {
        let given_up: Vec<_> = locked(&self.0).extract_if(|_, awaited| of(&awaited.run)).collect();
        for (_, awaited) in given_up {
            // One that is locked is being delivered.
            if let Some(postponed) = awaited.held.try_lock().ok().and_then(|mut held| held.take()) {
                postponed.give_up();
            }
        }
    }
}

impl Postponed {
    fn give_up(mut self) {
        // What cannot be recorded has stopped the run already.
        let _ = inject::all_failed(&self.step, &self.decision, NEVER_FETCHED);
        for fault in self.decision.faults.iter().filter(|fault| matches!(fault.disturbance, Disturbance::Reshape)) {
            let _ = faults::fault_failed(&self.step, fault, NEVER_FETCHED);
        }
        let _ = self.step.close(CloseCause::Complete);
    }
}

/// Whether a fault acts on the bytes of the very next reply, whatever that says.
fn acts_at_once(disturbance: &Disturbance) -> bool {
    use Disturbance::{ContentType, Cut, Hang, Pace, Reset};
    matches!(disturbance, Reset(_) | Cut { .. } | Hang { .. } | Pace(_) | ContentType(_))
}

impl Proxy {
    /// The reply to a request for one in the background: passed on as it is, what is due to it put off, where it only
    /// says that it will be made.
    pub(super) async fn postpone(
        &self,
        mut step: OpenStep,
        decision: Decided,
        conversation: Option<Conversation>,
        received: Response<ReceivedBody>,
    ) -> Result<Response<Delivery>, Interrupted> {
        let limits = &self.limits;
        let at_once = decision.faults.iter().any(|fault| acts_at_once(&fault.disturbance));
        if !received.status().is_success() || headers::is_event_stream(received.headers()) || at_once {
            return deliver(step, decision, conversation, received, limits).await;
        }
        let (head, body) = received.into_parts();
        let raw = match gather(body, limits).await {
            Ok(Ok(chunks)) => joined(chunks),
            Ok(Err(rest)) => {
                return deliver(step, decision, conversation, Response::from_parts(head, rest), limits).await;
            }
            Err(error) => return Err(closed(&mut step, error.into())?),
        };
        let progress = step.surface.map(|surface| (surface, progress(surface, &head, &raw)));
        let Some((surface, Progress::Making(id))) = progress else {
            let received = Response::from_parts(head, inject::made(raw, false));
            return deliver(step, decision, conversation, received, limits).await;
        };
        let number = step.numbers.step;
        step.run.recorder.note(&format!("step {number} is made in the background, as `{id}`"));
        step.tape(&raw);
        step.link.leave();
        step.link = Arc::default();
        step.link.enter();
        let is_due = !decision.edits.response.is_empty() || !decision.faults.is_empty();
        let run = Arc::clone(&step.run);
        let held = tokio::sync::Mutex::new(Some(Postponed { step, decision, conversation }));
        let awaited = Awaited { id: id.clone(), run, surface, is_due, held };
        let refused = {
            let mut all = locked(&self.runs.background.0);
            if all.len() < AWAITED_MAX { all.insert(id, Arc::new(awaited)) } else { Some(Arc::new(awaited)) }
        };
        if let Some(postponed) = refused.and_then(|refused| refused.held.try_lock().ok()?.take()) {
            postponed.give_up();
        }
        Ok(Response::from_parts(head, Delivery::pass(inject::made(raw, false), limits.silence_timeout)))
    }

    /// What was fetched of an awaited reply. `part`: only a part of its stream is wanted.
    pub(super) async fn fetch_awaited(
        &self,
        awaited: &Awaited,
        received: Response<ReceivedBody>,
        link: &Arc<Link>,
        part: bool,
    ) -> Result<Fetched, Interrupted> {
        let streamed = headers::is_event_stream(received.headers());
        if streamed && !awaited.is_due {
            // Nobody waits for the end of a stream of which nothing is wanted.
            let postponed = if part { None } else { awaited.held.lock().await.take() };
            let Some(Postponed { mut step, decision, conversation }) = postponed else {
                return Ok(Fetched::Plain(received));
            };
            locked(&self.runs.background.0).remove(&awaited.id);
            step.fetched(link, &received);
            let delivered = deliver(step, decision, conversation, received, &self.limits).await?;
            return Ok(Fetched::Delivered(Box::new(delivered)));
        }
        let (head, body) = received.into_parts();
        let raw = match gather(body, &self.limits).await? {
            Ok(chunks) => joined(chunks),
            Err(rest) => return Ok(Fetched::Plain(Response::from_parts(head, rest))),
        };
        let again = |head: &Parts| Response::from_parts(head.clone(), inject::made(raw.clone(), streamed));
        let progress = if streamed { ended(awaited.surface, &raw) } else { progress(awaited.surface, &head, &raw) };
        let mut held = awaited.held.lock().await;
        let Some(postponed) = held.take_if(|_| !matches!(progress, Progress::Making(_))) else {
            return Ok(Fetched::Plain(again(&head)));
        };
        let broken = matches!(progress, Progress::Broken);
        let delivered = settle(postponed, link, again(&head), &raw, broken, &self.limits).await?;
        drop(held);
        locked(&self.runs.background.0).remove(&awaited.id);
        if part {
            return Ok(Fetched::Plain(again(&head)));
        }
        let delivered = delivered.map(|body| Delivery::pass(body, self.limits.silence_timeout));
        Ok(Fetched::Delivered(Box::new(delivered)))
    }
}

/// How far a whole reply is.
fn progress(surface: &dyn Surface, head: &Parts, raw: &Bytes) -> Progress {
    let plain = decode::body(raw, headers::text(&head.headers, &header::CONTENT_ENCODING));
    plain.map_or(Progress::Made, |plain| surface.progress(&plain))
}

/// How far the reply of a stream is that has ended.
fn ended(surface: &dyn Surface, raw: &Bytes) -> Progress {
    if surface.is_finished(raw) { Progress::Made } else { Progress::Making(String::new()) }
}

/// Does what is due to a reply that has been made, and closes its step before anybody gets it. A reply that was not
/// made in the end passes as it is, like any error of an upstream.
async fn settle(
    postponed: Postponed,
    link: &Arc<Link>,
    received: Response<ReceivedBody>,
    raw: &Bytes,
    broken: bool,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let Postponed { mut step, decision, conversation } = postponed;
    let decision = if broken { Decided::default() } else { decision };
    step.fetched(link, &received);
    let edited = inject::edit_response(&mut step, &decision, conversation.as_ref(), received, limits).await;
    let reshaped = match edited {
        Ok(edited) => reshape::reshape(&mut step, &decision, conversation.as_ref(), edited, limits).await,
        Err(interrupted) => Err(interrupted),
    };
    let response = match reshaped {
        Ok(response) => response,
        Err(interrupted) => return Err(closed(&mut step, interrupted)?),
    };
    if step.taped().is_empty() {
        step.tape(raw);
    }
    step.close(CloseCause::Complete)?;
    Ok(response)
}
