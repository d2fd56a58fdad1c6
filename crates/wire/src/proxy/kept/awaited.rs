//! The replies that are made in the background and that their programs have not fetched yet.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper::{Response, http::response::Parts};

use crate::{
    fault::Disturbance,
    proxy::{
        delivery::Delivery,
        due::Due,
        faults,
        listen::socket::Link,
        lock::locked,
        run::Run,
        unmade,
        upstream::{Listener, ReceivedBody},
    },
    surface::Surface,
    trajectory::{CloseCause, RunId},
};

/// Replies that are awaited at once, of all runs; what is due to a further one is recorded as failed.
const AWAITED_MAX: usize = 4096;
/// Why what was due to a reply was not done.
pub(in crate::proxy) const NEVER_FETCHED: &str =
    "the reply is made in the background, and was not fetched before the run ended";
pub(super) const DELETED: &str = "the reply was made in the background, and deleted before it was fetched";
pub(super) const TOO_MANY: &str = "too many replies are being made in the background";

/// The replies that are awaited, by run and id: those of equal questions may have equal ids.
#[derive(Debug, Default, Clone)]
pub(in crate::proxy) struct Background(Arc<Mutex<HashMap<AwaitedReply, VecDeque<Arc<Awaited>>>>>);

/// The run, and the id of the reply.
type AwaitedReply = (RunId, String);

/// A reply that is made in the background.
#[derive(Debug)]
pub(in crate::proxy) struct Awaited {
    pub(super) id: String,
    pub(in crate::proxy) run: Arc<Run>,
    pub(super) surface: &'static dyn Surface,
    /// Whether a plan wants anything of it.
    pub(super) is_due: bool,
    /// Taken by whoever fetches it first; the others wait until what is due to it is done.
    pub(super) held: tokio::sync::Mutex<Option<Postponed>>,
}

/// A step whose reply is still to come.
#[derive(Debug)]
pub(super) struct Postponed {
    pub(super) due: Due,
    /// What its program was told at first.
    pub(super) head: Parts,
    pub(super) said: Bytes,
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
pub(super) enum FetchedReply {
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
    pub(in crate::proxy) fn counts(&self) -> HashMap<RunId, usize> {
        let mut counts = HashMap::new();
        for ((run, _), awaited) in locked(&self.0).iter() {
            *counts.entry(run.clone()).or_default() += awaited.len();
        }
        counts
    }

    /// Gives up replies: their steps end with what their programs saw of them, and what was due to them has failed.
    pub(in crate::proxy) fn give_up(&self, why: &str, of: impl Fn(&Arc<Awaited>) -> bool) {
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
    pub(super) fn add(&self, awaited: Awaited) -> Option<Awaited> {
        let mut all = locked(&self.0);
        if all.values().map(VecDeque::len).sum::<usize>() >= AWAITED_MAX {
            return Some(awaited);
        }
        all.entry((awaited.run.id.clone(), awaited.id.clone())).or_default().push_back(Arc::new(awaited));
        None
    }

    pub(super) fn remove(&self, awaited: &Arc<Awaited>) {
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
    pub(super) fn give_up(self, why: &str) {
        let Self { due: Due { mut step, decision, .. }, head, said } = self;
        // What cannot be recorded has stopped the run already.
        let _ = unmade::all_failed(&step, &decision, &why.to_owned().into());
        for fault in decision.faults.iter().filter(|fault| matches!(fault.disturbance, Disturbance::Reshape)) {
            let _ = faults::fault_failed(&step, fault, why);
        }
        step.answered(head.status, &head.headers);
        step.tape(&said);
        let _ = step.close(CloseCause::Complete);
    }
}

/// Hears a stream of which nothing is wanted pass: at its end the step is closed. Where it ends early the program may
/// resume it, and the step goes on waiting.
#[derive(Debug)]
pub(super) struct Hearing {
    awaited: Arc<Awaited>,
    background: Background,
    postponed: Mutex<Option<Postponed>>,
}

impl Hearing {
    pub(super) fn of(awaited: &Arc<Awaited>, background: &Background, postponed: Postponed) -> Self {
        let (awaited, background) = (Arc::clone(awaited), background.clone());
        Self { awaited, background, postponed: Mutex::new(Some(postponed)) }
    }

    fn postponed(&mut self) -> &mut Option<Postponed> {
        self.postponed.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Hearing {
    fn frame(&mut self, frame: &Bytes) {
        if let Some(postponed) = self.postponed() {
            postponed.due.step.tape(frame);
        }
    }

    fn end(&mut self) {
        let surface = self.awaited.surface;
        let whole = self.postponed().take_if(|postponed| surface.is_finished(&postponed.due.step.taped()));
        if let Some(mut postponed) = whole {
            // What cannot be recorded has stopped the run already.
            let _ = postponed.due.step.close(CloseCause::Complete);
            self.background.remove(&self.awaited);
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        let Some(mut postponed) = self.postponed().take() else { return };
        postponed.due.step.wait_on();
        match self.awaited.held.try_lock() {
            Ok(mut held) => *held = Some(postponed),
            Err(_) => postponed.give_up(NEVER_FETCHED),
        }
    }
}
