//! Why a run has no label, and which of these reasons are about names.

use serde::{Deserialize, Serialize};

/// Why a run, or a step of one, gets no label, or its label does not hold: one reason for each gate, in the order of
/// [`GATES`](super::GATES), one for a label that is not the log's, and one for an edited file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoLabel {
    /// The run is an execution of `aegis retry`.
    #[error("the run answers a note of `aegis retry`, and what repairs a run shows nobody's error")]
    Note,
    /// The run is an execution of a proof.
    #[error(
        "the run is an execution of a proof, with neutral changes of its own: it is evidence for another run's label"
    )]
    Perturbed,
    /// A manipulator failed and its step passed untouched.
    #[error("a manipulator failed and its step passed untouched")]
    ManipulatorFailed,
    /// Nothing but faults was delivered.
    #[error("faults were delivered, and a fault is no agent's error")]
    OnlyFaults,
    /// No altered byte was delivered.
    #[error("no altered byte was delivered")]
    NotInjected,
    /// The wire cannot tell which agent made the call.
    #[error("the wire cannot tell which agent made the call")]
    AmbiguousAgent,
    /// Several agents of the run go by the agent's name.
    #[error(
        "the wire cannot tell which agent made the call: several agents of the run go by one name that nobody declared"
    )]
    ContestedName,
    /// The reply holds the words of agents that the upstream runs.
    #[error("the wire cannot tell which agent made the error: the upstream names several agents in the reply")]
    SeveralAgentsReply,
    /// The call overlapped another call of its agent.
    #[error("the wire cannot tell which of its agent's overlapping calls the step is")]
    Overlapping,
    /// The call overlapped another call of its agent in the run whose beginning was given again.
    #[error(
        "the wire cannot tell which of its agent's calls the step is: they overlapped in the run that it begins like"
    )]
    OverlappingInReference,
    /// All traffic says otherwise than the request alone did when it arrived.
    #[error(
        "the wire cannot tell which agent made the call: all traffic together says otherwise than the request alone did"
    )]
    SeenLate,
    /// The upstream failed for its own reasons.
    #[error("the upstream failed for its own reasons")]
    InfraError,
    /// A planned fault ended a step or altered an answer, so that the planted error is not all that was done to the run.
    #[error(
        "a planned fault ended a step or altered an answer, so the planted error is not all that was done to the run"
    )]
    FaultEnded,
    /// The upstream refused a request as an edit had made it, so that its agent said nothing.
    #[error("the upstream refused a request as an edit had made it")]
    EditRefused,
    /// The call that a label would name has no answer: it was refused, failed or broke off, or its client left.
    #[error("the call that a label would name was not answered")]
    Unanswered,
    /// A piece of what a label would name stands in no view of it, or none of it was read.
    #[error("the call that a label would name was not read whole")]
    NotReadWhole,
    /// The label beside the log says of a planted error what the log does not hold.
    #[error("`label.json` differs from the log: it names an error that was not planted so")]
    DiffersFromLog,
    /// The label, or a file that it rests on, was edited after it was written.
    #[error("`label.json` differs from its hash, or a file that it rests on does: it was edited after it was written")]
    Edited,
}

impl NoLabel {
    /// Whether a roster that names the agent, given now, takes the doubt away: which of overlapping calls a step is, it does not tell.
    pub fn is_mended_by_names(self) -> bool {
        matches!(self, Self::AmbiguousAgent | Self::ContestedName | Self::SeenLate)
    }

    /// Whether it is about who made a call, or which of an agent's calls it is.
    pub fn is_about_identity(self) -> bool {
        match self {
            Self::AmbiguousAgent
            | Self::ContestedName
            | Self::SeveralAgentsReply
            | Self::Overlapping
            | Self::OverlappingInReference
            | Self::SeenLate => true,
            Self::Note
            | Self::Perturbed
            | Self::ManipulatorFailed
            | Self::OnlyFaults
            | Self::NotInjected
            | Self::InfraError
            | Self::FaultEnded
            | Self::EditRefused
            | Self::Unanswered
            | Self::NotReadWhole
            | Self::DiffersFromLog
            | Self::Edited => false,
        }
    }
}
