//! A call as identity tells it to whoever asks, and as it is told of its end.

use super::ledger::{CallRelation, LedgerNumber};
use crate::{surface::Reply, trajectory::Attribution};

/// Who makes a request, and what it is beside the earlier calls of that agent.
#[derive(Debug, Clone)]
pub struct AttributedCall {
    /// Who makes it.
    pub attribution: Attribution,
    /// What it is beside the agent's earlier calls.
    pub relation: CallRelation,
    /// The number of the call: of an earlier one, where it is another try of that.
    pub number: LedgerNumber,
}

/// An attempt of a call that is over.
#[derive(Debug, Clone, Copy)]
pub struct EndedCall<'a> {
    /// The call.
    pub number: LedgerNumber,
    /// What was delivered, if it is an answer that an agent may quote.
    pub reply: Option<&'a Reply>,
    /// Whether it gave no answer.
    pub failed: bool,
    /// When, by the clock of [`LedgerRequest::at_us`](super::LedgerRequest::at_us).
    pub at_us: u64,
}
