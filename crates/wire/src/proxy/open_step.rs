//! A step between its first record and its last: dropped early, it still closes its record.

mod reply;
mod monitoring;

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};

use super::{
    broken_streams::PostedMessage,
    headers, heavy,
    listen::socket::Link,
    remembered::Numbers,
    run::Run,
    stored::StepStorage,
    strip::RawTape,
    tape::Tape,
    tunnel::counts::PassedBytes,
    upstream::{Asker, UploadPrefix},
    waiting::EarlyPieces,
    watched::StepWatch,
};
use crate::{
    identity::{AttributedCall, LedgerNumber, Track},
    plan::Injection,
    recording::{Captured, Close, Queued, RecordingError},
    surface::{self, Surface},
    trajectory::{Attribution, CallEnding, CloseCause, ProxyErrorText, ReplyOrigin},
};

/// A step under way.
#[derive(Debug)]
pub(super) struct OpenStep {
    pub(super) run: Arc<Run>,
    pub(super) numbers: Numbers,
    pub(super) attribution: Attribution,
    pub(super) surface: Option<&'static dyn Surface>,
    /// Its number in the ledger of the run.
    pub(super) number: LedgerNumber,
    link: Arc<Link>,
    awaited: ReplyWait,
    /// Whether agents that the upstream names may speak in its reply, and the plan edits replies.
    pub(super) names_speakers: bool,
    /// Whether anything was planted in the run before the plan looked at this step.
    pub(super) planted_before: bool,
    /// What it has to do with what the upstream keeps.
    pub(super) storage: StepStorage,
    pub(super) delivered: Option<Bytes>,
    /// What takes pieces of a held reply ahead of it.
    pub(super) ahead: Option<EarlyPieces>,
    /// The reply as the upstream sends it, where it was asked for more than the client asked for.
    pub(super) raw_tape: Option<RawTape>,
    /// What is kept of a request that streams through.
    pub(super) upload: Option<Arc<UploadPrefix>>,
    /// Counts what passes uninspected, where the connection has switched to another protocol.
    pub(super) tunnel: Option<Arc<PassedBytes>>,
    /// How lineage hears of it, where that told its run.
    track: Option<Track>,
    head: Option<(StatusCode, HeaderMap)>,
    /// What the proxy itself answers, where no reply comes.
    pub(super) proxy_error: Option<Box<ProxyErrorText>>,
    /// Where the reply comes from: an upstream that answers from a record says so.
    pub(super) origin: ReplyOrigin,
    /// Whether the reply is an event stream: as its head says, until its first bytes tell.
    streamed: bool,
    tape: Tape,
    closed: bool,
    /// A record of the step that may still wait to be written.
    queued: Option<Queued>,
    /// The request, where somebody is told of it at the end.
    request: Option<monitoring::ClosingRequest>,
    /// The message to a tool server that it is.
    pub(super) posted: Option<PostedMessage>,
    /// What is to be looked at once its record is written, where the run is watched.
    watch: StepWatch,
}

/// How long somebody waits for a reply.
#[derive(Debug)]
pub(super) struct ReplyWait {
    /// When the request arrived.
    pub(super) received: Instant,
    /// How long the client says that it waits.
    pub(super) patience: Option<Duration>,
}

impl OpenStep {
    /// The step of a request: who asks, and how long.
    pub(super) fn new(
        run: Arc<Run>,
        numbers: Numbers,
        asked: AttributedCall,
        surface: Option<&'static dyn Surface>,
        awaited: ReplyWait,
        link: Arc<Link>,
    ) -> Box<Self> {
        link.enter();
        Box::new(Self {
            run,
            numbers,
            attribution: asked.attribution,
            surface,
            number: asked.number,
            link,
            awaited,
            names_speakers: false,
            planted_before: false,
            storage: StepStorage::default(),
            delivered: None,
            ahead: None,
            raw_tape: None,
            upload: None,
            tunnel: None,
            track: None,
            head: None,
            proxy_error: None,
            origin: ReplyOrigin::default(),
            streamed: false,
            tape: Tape::default(),
            closed: false,
            queued: None,
            request: None,
            posted: None,
            watch: StepWatch::default(),
        })
    }

    /// Lets lineage know what becomes of the step.
    pub(super) fn follow(&mut self, track: Option<Track>) {
        if let Some(track) = &track {
            track.opened(self.numbers.step, self.numbers.attempt, &self.attribution);
        }
        self.track = track;
    }

