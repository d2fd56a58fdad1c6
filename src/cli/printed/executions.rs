//! What verbs print that execute programs, or ask methods which step made a run fail.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    attribution::{
        Attributed, CorpusGain, Foreseen, ForetoldTrace, RetriedRun, RetryArm, RetryRound, RetrySpent, SearchSpent,
        TraceFinding,
    },
    campaign::{CampaignSums, Extent, Merged},
    replay::ReplayReport,
    score::Accuracy,
    trajectory::{Label, MissedCatch, Outcome, RunId, Standing, StepIndex, Void},
    verdict::{ClientVerdict, InjectionDelivery, SurvivalFinding, SurvivalResult},
};

/// `attribute`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedAttribution<'a> {
    /// A row a run and method.
    pub(in crate::cli) rows: Vec<&'a Attributed>,
    pub(in crate::cli) live_calls: u64,
    pub(in crate::cli) replayed_calls: u64,
    /// The run in which questions to a judge were recorded.
    pub(in crate::cli) judge_run: &'a Option<RunId>,
    /// The line to type next.
    pub(in crate::cli) next: Option<&'a str>,
    pub(in crate::cli) methods: Vec<MeasuredMethod<'a>>,
}

/// What methods say of a run that has just failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RunAttribution<'a> {
    pub(in crate::cli) rows: Vec<&'a Attributed>,
    pub(in crate::cli) judge_run: &'a Option<RunId>,
}

/// How a method did.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MeasuredMethod<'a> {
    pub(in crate::cli) method: &'a str,
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) abstained: usize,
    pub(in crate::cli) calls: u64,
    pub(in crate::cli) tokens: u64,
    pub(in crate::cli) cost: Option<f64>,
    /// Questions that were cut.
    pub(in crate::cli) cut: u64,
    /// Against labels, where there are any.
    pub(in crate::cli) accuracy: Option<&'a Accuracy>,
}

/// `attribute --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForeseenAttribution {
    pub(in crate::cli) methods: Vec<ForeseenMethod>,
    pub(in crate::cli) most: Foreseen,
}

/// What a method would ask at most.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForeseenMethod {
    pub(in crate::cli) method: String,
    pub(in crate::cli) most: Foreseen,
}

/// `attribute --list`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedMethods {
    pub(in crate::cli) methods: Vec<ListedMethod>,
}

/// A method.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedMethod {
    pub(in crate::cli) name: String,
    /// The option that takes it.
    pub(in crate::cli) option: &'static str,
    pub(in crate::cli) about: String,
    pub(in crate::cli) needs: &'static str,
    /// Whether `--compat` knows it.
    pub(in crate::cli) compat: bool,
}

/// `campaign --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForeseenCampaign<'a> {
    pub(in crate::cli) dry_run: &'a Extent,
    /// Tasks that bring a command of their own.
    pub(in crate::cli) task_commands: usize,
    /// The line that executes the first tasks, where nothing is known of the costs.
    pub(in crate::cli) first_part: Option<String>,
}

/// `fork`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedFork<'a> {
    pub(in crate::cli) samples: Vec<ForkSample<'a>>,
    pub(in crate::cli) successes: u32,
    pub(in crate::cli) judged: u32,
    /// Of the share that succeeded, at 95 %.
    pub(in crate::cli) interval: SuccessInterval,
    /// Samples that say nothing, by the reason.
    pub(in crate::cli) void: &'a BTreeMap<Void, u32>,
    pub(in crate::cli) diverged: u32,
    pub(in crate::cli) tokens_from_record: TokenSum,
}

/// A low and a high end.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct SuccessInterval {
    pub(in crate::cli) low: f64,
    pub(in crate::cli) high: f64,
}

/// Tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct TokenSum {
    pub(in crate::cli) input: u64,
    pub(in crate::cli) output: u64,
}

/// An execution of a fork.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForkSample<'a> {
    pub(in crate::cli) run: &'a RunId,
    pub(in crate::cli) run_dir: &'a Path,
    pub(in crate::cli) steps: u32,
    pub(in crate::cli) outcome: &'a Outcome,
    pub(in crate::cli) void: Option<Void>,
    pub(in crate::cli) label: Option<&'a Label>,
    pub(in crate::cli) report: &'a Option<ReplayReport>,
}

/// `prove` of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedProof<'a> {
    pub(in crate::cli) label: &'a Label,
    pub(in crate::cli) standing: Standing,
    pub(in crate::cli) runs: u32,
}

/// `prove` of a data set.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ProvenRows {
    pub(in crate::cli) verified: usize,
    pub(in crate::cli) proven: usize,
    /// Rows without a recording.
    pub(in crate::cli) lost: usize,
    pub(in crate::cli) refused: usize,
}

/// `retry`; also `retry.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RetryFile<'a> {
    /// Format of this file.
    pub(in crate::cli) format: u32,
    pub(in crate::cli) run: Option<String>,
    pub(in crate::cli) origin: &'static str,
    pub(in crate::cli) repaired_in_round: Option<u32>,
    pub(in crate::cli) rounds: &'a [RetryRound],
    pub(in crate::cli) spent: RetrySpent,
    pub(in crate::cli) out_of_budget: bool,
    /// Why there was no further round.
    pub(in crate::cli) ended: &'a Option<String>,
    /// Pairs for training that it gave.
    pub(in crate::cli) pairs: usize,
}

