//! What the clauses of a word problem state, in order.

use super::{noun::CountedUnit, verbs::Deed};

/// So much of something for so much of something else: `12 pencils per box`, `3 pens for 6 dollars`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rate {
    /// How much.
    pub(super) value: f64,
    /// Of what; `None` for whatever the problem is about.
    pub(super) unit: Option<CountedUnit>,
    /// For each of what.
    pub(super) per: CountedUnit,
    /// For how many of them, mostly 1.
    pub(super) per_count: f64,
    /// What the clause does.
    pub(super) deed: Deed,
    /// The one thing that it holds for: `a hen lays 6 eggs per week`.
    pub(super) subject: Option<CountedUnit>,
}

/// So much of something.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Amount {
    /// How much.
    pub(super) value: f64,
    /// Of what; `None` for whatever the problem is about.
    pub(super) unit: Option<CountedUnit>,
    /// What is done with it.
    pub(super) deed: Deed,
    /// Whose, and when: names and subjects, lower case.
    pub(super) tags: Vec<String>,
    /// The rate that its own clause gives for it.
    pub(super) rate: Option<Rate>,
    /// The one thing that has it: `a box holds 24 bottles`.
    pub(super) in_one: Option<CountedUnit>,
}

/// As much as something else, times and plus.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relative {
    /// Times.
    pub(super) factor: f64,
    /// Plus.
    pub(super) offset: f64,
    /// Of what; `None` for the same as the other.
    pub(super) unit: Option<CountedUnit>,
    /// Whose, and when.
    pub(super) tags: Vec<String>,
    /// The words that name the other; empty for what was last spoken of.
    pub(super) than: Vec<String>,
    /// Whether the clause says it of the other way round (`which is twice as many as Ben has`).
    pub(super) inverse: bool,
    /// What is done with it.
    pub(super) deed: Deed,
}

/// What a clause states.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fact {
    /// So much of something.
    Amount(Amount),
    /// So much per something.
    Rate(Rate),
    /// `12 pages in 3 minutes`: a rate if the problem goes on to ask for another time, else two amounts.
    Pace(Rate, Vec<String>),
    /// As much as something else.
    Relative(Relative),
    /// All that there is so far, times a factor.
    Scale(f64),
    /// All that there is so far changes by a share of it, as `20 percent more` or `half are sold`.
    Change {
        /// The share; negative where it is taken away.
        share: f64,
        /// Whether it is written as a percentage.
        percent: bool,
    },
    /// A part of all, named by words: `12 are boys`, `25 percent of the students play chess`.
    Part {
        /// How many, or which share.
        value: f64,
        /// Whether `value` is a share; the bool says whether it is a percentage.
        share: Option<bool>,
        /// What is counted, where the clause says it.
        unit: Option<CountedUnit>,
        /// Singular words that name the part.
        label: Vec<String>,
    },
    /// Dealt out in so many equal parts.
    Divide(f64),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AskedFact {
    /// What is counted in the answer; `None` where the question does not say.
    pub(super) unit: Option<CountedUnit>,
    /// All words of the question, singular.
    pub(super) words: Vec<String>,
    /// For each of what.
    pub(super) each: Option<CountedUnit>,
    /// Facts that the question itself states.
    pub(super) facts: Vec<Fact>,
}

impl AskedFact {
    /// Whether the question has one of these words.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }
}

/// A problem as read: what is stated and what is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Stated {
    /// What is stated, in order.
    pub(super) facts: Vec<Fact>,
    /// What is asked.
    pub(super) asked: AskedFact,
}
