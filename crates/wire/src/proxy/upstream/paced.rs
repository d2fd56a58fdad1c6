//! A body that is passed on slowly.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::{fault::Pace, surface::sse};

/// Another body, slowly.
#[derive(Debug)]
pub struct Paced<B> {
    source: B,
    pace: Pace,
    /// Whether it is an event stream, which goes frame by frame.
    streamed: bool,
    pieces: VecDeque<Bytes>,
    started: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes> + Unpin> Paced<B> {
    /// `streamed`: it is an event stream, which goes frame by frame.
    pub(in crate::proxy) fn new(source: B, pace: Pace, streamed: bool) -> Self {
        Self { source, pace, streamed, pieces: VecDeque::new(), started: false, timer: None }
    }

    /// Takes a chunk apart into what is passed on at once.
    fn take(&mut self, chunk: &Bytes) {
        let frames = if self.streamed { sse::events(chunk) } else { Vec::new() };
        let mut end = 0;
        for frame in frames {
            end = frame.span.end;
            self.cut(chunk.slice(frame.span));
        }
        self.cut(chunk.slice(end..));
    }

    /// Cuts a piece so that none is more than a tenth of a second.
    fn cut(&mut self, mut piece: Bytes) {
        let most = self.pace.bytes_per_s.map_or(usize::MAX, |rate| usize::try_from(rate / 10).unwrap_or(1).max(1));
        while !piece.is_empty() {
            let first = piece.split_to(most.min(piece.len()));
            self.pieces.push_back(first);
        }
    }

    /// How long the next piece waits.
    fn wait(&self, piece: &Bytes) -> Duration {
        let rate = self.pace.bytes_per_s.map_or(0.0, f64::from);
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let bytes = if rate > 0.0 { Duration::from_secs_f64(f64::from(length) / rate) } else { Duration::ZERO };
        bytes + if self.started { self.pace.frame } else { self.pace.first }
    }

    pub(super) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            if let Some(piece) = self.pieces.front() {
                let wait = self.wait(piece);
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
                ready!(timer.as_mut().poll(context));
                (self.timer, self.started) = (None, true);
                return Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))));
            }
            match ready!(Pin::new(&mut self.source).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) => self.take(&chunk),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.pieces.is_empty() && self.source.is_end_stream()
    }

    pub(super) fn hint(&self) -> SizeHint {
        let mut hint = self.source.size_hint();
        let waiting: u64 = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + waiting);
        }
        hint.set_lower(hint.lower() + waiting);
        hint
    }
}
