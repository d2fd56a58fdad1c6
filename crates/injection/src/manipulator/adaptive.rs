//! What an edit by a model rests on: the failure mode, the task, and the answers so far.

use super::{question::Question, rewrite_with_model::Templates};
use crate::trajectory::FailureMode;

/// What an edit by a model rests on beside the text. All of it is empty where no model is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Adaptive<'a> {
    /// The failure mode that is planted.
    pub failure_mode: Option<FailureMode>,
    /// The run's task; the agent's own first message stands in where it is not known.
    pub task: Option<&'a str>,
    /// Questions that were asked for this edit, and what the model said.
    pub answers: &'a [(Question, String)],
    /// Templates that take the place of the shipped ones.
    pub templates: Option<&'a Templates>,
}

impl Adaptive<'_> {
    /// What the model said to this question, if it was asked.
    pub fn answer_to(&self, question: &Question) -> Option<&str> {
        self.answers.iter().find(|(asked, _)| asked == question).map(|(_, said)| said.as_str())
    }
}
