//! Replies that are made in the background: their request is answered at once by an id, and their program fetches them
//! by it until they are made. Their step stays open until then, so that what a plan wants of the reply is done to the
//! reply, when it is first fetched whole; every later fetch shows the same (`fetch`). A look at a reply that is still
//! being made passes untouched.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Response, header, http::response::Parts};
use tokio::sync::oneshot;

use super::awaited::{Awaited, Fetch, FetchedReply, Hearing, Postponed, TOO_MANY};
use crate::{
    fault::Disturbance,
    proxy::{
        decided::Decided,
        delivery::Delivery,
        due::Due,
        error::{Interrupted, ProxyError},
        exchange::Proxy,
        gather::{gather, joined},
        headers, inject,
        limits::Limits,
        upstream::{ReceivedBody, UpstreamError},
    },
    surface::{
        Reply, ReplyProgress, Surface,
        door::{self, UnpackedBody},
    },
    trajectory::CloseCause,
};

/// Whether a fault acts on the bytes of the very next reply, whatever that says.
fn acts_at_once(disturbance: &Disturbance) -> bool {
    use Disturbance::{ContentType, Cut, Hang, Pace, Reset};
    matches!(disturbance, Reset(_) | Cut { .. } | Hang { .. } | Pace(_) | ContentType(_))
}

impl Proxy {
    /// The reply to a request for one in the background: passed on as it is, what is due to it put off, where it only
    /// says that it will be made.
    pub(in crate::proxy) async fn postpone(
        &self,
        mut due: Due,
        received: Response<ReceivedBody>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let limits = &self.limits;
        let at_once = due.decision.faults.iter().any(|fault| acts_at_once(&fault.disturbance));
        if !received.status().is_success() || headers::is_event_stream(received.headers()) || at_once {
            return due.deliver(received, limits).await;
        }
        let (head, body) = received.into_parts();
        let raw = match gather(body, limits).await {
            Ok(Ok(chunks)) => joined(chunks),
            Ok(Err(rest)) => return due.deliver(Response::from_parts(head, rest), limits).await,
            Err(error) => return Err(due.closed(error.into())?),
        };
        let Due { step, decision, .. } = &mut due;
        let progress = step.surface.map(|surface| (surface, progress(surface, &head, &raw)));
        let Some((surface, ReplyProgress::Making(id))) = progress else {
            let received = Response::from_parts(head, inject::made(raw, false));
            return due.deliver(received, limits).await;
        };
        let number = step.numbers.step;
        step.run.recorder.note(&format!("step {number} is made in the background, as `{id}`"));
        step.kept.name(&step.run.told, &Reply { id: id.clone(), ..Reply::default() });
        step.wait_on();
        let rewords = decision.faults.iter().any(|fault| matches!(fault.disturbance, Disturbance::Reshape));
        let is_due = decision.may_edit_reply() || rewords;
        let run = Arc::clone(&step.run);
        let postponed = Postponed { due, head: head.clone(), said: raw.clone() };
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
    ) -> Result<FetchedReply, Interrupted> {
        let streamed = headers::is_event_stream(received.headers());
        if streamed && !awaited.is_due {
            // Nobody waits for the end of a stream of which nothing is wanted.
            let postponed = if fetch.part { None } else { awaited.held.lock().await.take() };
            return Ok(FetchedReply::Plain(Box::new(match postponed {
                Some(postponed) => self.hear(awaited, postponed, received, fetch),
                None => received,
            })));
        }
        let (head, body) = received.into_parts();
        let raw = match gather(body, &self.limits).await? {
            Ok(chunks) => joined(chunks),
            Err(rest) => return Ok(FetchedReply::Plain(Box::new(Response::from_parts(head, rest)))),
        };
        let streamed = door::is_stream(&raw, streamed);
        let again = || Response::from_parts(head.clone(), inject::made(raw.clone(), streamed));
        let progress = if streamed { ended(awaited.surface, &raw) } else { progress(awaited.surface, &head, &raw) };
        match progress {
            // To pass a part of what is to be edited would tell the program two things.
            ReplyProgress::Making(_) if streamed => {
                return Err(UpstreamError::Closed("the stream of a reply ended before the reply did".into()).into());
            }
            ReplyProgress::Making(_) => return Ok(FetchedReply::Plain(Box::new(again()))),
            ReplyProgress::Made | ReplyProgress::Broken => {}
        }
        let broken = matches!(progress, ReplyProgress::Broken);
        let Some(delivered) = self.settle(awaited, again(), raw.clone(), broken, fetch).await? else {
            return Ok(FetchedReply::Plain(Box::new(again())));
        };
        if fetch.part {
            return Ok(FetchedReply::Plain(Box::new(again())));
        }
        let delivered = delivered.map(|body| Delivery::pass(body, self.limits.silence_timeout));
        Ok(FetchedReply::Delivered(Box::new(delivered)))
    }

    /// A stream of which nothing is wanted, heard as it passes.
    fn hear(
        &self,
        awaited: &Arc<Awaited>,
        mut postponed: Postponed,
        received: Response<ReceivedBody>,
        fetch: &Fetch<'_>,
    ) -> Response<ReceivedBody> {
        postponed.due.step.fetched(fetch.link, &received, fetch.patience);
        let hearing = Hearing::of(awaited, &self.runs.background, postponed);
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
                    postponed.due.step.fetched(&link, &received, patience);
                    let left = || answer.is_closed();
                    let settled = edited(postponed.due, received, &raw, broken, &limits, left).await;
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
fn progress(surface: &dyn Surface, head: &Parts, raw: &Bytes) -> ReplyProgress {
    let unpacked = UnpackedBody::of(raw, headers::text(&head.headers, &header::CONTENT_ENCODING));
    unpacked.refused.as_ref().map_or_else(|| surface.progress(&unpacked.plain), |_| ReplyProgress::Made)
}

/// How far the reply of a stream is that has ended.
fn ended(surface: &dyn Surface, raw: &Bytes) -> ReplyProgress {
    if surface.is_finished(raw) { ReplyProgress::Made } else { ReplyProgress::Making(String::new()) }
}

/// Edits a reply that has been made, and closes its step before anybody gets it. A reply that was not made in the end
/// passes as it is, like any error of an upstream. `left`: whether the client has gone.
async fn edited(
    mut due: Due,
    received: Response<ReceivedBody>,
    raw: &Bytes,
    broken: bool,
    limits: &Limits,
    left: impl Fn() -> bool,
) -> Result<Response<ReceivedBody>, Interrupted> {
    if broken {
        due.decision = Decided::default();
    }
    let response = match due.change(received, limits).await {
        Ok(response) => response,
        Err(interrupted) => return Err(due.closed(interrupted)?),
    };
    if due.step.taped().is_empty() {
        due.step.tape(raw);
    }
    due.step.close(if left() { CloseCause::ClientGone } else { CloseCause::Complete })?;
    Ok(response)
}
