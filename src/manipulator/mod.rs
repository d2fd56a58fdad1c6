//! Content edits: each manipulator plants one kind of error in one side of one step.
//!
//! A manipulator sees the neutral conversation, never JSON paths, headers or sockets, and does no IO.
//! To add one: a file here, and one line in the list below; its doc example is its test and its catalogue entry.

use crate::surface::{Answer, Conversation};

/// What a manipulator may know besides the text it edits.
#[derive(Debug)]
pub struct Context<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The request that is being made, or, on the response side, that was made.
    pub conversation: &'a Conversation,
    /// Earlier answers of the same run, oldest first: (agent, text). Bounded.
    pub earlier: &'a [(String, String)],
    /// A draw that depends only on seed, run, agent, call and injection.
    pub draw: u64,
}

/// Why an edit was not made. The step then passes untouched and the run is marked, never labelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManipulatorError {
    /// There is nothing of the kind that it edits.
    #[error("{0}")]
    NotApplicable(String),
    /// It edits the other side only.
    #[error("edits the other side only")]
    WrongSide,
}

/// A content edit.
pub trait Manipulator: Send + Sync + std::fmt::Debug {
    /// Edits a request.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited; the conversation is then discarded.
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let _ = (conversation, context);
        Err(ManipulatorError::WrongSide)
    }

    /// Edits one answer of a reply.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited; the answer is then discarded.
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let _ = (answer, context);
        Err(ManipulatorError::WrongSide)
    }
}
