//! A reply without what only we asked for: as a stream, event by event, while the [tape](RawTape) keeps it as it came.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};

use super::lock::locked;
use crate::surface::{Surface, sse};

/// Bytes of a reply that are kept beside what passes.
const KEPT_MAX: usize = 32 << 20;

/// A reply as the upstream sent it, beside what passes.
#[derive(Debug, Clone, Default)]
pub(super) struct RawTape(Arc<Mutex<BytesMut>>);

impl RawTape {
    pub(super) fn push(&self, chunk: &[u8]) {
        let mut kept = locked(&self.0);
        if kept.len() + chunk.len() <= KEPT_MAX {
            kept.extend_from_slice(chunk);
        }
    }

    /// All that came.
    pub(super) fn all_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&locked(&self.0))
    }
}

/// A stream whose events lose what only we asked for, one by one as they come.
#[derive(Debug)]
pub struct StrippedStream<B> {
    body: B,
    surface: &'static dyn Surface,
    tape: RawTape,
    /// The beginning of an event whose end is still to come.
    pending: BytesMut,
    trailers: Option<Frame<Bytes>>,
    over: bool,
}

impl<B: Body<Data = Bytes> + Unpin> StrippedStream<B> {
    /// Of this stream; the tape hears it as it comes.
    pub(super) fn new(body: B, surface: &'static dyn Surface, tape: RawTape) -> Self {
        Self { body, surface, tape, pending: BytesMut::new(), trailers: None, over: false }
    }

    /// The next events that are whole.
    pub(super) fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
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
                    return Poll::Ready(Some(Ok(Frame::data(strip_events(self.surface, &rest)))));
                }
            };
            match frame.into_data() {
                Ok(chunk) => {
                    self.tape.push(&chunk);
                    self.pending.extend_from_slice(&chunk);
                    let end = if self.pending.len() > sse::LINE_MAX {
                        self.pending.len()
                    } else {
                        whole_events_length(&self.pending)
                    };
                    let events = self.pending.split_to(end).freeze();
                    if !events.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(strip_events(self.surface, &events)))));
                    }
                }
                Err(trailers) => {
                    (self.trailers, self.over) = (Some(trailers), true);
                    let rest = self.pending.split().freeze();
                    if !rest.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(strip_events(self.surface, &rest)))));
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
fn whole_events_length(pending: &[u8]) -> usize {
    [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"]
        .iter()
        .filter_map(|blank| Some(memchr::memmem::rfind(pending, blank)? + blank.len()))
        .max()
        .unwrap_or_default()
}

/// Events without what only we asked for. Data over several lines is no JSON that any backend sends, and is left as it is.
pub(super) fn strip_events(surface: &dyn Surface, events: &Bytes) -> Bytes {
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
    use crate::{proxy::upstream::ReceivedBody, surface::OpenaiChat};

    const ASKED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.1}]},\"finish_reason\":null}]}\r\n\r\n: hello\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    const UNASKED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":null,\"finish_reason\":null}]}\r\n\r\n: hello\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

    /// A stream cut into chunks of this length.
    fn streamed(text: &str, chunk: usize) -> (StrippedStream<ReceivedBody>, RawTape) {
        let chunks = text.as_bytes().chunks(chunk).map(Bytes::copy_from_slice).collect();
        let (body, tape) = (ReceivedBody::Made(chunks), RawTape::default());
        let kept = tape.clone();
        (StrippedStream::new(body, &OpenaiChat, tape), kept)
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
                assert_eq!(tape.all_bytes(), text.as_bytes());
            }
        }
    }
}
