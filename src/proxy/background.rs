//! Replies that are made in the background: their request is answered at once by an id, and their program fetches them
//! by it until they are made. Their step stays open until then, so that what a plan wants of the reply is done to the
//! reply, when it is first fetched whole; every later fetch shows the same (`fetched`). A look at a reply that is still
//! being made passes untouched.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper::{Response, header, http::response::Parts};
use tokio::sync::oneshot;

use super::{
    Limits, Proxy, decode,
    delivery::Delivery,
    error::{Interrupted, ProxyError},
    exchange::{change, closed, deliver},
    faults,
    gather::{gather, joined},
    headers,
    inject::{self, Decided},
    open_step::OpenStep,
    retell,
    run::{Run, locked},
    socket::Link,
    unmade,
    upstream::{Listener, ReceivedBody, UpstreamError},
};
use crate::{
    fault::Disturbance,
    surface::{Conversation, Progress, Reply, Surface},
    trajectory::{CloseCause, RunId},
};

/// Replies that are awaited at once, of all runs; what is due to a further one is recorded as failed.
const AWAITED_MAX: usize = 4096;
/// Why what was due to a reply was not done.
pub(super) const NEVER_FETCHED: &str = "the reply is made in the background, and was not fetched before the run ended";
pub(super) const DELETED: &str = "the reply was made in the background, and deleted before it was fetched";
const TOO_MANY: &str = "too many replies are being made in the background";

/// The replies that are awaited, by run and id: those of equal questions may have equal ids.
#[derive(Debug, Default, Clone)]
pub(super) struct Background(Arc<Mutex<HashMap<Asked, VecDeque<Arc<Awaited>>>>>);

/// The run, and the id of the reply.
type Asked = (RunId, String);

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
    step: Box<OpenStep>,
    decision: Decided,
    conversation: Option<Conversation>,
    /// What its program was told at first.
    head: Parts,
    said: Bytes,
}

/// How a reply is fetched.
pub(super) struct Fetch<'a> {
    pub(super) link: &'a Arc<Link>,
    /// How long the client waits, where it says so.
    pub(super) patience: Option<Duration>,
    /// Whether only a part of a stream is wanted.
    pub(super) part: bool,
}

/// What a fetch of an awaited reply comes to.
pub(super) enum Fetched {
    /// This goes to the client.
    Delivered(Box<Response<Box<Delivery>>>),
    /// A fetch like any other.
    Plain(Box<Response<ReceivedBody>>),
}

impl Background {
    /// The reply that a path fetches, cancels or deletes, if it is awaited. `run`: the one that the request names.
    pub(super) fn at(&self, path: &str, run: Option<&RunId>) -> Option<Arc<Awaited>> {
        let path = path.trim_end_matches('/');
        let id = path.strip_suffix("/cancel").unwrap_or(path).rsplit('/').next()?;
        let all = locked(&self.0);
        let awaited = match run {
            _ if all.is_empty() => None,
            Some(run) => all.get(&(run.clone(), id.to_owned())),
            None => all.iter().find(|((_, known), _)| known == id).map(|(_, awaited)| awaited),
        };
        awaited?.front().cloned()
    }

    /// How many replies each run awaits.
    pub(super) fn counts(&self) -> HashMap<RunId, usize> {
        let mut counts = HashMap::new();
        for ((run, _), awaited) in locked(&self.0).iter() {
            *counts.entry(run.clone()).or_default() += awaited.len();
        }
        counts
    }

    /// Gives up replies: their steps end with what their programs saw of them, and what was due to them has failed.
    pub(super) fn give_up(&self, why: &str, of: impl Fn(&Arc<Awaited>) -> bool) {
        let mut given_up = Vec::new();
        locked(&self.0).retain(|_, queue| {
            queue.retain(|awaited| {
                let gives_up = of(awaited);
                given_up.extend(gives_up.then(|| Arc::clone(awaited)));
                !gives_up
            });
            !queue.is_empty()
        });
        for awaited in given_up {
            // One that is locked is being delivered.
            if let Some(postponed) = awaited.held.try_lock().ok().and_then(|mut held| held.take()) {
                postponed.give_up(why);
            }
        }
    }

