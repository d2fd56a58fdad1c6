//! Executing what a fault asks for: waits, answers and resets before the request; cuts, hangs and resets in the reply.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Sleep;

use crate::fault::{Disturbance, Moment};

/// A disturbance of a reply under way.
#[derive(Debug)]
pub(super) struct Breach {
    moment: Moment,
    /// How the reply is left: properly framed, or broken.
    clean: bool,
    /// Whether a stream left clean still gets its end marker.
    end_marker: bool,
    reset: bool,
    wait: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes of the reply let through so far.
    passed: u64,
    /// Frames of the reply let through so far.
    frames: u32,
    /// Whether the last byte ended a line, so that a further line end ends a frame.
    line_ended: bool,
    /// Whether what was let through ends with a blank line.
    frame_ended: bool,
    acted: bool,
    /// The whole body's length, if known.
    length: Option<u64>,
}

impl Breach {
    /// The part of a disturbance that acts on the reply, if it has one. `length` is the body's, if known.
    pub(super) fn from_disturbance(disturbance: &Disturbance, length: Option<u64>) -> Option<Self> {
        let (moment, clean, end_marker, reset, wait) = match disturbance {
            Disturbance::Reset(moment) => (*moment, false, false, true, None),
            Disturbance::Cut { at, clean, end_marker } => (*at, *clean, *end_marker, false, None),
            Disturbance::Hang { at, at_most } => (*at, false, false, true, Some(*at_most)),
            _ => return None,
        };
        Some(Self {
            moment,
            clean,
            end_marker,
            reset,
            wait,
            timer: None,
            passed: 0,
            frames: 0,
            line_ended: false,
            frame_ended: false,
            acted: false,
            length,
        })
    }

    /// Whether the moment has come; `ready` is then cut back to what may still pass. `at_end`: the end of the reply
    /// is about to be released.
    pub(super) fn is_reached(&mut self, ready: &mut VecDeque<Bytes>, at_end: bool) -> bool {
        let mut passing = VecDeque::new();
        while let Some(mut chunk) = ready.pop_front() {
            let allowed = self.allowance(&chunk);
            if allowed < chunk.len() {
                chunk.truncate(allowed);
                self.acted = true;
            }
            self.passed += chunk.len() as u64;
            if !chunk.is_empty() {
                self.frame_ended = chunk.ends_with(b"\n\n") || chunk.ends_with(b"\r\n\r\n");
                passing.push_back(chunk);
            }
            if self.acted {
                break;
            }
        }
        *ready = passing;
        self.acted |= at_end;
        self.acted
    }

    /// How much of a chunk may pass before the moment comes.
    fn allowance(&mut self, chunk: &[u8]) -> usize {
        // At the latest the moment comes before the last byte: a body of known length is whole with it.
        let last = self.length.map_or(u64::MAX, |length| length.saturating_sub(1));
        let bytes_left =
            |limit: u64| usize::try_from(limit.min(last).saturating_sub(self.passed)).unwrap_or(usize::MAX);
        match self.moment {
            Moment::BeforeRequest | Moment::BeforeBody => 0,
            Moment::AfterBytes(limit) => bytes_left(limit),
            Moment::AfterFrames(per_mille) if self.length.is_some() => {
                bytes_left(self.length.unwrap_or_default().saturating_mul(per_mille.into()) / 1000)
            }
            Moment::AfterFrames(frames) => self.frame_end(chunk, frames),
            Moment::BeforeEnd => bytes_left(u64::MAX),
        }
    }

    /// Where in a chunk the given number of frames is complete; its length if not yet.
    fn frame_end(&mut self, chunk: &[u8], frames: u32) -> usize {
        if self.frames >= frames {
            return 0;
        }
        for (at, byte) in chunk.iter().enumerate() {
            match byte {
                b'\n' if std::mem::replace(&mut self.line_ended, true) => {
                    self.frames += 1;
                    self.line_ended = false;
                    if self.frames == frames {
                        return at + 1;
                    }
                }
                b'\n' | b'\r' => {}
                _ => self.line_ended = false,
            }
        }
        chunk.len()
    }

    /// The last frame that a stream still gets after what was let through; empty if it gets none. `frame` is the
    /// surface's.
    pub(super) fn end_marker(&self, frame: &[u8]) -> Bytes {
        if !(self.clean && self.end_marker) || frame.is_empty() {
            return Bytes::new();
        }
        // A frame that was cut in its middle is ended, so that the marker is a frame of its own.
        let before: &[u8] = if self.passed == 0 || self.frame_ended { b"" } else { b"\n\n" };
        [before, frame].concat().into()
    }

    pub(super) fn has_acted(&self) -> bool {
        self.acted
    }

    pub(super) fn is_clean(&self) -> bool {
        self.clean && self.wait.is_none()
    }

    pub(super) fn resets(&self) -> bool {
        self.reset
    }

    /// Bytes of the reply that were let through.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Waits out a hang.
    pub(super) fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(wait) = self.wait else { return Poll::Ready(()) };
        self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait))).as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(at: Moment, length: Option<u64>, chunks: &[&'static str]) -> (String, bool) {
        let mut breach = Breach::from_disturbance(&Disturbance::Cut { at, clean: false, end_marker: false }, length)
            .expect("acts on the reply");
        let mut out = String::new();
        for chunk in chunks {
            let mut ready = VecDeque::from([Bytes::from_static(chunk.as_bytes())]);
            let due = breach.is_reached(&mut ready, false);
            out.extend(ready.iter().map(|bytes| std::str::from_utf8(bytes).expect("utf-8")));
            if due {
                return (out, true);
            }
        }
        (out, false)
    }

    #[test]
    fn the_moment_comes_at_the_byte() {
        let sse = ["data: a\n\ndata: b\n", "\ndata: c\n\n"];
        for (at, length, chunks, expected) in [
            (Moment::BeforeBody, None, &sse[..], ("", true)),
            (Moment::AfterBytes(3), None, &sse[..], ("dat", true)),
            (Moment::AfterBytes(20), None, &sse[..], ("data: a\n\ndata: b\n\nda", true)),
            (Moment::AfterFrames(1), None, &sse[..], ("data: a\n\n", true)),
            (Moment::AfterFrames(2), None, &sse[..], ("data: a\n\ndata: b\n\n", true)),
            (Moment::AfterFrames(9), None, &sse[..], ("data: a\n\ndata: b\n\ndata: c\n\n", false)),
            (Moment::BeforeEnd, Some(10), &["0123", "456789"][..], ("012345678", true)),
            (Moment::AfterBytes(99), Some(10), &["0123", "456789"][..], ("012345678", true)),
            (Moment::AfterFrames(500), Some(10), &["0123", "456789"][..], ("01234", true)),
            (Moment::BeforeEnd, None, &sse[..], ("data: a\n\ndata: b\n\ndata: c\n\n", false)),
        ] {
            let (out, due) = passed(at, length, chunks);
            assert_eq!((out.as_str(), due), expected, "{at:?}");
        }
    }
}
