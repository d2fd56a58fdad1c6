//! The report as data: what `report.json` holds and the pages show.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    aim::Aim,
    catch_run::{CatchFunnel, CatchRun},
    file::CallPosition,
    impossible::ImpossibleRow,
    natural::{NaturalFunnel, NaturalRun},
    report_rows::ReportRows,
    rewriting::Rewriting,
    sitting::OlderControls,
    skipped_edits::SkippedEdit,
};
use crate::{
    dataset::DecoyCounts,
    trajectory::{Executed, Necessity, RunId, Tally},
};

/// What a campaign reports.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CampaignReport {
    /// Format of the report; 2.
    pub format: u32,
    /// The campaign.
    pub campaign: String,
    /// What answered the model calls.
    pub backend: String,
    /// The campaign's seed.
    pub seed: u64,
    /// The taxonomy of the failure modes.
    pub taxonomy: &'static str,
    /// Whether every cell is finished.
    pub complete: bool,
    /// What came of the clean runs.
    pub clean: Clean,
    /// Clean and injected runs that ended in order without one model call, where others made calls; left out where there is none.
    #[serde(skip_serializing_if = "is_none_silent")]
    pub silent_runs: usize,
    /// Runs without the injection that do not count beside runs of a later start; left out where there is none.
    #[serde(skip_serializing_if = "OlderControls::is_empty")]
    pub older_controls: OlderControls,
    /// From attempts to proof, in runs.
    pub funnel: Funnel,
    /// Verified failures, as the last line counts them: runs that met the same edit are one.
    pub verified_failures: usize,
    /// From clean runs that failed to labels, where such are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub natural: Option<NaturalFunnel>,
    /// What is shown of agents that spoke after a proven error, where such are searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_catch: Option<CatchFunnel>,
    /// Every injected run by its class, each in one.
    pub classes: BTreeMap<&'static str, usize>,
    /// What came of the decoys; left out where none was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoys: Option<DecoyCounts>,
    /// Yield per system, agent, mode, side and manipulator.
    pub strata: Vec<Stratum>,
    /// Yield per failure mode, all 14, hit or not.
    pub modes: Vec<ModeBalance>,
    /// Yield per system.
    pub systems: Vec<YieldRow>,
    /// Yield per agent of a system.
    pub agents: Vec<YieldRow>,
    /// Planted errors by what erred: agent, tool, peer; empty where only agents did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<YieldRow>,
    /// Yield per position; empty where nothing was drawn.
    pub positions: Vec<YieldRow>,
    /// What cannot be planted in reference runs, and why; neither executed nor counted as planted. Left out where there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub impossible: Vec<ImpossibleRow>,
    /// How often each combination was planted.
    pub design: Vec<PlantedCount>,
    /// Why edits could not be made, the most frequent reason first.
    #[serde(rename = "unmade")]
    pub skipped_edits: Vec<SkippedEdit>,
    /// What a model was asked for edits, and what came of it.
    pub rewriting: Rewriting,
    /// What it cost.
    pub cost: Costs,
    /// The injected runs.
    pub cells: ReportRows<CellRow>,
    /// The decoys.
    #[serde(skip_serializing_if = "ReportRows::is_empty")]
    pub decoy_cells: ReportRows<CellRow>,
    /// Clean runs that failed, and what the search of each came to.
    #[serde(skip_serializing_if = "ReportRows::is_empty")]
    pub natural_runs: ReportRows<NaturalRun>,
    /// Verified failures, and what the search for missed catches in each came to.
    #[serde(skip_serializing_if = "ReportRows::is_empty")]
    pub missed_catch_runs: ReportRows<CatchRun>,
    /// The tasks that were left out, are not repeatable or chaotic, or whose clean runs differ in what counts as equal.
    pub tasks: ReportRows<TaskRow>,
    /// Wall time of this start of the campaign, in seconds.
    pub seconds: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none_silent(runs: &usize) -> bool {
    *runs == 0
}

/// Clean runs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Clean {
    /// Tasks, each counted for each system.
    pub tasks: usize,
    /// Those that were gone on with.
    pub kept: usize,
    /// Finished runs.
    pub runs: usize,
    /// Those that passed.
    pub passed: usize,
    /// Tasks in which neutral changes alone turn the outcome too often.
    pub chaotic: usize,
}

/// From attempts to proof.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Funnel {
    /// Injected runs that were planned.
    pub attempts: usize,
    /// Those in which altered bytes were delivered.
    pub delivered: usize,
    /// Those that failed for it, proven or not.
    pub flipped: usize,
    /// Those that are proven.
    pub verified: usize,
}

/// A share with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReportedShare {
    /// The share, 0 to 1; 0 of nothing.
    pub value: f64,
    /// The lower end of Wilson's 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// From planting to proof, in errors: a run with several of them counts for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ErrorFunnel {
    /// Errors that were planned.
    pub planted: usize,
    /// Those in whose runs altered bytes were delivered.
    pub delivered: usize,
    /// Those whose runs failed for what was planted, proven or not.
    pub flipped: usize,
    /// Those that a proven failure needs: the only error of its run, or one that was shown to be necessary.
    pub necessary: usize,
}

