//! A reply as a fault changes it.

use std::ops::Range;

use bytes::Bytes;

use crate::surface::{Answer, Reading, Reply, Surface, door, is_of_server, sse, written};

/// A whole reply of the upstream.
#[derive(Debug)]
pub struct Answered<'a> {
    /// Its bytes.
    pub body: &'a [u8],
    /// Whether it is an event stream.
    pub streamed: bool,
    /// The API that it speaks.
    pub surface: &'a dyn Surface,
    /// The agent that asked.
    pub agent: &'a str,
    /// Earlier answers of the run, oldest first: (agent, text). Bounded.
    pub earlier: &'a [(String, String)],
}

fn too_few(count: usize) -> String {
    format!("the stream has only {count} {}", if count == 1 { "frame" } else { "frames" })
}

impl Answered<'_> {
    /// The frames of an event stream.
    ///
    /// # Errors
    /// It is none, or has fewer than `least`.
    pub fn frames(&self, least: usize) -> Result<Vec<Range<usize>>, String> {
        if !self.streamed {
            return Err("the reply is no event stream".to_owned());
        }
        let events = sse::events(self.body).into_iter().filter(|event| !event.data.is_empty());
        let frames: Vec<_> = events.map(|event| event.span).collect();
        let count = frames.len();
        if count < least { Err(too_few(count)) } else { Ok(frames) }
    }

    /// The JSON of a frame, 0-based.
    ///
    /// # Errors
    /// There is no such frame.
    pub fn json_of_frame(&self, frame: u32) -> Result<Range<usize>, String> {
        let span = self.span_of_frames(frame, 1)?;
        let data = sse::events(self.slice(&span)).into_iter().flat_map(|event| event.data).next();
        data.map(|data| span.start + data.start..span.start + data.end).ok_or_else(|| "the frame is empty".to_owned())
    }

    /// The bytes of frames that follow each other. The last frame of a model's stream, which ends it, is never among them; that of a
    /// server of tools is its answer.
    ///
    /// # Errors
    /// There are no such frames.
    pub fn span_of_frames(&self, first: u32, count: u32) -> Result<Range<usize>, String> {
        let (first, count) = (usize::try_from(first).unwrap_or(usize::MAX), usize::try_from(count.max(1)).unwrap_or(1));
        let past = first.saturating_add(count);
        let end_marker = usize::from(!is_of_server(self.surface.name()));
        let frames = self.frames(past.saturating_add(end_marker))?;
        match (frames.get(first), frames.get(past - 1)) {
            (Some(from), Some(to)) => Ok(from.start..to.end),
            _ => Err(too_few(frames.len())),
        }
    }

    /// The bytes of a span.
    pub fn slice(&self, span: &Range<usize>) -> &[u8] {
        self.body.get(span.clone()).unwrap_or_default()
    }

    /// The reply with this span replaced.
    pub fn replaced(&self, span: &Range<usize>, with: &[u8]) -> Bytes {
        let (before, after) = (self.slice(&(0..span.start)), self.slice(&(span.end..self.body.len())));
        Bytes::from([before, with, after].concat())
    }

    /// The reply with every answer edited.
    ///
    /// # Errors
    /// It cannot be read, the edit says why not, it has no place, or it changes nothing.
    pub fn edited(&self, mut edit: impl FnMut(&mut Answer) -> Result<(), String>) -> Result<Bytes, String> {
        let before = self.read()?;
        let mut after = before.clone();
        for answer in &mut after.answers {
            edit(answer)?;
        }
        if after == before {
            return Err("the reply is already so".to_owned());
        }
        let body = Bytes::copy_from_slice(self.body);
        let edited = door::write_reply(self.surface, &body, self.streamed, &before, &after);
        let edited = edited.map_err(|error| error.to_string())?;
        if edited == self.body {
            return Err("the reply has no place for it".to_owned());
        }
        written::reply(self.surface, &edited, self.streamed, &before, &after)?;
        Ok(edited)
    }

    /// What it says, where all of it was read.
    fn read(&self) -> Result<Reply, String> {
        let read = door::reading(self.surface, self.body, self.streamed);
        let Reading { view, unplaced } = read.map_err(|error| error.to_string())?;
        unplaced.first().map_or(Ok(view), |piece| Err(written::not_placed(piece)))
    }
}
