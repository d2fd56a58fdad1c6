//! Campaigns: tasks × plans × repeats as cells, each a child process under a run of its own behind one proxy.
//!
//! A campaign makes of each task clean runs first (n of n must pass; the first is the reference), then injected ones that begin
//! like the reference, then, for each that flipped, the same bytes again and the same beginning without them: a chain, of
//! which nothing depends on another. What is shown becomes a dataset; all else is counted, each in one class. State is files: a campaign that was killed anywhere goes
//! on and pays for nothing twice. Cells are named by what they are, so that no process need see all of them.

mod aim;
mod bench;
mod catch_run;
mod catches;
mod cell;
mod chain;
mod command;
mod concluded;
mod conclusion;
mod conduct;
mod decoy;
mod definition;
mod dependent;
mod ended;
mod dry;
mod emit;
mod error;
mod file;
mod forecast;
mod funnel;
mod gate;
mod going_on;
mod impossible;
mod journal;
mod junit;
mod label_cost;
mod making;
mod markdown;
mod narrow;
mod natural;
mod planned_task;
mod prefix;
mod claim;
mod claims;
mod repeatable;
mod read;
mod read_named;
mod read_system;
mod report;
mod report_rows;
mod report_sums;
mod report_yields;
mod rows_before;
mod read_sample;
mod rewriting;
mod salvage;
mod sample;
mod shard;
mod sham;
mod sitting;
mod stages;
mod start;
mod state;
mod talk;
mod trace_failures;
mod treatment;
mod skipped_edits;

pub use catch_run::{CatchFunnel, CatchRun};
pub use command::CommandTemplate;
pub use concluded::{CampaignSums, Concluded};
pub use conclusion::conclusion_schema;
pub use definition::{
    Campaign, CampaignBudget, CampaignSystem, FailureSearch, Files, Fixed, ModelPrice, PlanFolder, Planting,
    SampleSpace,
};
pub use dry::Extent;
pub use ended::{Class, EndedCell, HowEnded, LearnedEquality, Ran};
pub use error::CampaignError;
pub use file::{CallPosition, CorrectionSource, Repeatable, schema};
pub use forecast::{CostBand, ExpectedCost, ForetoldCost, ForetoldSystem, MeasuredCampaign, MeasuredRuns, measured};
pub use funnel::{ConcludedChain, InjectedRun, TaskState};
pub use impossible::{ImpossiblePlan, ImpossibleRow};
pub use journal::spending_schema;
pub use junit::junit;
pub use label_cost::LabelCost;
pub use natural::{
    FailureTracer, NaturalEnd, NaturalError, NaturalFunnel, NaturalRun, SearchGoal, SearchRefusal, SearchedFailure,
};
pub use prefix::CampaignEquality;
pub use read::parse;
pub use read_system::MAX_CALLS;
pub use report::CampaignReport;
pub use shard::{
    CampaignSnapshot, Engine, EngineScript, MergeOptions, Merged, NotedFiles, PartError, ShardEnd, ShardOptions,
    ShardPart, merge, run_shard, shard_schema,
};
pub use start::{CampaignOptions, refuse_start, run};
pub use state::ExistingContent;

/// Hears how far a campaign is.
pub trait Progress: Sync {
    /// A stage begins, with this many parts.
    fn stage(&self, name: &str, parts: usize);
    /// One of its parts is done; so many failures were shown in it.
    fn advance(&self, shown: usize);
    /// The stage is over; the line says what came of it.
    fn done(&self, line: &str);
}
