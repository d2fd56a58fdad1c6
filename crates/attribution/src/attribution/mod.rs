//! Which agent and which step made a run fail: by going back and doing it again, or told from the log alone ([`methods`]).
//!
//! A program is executed again and again ([`crate::execution`]), each time as a recorded run whose beginning comes from a
//! record. What is executed next, and what it amounts to, [`crate::proof`] says.

mod agents;
mod analyzer;
mod arms;
mod attributed;
mod correction;
mod counterfactual;
mod critique;
mod doubt;
mod finding;
mod foretold;
mod judging;
mod answer_cache;
mod label;
#[cfg(test)]
mod label_tests;
mod leak;
mod line;
pub mod methods;
mod missed_catch;
mod mode_judge;
mod prior;
mod prove;
mod recorded_log;
mod recorded_proof;
mod retried;
mod retried_corpus;
mod retry;
mod rounds;
mod search;
mod settings;
mod trace_journal;

pub use analyzer::Analyzer;
pub use answer_cache::AnswerCache;
pub use attributed::{Attributed, DriverSettings, Foreseen, attribute, combine, foresee};
pub use correction::{Correction, CorrectionError, CorrectionOrigin, Corrections};
pub use counterfactual::Trace;
pub use critique::{Critique, LABEL_SOURCE, NoCritique};
pub use finding::{AgentFinding, CoupleFinding, Decisive, Doubt, LabelRule, StepFinding, TraceFinding};
pub use foretold::{ForetoldTrace, at_most, foretell, order_name};
pub use judging::{Draw, JudgeCall, JudgeSettings, LogJudge};
pub use label::{is_contradicted, label_of};
pub use missed_catch::LaterAgent;
pub use mode_judge::{JudgedMode, ModeVoting, PlantedChange, judge_mode};
pub use prior::{Prior, PriorRanking, RankedStep};
pub use prove::{Proved, Proving, Unprovable};
pub use recorded_proof::{ProofOf, RecordedProof};
pub use retried::{RetryArm, RetryArmFinding, RetryExecution, RetryGain, RetryRound};
pub use retried_corpus::{CorpusGain, RetriedRun};
pub use retry::{RetrySettings, RetrySpent, RetrySubject, foretell_round};
pub use rounds::{FailedRun, RetryConductor, RetryRounds};
pub use settings::{EndedExecution, SearchSpent, TraceSettings, Watch};
pub use trace_journal::{TraceJournal, trace_journal_schema};