/// One combination of system, agent, mode, side and manipulator.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Stratum {
    /// The system.
    pub system: String,
    /// The agent, as plans write it.
    pub agent: String,
    /// The failure mode's code; `null` for a fault.
    pub mode: Option<&'static str>,
    /// The side; `null` for a fault.
    pub side: Option<&'static str>,
    /// The manipulator or fault.
    pub manipulator: String,
    /// From planting to proof.
    #[serde(flatten)]
    pub funnel: ErrorFunnel,
    /// Necessary of planted.
    #[serde(rename = "yield")]
    pub share: ReportedShare,
}

/// How often a failure mode is among what is proven.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ModeBalance {
    /// Its code.
    pub mode: &'static str,
    /// MAST's name of it.
    pub name: &'static str,
    /// From planting to proof.
    #[serde(flatten)]
    pub funnel: ErrorFunnel,
    /// Necessary of planted.
    #[serde(rename = "yield")]
    pub share: ReportedShare,
}

/// The yield of all errors that share something.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct YieldRow {
    /// What they share: a system, an agent, a position.
    pub name: String,
    /// From planting to proof.
    #[serde(flatten)]
    pub funnel: ErrorFunnel,
    /// Necessary of planted.
    #[serde(rename = "yield")]
    pub share: ReportedShare,
}

/// How often errors of a mode were planted in an agent at a position beside so many others.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PlantedCount {
    /// The failure mode's code; `null` for a fault.
    pub mode: Option<&'static str>,
    /// The agent, as plans write it.
    pub agent: String,
    /// Where a drawn plan aims.
    pub position: Option<CallPosition>,
    /// Injections of the plan.
    pub targets: usize,
    /// Errors that were planned.
    pub planted: usize,
}

/// What a campaign cost.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Costs {
    /// Charged in all, unfinished runs and earlier starts included.
    pub spent: Expense,
    /// Of it, by finished cells.
    pub by_cells: Expense,
    /// For each proven failure; `null` without one.
    pub per_verified: Option<Expense>,
    /// What records answered instead of an upstream.
    pub saved_by_prefix: Expense,
    /// The share of all tokens of finished cells that records answered.
    pub saved_share: f64,
    /// Calls that an unfinished run had paid for and its repetition did not pay again.
    pub salvaged_calls: u64,
    /// Replies whose upstream said nothing of tokens: charged at their bound.
    pub unreported: u64,
    /// The fewest cells at once that the upstream's refusals left room for.
    pub lowest_jobs: usize,
}

/// Calls, tokens, money.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Expense {
    /// Model calls.
    pub calls: f64,
    /// Tokens of requests.
    pub input_tokens: f64,
    /// Tokens of replies.
    pub output_tokens: f64,
    /// In the currency of the prices.
    pub money: Option<f64>,
}

/// An injected run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CellRow {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// The plan.
    pub plan: String,
    /// Whom and what its injections aim at, as in the rows of the strata.
    pub aims: Vec<Aim>,
    /// Where a drawn plan aims.
    pub position: Option<CallPosition>,
    /// The run; `null` where nothing was run.
    pub run: Option<RunId>,
    /// Its class; `unfinished` where it is not finished.
    pub class: &'static str,
    /// What is right.
    pub expected: String,
    /// What the checker read as the program's answer.
    pub answer: String,
    /// What was judged.
    pub evidence: String,
    /// The claim that it is a run of: runs that met the same treatment share one.
    pub claim: Option<usize>,
    /// What was executed for the claim, and what it amounts to, in words.
    pub proof: Option<String>,
    /// The same as data.
    pub executed: Option<Executed>,
    /// Of a plan with several injections: which the failure needs.
    pub necessity: Vec<Necessity>,
    /// The same in words, a line each, and what they are together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Why nothing was run, where the run left its prefix, or why an edit could not be made.
    pub why: Option<String>,
}

/// A task that is out of the ordinary.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct TaskRow {
    /// The system.
    pub system: String,
    /// The task.
    pub task: String,
    /// Why it is left out; `null` where it is not.
    pub left_out: Option<super::funnel::LeftOut>,
    /// What its clean runs came to, of a task that is left out; of the first that did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Clean runs that passed, and how many there are.
    pub clean: Tally,
    /// Whether its clean runs asked the same questions after the same replies.
    pub repeatable: bool,
    /// Whether neutral changes alone turn its outcome too often.
    pub chaotic: bool,
    /// What differs between its clean runs although they were answered the same; it counts as equal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<String>,
}

impl Expense {
    /// Calls and tokens as a page shows them: whole, or with one digit behind the point.
    pub(super) fn counts(&self) -> [String; 3] {
        [self.calls, self.input_tokens, self.output_tokens].map(|count| ((count * 10.0).round() / 10.0).to_string())
    }
}
