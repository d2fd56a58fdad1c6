//! Replies that say more than the client asked for: the upstream is asked for the log-probabilities of its tokens, the record
//! keeps the reply as it came, and everything after works on the reply as it would be without.

use std::{
    collections::HashSet,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{
    Response, StatusCode,
    body::{Body, Frame},
    header::{self, HeaderValue},
};

use super::{
    gather::{gather, joined},
    headers, inject,
    limits::Limits,
    lock::locked,
    open_step::OpenStep,
    upstream::{ReceivedBody, UpstreamError},
};
use crate::surface::{Surface, sse};

/// Bytes of a reply that are kept beside what passes.
const KEPT_MAX: usize = 32 << 20;
/// Bytes of a refusal that are looked at.
const REFUSAL_MAX: usize = 64 << 10;

/// Asks for log-probabilities, but not those that refuse the question.
#[derive(Debug, Default)]
pub(super) struct LogprobQuestions {
    /// Surfaces and models that refused.
    refused: Mutex<HashSet<(&'static str, String)>>,
}

/// A reply as the upstream sent it, beside what passes.
#[derive(Debug, Clone, Default)]
pub(super) struct FullerTape(Arc<Mutex<BytesMut>>);

impl LogprobQuestions {
    /// The request with the question; `None` where it is not to be asked.
    pub(super) fn ask(&self, surface: Option<&'static dyn Surface>, body: &[u8]) -> Option<Bytes> {
        let surface = surface?;
        let asked = surface.ask_logprobs(body)?;
        let known = locked(&self.refused);
        let refuses = !known.is_empty() && known.contains(&(surface.name(), model(surface, body)));
        (!refuses).then_some(asked)
    }

    /// What refused the question answers without it: it is not asked again. Gives words for whoever wonders, the first time.
    pub(super) fn refused(&self, surface: &'static dyn Surface, body: &[u8], status: StatusCode) -> Option<String> {
        let model = model(surface, body);
        let words = format!(
            "`{model}` refused to be asked for log-probabilities (status {}): it was asked again without, and is not asked any more",
            status.as_u16()
        );
        locked(&self.refused).insert((surface.name(), model)).then_some(words)
    }
}

fn model(surface: &dyn Surface, body: &[u8]) -> String {
    surface.outline(body).map(|outline| outline.model.into_owned()).unwrap_or_default()
}

/// Whether a reply may refuse the question rather than the request: the request is worth another try without it.
///
/// # Errors
/// The reply breaks off.
pub(super) async fn may_refuse(received: &mut Response<ReceivedBody>) -> Result<bool, UpstreamError> {
    match received.status().as_u16() {
        400 | 403 | 422 => Ok(true),
        // An error of the upstream's own is nobody's question, unless it says so.
        500 | 501 => {
            let (mut read, mut told) = (std::collections::VecDeque::new(), Vec::new());
            let body = received.body_mut();
            while told.len() < REFUSAL_MAX
                && let Some(frame) = body.frame().await
            {
                let frame = frame.map_err(|error| UpstreamError::Closed(Box::new(error)))?;
                if let Ok(data) = frame.into_data() {
                    told.extend_from_slice(&data);
                    read.push_back(data);
                }
            }
            let rest = std::mem::replace(body, ReceivedBody::Made(std::collections::VecDeque::new()));
            *body = ReceivedBody::Resumed(read, Box::new(rest));
            Ok(memchr::memmem::find(&told, b"logprob").is_some())
        }
        _ => Ok(false),
    }
}

/// The reply as it would be had nobody asked for log-probabilities. A stream stays one; what is whole is taken in whole.
///
/// # Errors
/// The reply breaks off, or is silent for too long.
pub(super) async fn narrowed(
    step: &mut OpenStep,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, UpstreamError> {
    let Some(surface) = step.surface.filter(|_| received.status().is_success()) else { return Ok(received) };
    let tape = FullerTape::default();
    step.fuller = Some(tape.clone());
    let (mut head, body) = received.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    // A stream that says how long it is has been made already.
    if streamed && !head.headers.contains_key(header::CONTENT_LENGTH) {
        let narrowed = NarrowedStream { body, surface, tape, pending: BytesMut::new(), trailers: None, over: false };
        return Ok(Response::from_parts(head, ReceivedBody::Narrowed(Box::new(narrowed))));
    }
    let chunks = match gather(body, limits).await? {
        Ok(chunks) => chunks,
        // It is more than is held: it passes as it is.
        Err(rest) => return Ok(Response::from_parts(head, rest)),
    };
    let whole = joined(chunks);
    tape.push(&whole);
    let body = if streamed { Some(narrow(surface, &whole)) } else { surface.drop_logprobs(&whole) };
    let body = body.filter(|narrowed| *narrowed != whole).map_or(whole, |narrowed| {
        headers::body_changed(&mut head.headers);
        narrowed
    });
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    if streamed {
        return Ok(Response::from_parts(head, inject::made(body, true)));
    }
    Ok(Response::from_parts(head, ReceivedBody::Made([body].into())))
}

impl FullerTape {
    fn push(&self, chunk: &[u8]) {
        let mut kept = locked(&self.0);
        if kept.len() + chunk.len() <= KEPT_MAX {
            kept.extend_from_slice(chunk);
        }
    }

    /// All that came.
    pub(super) fn whole(&self) -> Bytes {
        Bytes::copy_from_slice(&locked(&self.0))
    }
}

/// A stream whose events lose what only we asked for, one by one as they come.
#[derive(Debug)]
pub struct NarrowedStream {
    body: ReceivedBody,
    surface: &'static dyn Surface,
    tape: FullerTape,
    /// The beginning of an event whose end is still to come.
    pending: BytesMut,
    trailers: Option<Frame<Bytes>>,
    over: bool,
}

impl NarrowedStream {
    /// The next events that are whole.
    pub(super) fn poll_events(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, super::upstream::BodyError>>> {
        loop {
            if self.over {
                return Poll::Ready(self.trailers.take().map(Ok));
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.over = true;
                    let rest = self.pending.split().freeze();
                    if rest.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(narrow(self.surface, &rest)))));
                }
            };
            match frame.into_data() {
                Ok(chunk) => {
                    self.tape.push(&chunk);
                    self.pending.extend_from_slice(&chunk);
                    let end =
                        if self.pending.len() > sse::LINE_MAX { self.pending.len() } else { whole(&self.pending) };
                    let events = self.pending.split_to(end).freeze();
                    if !events.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(narrow(self.surface, &events)))));
                    }
                }
                Err(trailers) => {
                    (self.trailers, self.over) = (Some(trailers), true);
                    let rest = self.pending.split().freeze();
                    if !rest.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(narrow(self.surface, &rest)))));
                    }
                }
            }
        }
    }

    /// Whether nothing follows.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.trailers.is_none() && (self.over || self.body.is_end_stream())
    }
}

