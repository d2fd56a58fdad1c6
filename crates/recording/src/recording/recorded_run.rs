//! A run as it was recorded.

use super::{
    Manifest, RecordingError, RunFact,
    manipulated::{ManipulatorFailure, ManipulatorQuestion},
};
use crate::{
    equality::Rules,
    identity::LateStep,
    trajectory::{Label, RecordedRelation, StepIndex, Trajectory, WatchSign},
};

/// A run as it was recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// `run.json`.
    pub manifest: Manifest,
    /// The steps, in order of their numbers.
    pub trajectory: Trajectory,
    /// What else a record says of each exchange, in the order in which they were opened.
    pub exchanges: Vec<ExchangeDetail>,
    /// Words about the recording itself.
    pub notes: Vec<String>,
    /// Signs of trouble that were seen under way.
    pub watched: Vec<WatchSign>,
    /// Edits that could not be made.
    pub manipulator_failures: Vec<ManipulatorFailure>,
    /// What manipulators asked their model, in order.
    pub manipulator_questions: Vec<ManipulatorQuestion>,
    /// `label.json`.
    pub label: Option<Label>,
    /// The files beside the log that somebody edited after they were written, by their own hashes. No label rests on them.
    pub edited: Vec<&'static str>,
    /// `identity.json`: where the late pass sees a step otherwise than its record does.
    pub late: Vec<LateStep>,
    /// What was learned of it later (`facts.jsonl`), oldest first. All the rest reads as they say.
    pub facts: Vec<RunFact>,
    /// Whether the run was sealed; its log was then checked against the seal.
    pub sealed: bool,
    /// Exchanges that never closed.
    pub open_exchanges: u64,
    /// Bytes of a torn end that were left out; 0 in a sealed run.
    pub torn_bytes: u64,
}

/// What a record says of an exchange beside what [`Attempt`](crate::trajectory::Attempt) holds.
#[derive(Debug, Clone, Default)]
pub struct ExchangeDetail {
    /// Step of the run.
    pub step: StepIndex,
    /// Attempt of the step.
    pub attempt: u32,
    /// What named the run.
    pub run_source: String,
    /// Microseconds from the beginning of the recording to the request's arrival.
    pub at_us: u64,
    /// The place of its opening in the log, which has exchanges in the order in which they happened; times may cross.
    pub opened: u64,
    /// What it is beside the earlier calls.
    pub relates: RecordedRelation,
    /// The place of its end in the log; `None` where the recording ends before it.
    pub closed: Option<u64>,
    /// Stored headers of the request.
    pub request_headers: Vec<(String, String)>,
    /// Stored headers of the reply.
    pub reply_headers: Vec<(String, String)>,
    /// Why the model stopped, in the API's word.
    pub finish_reason: Option<String>,
    /// Arrival (µs since the request's) and length of each event of a streamed reply.
    pub frames: Vec<(u64, u64)>,
    /// The injections that acted on this exchange, by their index in the plan.
    pub injected: Vec<u32>,
}

/// What is equal in two runs: as the one says that says anything. The clean runs of a campaign do not know yet what it learns from
/// them.
///
/// # Errors
/// Rules that this version does not read.
pub fn rules_of_both(a: &Recording, b: &Recording) -> Result<Rules, RecordingError> {
    let said = if a.manifest.equality.is_default() { b } else { a };
    said.manifest.rules()
}