/// `retry --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForetoldRetry {
    pub(in crate::cli) rounds: u64,
    pub(in crate::cli) executions: u64,
    pub(in crate::cli) calls: u64,
    /// The dearest step, which stands for the one that would be blamed.
    pub(in crate::cli) step: StepIndex,
    pub(in crate::cli) arms: Vec<ForetoldArm>,
}

/// What an arm of a round would take.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForetoldArm {
    pub(in crate::cli) arm: RetryArm,
    pub(in crate::cli) executions: u64,
    pub(in crate::cli) calls: u64,
}

/// `retry` of many runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RetriedRuns<'a> {
    pub(in crate::cli) failures: usize,
    pub(in crate::cli) refused: usize,
    pub(in crate::cli) gains: &'a [CorpusGain],
    pub(in crate::cli) runs: &'a [RetriedRun],
}

/// `shard merge`, where the parts make a whole. Else what was merged is printed alone.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedMerge<'a> {
    #[serde(flatten)]
    pub(in crate::cli) merged: &'a Merged,
    #[serde(flatten)]
    pub(in crate::cli) sums: CampaignSums,
}

/// `shard emit`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct EmittedScript<'a> {
    /// The name to keep it under.
    pub(in crate::cli) file: &'a str,
    pub(in crate::cli) script: &'a str,
    /// The line that hands it in.
    pub(in crate::cli) submit: &'a str,
}

/// `test`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedTest<'a> {
    pub(in crate::cli) test: &'a str,
    pub(in crate::cli) dir: &'a Path,
    pub(in crate::cli) seconds: f64,
    /// The program without a plan.
    pub(in crate::cli) baseline: Option<TestedBaseline<'a>>,
    pub(in crate::cli) plans: Vec<TestedPlan<'a>>,
    /// Runs that were to be made.
    pub(in crate::cli) planned: usize,
    pub(in crate::cli) made: usize,
}

/// The program without a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct TestedBaseline<'a> {
    pub(in crate::cli) run_dir: &'a Path,
    pub(in crate::cli) steps: u32,
    pub(in crate::cli) seconds: f64,
    pub(in crate::cli) outcome: &'a Outcome,
}

/// A plan under test.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct TestedPlan<'a> {
    pub(in crate::cli) plan: &'a str,
    /// Its file, or that it is a ready-made one.
    pub(in crate::cli) from: &'a str,
    pub(in crate::cli) about: &'a str,
    pub(in crate::cli) runs: Vec<TestRun<'a>>,
}

/// A run under test.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct TestRun<'a> {
    pub(in crate::cli) run: &'a RunId,
    pub(in crate::cli) run_dir: &'a Path,
    /// Its number among those of its plan, from 1.
    pub(in crate::cli) number: u32,
    pub(in crate::cli) steps: u32,
    pub(in crate::cli) seconds: f64,
    pub(in crate::cli) outcome: &'a Outcome,
    pub(in crate::cli) result: SurvivalResult,
    pub(in crate::cli) findings: &'a [SurvivalFinding],
    pub(in crate::cli) injections: &'a [InjectionDelivery],
    pub(in crate::cli) client: &'a ClientVerdict,
}

/// `trace` of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedTrace<'a> {
    #[serde(flatten)]
    pub(in crate::cli) finding: &'a TraceFinding,
    /// What came of its label, in words.
    pub(in crate::cli) label: &'a str,
    /// The line to type next.
    pub(in crate::cli) next: Option<String>,
}

/// `trace --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForetoldSearch<'a> {
    pub(in crate::cli) foretold: &'a [ForetoldTrace],
    pub(in crate::cli) at_most: MostExecuted,
    pub(in crate::cli) analyzer_questions: u64,
}

/// What would be executed at most.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MostExecuted {
    pub(in crate::cli) executions: u64,
    pub(in crate::cli) calls: u64,
}

/// `trace --missed-catch`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedCatches<'a> {
    pub(in crate::cli) missed_catch: &'a [MissedCatch],
    pub(in crate::cli) spent: &'a SearchSpent,
    pub(in crate::cli) out_of_budget: bool,
}

/// `trace --missed-catch --dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ForetoldCatches {
    pub(in crate::cli) agents: Vec<String>,
    pub(in crate::cli) executions: u64,
}

/// `trace` of many runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct TracedRuns {
    pub(in crate::cli) failures: usize,
    /// Failures that were labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) labelled: Option<usize>,
    /// With `--missed-catch`: failures that were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) searched: Option<usize>,
    pub(in crate::cli) refused: usize,
    pub(in crate::cli) runs: Vec<TracedRun>,
}

/// A run that was traced, or was not.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::cli) enum TracedRun {
    /// One that was: what `trace` prints of one run.
    Traced {
        run: String,
        #[schemars(with = "PrintedTrace<'static>")]
        finding: Value,
    },
    /// One that was not.
    Refused { run: String, refused: String },
}
