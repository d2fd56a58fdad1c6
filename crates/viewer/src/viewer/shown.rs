//! The types of what `show --format json` prints; the page of `aegis view` shows parts of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::change::ShownChange;
use crate::{
    capability::ShownCapability,
    recording::{ImportedFrom, KeepMark, RunOrigin, ToolCaller},
    surface::account::{RunAccount, StepAccount},
    trajectory::{
        AgentName, CallEnding, CloseCause, InjectedError, Label, Outcome, ProxyErrorText, ReplyOrigin, RunId, Source,
        StepIndex, Uninspected, Usage, WatchSign,
    },
};

/// A run, with those of its steps that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShownRun<'a> {
    /// What is said of the run as a whole.
    #[serde(flatten)]
    pub(super) head: RunHead<'a>,
    /// That it is kept, whatever is pruned.
    pub(super) kept: Option<KeepMark>,
    /// What can be done with it, by verb.
    pub(super) can: BTreeMap<&'static str, ShownCapability>,
    /// The steps.
    pub(super) steps: Vec<ShownStep<'a>>,
}

/// A run without its steps.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunHead<'a> {
    pub(super) run: &'a RunId,
    pub(super) task: &'a Option<String>,
    pub(super) started: &'a str,
    pub(super) ended: &'a Option<String>,
    pub(super) upstream: &'a str,
    /// Whose trace it was, where it was imported.
    pub(super) imported: &'a Option<ImportedFrom>,
    /// What it was made for, where it is nobody's own run.
    pub(super) origin: Option<RunOrigin>,
    pub(super) seed: Option<u64>,
    pub(super) plan_digest: &'a Option<String>,
    pub(super) sealed: bool,
    /// Exchanges that never closed.
    pub(super) open_exchanges: u64,
    pub(super) outcome: &'a Outcome,
    /// What became known later and holds, in words.
    pub(super) later: Vec<String>,
    pub(super) label: &'a Option<Label>,
    /// Why it has no label, or why the one that it has does not hold.
    pub(super) no_label: Option<&'a str>,
    pub(super) account: &'a RunAccount,
    /// Words about the recording itself.
    pub(super) notes: &'a [String],
    pub(super) watched: &'a [WatchSign],
    pub(super) manipulator_failures: Vec<ShownFailure<'a>>,
    pub(super) manipulator_questions: Vec<ShownQuestion<'a>>,
}

/// An edit that could not be made.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownFailure<'a> {
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) injection: u32,
    pub(super) operator: &'a str,
    pub(super) why: &'a str,
}

/// What a manipulator asked its model.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownQuestion<'a> {
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) injection: u32,
    pub(super) operator: &'a str,
    pub(super) upstream: &'a str,
    pub(super) model: &'a str,
    pub(super) template: &'a str,
    /// A body: JSON as it is, other text as a string, other bytes as `{"base64": …}`; `null` where there is none.
    pub(super) question: Value,
    /// As `question`.
    pub(super) answer: Value,
    pub(super) error: &'a Option<String>,
    pub(super) changed: &'a Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<f64>,
    pub(super) took_us: u64,
}

/// A step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShownStep<'a> {
    #[serde(flatten)]
    pub(super) facts: StepFacts<'a>,
    /// What named the agent.
    pub(super) source: Source,
    pub(super) evidence: &'a str,
    /// Of the last attempt, as are the next three.
    pub(super) status: Option<u16>,
    pub(super) cause: Option<CloseCause>,
    pub(super) ending: Option<CallEnding>,
    pub(super) usage: Option<Usage>,
    /// The request: JSON as it is, other text as a string, other bytes as `{"base64": …}`; `null` where it is empty.
    pub(super) request: Value,
    /// As the upstream got it, where an injection changed it.
    pub(super) request_sent: Option<Value>,
    /// The reply that the client got.
    pub(super) reply: Option<Value>,
    /// What the agent got, as text: a reply, or an error of the proxy itself.
    pub(super) text: String,
    pub(super) attempts: Vec<ShownAttempt<'a>>,
    /// What injections changed, with `--before-after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changes: Option<Vec<ShownChange>>,
    /// For whom a tool was called, where the step is an answer of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) called_by: Option<&'a ToolCaller>,
}

/// What is said of a step wherever it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StepFacts<'a> {
    pub(super) step: StepIndex,
    pub(super) call: u32,
    pub(super) turn: u32,
    pub(super) agent: &'a AgentName,
    pub(super) instance: u32,
    pub(super) confidence: f64,
    pub(super) ambiguous: bool,
    pub(super) overlapping: bool,
    pub(super) surface: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) account: StepAccount,
    pub(super) injected: &'a [InjectedError],
}

/// An attempt of a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownAttempt<'a> {
    #[serde(flatten)]
    pub(super) facts: AttemptFacts<'a>,
    pub(super) uninspected: Option<Uninspected>,
    /// The reply of the upstream.
    pub(super) reply: Value,
    /// The reply that the client got, where it differs.
    pub(super) reply_delivered: Option<Value>,
}

/// What is said of an attempt wherever it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AttemptFacts<'a> {
    pub(super) attempt: u32,
    pub(super) at: &'a str,
    pub(super) status: Option<u16>,
    pub(super) cause: Option<CloseCause>,
    pub(super) ending: Option<CallEnding>,
    pub(super) streamed: bool,
    pub(super) first_byte_us: Option<u64>,
    pub(super) last_byte_us: Option<u64>,
    pub(super) usage: Option<Usage>,
    /// False where redaction or a size cap changed the stored bytes, and where they were remade from a trace.
    pub(super) exact: bool,
    /// Where the reply came from.
    pub(super) origin: ReplyOrigin,
    /// What the proxy itself answered, where no reply came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_error: Option<&'a ProxyErrorText>,
}