/// How many bytes whole events take: up to the last blank line.
fn whole(pending: &[u8]) -> usize {
    [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"]
        .iter()
        .filter_map(|blank| Some(memchr::memmem::rfind(pending, blank)? + blank.len()))
        .max()
        .unwrap_or_default()
}

/// Events without what only we asked for. Data over several lines is no JSON that any backend sends, and is left as it is.
fn narrow(surface: &dyn Surface, events: &Bytes) -> Bytes {
    let mut out = BytesMut::new();
    let mut at = 0;
    for event in sse::events(events) {
        let [data] = event.data.as_slice() else { continue };
        let Some(json) = events.get(data.clone()).and_then(|json| surface.drop_logprobs(json)) else { continue };
        out.extend_from_slice(events.get(at..data.start).unwrap_or_default());
        out.extend_from_slice(&json);
        at = data.end;
    }
    if at == 0 {
        return events.clone();
    }
    out.extend_from_slice(events.get(at..).unwrap_or_default());
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::OpenaiChat;

    const ASKED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.1}]},\"finish_reason\":null}]}\r\n\r\n: hello\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    const UNASKED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":null,\"finish_reason\":null}]}\r\n\r\n: hello\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    /// A stream cut into chunks of this length.
    fn streamed(text: &str, chunk: usize) -> (NarrowedStream, FullerTape) {
        let chunks = text.as_bytes().chunks(chunk).map(Bytes::copy_from_slice).collect();
        let (body, tape) = (ReceivedBody::Made(chunks), FullerTape::default());
        let kept = tape.clone();
        (
            NarrowedStream { body, surface: &OpenaiChat, tape, pending: BytesMut::new(), trailers: None, over: false },
            kept,
        )
    }

    #[test]
    fn a_stream_loses_what_was_asked_for_however_it_is_cut() {
        for text in [ASKED, ASKED.trim_end()] {
            for chunk in 1..text.len() {
                let (mut stream, tape) = streamed(text, chunk);
                let mut context = Context::from_waker(std::task::Waker::noop());
                let mut out = Vec::new();
                while let Poll::Ready(Some(frame)) = stream.poll_events(&mut context) {
                    out.extend_from_slice(&frame.expect("a frame").into_data().expect("data"));
                }
                assert!(stream.is_over());
                assert_eq!(String::from_utf8_lossy(&out), UNASKED.get(..out.len()).expect("as long"), "{chunk}");
                assert_eq!(out.len(), UNASKED.len() - (ASKED.len() - text.len()));
                assert_eq!(tape.whole(), text.as_bytes());
            }
        }
    }

    #[test]
    fn who_refused_is_not_asked_again() {
        let questions = LogprobQuestions::default();
        let body = |model: &str| format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"a"}}]}}"#);
        let chat: &'static dyn Surface = &OpenaiChat;
        assert!(questions.ask(Some(chat), body("m").as_bytes()).is_some());
        let words = questions.refused(chat, body("m").as_bytes(), StatusCode::BAD_REQUEST);
        assert!(words.is_some_and(|words| words.contains("`m` refused")));
        assert!(questions.refused(chat, body("m").as_bytes(), StatusCode::BAD_REQUEST).is_none(), "said once");
        assert!(questions.ask(Some(chat), body("m").as_bytes()).is_none());
        assert!(questions.ask(Some(chat), body("other").as_bytes()).is_some());
        assert!(questions.ask(None, body("m").as_bytes()).is_none());
    }
}