    /// Who asks, for an upstream that wants to know.
    pub(super) fn asker(&self, asked: &Bytes) -> Asker {
        Asker {
            run: self.run.id.clone(),
            step: self.numbers.step,
            call: self.numbers.call,
            attempt: self.numbers.attempt,
            attribution: self.attribution.clone(),
            client_body: asked.clone(),
            sent: self.storage.sent_form(),
            planted: self.planted_before,
        }
    }

    /// An injection of the run's plan.
    pub(super) fn injection(&self, number: u32) -> Option<&Injection> {
        self.run.plan.as_ref()?.injections.get(number as usize)
    }

    /// What is asked of the upstream in the end, in place of the program's own words. `alters`: the plan may make the reply
    /// another.
    pub(super) fn note_sent_request(&mut self, own: &Bytes, got: &Bytes, alters: bool) {
        if let Some(surface) = self.surface {
            self.watch.note_sent_request(self.run.watched.is_some(), surface, got);
            self.storage.note_sent_request(&self.run.retold, surface, own, got, alters);
        }
    }

    /// When an edit by a model that begins now must be done; `None` where there is no such model.
    pub(super) fn deadline(&self) -> Option<tokio::time::Instant> {
        Some(self.run.asking.as_ref()?.deadline(self.awaited.patience, self.awaited.received.elapsed()))
    }

