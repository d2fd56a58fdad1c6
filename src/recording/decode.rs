//! Bodies from records: the inverse of `encode`, checked by hash.

use std::{
    collections::HashMap,
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
    /// Its bytes.
    pub(super) bytes: Bytes,
    /// Whether they are those that passed.
    pub(super) exact: bool,
    /// Arrival in µs and length of each event of a stream.
    pub(super) frames: Vec<(u64, u64)>,
}

/// The texts and bodies of a log, as far as it is read.
#[derive(Debug)]
pub(super) struct Library {
    blobs: PathBuf,
    texts: HashMap<ContentHash, String>,
    bodies: HashMap<ContentHash, Body>,
}

impl Library {
    /// An empty one for the run in this directory.
    pub(super) fn new(run_dir: &Path) -> Self {
        Self { blobs: run_dir.join("blobs"), texts: HashMap::new(), bodies: HashMap::new() }
    }

    /// Takes a text in.
    pub(super) fn add_text(&mut self, record: TextRecord<'_>) -> Result<(), String> {
        let mut escaped = Vec::with_capacity(record.text.len());
        Style::Minimal.escape(&record.text, &mut escaped);
        if ContentHash::of(&escaped) != record.hash {
            return Err(format!("the text does not fit its hash `{}`", record.hash));
        }
        self.texts.insert(record.hash, record.text.into_owned());
        Ok(())
    }

    /// Puts a body together.
    pub(super) fn body(&mut self, record: &BodyRecord<'_>) -> Result<Body, String> {
        let refers = record.parent.is_none() && record.segs.is_empty() && record.frames.is_empty();
        if refers && record.len > 0 {
            let known = self.bodies.get(&record.hash);
            return known.cloned().ok_or_else(|| format!("body `{}` is not in the log", record.hash));
        }
        if record.len > LONGEST {
            return Err(format!("a body of {} bytes is too long", record.len));
        }
        let mut bytes = Vec::new();
        let mut exact = record.redacted.is_empty() && record.cut_from.is_none();
        let parent = match record.parent {
            None => Body::default(),
            Some(hash) => {
                self.bodies.get(&hash).cloned().ok_or_else(|| format!("parent body `{hash}` is not in the log"))?
            }
        };
        let start = usize::try_from(record.shared).unwrap_or(usize::MAX);
        bytes.extend_from_slice(parent.bytes.get(..start).ok_or("it shares more than its parent has")?);
        for segment in &record.segs {
            self.append(segment, &mut bytes)?;
        }
        let frames = self.frames(record, &mut bytes)?;
        let end = usize::try_from(record.shared_end).unwrap_or(usize::MAX);
        let from = parent.bytes.len().checked_sub(end).ok_or("it shares more than its parent has")?;
        bytes.extend_from_slice(parent.bytes.get(from..).unwrap_or_default());
        if bytes.len() as u64 != record.len || ContentHash::of(&bytes) != record.hash {
            return Err(format!("the body does not fit its hash `{}`", record.hash));
        }
        exact &= record.len == bytes.len() as u64;
        let body = Body { bytes: bytes.into(), exact, frames };
        self.bodies.insert(record.hash, body.clone());
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
        let content = disk::read_whole(&path, LONGEST).map_err(|error| super::log::error_text(&error))?;
        let content = content.ok_or_else(|| format!("blob `{blob}` is missing"))?;
        if ContentHash::of(&content) != blob {
            return Err(format!("blob `{blob}` does not fit its name"));
        }
        bytes.extend_from_slice(&content);
        Ok(())
    }
}
