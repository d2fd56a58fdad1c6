//! Bodies from records: the inverse of `encode`, checked by hash.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    path::{Path, PathBuf},
};

use base64::Engine;
use bytes::Bytes;

use super::{
    content_hash::ContentHash,
    disk,
    record::{BodyRecord, Segment, TextRecord},
    strings::Style,
};

/// The longest body that is read back, in bytes.
const LONGEST: u64 = 1 << 30;

/// A body as it stands in the recording.
#[derive(Debug, Clone, Default)]
pub(super) struct Body {
    /// The hash of its bytes as they are stored; none of a body that was never recorded.
    pub(super) hash: Option<ContentHash>,
    /// Its bytes.
    pub(super) bytes: Bytes,
    /// Whether they are those that passed.
    pub(super) exact: bool,
    /// Arrival in µs and length of each event of a stream.
    pub(super) frames: Vec<(u64, u64)>,
}

/// Bodies that are held whole, since the next ones grow from them.
const WHOLE: usize = 64;
/// Bytes of them, at most; a single body may be longer.
const WHOLE_BYTES: usize = 8 << 20;

/// How many bodies one may grow from, each from the one before, without being held whole: so many, and one more for each
/// so many bytes of it. To put a body together then costs no more than to read it.
const DEEPEST: usize = 32;
const BYTES_A_LEVEL: usize = 256;

/// The texts and bodies of a log, as far as it is read.
#[derive(Debug)]
pub(super) struct LogTexts {
    blobs: PathBuf,
    texts: HashMap<ContentHash, String>,
    bodies: Bodies,
    /// The latest bodies, oldest first.
    whole: VecDeque<(ContentHash, Bytes)>,
    whole_bytes: usize,
}

/// Bodies as they stand in a log: what one shares with an earlier one is held once.
#[derive(Debug, Default)]
pub(super) struct Bodies(HashMap<ContentHash, BodyDelta>);

/// One of them: the start of its parent, its own middle, the end of its parent.
#[derive(Debug)]
struct BodyDelta {
    parent: Option<ContentHash>,
    shared: usize,
    middle: Bytes,
    shared_end: usize,
    len: usize,
    /// How many bodies it grows from, each from the one before.
    depth: usize,
    exact: bool,
    frames: Vec<(u64, u64)>,
}

/// A part of a body that is put together: bytes of it, or bytes of its own middle.
enum BodyPiece {
    Of(ContentHash, Range<usize>),
    Own(ContentHash, Range<usize>),
}

impl Bodies {
    /// Bytes that are held: what bodies share counts once.
    pub(super) fn held(&self) -> usize {
        self.0.values().map(|body| body.middle.len()).sum()
    }

    /// A body's bytes. Parents were read before their children, and the first reading of a body stays: no circles.
    pub(super) fn bytes(&self, hash: ContentHash) -> Result<Bytes, String> {
        let body = self.get(hash)?;
        if body.parent.is_none() {
            return Ok(body.middle.clone());
        }
        let mut bytes = Vec::with_capacity(body.len);
        let mut left = vec![BodyPiece::Of(hash, 0..body.len)];
        while let Some(piece) = left.pop() {
            let (hash, range) = match piece {
                BodyPiece::Own(hash, range) => {
                    bytes.extend_from_slice(self.get(hash)?.middle.get(range).unwrap_or_default());
                    continue;
                }
                BodyPiece::Of(hash, range) => (hash, range),
            };
            let body = self.get(hash)?;
            let (start, end) = (body.shared, body.len - body.shared_end);
            if let Some(parent) = body.parent {
                let from = self.get(parent)?.len - body.shared_end;
                let tail = range.start.max(end)..range.end;
                left.push(BodyPiece::Of(parent, tail.start - end + from..(tail.end + from).saturating_sub(end)));
            }
            let own = range.start.clamp(start, end) - start..range.end.clamp(start, end) - start;
            left.push(BodyPiece::Own(hash, own));
            left.extend(body.parent.map(|parent| BodyPiece::Of(parent, range.start..range.end.min(start))));
            left.retain(|piece| !matches!(piece, BodyPiece::Of(_, range) if range.is_empty()));
        }
        Ok(bytes.into())
    }

    fn get(&self, hash: ContentHash) -> Result<&BodyDelta, String> {
        self.0.get(&hash).ok_or_else(|| format!("body `{hash}` is not in the log"))
    }
}

impl LogTexts {
    /// An empty one for the run in this directory.
    pub(super) fn new(run_dir: &Path) -> Self {
        let blobs = run_dir.join("blobs");
        Self { blobs, texts: HashMap::new(), bodies: Bodies::default(), whole: VecDeque::new(), whole_bytes: 0 }
    }

    /// The bodies, without what it takes to read more.
    pub(super) fn into_bodies(self) -> Bodies {
        self.bodies
    }

    /// A body's bytes that stand in the log.
    fn read_body(&self, hash: ContentHash) -> Result<Bytes, String> {
        let whole = self.whole.iter().rev().find(|(known, _)| *known == hash);
        whole.map_or_else(|| self.bodies.bytes(hash), |(_, bytes)| Ok(bytes.clone()))
    }

    fn hold(&mut self, hash: ContentHash, bytes: Bytes) {
        self.whole_bytes += bytes.len();
        self.whole.push_back((hash, bytes));
        while self.whole.len() > WHOLE || (self.whole_bytes > WHOLE_BYTES && self.whole.len() > 1) {
            self.whole_bytes -= self.whole.pop_front().map_or(0, |(_, bytes)| bytes.len());
        }
    }

