//! What a reader made of a body: the view, and what it could not place.

use std::fmt;

use serde::{Serialize, Serializer};

/// A view of a body, with the account of what the view does not hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading<T> {
    /// What was read.
    pub view: T,
    /// What may carry a text or a call and was not read, in the order of the body. Empty where the view holds all of it.
    pub unplaced: Vec<Unplaced>,
}

/// A piece of a body that may carry a text or a call and stands in no view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplaced {
    /// Where it stands, for example `event 3: choices[0].delta.foo`. Events are counted from 0.
    pub place: String,
    /// What it is.
    pub what: UnplacedKind,
    /// How it begins, at most 60 characters.
    pub quote: String,
}

/// What an unplaced piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl UnplacedKind {
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

impl<T> Reading<T> {
    /// Whether the view holds all that the body says.
    pub fn is_whole(&self) -> bool {
        self.unplaced.is_empty()
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, quote } = self;
        write!(out, "`{place}` is {}: {quote}", what.words())
    }
}
