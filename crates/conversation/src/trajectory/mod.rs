//! The nouns that every other room speaks: runs, agents, steps, failure modes, labels, outcomes.
//!
//! Nothing here does IO or knows an API's field names. Everything is `0`-based unless it says otherwise.

mod dependence;
mod doubt;
mod evaluation;
mod ending;
mod evidence;
mod failure_mode;
mod id;
mod interval;
mod label;
mod label_entry;
mod nearest;
mod missed_catch;
mod mode_claim;
mod mode_verdict;
mod necessity;
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

pub use dependence::Dependence;
pub use doubt::TokenDoubt;
pub use ending::{CallEnding, RefusalKind};
pub use evaluation::{EVALUATION_EVENT, EvaluationScore, GENAI_SCHEMA_URL};
pub use evidence::{Evidence, Executed, Executions, Standing, Tally, Void};
pub use failure_mode::{FailureMode, TAXONOMY, UnknownFailureMode};
pub use id::{AgentName, Call, IdError, PEERS, PrincipalKind, RunId, StepIndex, TOOLS};
pub use interval::{Interval, difference, highest_rate};
pub use label::{
    FAULTS, InjectedError, Label, LabelContent, LabelStatus, LaterNames, ended_by_fault, ended_by_upstream,
    refused_as_edited,
};
pub use label_entry::{COUNTERFACTUAL, ErrorOrigin, LabelEntry};
pub use missed_catch::{CatchState, MissedCatch};
pub use mode_claim::{ModeClaim, ModeState};
pub use mode_verdict::{GivenModeVerdict, ModeJudge, ModeVerdict, ModeVotes};
pub use nearest::nearest;
pub use necessity::{EffectExcluded, ErrorLists, JointCause, Necessity, Need};
pub use origin::ReplyOrigin;
pub use pattern::{Pattern, PatternError};
pub use pattern::{compiled, patterns};
pub use retry::{RecordedRelation, RetryEvidence};
pub use step::{
    Attempt, Attribution, CloseCause, Outcome, ProgramEnd, Reason, ReplySpeaker, Side, Source, Step, Trajectory,
    Uninspected, Usage, Verdict,
};
pub use unplaced::{StepUnplaced, Unplaced, UnplacedKind};
pub use unserved::{Unserved, unanswered, unserved};
pub use watched::WatchSign;
pub use written_number::WrittenNumber;
