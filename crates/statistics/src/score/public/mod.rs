//! The public scorers, reproduced figure by figure, warts included. They are for comparing with published numbers and
//! for nothing else: each one's quirks are named beside its figures.

mod aegis;
mod whowhen;

use serde::Serialize;

pub use aegis::{evaluate as aegis, evaluate_fork as aegis_fork};
pub use whowhen::{answer as whowhen_answer, evaluate as whowhen};

/// What a public scorer says.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Public {
    /// Which scorer.
    pub scorer: &'static str,
    /// Its figures, under its own names, in its own order.
    pub figures: Vec<PublicFigure>,
    /// What one has to know about them.
    pub quirks: &'static [&'static str],
}

/// One figure of a public scorer.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PublicFigure {
    /// Its name there.
    pub name: String,
    /// The value, unrounded.
    pub value: f64,
    /// As the scorer prints it.
    pub shown: String,
}

/// A row on which the public scorer itself ends with an error, so that it has no figures to equal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: the public scorer cannot score this file: {why}")]
pub struct PublicScorerFails {
    /// Where, 1-based.
    pub line: usize,
    /// On what.
    pub why: String,
}

impl Public {
    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// The characters that Python's `str.strip` and `\s` take for white space and Rust does not.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
