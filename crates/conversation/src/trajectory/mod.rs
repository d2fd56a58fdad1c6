//! The nouns that every other room speaks: runs, agents, steps, failure modes, labels, outcomes.
//!
//! Nothing here does IO or knows an API's field names. Everything is `0`-based unless it says otherwise.

mod close_cause;
mod dependence;
mod doubt;
mod evaluation;
mod ending;
mod error_lists;
mod evidence;
mod executed;
mod failure_mode;
mod id;
mod injected_error;
mod interval;
mod label;
mod label_entry;
mod nearest;
mod missed_catch;
mod mode_claim;
mod mode_verdict;
mod necessity;
mod need;
mod origin;
mod pattern;
mod retry;
#[cfg(any(test, feature = "testing"))]
pub mod sample;
mod step;
mod unplaced;
mod unserved;
mod watched;
mod written_number;

pub use close_cause::CloseCause;
pub use dependence::Dependence;
pub use doubt::TokenDoubt;
pub use ending::{CallEnding, RefusalKind};
pub use error_lists::ErrorLists;
pub use evaluation::{EVALUATION_EVENT, EvaluationScore, GENAI_SCHEMA_URL};
pub use evidence::Evidence;
pub use executed::{Executed, Executions, Standing, Tally, Void};
pub use failure_mode::{FailureMode, TAXONOMY, UnknownFailureMode};
pub use id::{AgentName, Call, IdError, PEERS, PrincipalKind, RunId, StepIndex, TOOLS};
pub use injected_error::{ALTERS_TOOL_RESULTS, FAULTS, InjectedError, RETELL, Side};
pub use interval::{Interval, Proportion, difference, highest_rate};
pub use label::{
    Label, LabelContent, LabelStatus, LaterNames, altered_by_fault, ended_by_fault, ended_by_upstream,
    refused_as_edited,
};
pub use label_entry::{COUNTERFACTUAL, ErrorOrigin, LabelEntry};
pub use missed_catch::{CatchState, MissedCatch};
pub use mode_claim::{ModeClaim, ModeState};
pub use mode_verdict::{GivenModeVerdict, ModeJudge, ModeVerdict, ModeVotes};
pub use nearest::nearest;
pub use necessity::{EffectExcluded, JointCause, Necessity};
pub use need::Need;
pub use origin::ReplyOrigin;
pub use pattern::{Pattern, PatternError};
pub use pattern::{compiled, patterns};
pub use retry::{RecordedRelation, RetryEvidence};
pub use step::{
    Attempt, Attribution, Outcome, ProgramEnd, ProxyErrorText, Reason, ReplySpeaker, Source, Step, Trajectory,
    Uninspected, Usage, Verdict,
};
pub use unplaced::{StepUnplaced, Unplaced, UnplacedKind};
pub use unserved::{Unserved, unanswered, unserved};
pub use watched::WatchSign;
pub use written_number::WrittenNumber;
