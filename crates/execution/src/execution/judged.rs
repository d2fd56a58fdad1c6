//! An execution's end, judged.

use nix::sys::signal::Signal;

use crate::{recording::Recording, trajectory::Outcome};

/// An outcome, and what was read as the answer.
pub(super) struct JudgedEnd {
    pub(super) outcome: Outcome,
    pub(super) answer: String,
    /// The run as the checkers read it, before its end.
    pub(super) read: Option<Recording>,
    /// The signal that interrupted the command that was to judge.
    pub(super) interrupted: Option<Signal>,
}

impl From<Outcome> for JudgedEnd {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, answer: String::new(), read: None, interrupted: None }
    }
}