    /// Takes a text in.
    pub(super) fn add_text(&mut self, record: TextRecord<'_>) -> Result<(), String> {
        let mut escaped = Vec::with_capacity(record.text.len());
        Style::Minimal.escape(&record.text, &mut escaped);
        if ContentHash::compute(&escaped) != record.hash {
            return Err(format!("the text does not fit its hash `{}`", record.hash));
        }
        self.texts.insert(record.hash, record.text.into_owned());
        Ok(())
    }

    /// Puts a body together.
    pub(super) fn body(&mut self, record: &BodyRecord<'_>) -> Result<Body, String> {
        let refers = record.parent.is_none() && record.segs.is_empty() && record.frames.is_empty();
        if refers && record.len > 0 {
            let bytes = self.read_body(record.hash)?;
            let BodyDelta { exact, frames, .. } = self.bodies.get(record.hash)?;
            return Ok(Body { hash: Some(record.hash), bytes, exact: *exact, frames: frames.clone() });
        }
        if record.len > LONGEST {
            return Err(format!("a body of {} bytes is too long", record.len));
        }
        let lost = |parent| move |_| format!("parent body `{parent}` is not in the log");
        let parent = record.parent.map(|parent| self.read_body(parent).map_err(lost(parent))).transpose()?;
        let parent = parent.unwrap_or_default();
        let mut middle = Vec::new();
        for segment in &record.segs {
            self.append(segment, &mut middle)?;
        }
        let frames = self.frames(record, &mut middle)?;
        let middle = Bytes::from(middle.into_boxed_slice());
        let (shared, shared_end) = (length(record.shared), length(record.shared_end));
        let too_much = "it shares more than its parent has";
        let start = parent.get(..shared).ok_or(too_much)?;
        let end = parent.get(parent.len().checked_sub(shared_end).ok_or(too_much)?..).unwrap_or_default();
        let bytes = if parent.is_empty() { middle.clone() } else { [start, middle.as_ref(), end].concat().into() };
        let len = bytes.len();
        if len as u64 != record.len || ContentHash::compute(&bytes) != record.hash {
            return Err(format!("the body does not fit its hash `{}`", record.hash));
        }
        let exact = record.redacted.is_empty() && record.cut_from.is_none();
        let body = Body { hash: Some(record.hash), bytes: bytes.clone(), exact, frames: frames.clone() };
        let parent = record.parent.filter(|_| shared + shared_end > 0);
        let depth = parent.and_then(|parent| self.bodies.get(parent).ok()).map_or(0, |parent| parent.depth + 1);
        let kept = if depth > DEEPEST + len / BYTES_A_LEVEL {
            BodyDelta { parent: None, shared: 0, middle: bytes.clone(), shared_end: 0, len, depth: 0, exact, frames }
        } else {
            BodyDelta { parent, shared, middle, shared_end, len, depth, exact, frames }
        };
        self.bodies.0.entry(record.hash).or_insert(kept);
        self.hold(record.hash, bytes);
        Ok(body)
    }

    fn frames(&self, record: &BodyRecord<'_>, bytes: &mut Vec<u8>) -> Result<Vec<(u64, u64)>, String> {
        let mut arrivals = Vec::with_capacity(record.frames.len());
        let mut before = Vec::new();
        for (at, start, end, middle) in &record.frames {
            let mut frame = Vec::new();
            let start = usize::try_from(*start).unwrap_or(usize::MAX);
            frame.extend_from_slice(before.get(..start).ok_or("a frame shares more than the one before has")?);
            self.append(middle, &mut frame)?;
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            let from = before.len().checked_sub(end).ok_or("a frame shares more than the one before has")?;
            frame.extend_from_slice(before.get(from..).unwrap_or_default());
            arrivals.push((*at, frame.len() as u64));
            bytes.extend_from_slice(&frame);
            before = frame;
        }
        Ok(arrivals)
    }

    fn append(&self, segment: &Segment<'_>, bytes: &mut Vec<u8>) -> Result<(), String> {
        let (hash, style) = match segment {
            Segment::Literal(text) => {
                bytes.extend_from_slice(text.as_bytes());
                return Ok(());
            }
            Segment::Opaque { b64 } => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(b64.as_bytes());
                bytes.extend_from_slice(&decoded.map_err(|error| format!("base64 is damaged: {error}"))?);
                return Ok(());
            }
            Segment::Blob { blob } => return self.append_blob(*blob, bytes),
            Segment::Minimal((hash,)) => (*hash, Style::Minimal),
            Segment::Styled((hash, number)) => {
                (*hash, Style::from_number(*number).ok_or_else(|| format!("text style {number} is not known"))?)
            }
        };
        let text = self.texts.get(&hash).ok_or_else(|| format!("text `{hash}` is not in the log"))?;
        style.escape(text, bytes);
        Ok(())
    }

    fn append_blob(&self, blob: ContentHash, bytes: &mut Vec<u8>) -> Result<(), String> {
        let path = self.blobs.join(blob.to_string());
        let content = disk::read_whole(&path, LONGEST).map_err(|error| super::error::error_text(&error))?;
        let content = content.ok_or_else(|| format!("blob `{blob}` is missing"))?;
        if ContentHash::compute(&content) != blob {
            return Err(format!("blob `{blob}` does not fit its name"));
        }
        bytes.extend_from_slice(&content);
        Ok(())
    }
}

/// A length as it stands in a record; one that no body has is longer than all.
fn length(stored: u64) -> usize {
    usize::try_from(stored).unwrap_or(usize::MAX)
}