    /// Takes one more; gives it back where there are too many.
    fn add(&self, awaited: Awaited) -> Option<Awaited> {
        let mut all = locked(&self.0);
        if all.values().map(VecDeque::len).sum::<usize>() >= AWAITED_MAX {
            return Some(awaited);
        }
        all.entry((awaited.run.id.clone(), awaited.id.clone())).or_default().push_back(Arc::new(awaited));
        None
    }

    fn remove(&self, awaited: &Arc<Awaited>) {
        let mut all = locked(&self.0);
        let key = (awaited.run.id.clone(), awaited.id.clone());
        if let Some(queue) = all.get_mut(&key) {
            queue.retain(|other| !Arc::ptr_eq(other, awaited));
            if queue.is_empty() {
                all.remove(&key);
            }
        }
    }
}

impl Postponed {
    fn give_up(mut self, why: &str) {
        // What cannot be recorded has stopped the run already.
        let _ = unmade::all_failed(&self.step, &self.decision, why);
        for fault in self.decision.faults.iter().filter(|fault| matches!(fault.disturbance, Disturbance::Reshape)) {
            let _ = faults::fault_failed(&self.step, fault, why);
        }
        self.step.answered(self.head.status, &self.head.headers);
        self.step.tape(&self.said);
        let _ = self.step.close(CloseCause::Complete);
    }
}

/// Hears a stream of which nothing is wanted pass: at its end the step is closed. Where it ends early the program may
/// resume it, and the step goes on waiting.
#[derive(Debug)]
struct Hearing {
    awaited: Arc<Awaited>,
    background: Background,
    postponed: Mutex<Option<Postponed>>,
}