    /// The head of the reply is there.
    pub(super) fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.streamed = headers::is_event_stream(headers);
        self.head = Some((status, headers.clone()));
    }

    /// The lines that may start the last frame of a stream.
    pub(super) fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        self.surface.map_or(&[b"data: [DONE]"], |surface| surface.ends_of_stream())
    }

    /// The last frame of a stream, where it says nothing but that.
    pub(super) fn last_frame(&self) -> Option<&'static [u8]> {
        self.surface.map(Surface::last_frame)
    }

    /// The reply is there at last, fetched over this connection: what was said of it before does not count.
    pub(super) fn fetched(&mut self, link: &Arc<Link>, status: StatusCode, headers: &HeaderMap) {
        self.wait_on();
        self.link.leave();
        self.link = Arc::clone(link);
        self.link.enter();
        self.answered(status, headers);
    }

    /// The reply is still to come, over whatever connection asks for it; what was told of it so far is none of it.
    pub(super) fn wait_on(&mut self) {
        self.link.leave();
        self.link = Arc::default();
        self.link.enter();
        self.untape();
    }

    /// Keeps a chunk of the upstream's reply.
    pub(super) fn tape(&mut self, chunk: &Bytes) {
        if !self.closed {
            let received = self.awaited.received;
            self.tape.push(chunk, self.streamed, || micros_since(received));
            self.streamed = self.tape.is_stream().unwrap_or(self.streamed);
        }
    }

    /// Whether the reply is an event stream, as far as its head and its bytes so far tell.
    pub(super) fn is_stream(&self) -> bool {
        self.streamed
    }

    /// The upstream's reply was taped whole; what follows is the edited one.
    pub(super) fn stop_taping(&mut self) {
        self.tape.stop();
    }

    /// Takes the chunks off the tape again: they are yet to be passed on, and are taped then.
    pub(super) fn untape(&mut self) -> VecDeque<Bytes> {
        self.tape.take_back()
    }

    /// The upstream's reply so far, in one piece.
    pub(super) fn taped(&self) -> Bytes {
        self.tape.joined_bytes()
    }

    /// Why it ends, where nobody reads its reply on.
    pub(super) fn cause_of_end(&self) -> CloseCause {
        self.link.cause_of_end()
    }

    /// Closes the client's connection with a reset.
    pub(super) fn reset_connection(&self) {
        self.link.reset();
    }

    /// Forgets a step whose opening could not be recorded.
    pub(super) fn abandon(&mut self) {
        self.closed = true;
        self.link.leave();
        self.run.note_reply(&self.attribution, self.number, None, true);
        if let Some(track) = &self.track {
            track.ended(None, true);
        }
        self.run.depart(&self.attribution);
    }

    /// Whether the record is complete.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The records of the step so far wait to be written.
    pub(super) fn queued(&mut self, queued: Queued) {
        self.queued = Some(queued);
    }

    /// Waits until the records of the step so far are written. Exchanges that are ready at the same time share a write:
    /// those that are get their turn first.
    ///
    /// # Errors
    /// They could not be written: what follows them must not happen.
    pub(super) async fn written(&mut self) -> Result<(), RecordingError> {
        let Some(queued) = self.queued else { return Ok(()) };
        if !queued.is_alone {
            let mut waited = false;
            poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        self.write()
    }

    /// Writes the records of the step so far.
    fn write(&mut self) -> Result<(), RecordingError> {
        self.queued.take().map_or(Ok(()), |queued| self.run.recorder.write_queued(queued))?;
        if let Some((length, heard)) = self.watch.take_exchange() {
            heavy::at_end(length, || self.run.watch(self.numbers.step, &self.attribution, &heard));
        }
        Ok(())
    }

    /// Writes the closing record; further calls do nothing.
    ///
    /// # Errors
    /// The record could not be written: the reply's end must not be released.
    pub(super) fn close(&mut self, cause: CloseCause) -> Result<(), RecordingError> {
        self.queue_close(cause)?;
        self.write()
    }

    /// As [`OpenStep::close`], but the reply's end must wait for [`OpenStep::written`].
    ///
    /// # Errors
    /// As [`OpenStep::close`].
    pub(super) fn queue_close(&mut self, cause: CloseCause) -> Result<(), RecordingError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        heavy::at_end(self.tape.length(), || self.queue_last(cause))
    }

    fn queue_last(&mut self, cause: CloseCause) -> Result<(), RecordingError> {
        self.link.leave();
        let (status, tape) = (self.head.as_ref().map(|(status, _)| status.as_u16()), self.tape.take());
        let first_byte_us = tape.first().map(|(_, at)| *at);
        let body = self.surface.map(|_| self.given_reply(&tape)).unwrap_or_default();
        let ending = surface::ending(self.surface, cause, status, &body, self.streamed);
        // Clients ask again after these statuses, whatever they say, and after what says nothing of what was asked.
        let retried = status.is_some_and(|status| matches!(status, 408 | 409 | 429 | 500..));
        let failed = retried || cause != CloseCause::Complete || ending.is_infrastructure();
        // What came to its end without saying so is still what the agent got.
        let is_reply = !failed || (cause == CloseCause::Complete && ending == CallEnding::Cut);
        if is_reply {
            self.learn_unread(&tape);
        }
        let read = self.remember(&body, is_reply, failed, ending);
        if self.watch.is_on() && ending.is_error() && !cause.is_own() {
            self.watch.refused(body);
        }
        let usage = if is_reply { read.or_else(|| self.skim_usage(&tape)) } else { None };
        let headers = self.head.take().map(|(_, headers)| headers).unwrap_or_default();
        let all: Vec<Bytes> = tape.iter().filter(|_| !self.streamed).map(|(chunk, _)| chunk.clone()).collect();
        let fuller = self.raw_tape.take().map(|tape| tape.all_bytes()).filter(|fuller| !fuller.is_empty());
        let upload = self.upload.take().map(|upload| upload.so_far());
        let close = Close {
            step: self.numbers.step,
            attempt: self.numbers.attempt,
            cause,
            origin: self.origin,
            status,
            headers: &headers::pairs(&headers),
            streamed_request: upload.as_ref(),
            reply: match (status, self.streamed) {
                _ if let Some(counts) = &self.tunnel => Captured::Uninspected(counts.so_far()),
                (None, _) => Captured::Nothing,
                (Some(_), true) => Captured::Stream(&tape),
                (Some(_), false) => Captured::Whole(&all),
            },
            truncated: self.tape.is_cut(),
            delivered: self.delivered.as_ref(),
            reply_with_logprobs: fuller.as_ref(),
            proxy_error: self.proxy_error.as_deref(),
            usage,
            finish_reason: None,
            first_byte_us,
            last_byte_us: Some(micros_since(self.awaited.received)),
        };
        self.log(cause, status, self.tape.length());
        let queued = self.run.recorder.queue_close(close);
        self.tell_closed(cause, ending, status, usage, &tape);
        // Only now is a further call of the agent no longer overlapping with this one.
        self.run.depart(&self.attribution);
        self.queued = Some(queued?);
        Ok(())
    }

    /// A line a call, for who wants to see them pass (`-v`).
    fn log(&self, cause: CloseCause, status: Option<u16>, bytes: usize) {
        tracing::info!(
            run = self.run.id.as_str(),
            step = self.numbers.step,
            agent = self.attribution.agent.as_str(),
            status,
            bytes,
            ms = micros_since(self.awaited.received) / 1000,
            ?cause,
            "call"
        );
    }
}

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Drop for OpenStep {
    fn drop(&mut self) {
        let cause = if std::thread::panicking() { CloseCause::Internal } else { self.cause_of_end() };
        // A recording that fails here has already stopped the run; nobody waits for this reply any more.
        let _ = self.close(cause);
    }
}
