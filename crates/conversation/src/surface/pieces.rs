//! A text that a stream says in pieces, and an edited text laid over the same pieces.

use std::ops::Range;

use super::splice::{Node, Splices, encode_string};

/// A string literal in some frame, and what it says.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) span: Range<usize>,
    pub(super) text: String,
}

/// The piece that a string literal is.
pub(super) fn piece(node: &Node<'_>) -> Option<Piece> {
    node.string().map(|text| Piece { span: node.span(), text: text.into_owned() })
}

/// What pieces say together.
pub(super) fn joined(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

/// Spreads a new text over the pieces of the old one: what both texts begin and end with stays where it is, the rest
/// goes into the first piece that differs.
pub(super) fn spread(pieces: &[Piece], after: &str, splices: &mut Splices) {
    let before = joined(pieces);
    let front = shared(before.chars(), after.chars());
    let room = before.len().min(after.len()) - front;
    let back = shared_within(before.chars().rev(), after.chars().rev(), room);
    let middle = after.get(front..after.len() - back).unwrap_or_default();
    let tail = before.len() - back;
    let mut at = 0;
    let mut ends = pieces.iter().map(|piece| {
        at += piece.text.len();
        at
    });
    let home = ends.position(|end| end > front).unwrap_or(pieces.len().saturating_sub(1));
    let mut start = 0;
    for (number, piece) in pieces.iter().enumerate() {
        let end = start + piece.text.len();
        let mut text = before.get(start..end.min(front)).unwrap_or_default().to_owned();
        if number == home {
            text.push_str(middle);
        }
        text.push_str(before.get(start.max(tail)..end).unwrap_or_default());
        if text != piece.text {
            splices.replace(piece.span.clone(), encode_string(&text));
        }
        start = end;
    }
}

/// Bytes of the characters that two texts share from where they start.
fn shared(left: impl Iterator<Item = char>, right: impl Iterator<Item = char>) -> usize {
    shared_within(left, right, usize::MAX)
}

fn shared_within(left: impl Iterator<Item = char>, right: impl Iterator<Item = char>, room: usize) -> usize {
    let mut bytes = 0;
    for (a, b) in left.zip(right) {
        if a != b || bytes + a.len_utf8() > room {
            break;
        }
        bytes += a.len_utf8();
    }
    bytes
}
