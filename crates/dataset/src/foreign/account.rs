//! What of a trace has no place in a recording: by call and side where it is of a call, and counted for the trace.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::holds_text;
use crate::trajectory::{Side, StepUnplaced, Unplaced, UnplacedKind};

/// Most names that an account counts one by one, and the longest of them, in characters.
const NAMES: usize = 64;
const NAME: usize = 80;
/// Most pieces that an account holds, and the longest quote of one, in characters.
const PIECES: usize = 100;
const QUOTE: usize = 60;

/// What of a trace, or of one side of a call, has no place in a recording: what is known and left out, and what no reader
/// knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceAccount {
    /// What is known, and how often it was left out.
    pub left_out: BTreeMap<&'static str, u64>,
    /// What holds text and is known to no reader, by name, and how often it was there.
    pub unplaced: BTreeMap<String, u64>,
    /// The first of it, in the order of the trace.
    pub pieces: Vec<Unplaced>,
}

impl TraceAccount {
    /// Counts something that is left out.
    pub fn leave_out(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.left_out.entry(what).or_default() += times;
        }
    }

    /// Notes something that no reader knows. `value`: what stands there.
    pub fn cannot_place(&mut self, place: &str, what: UnplacedKind, value: &Value) {
        self.count(&numberless(place), 1);
        self.hold(&piece(place, what, value));
    }

    /// Counts what another account counts. Its pieces stay where they are: they are of a call.
    pub fn add(&mut self, other: &Self) {
        for (what, times) in &other.left_out {
            self.leave_out(what, *times);
        }
        for (name, times) in &other.unplaced {
            self.count(name, *times);
        }
    }

    /// Takes in another account with its pieces.
    pub(super) fn take_in(&mut self, other: &Self) {
        self.add(other);
        for piece in &other.pieces {
            self.hold(piece);
        }
    }

    /// Whether it holds as many pieces as it may.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES
    }

    fn count(&mut self, name: &str, times: u64) {
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
        let known = self.unplaced.contains_key(&name) || self.unplaced.len() < NAMES;
        *self.unplaced.entry(if known { name } else { "further names".to_owned() }).or_default() += times;
    }

    fn hold(&mut self, piece: &Unplaced) {
        if !self.is_full() && !self.pieces.contains(piece) {
            self.pieces.push(piece.clone());
        }
    }
}

/// The account of a call, side by side.
#[derive(Debug, Default)]
pub(super) struct CallAccount {
    /// Of what was asked.
    pub(super) request: TraceAccount,
    /// Of what was answered.
    pub(super) reply: TraceAccount,
}

impl CallAccount {
    /// Notes something that no reader knows; of either side, where `side` is not known.
    pub(super) fn cannot_place(&mut self, side: Option<Side>, place: &str, what: UnplacedKind, value: &Value) {
        match side {
            Some(Side::Request) => self.request.cannot_place(place, what, value),
            Some(Side::Response) => self.reply.cannot_place(place, what, value),
            None => {
                self.reply.cannot_place(place, what, value);
                self.request.hold(&piece(place, what, value));
            }
        }
    }

    /// The pieces of the call; both sides are counted in the account of the trace.
    pub(super) fn close(self, trace: &mut TraceAccount) -> StepUnplaced {
        trace.add(&self.request);
        trace.add(&self.reply);
        StepUnplaced { request: self.request.pieces, reply: self.reply.pieces }
    }
}

/// The pieces of two accounts of one call: a piece that both hold is one.
pub(super) fn joined(own: StepUnplaced, other: StepUnplaced) -> StepUnplaced {
    let side = |own: Vec<Unplaced>, other: Vec<Unplaced>| {
        let mut account = TraceAccount { pieces: own, ..TraceAccount::default() };
        for piece in &other {
            account.hold(piece);
        }
        account.pieces
    };
    StepUnplaced { request: side(own.request, other.request), reply: side(own.reply, other.reply) }
}

fn piece(place: &str, what: UnplacedKind, value: &Value) -> Unplaced {
    let place = place.chars().filter(|c| !c.is_control()).take(2 * NAME).collect();
    Unplaced { place, what, quote: quoted(value).chars().take(QUOTE).collect() }
}

/// The first words in a value, or all of it where there are none.
fn quoted(value: &Value) -> String {
    let inner = match value {
        Value::String(said) => return said.clone(),
        Value::Array(all) => all.iter().find(|inner| holds_text(inner)),
        Value::Object(fields) => fields.values().find(|inner| holds_text(inner)),
        _ => None,
    };
    inner.map_or_else(|| value.to_string(), quoted)
}

/// A place with `#` for each number in it.
pub(super) fn numberless(place: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = place.split_inclusive(['.', '[', ']']).map(|part| {
        let bare = part.trim_end_matches(['.', '[', ']']);
        if is_number(bare) { format!("#{}", part.get(bare.len()..).unwrap_or_default()) } else { part.to_owned() }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_are_of_a_side_or_of_both_and_are_counted_once() {
        let mut call = CallAccount::default();
        call.cannot_place(Some(Side::Request), "a.1.b", UnplacedKind::Member, &json!("some words"));
        call.cannot_place(Some(Side::Response), "c[2].d", UnplacedKind::Part, &json!({"x": 1, "y": ["more words"]}));
        call.cannot_place(None, "e", UnplacedKind::Event, &json!({"f": 7}));
        let mut trace = TraceAccount::default();
        let pieces = call.close(&mut trace);
        let counts: Vec<(&str, u64)> = trace.unplaced.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("a.#.b", 1), ("c[#].d", 1), ("e", 1)]);
        let stated = |side: &[Unplaced]| side.iter().map(ToString::to_string).collect::<Vec<_>>();
        let event = "`e` is an event of an unknown type: {\"f\":7}";
        assert_eq!(stated(&pieces.request), ["`a.1.b` is an unknown member: some words", event]);
        assert_eq!(stated(&pieces.reply), ["`c[2].d` is an element of an unknown type: more words", event]);
        assert_eq!(joined(pieces.clone(), pieces.clone()), pieces);
        assert!(trace.pieces.is_empty());
    }

    #[test]
    fn names_and_pieces_are_bounded() {
        let mut account = TraceAccount::default();
        for number in 0..1000 {
            account.cannot_place(&format!("name{number}"), UnplacedKind::Member, &json!("é".repeat(1000)));
        }
        assert_eq!((account.unplaced.len(), account.unplaced["further names"]), (65, 936));
        assert_eq!((account.pieces.len(), account.pieces[0].quote.chars().count()), (100, 60));
    }
}