impl Hearing {
    fn postponed(&mut self) -> &mut Option<Postponed> {
        self.postponed.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Hearing {
    fn frame(&mut self, frame: &Bytes) {
        if let Some(postponed) = self.postponed() {
            postponed.step.tape(frame);
        }
    }

    fn end(&mut self) {
        let surface = self.awaited.surface;
        let whole = self.postponed().take_if(|postponed| surface.is_finished(&postponed.step.taped()));
        if let Some(mut postponed) = whole {
            // What cannot be recorded has stopped the run already.
            let _ = postponed.step.close(CloseCause::Complete);
            self.background.remove(&self.awaited);
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        let Some(mut postponed) = self.postponed().take() else { return };
        postponed.step.wait_on();
        match self.awaited.held.try_lock() {
            Ok(mut held) => *held = Some(postponed),
            Err(_) => postponed.give_up(NEVER_FETCHED),
        }
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
        mut step: Box<OpenStep>,
        decision: Decided,
        conversation: Option<Conversation>,
        received: Response<ReceivedBody>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
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
        retell::keep_early(&mut step, &Reply { id: id.clone(), ..Reply::default() });
        step.wait_on();
        let rewords = decision.faults.iter().any(|fault| matches!(fault.disturbance, Disturbance::Reshape));
        let is_due = !decision.edits.response.is_empty() || rewords;
        let run = Arc::clone(&step.run);
        let postponed = Postponed { step, decision, conversation, head: head.clone(), said: raw.clone() };
        let awaited = Awaited { id, run, surface, is_due, held: tokio::sync::Mutex::new(Some(postponed)) };
        if let Some(refused) = self.runs.background.add(awaited)
            && let Some(postponed) = refused.held.into_inner()
        {
            postponed.give_up(TOO_MANY);
        }
        Ok(Response::from_parts(head, Delivery::pass(inject::made(raw, false), limits.silence_timeout)))
    }

    /// What was fetched of an awaited reply.
    pub(super) async fn fetch_awaited(
        &self,
        awaited: &Arc<Awaited>,
        received: Response<ReceivedBody>,
        fetch: &Fetch<'_>,
    ) -> Result<Fetched, Interrupted> {
        let streamed = headers::is_event_stream(received.headers());
        if streamed && !awaited.is_due {
            // Nobody waits for the end of a stream of which nothing is wanted.
            let postponed = if fetch.part { None } else { awaited.held.lock().await.take() };
            return Ok(Fetched::Plain(Box::new(match postponed {
                Some(postponed) => self.hear(awaited, postponed, received, fetch),
                None => received,
            })));
        }
        let (head, body) = received.into_parts();
        let raw = match gather(body, &self.limits).await? {
            Ok(chunks) => joined(chunks),
            Err(rest) => return Ok(Fetched::Plain(Box::new(Response::from_parts(head, rest)))),
        };
        let again = || Response::from_parts(head.clone(), inject::made(raw.clone(), streamed));
        let progress = if streamed { ended(awaited.surface, &raw) } else { progress(awaited.surface, &head, &raw) };
        match progress {
            // To pass a part of what is to be edited would tell the program two things.
            Progress::Making(_) if streamed => {
                return Err(UpstreamError::Closed("the stream of a reply ended before the reply did".into()).into());
            }
            Progress::Making(_) => return Ok(Fetched::Plain(Box::new(again()))),
            Progress::Made | Progress::Broken => {}
        }
        let broken = matches!(progress, Progress::Broken);
        let Some(delivered) = self.settle(awaited, again(), raw.clone(), broken, fetch).await? else {
            return Ok(Fetched::Plain(Box::new(again())));
        };
        if fetch.part {
            return Ok(Fetched::Plain(Box::new(again())));
        }
        let delivered = delivered.map(|body| Delivery::pass(body, self.limits.silence_timeout));
        Ok(Fetched::Delivered(Box::new(delivered)))
    }

    /// A stream of which nothing is wanted, heard as it passes.
    fn hear(
        &self,
        awaited: &Arc<Awaited>,
        mut postponed: Postponed,
        received: Response<ReceivedBody>,
        fetch: &Fetch<'_>,
    ) -> Response<ReceivedBody> {
        postponed.step.fetched(fetch.link, &received, fetch.patience);
        let (awaited, background) = (Arc::clone(awaited), self.runs.background.clone());
        let hearing = Hearing { awaited, background, postponed: Mutex::new(Some(postponed)) };
        received.map(|body| ReceivedBody::Heard(Box::new(body), Box::new(hearing)))
    }

    /// Does what is due to a reply that has been made. It goes on where its client has left meanwhile: the next fetch
    /// must see the same. `None`: it was done before.
    async fn settle(
        &self,
        awaited: &Arc<Awaited>,
        received: Response<ReceivedBody>,
        raw: Bytes,
        broken: bool,
        fetch: &Fetch<'_>,
    ) -> Result<Option<Response<ReceivedBody>>, Interrupted> {
        let (awaited, background, limits) = (Arc::clone(awaited), self.runs.background.clone(), self.limits.clone());
        let (link, patience) = (Arc::clone(fetch.link), fetch.patience);
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let mut held = awaited.held.lock().await;
            let settled = match held.take() {
                Some(mut postponed) => {
                    postponed.step.fetched(&link, &received, patience);
                    let left = || answer.is_closed();
                    let settled = edited(postponed, received, &raw, broken, &limits, left).await;
                    background.remove(&awaited);
                    settled.map(Some)
                }
                None => Ok(None),
            };
            drop(held);
            // Nobody is left to be told.
            drop(answer.send(settled));
        });
        answered.await.unwrap_or(Err(ProxyError::Internal.into()))
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

/// Edits a reply that has been made, and closes its step before anybody gets it. A reply that was not made in the end
/// passes as it is, like any error of an upstream. `left`: whether the client has gone.
async fn edited(
    postponed: Postponed,
    received: Response<ReceivedBody>,
    raw: &Bytes,
    broken: bool,
    limits: &Limits,
    left: impl Fn() -> bool,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let Postponed { mut step, decision, conversation, .. } = postponed;
    let decision = if broken { Decided::default() } else { decision };
    let response = match change(&mut step, &decision, conversation.as_ref(), received, limits).await {
        Ok(response) => response,
        Err(interrupted) => return Err(closed(&mut step, interrupted)?),
    };
    if step.taped().is_empty() {
        step.tape(raw);
    }
    step.close(if left() { CloseCause::ClientGone } else { CloseCause::Complete })?;
    Ok(response)
}
