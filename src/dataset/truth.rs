//! The ground truth of a sample: who erred, where, in which failure mode, and what proves it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Said;
use crate::trajectory::{
    AgentName, Call, Evidence, FailureMode, LabelStatus, Side, StepIndex, TAXONOMY, UnknownFailureMode, Verdict,
};

/// The ground truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// How far it is established.
    pub status: LabelStatus,
    /// What the label means: `injected`, `earliest_flip`, `commitment` or `human` (design §7).
    pub definition: String,
    /// The plan's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the run achieved.
    #[serde(default)]
    pub outcome: Verdict,
    /// Who erred, where: one entry an error; several are a set, all true.
    pub errors: Vec<LabelledError>,
    /// What was changed in flight: one entry a step and side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The runs that prove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// One error of one agent. Foreign formats lack some of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledError {
    /// The agent, by the name that its steps have.
    pub agent: AgentName,
    /// The agent as a foreign format wrote it, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_agent: Option<String>,
    /// Its instance, 0-based.
    #[serde(default)]
    pub instance: u32,
    /// The step, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepIndex>,
    /// The call of the agent instance, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// The failure mode; absent means unknown. An error that was found by re-execution has none: that proves who
    /// erred and where, not how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<Mode>,
    /// The failure mode that an analyzer took the error for: an opinion, never ground truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<Mode>,
    /// Which side was edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The manipulator, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Index of the injection in its plan, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection: Option<u32>,
    /// blake3 of the body before the edit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// blake3 of the body after the edit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// A person's words for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Fields of a foreign format that have no place here, by that format's names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// A failure mode as it was written. It may come from another code book, so nothing is assumed of it;
/// [`Mode::known`] reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mode {
    /// For example `FM-1.3`.
    pub code: String,
    /// For example `step repetition`.
    pub name: String,
    /// The version of the code book.
    pub taxonomy: String,
}

/// What was changed in one step on its way. It is part of the label: none of it may be shown to a tracer, but for
/// what the steps show themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The step, 0-based.
    pub step: StepIndex,
    /// Which side was edited.
    pub side: Side,
    /// The messages that the edit replaced: of a request those that differ, of a reply the model's own answer.
    pub before: Vec<Said>,
    /// What stands in their place.
    pub after: Vec<Said>,
}

impl From<FailureMode> for Mode {
    fn from(mode: FailureMode) -> Self {
        Self { code: mode.code().to_owned(), name: mode.name().to_owned(), taxonomy: TAXONOMY.to_owned() }
    }
}

impl Mode {
    /// The mode of this crate's taxonomy that the code stands for.
    ///
    /// # Errors
    /// [`UnknownFailureMode`] when it stands for none.
    pub fn known(&self) -> Result<FailureMode, UnknownFailureMode> {
        FailureMode::parse(&self.code)
    }
}

impl Truth {
    /// The labelled steps, each once, in order.
    pub fn steps(&self) -> Vec<StepIndex> {
        let mut steps: Vec<_> = self.errors.iter().filter_map(|error| error.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
