//! Where a reply came from.

use serde::{Deserialize, Serialize};

/// Where the reply of an attempt came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOrigin {
    /// From the upstream, while the run was under way.
    #[default]
    Live,
    /// From the record of another run, as that upstream gave it.
    Recorded,
    /// From the record of another run, where an injection had altered it: those bytes were given again.
    AlteredAgain,
    /// Set in the place of a recorded reply, by a fork, a trace or a retry.
    Replaced,
    /// From a trace: the body was remade from what the trace holds.
    Remade,
    /// From where a later version knows.
    #[serde(other)]
    Other,
}

impl ReplyOrigin {
    /// Its words, wherever a reply is shown.
    pub fn words(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Recorded => "recorded",
            Self::AlteredAgain => "altered again",
            Self::Replaced => "replaced",
            Self::Remade => "remade",
            Self::Other => "of unknown origin",
        }
    }

    /// Whether the upstream gave it in this run.
    pub fn is_live(&self) -> bool {
        *self == Self::Live
    }
}
