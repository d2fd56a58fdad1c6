//! A recorded attempt as a reply: head, frames as they came, and the way it ended.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Response, StatusCode,
    body::{Body, Frame, SizeHint},
    header::{self, HeaderName, HeaderValue},
};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    proxy::upstream::{BodyError, ReceivedBody, UpstreamError},
    recording::ExchangeDetail,
    surface::sse,
    trajectory::{Attempt, CloseCause, ReplyOrigin},
};

/// How fast recorded replies come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// As fast as they can be read.
    #[default]
    Fast,
    /// As they came when they were recorded.
    Recorded,
}

/// What is given of an attempt.
#[derive(Debug, Clone)]
pub(super) enum ReplayedPart {
    /// What the client got.
    Delivered,
    /// What the upstream sent, before any edit.
    Upstream,
    /// This instead: a whole reply, event stream or not as the recorded one.
    Instead(Bytes),
}

/// How a recorded attempt is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayedFraming {
    pub(super) timing: Timing,
    /// A fault cut it short, but its framing says that it is whole.
    pub(super) cut_clean: bool,
    /// Its client left before the server had answered, or had ended its stream: nothing ends it now.
    pub(super) stays_open: bool,
}

/// Gives a recorded attempt. Its errors are those that the exchange met then.
pub(super) async fn give(
    attempt: &Attempt,
    detail: Option<&ExchangeDetail>,
    given: &ReplayedPart,
    ReplayedFraming { timing, cut_clean, stays_open }: ReplayedFraming,
) -> Result<Response<ReceivedBody>, UpstreamError> {
    let asked = Instant::now();
    let at = |us: Option<u64>| asked + Duration::from_micros(us.unwrap_or_default());
    let wait = async |us: Option<u64>| {
        if timing == Timing::Recorded {
            sleep_until(at(us)).await;
        }
    };
    let Some(status) = attempt.status else {
        wait(attempt.last_byte_us).await;
        if stays_open {
            // Its client leaves again.
            std::future::pending::<()>().await;
        }
        return Err(unanswered(attempt));
    };
    wait(attempt.first_byte_us.or(attempt.last_byte_us)).await;
    let cause = if matches!(given, ReplayedPart::Delivered) { attempt.cause } else { Some(CloseCause::Complete) };
    let whole = cut_clean || matches!(cause, Some(CloseCause::Complete | CloseCause::UpstreamTruncated));
    let frames = frames(attempt, detail, given);
    let edited = !matches!(given, ReplayedPart::Upstream) && attempt.reply_delivered.is_some();
    let body = if whole && timing == Timing::Fast {
        ReceivedBody::Made(frames.into_iter().map(|(_, frame)| frame).collect())
    } else {
        let due = |(us, frame)| (if timing == Timing::Recorded { at(Some(us)) } else { asked }, frame);
        let frames = frames.into_iter().map(due).collect();
        let timer = Box::pin(sleep_until(asked));
        ReceivedBody::Streamed(Playback { frames, timer, whole, sized: !attempt.streamed, stays_open }.boxed_unsync())
    };
    let mut response = Response::new(body);
    response.extensions_mut().insert(origin(attempt, given));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in detail.map(|detail| detail.reply_headers.as_slice()).unwrap_or_default() {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    if edited || whole || matches!(given, ReplayedPart::Instead(_)) {
        // Counted anew: a whole body says its length itself.
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    Ok(response)
}

/// Where the reply comes from, as the run that gets it records it.
fn origin(attempt: &Attempt, given: &ReplayedPart) -> ReplyOrigin {
    match given {
        ReplayedPart::Instead(_) => ReplyOrigin::Replaced,
        ReplayedPart::Delivered if attempt.reply_delivered.is_some() => ReplyOrigin::AlteredAgain,
        ReplayedPart::Delivered if !attempt.origin.is_live() => attempt.origin,
        ReplayedPart::Delivered | ReplayedPart::Upstream => ReplyOrigin::Recorded,
    }
}

/// What an exchange without an answer met. Recordings of earlier versions do not hold what the proxy answered.
fn unanswered(attempt: &Attempt) -> UpstreamError {
    if let (Some(error), Some(cause)) = (attempt.proxy_error.clone(), attempt.cause) {
        return UpstreamError::AsRecorded { error, cause };
    }
    let recorded = || Box::<dyn std::error::Error + Send + Sync>::from("so it was when the run was recorded");
    match attempt.cause {
        Some(CloseCause::UpstreamUnreachable) => UpstreamError::unreachable(recorded()),
        Some(CloseCause::UpstreamReset | CloseCause::UpstreamTruncated) => UpstreamError::Closed(recorded()),
        Some(CloseCause::UpstreamTimeout) => {
            UpstreamError::Timeout(Duration::from_micros(attempt.last_byte_us.unwrap_or_default()))
        }
        // The client left, a fault closed the connection, or the proxy ended: there was no answer, so there is none.
        _ => UpstreamError::Hushed,
    }
}

/// The frames of the reply, each with the µs after which it came.
fn frames(attempt: &Attempt, detail: Option<&ExchangeDetail>, given: &ReplayedPart) -> VecDeque<(u64, Bytes)> {
    let body = match given {
        ReplayedPart::Delivered => attempt.delivered(),
        ReplayedPart::Upstream => &attempt.reply,
        ReplayedPart::Instead(body) => body,
    };
    let last = attempt.last_byte_us.unwrap_or_default();
    if !attempt.streamed {
        return if body.is_empty() { VecDeque::new() } else { VecDeque::from([(last, body.clone())]) };
    }
    let arrivals = detail.map(|detail| detail.frames.as_slice()).unwrap_or_default();
    let total: u64 = arrivals.iter().map(|(_, length)| length).sum();
    if total == body.len() as u64 && *body == attempt.reply {
        let mut start = 0;
        let cut = |(at, length): &(u64, u64)| {
            let end = start + usize::try_from(*length).unwrap_or(usize::MAX);
            let frame = body.slice(start..end);
            start = end;
            (*at, frame)
        };
        return arrivals.iter().map(cut).collect();
    }
    // Edited: its frames are its own, and only the times of the recorded ones are known.
    let time = |index: usize| arrivals.get(index).map_or(last, |(at, _)| *at);
    let events = sse::events(body).into_iter().enumerate();
    events.map(|(index, event)| (time(index), body.slice(event.span))).collect()
}

/// A recorded body: frames when they are due, then its end or a break.
struct Playback {
    frames: VecDeque<(Instant, Bytes)>,
    timer: Pin<Box<Sleep>>,
    whole: bool,
    sized: bool,
    stays_open: bool,
}

impl Body for Playback {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some((due, _)) = self.frames.front() else {
            if self.stays_open {
                return Poll::Pending;
            }
            return Poll::Ready((!self.whole).then_some(Err(BodyError::AsRecorded)));
        };
        if *due > Instant::now() {
            let due = *due;
            self.timer.as_mut().reset(due);
            ready!(self.timer.as_mut().poll(context));
        }
        Poll::Ready(self.frames.pop_front().map(|(_, frame)| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.whole && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if !self.whole || !self.sized {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.frames.iter().map(|(_, frame)| frame.len() as u64).sum())
    }
}
