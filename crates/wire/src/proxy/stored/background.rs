//! Replies that are made in the background: their request is answered at once by an id, and their program fetches them
//! by it until they are made. No plan edits them. Their step stays open until the reply is first fetched whole, so that the
//! record holds it; all that is fetched passes as it comes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use hyper::{HeaderMap, Response, header, http::response::Parts};

use crate::{
    proxy::{
        headers,
        listen::socket::Link,
        lock::locked,
        open_step::OpenStep,
        run::Run,
        upstream::{Listener, ReceivedBody},
    },
    surface::{Surface, door::UnpackedBody},
    trajectory::{CloseCause, RunId},
};

/// Replies that are awaited at once, of all runs; the step of a further one ends with what its program was told at first.
const AWAITED_MAX: usize = 4096;

/// The replies that are awaited, by run and id: those of equal questions may have equal ids.
#[derive(Debug, Default, Clone)]
pub(in crate::proxy) struct Background(Arc<Mutex<HashMap<AwaitedReply, VecDeque<Arc<BackgroundReply>>>>>);

/// The run, and the id of the reply.
type AwaitedReply = (RunId, String);

/// A reply that is made in the background.
#[derive(Debug)]
pub(in crate::proxy) struct BackgroundReply {
    id: String,
    pub(in crate::proxy) run: Arc<Run>,
    surface: &'static dyn Surface,
    /// Taken by whoever fetches it, and given back where it was not made yet.
    held: Mutex<Option<Postponed>>,
}

/// A step whose reply is still to come.
#[derive(Debug)]
struct Postponed {
    step: Box<OpenStep>,
    /// What its program was told at first.
    head: Parts,
    said: Bytes,
}

impl Background {
    /// The reply that a path fetches, cancels or deletes, if it is awaited. `run`: the one that the request names.
    pub(super) fn at(&self, path: &str, run: Option<&RunId>) -> Option<Arc<BackgroundReply>> {
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

    /// Gives up replies: their steps end with what their programs saw of them.
    pub(in crate::proxy) fn give_up(&self, of: impl Fn(&Arc<BackgroundReply>) -> bool) {
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
            // One that is not held is on its way to a program.
            let held = locked(&awaited.held).take();
            held.into_iter().for_each(Postponed::give_up);
        }
    }

    /// Awaits a reply: its step stays open. One that is too many ends with what its program was told at first.
    pub(super) fn wait_for(
        &self,
        id: String,
        surface: &'static dyn Surface,
        step: Box<OpenStep>,
        head: Parts,
        said: Bytes,
    ) {
        let run = Arc::clone(&step.run);
        let held = Mutex::new(Some(Postponed { step, head, said }));
        if let Some(refused) = self.add(BackgroundReply { id, run, surface, held }) {
            let held = locked(&refused.held).take();
            held.into_iter().for_each(Postponed::give_up);
        }
    }

    /// Takes one more; gives it back where there are too many.
    fn add(&self, awaited: BackgroundReply) -> Option<BackgroundReply> {
        let mut all = locked(&self.0);
        if all.values().map(VecDeque::len).sum::<usize>() >= AWAITED_MAX {
            return Some(awaited);
        }
        all.entry((awaited.run.id.clone(), awaited.id.clone())).or_default().push_back(Arc::new(awaited));
        None
    }

    fn remove(&self, awaited: &Arc<BackgroundReply>) {
        let mut all = locked(&self.0);
        let key = (awaited.run.id.clone(), awaited.id.clone());
        if let Some(queue) = all.get_mut(&key) {
            queue.retain(|other| !Arc::ptr_eq(other, awaited));
            if queue.is_empty() {
                all.remove(&key);
            }
        }
    }

    /// Whether a reply is still awaited.
    fn awaits(&self, awaited: &Arc<BackgroundReply>) -> bool {
        let key = (awaited.run.id.clone(), awaited.id.clone());
        locked(&self.0).get(&key).is_some_and(|queue| queue.iter().any(|other| Arc::ptr_eq(other, awaited)))
    }

    /// What is fetched of an awaited reply, heard as it passes. `in_part`: of a stream without its beginning.
    pub(super) fn observe(
        &self,
        awaited: &Arc<BackgroundReply>,
        received: Response<ReceivedBody>,
        link: &Arc<Link>,
        in_part: bool,
    ) -> Response<ReceivedBody> {
        let postponed = if in_part { None } else { locked(&awaited.held).take() };
        let Some(mut postponed) = postponed else { return received };
        postponed.step.fetched(link, received.status(), received.headers());
        let (awaited, background, headers) = (Arc::clone(awaited), self.clone(), received.headers().clone());
        let hearing = BackgroundListener { awaited, background, headers, postponed: Some(postponed) };
        received.map(|body| ReceivedBody::Observed(Box::new(body), Box::new(hearing)))
    }
}

impl Postponed {
    fn give_up(self) {
        let Self { mut step, head, said } = self;
        step.answered(head.status, &head.headers);
        step.tape(&said);
        // What cannot be recorded has stopped the run already.
        let _ = step.close(CloseCause::Complete);
    }
}

/// Hears what is fetched of a reply pass: where it was made, its step is closed before its end is released. Where it was
/// not, or breaks off, the program may ask again, and the step goes on waiting.
#[derive(Debug)]
struct BackgroundListener {
    awaited: Arc<BackgroundReply>,
    background: Background,
    headers: HeaderMap,
    postponed: Option<Postponed>,
}

impl Listener for BackgroundListener {
    fn frame(&mut self, frame: &Bytes) {
        if let Some(postponed) = &mut self.postponed {
            postponed.step.tape(frame);
        }
    }

    fn end(&mut self) {
        let Self { awaited, headers, .. } = self;
        let is_made = |step: &OpenStep| {
            let taped = step.taped();
            if step.is_stream() {
                awaited.surface.is_finished(&taped)
            } else {
                in_the_making(awaited.surface, headers, &taped).is_none()
            }
        };
        if let Some(mut postponed) = self.postponed.take_if(|postponed| is_made(&postponed.step)) {
            // What cannot be recorded has stopped the run already.
            let _ = postponed.step.close(CloseCause::Complete);
            self.background.remove(&self.awaited);
        }
    }
}

impl Drop for BackgroundListener {
    fn drop(&mut self) {
        let Some(mut postponed) = self.postponed.take() else { return };
        postponed.step.wait_on();
        if self.background.awaits(&self.awaited) {
            *locked(&self.awaited.held) = Some(postponed);
        } else {
            postponed.give_up();
        }
    }
}

/// The id of a whole reply that is still being made.
pub(super) fn in_the_making(surface: &dyn Surface, headers: &HeaderMap, raw: &Bytes) -> Option<String> {
    let unpacked = UnpackedBody::unpack(raw, headers::text(headers, &header::CONTENT_ENCODING));
    unpacked.refused.is_none().then(|| surface.in_the_making(&unpacked.plain)).flatten()
}
