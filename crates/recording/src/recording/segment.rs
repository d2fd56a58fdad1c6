//! The new middle of a body, in pieces: JSON strings that are long enough to come back become texts.
//!
//! Nothing here depends on the body being valid JSON: a piece that is not what it looks like is stored as it is.

use std::{borrow::Cow, ops::Range};

use super::{
    content_hash::ContentHash,
    recent::Shared,
    strings::{self, Style},
};

/// Shorter strings are not worth a reference.
const TEXT: usize = 48;
/// A string of which less than this is shared is stored whole, so that it is found when it comes back elsewhere.
const CUT: usize = 256;
/// Distance of places where a later scan may begin.
const CHECKPOINT: usize = 512;

/// A piece of the middle.
#[derive(Debug)]
pub(super) struct MiddlePiece {
    /// Where it lies in the body.
    pub(super) range: Range<usize>,
    /// What it is, if a text.
    pub(super) text: Option<PieceText>,
}

/// A piece that is a text.
#[derive(Debug)]
pub(super) struct PieceText {
    /// The hash of its minimal escape.
    pub(super) hash: ContentHash,
    /// How it is escaped here.
    pub(super) style: Style,
    /// The minimal escape, where it is not what stands here.
    pub(super) minimal: Option<Vec<u8>>,
}

/// The middle of a body.
#[derive(Debug, Default)]
pub(super) struct BodyMiddle {
    /// Where it begins and ends; never narrower than what was given.
    pub(super) range: Range<usize>,
    /// Its pieces: they tile the range.
    pub(super) pieces: Vec<MiddlePiece>,
    /// The marks of the whole body.
    pub(super) marks: Vec<Range<usize>>,
}

/// Cuts what lies between the shared start and the shared end into pieces.
pub(super) fn cut(body: &[u8], middle: Range<usize>, shared: Option<&Shared>) -> BodyMiddle {
    let looks_like_json =
        body.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'{' | b'['));
    if !looks_like_json {
        return BodyMiddle { pieces: literal(middle.clone()).into_iter().collect(), range: middle, marks: Vec::new() };
    }
    let (marks, pieces) = (Vec::with_capacity(8), Vec::with_capacity(8));
    let mut scan = SegmentScan { body, marks, pieces, done: middle.start };
    let parent_marks = shared.map(|shared| shared.parent.marks.as_slice()).unwrap_or_default();
    let mut at = scan.enter(middle.start, parent_marks);
    let start = scan.done;
    let mut end = middle.end;
    while let Some(string) = strings::next_string(body, at) {
        if string.start >= end {
            break;
        }
        if string.end > end {
            if string.end - end > CUT {
                scan.mark(&string);
                break;
            }
            end = string.end;
        }
        at = string.end + 1;
        scan.string(string);
    }
    if scan.done < end {
        scan.pieces.extend(literal(scan.done..end));
    }
    let (mut marks, pieces) = (scan.marks, scan.pieces);
    if let Some(shared) = shared {
        let (old, new) = (shared.parent.raw.len(), body.len());
        let from = old.saturating_sub(new.saturating_sub(end));
        let first = parent_marks.partition_point(|mark| mark.start <= from);
        let moved = parent_marks.get(first..).unwrap_or_default().iter();
        marks.extend(moved.map(|mark| mark.start + new - old..mark.end + new - old));
    }
    BodyMiddle { range: start..end, pieces, marks }
}

struct SegmentScan<'a> {
    body: &'a [u8],
    marks: Vec<Range<usize>>,
    pieces: Vec<MiddlePiece>,
    /// Up to where the pieces reach.
    done: usize,
}

impl SegmentScan<'_> {
    /// Finds out whether `from` lies in a string, moves the beginning back to that string's where little of it is
    /// shared, and returns where to scan on: outside any string.
    fn enter(&mut self, from: usize, parent_marks: &[Range<usize>]) -> usize {
        let before = parent_marks.partition_point(|mark| mark.start <= from);
        let shared = parent_marks.get(..before).unwrap_or_default();
        self.marks.extend(shared.iter().filter(|mark| mark.end < from).cloned());
        let mut at = 0;
        if let Some(last) = shared.last() {
            if last.end >= from && !last.is_empty() {
                return self.enter_string(last.start, from);
            }
            at = if last.is_empty() { last.end } else { last.end + 1 };
        }
        while let Some(string) = strings::next_string(self.body, at) {
            if string.start > from {
                break;
            }
            if string.end >= from {
                return self.enter_string(string.start, from);
            }
            at = string.end + 1;
        }
        at
    }

    fn enter_string(&mut self, start: usize, from: usize) -> usize {
        if from - start <= CUT {
            self.done = start;
            return start - 1;
        }
        let before = self.body.get(start..from).unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        self.done = from - backslashes;
        let end = strings::end_of_string(self.body, self.done);
        self.mark(&(start..end));
        end + 1
    }

    /// Takes in a string that ends inside the middle.
    fn string(&mut self, string: Range<usize>) {
        self.mark(&string);
        if string.len() < TEXT || string.start < self.done {
            return;
        }
        let Some((style, minimal)) = self.body.get(string.clone()).and_then(strings::style_of) else { return };
        if self.done < string.start {
            self.pieces.extend(literal(self.done..string.start));
        }
        self.done = string.end;
        let hash = ContentHash::compute(&minimal);
        let minimal = match minimal {
            Cow::Borrowed(_) => None,
            Cow::Owned(minimal) => Some(minimal),
        };
        self.pieces.push(MiddlePiece { range: string, text: Some(PieceText { hash, style, minimal }) });
    }

    fn mark(&mut self, string: &Range<usize>) {
        let last = self.marks.last().map_or(0, |mark| mark.end);
        if string.len() >= TEXT {
            self.marks.push(string.clone());
        } else if string.end > last + CHECKPOINT {
            self.marks.push(string.end + 1..string.end + 1);
        }
    }
}

fn literal(range: Range<usize>) -> Option<MiddlePiece> {
    (!range.is_empty()).then_some(MiddlePiece { range, text: None })
}
