//! What a reader of a body, or of a foreign trace, could not place.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A piece of a body that may carry a text or a call and stands in no view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unplaced {
    /// Where it stands, for example `event 3: choices[0].delta.foo`. Events are counted from 0.
    pub place: String,
    /// What it is.
    pub what: UnplacedKind,
    /// How it begins, at most 60 characters.
    pub quote: String,
}

/// What an unplaced piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, schemars::JsonSchema)]
#[schemars(with = "String", extend("enum" = Self::ALL.map(Self::words)))]
pub enum UnplacedKind {
    /// An event of a type that no reader knows, with a text or a call in it.
    Event,
    /// A member that no reader knows, where an answer can stand.
    Member,
    /// An element of a list, of a type that no reader knows.
    Part,
    /// A known member whose value is of a kind that no reader knows.
    Value,
    /// A delta whose index no start opened, or a start whose index was open before.
    Index,
    /// A further call within what was read as one call: a second id, or a second JSON value in its arguments.
    Call,
    /// A text or a call that a reader should have placed, and that the view does not hold.
    Missing,
}

/// What the importer of a foreign trace could not place of a call. A step that was recorded has none of it: its bytes say
/// what of them is read. A piece of which the trace does not say whether it was asked or answered stands on both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepUnplaced {
    /// Of what was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<Unplaced>,
    /// Of what was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply: Vec<Unplaced>,
}

impl StepUnplaced {
    /// Whether all was placed.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.reply.is_empty()
    }
}

impl UnplacedKind {
    const ALL: [Self; 7] = [Self::Event, Self::Member, Self::Part, Self::Value, Self::Index, Self::Call, Self::Missing];

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Event => "an event of an unknown type",
            Self::Member => "an unknown member",
            Self::Part => "an element of an unknown type",
            Self::Value => "a value of an unknown kind",
            Self::Index => "an index that no start opened",
            Self::Call => "a further call within one call",
            Self::Missing => "a piece that stands in no view",
        }
    }
}

impl Serialize for UnplacedKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}

/// From its words. Those of a later version are a piece that stands in no view: that holds for each kind.
impl<'de> Deserialize<'de> for UnplacedKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = String::deserialize(deserializer)?;
        Ok(Self::ALL.into_iter().find(|kind| kind.words() == words).unwrap_or(Self::Missing))
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, quote } = self;
        write!(out, "`{place}` is {}: {quote}", what.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_from_their_words_and_unknown_words_are_a_piece_in_no_view() {
        for kind in UnplacedKind::ALL {
            let piece = Unplaced { place: "a".to_owned(), what: kind, quote: "b c".to_owned() };
            let written = serde_json::to_string(&piece).expect("JSON");
            assert_eq!(serde_json::from_str::<Unplaced>(&written).expect("reads"), piece);
        }
        let later = r#"{"place": "a", "what": "a kind of a later version", "quote": ""}"#;
        assert_eq!(serde_json::from_str::<Unplaced>(later).expect("reads").what, UnplacedKind::Missing);
    }
}
