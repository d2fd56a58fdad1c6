//! The campaign file as it is written: what serde reads. What a check beyond types may refuse carries its place.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::{dataset::Splits, plan::OneOrMany, trajectory::Side, verify::Verify};

/// The JSON schema of campaign files.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(CampaignFile)
}

/// A campaign: tasks, programs, plans, checkers and budget.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:aegis:schema:campaign"))]
#[serde(deny_unknown_fields)]
#[schemars(title = "Campaign")]
pub(super) struct CampaignFile {
    /// Format of the file: 1.
    #[schemars(with = "Option<i64>", extend("const" = 1))]
    pub(super) format: Option<Spanned<i64>>,
    /// Name of the campaign in reports. Default: the file's name.
    #[schemars(with = "Option<String>")]
    pub(super) name: Option<Spanned<String>>,
    /// Seed of all draws.
    pub(super) seed: Option<u64>,
    /// Upstream: `simulator`, `http://…` or `https://…`.
    pub(super) upstream: Option<String>,
    /// Tasks for the systems.
    #[schemars(required, with = "TasksEntry")]
    pub(super) tasks: Option<Spanned<TasksEntry>>,
    /// How outcomes are judged.
    #[schemars(with = "Option<Verify>")]
    pub(super) verify: Option<Spanned<Verify>>,
    /// Upstream of a model judge. Default: the first system's.
    pub(super) judge: Option<String>,
    /// Clean runs.
    pub(super) clean: Option<RepeatsEntry>,
    /// Conditions under which a claim counts as shown.
    #[schemars(with = "Option<ProofEntry>")]
    pub(super) proof: Option<Spanned<ProofEntry>>,
    /// Injections that are drawn.
    #[schemars(with = "Option<SampleEntry>")]
    pub(super) sample: Option<Spanned<SampleEntry>>,
    /// Search of clean runs that failed.
    #[schemars(with = "Option<SearchEntry>")]
    pub(super) natural: Option<Spanned<SearchEntry>>,
    /// Search of verified failures for later agents that could have saved the run.
    #[schemars(with = "Option<SearchEntry>")]
    pub(super) missed_catch: Option<Spanned<SearchEntry>>,
    /// Limits of cost.
    #[schemars(with = "Option<BudgetEntry>")]
    pub(super) budget: Option<Spanned<BudgetEntry>>,
    /// Data set.
    pub(super) dataset: Option<DatasetEntry>,
    /// Programs under test, at least one.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) system: Vec<SystemEntry>,
    /// Plans that are applied unchanged.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) plan: Vec<PlanEntry>,
    /// Prices of models.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) price: Vec<PriceEntry>,
}

/// `[tasks]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksEntry {
    /// File or list of files with tasks, as JSON lines: id, question, answer, extra.
    #[schemars(with = "OneOrMany<String>")]
    pub(super) file: Spanned<OneOrMany<String>>,
    /// Number of tasks to take, from the first.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) first: Option<Spanned<usize>>,
    /// Ids of the tasks to take.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) ids: Option<Vec<Spanned<String>>>,
}

/// `[[system]]`: a program under test.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemEntry {
    /// Name of the system in the data.
    #[schemars(required, with = "String")]
    pub(super) name: Option<Spanned<String>>,
    /// Program and arguments, with placeholders.
    #[schemars(required, with = "Vec<String>")]
    pub(super) command: Option<Spanned<Vec<Spanned<String>>>>,
    /// Its `aegis.toml`: roster and limits.
    #[schemars(with = "Option<String>")]
    pub(super) config: Option<Spanned<String>>,
    /// Working directory. Default: the campaign file's directory.
    pub(super) directory: Option<String>,
    /// Environment variables, with placeholders.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) environment: BTreeMap<String, Spanned<String>>,
    /// Timeout of a cell in seconds.
    #[schemars(with = "Option<f64>")]
    pub(super) timeout_s: Option<Spanned<f64>>,
    /// Maximum model calls of a run.
    #[schemars(with = "Option<u64>")]
    pub(super) max_calls: Option<Spanned<u64>>,
    /// Exit codes of a normal end; 0 if not given.
    #[schemars(with = "Option<Vec<i32>>")]
    pub(super) exit_codes: Option<Spanned<Vec<i32>>>,
}

/// `[clean]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepeatsEntry {
    /// Number of clean runs per task, which must all pass.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) repeats: Option<Spanned<u32>>,
    /// Whether tasks whose clean runs ask different questions are reported only, or excluded.
    pub(super) repeatable: Option<Repeatable>,
}

/// What becomes of a task whose clean runs ask different questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeatable {
    /// The report names it.
    #[default]
    Report,
    /// It is also excluded.
    Require,
}

/// `[proof]`: conditions under which an injection counts as what turned success into failure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProofEntry {
    /// Declare that the systems repeat themselves. Each arm is run twice to check this; a label then requires no more.
    /// After one difference, the usual proof applies.
    pub(super) repeatable: Option<bool>,
    /// Maximum expected share of wrong rows in the data set; 0.01 if not given.
    pub(super) alpha: Option<f64>,
    /// Minimum share of claims expected to be true; 0.1 if not given.
    #[serde(rename = "yield")]
    pub(super) expected_yield: Option<f64>,
    /// Maximum pairs of runs with and without the injection per claim; 40 if not given.
    pub(super) pairs: Option<u32>,
    /// Decoys per injected run: neutral changes that are proven like errors; 0.1 if not given, 0 with `repeatable`.
    pub(super) decoys: Option<f64>,
    /// Share of control runs, with perturbations, that may fail; beyond it, the task is chaotic and gets no label.
    /// 0.333 if not given.
    pub(super) chaotic: Option<f64>,
}

/// `[[plan]]`: a plan that is applied unchanged.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanEntry {
    /// Plan file.
    #[schemars(required, with = "String")]
    pub(super) file: Option<Spanned<String>>,
    /// Systems to use.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) systems: Option<Vec<Spanned<String>>>,
    /// Number of runs per task.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) repeats: Option<Spanned<u32>>,
}

/// `[sample]`: injections drawn from all combinations of templates, agents, positions and numbers of targets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SampleEntry {
    /// Plan files whose injections get new targets; `*` in a file's name stands for any text.
    #[schemars(required, with = "Vec<String>")]
    pub(super) templates: Option<Spanned<Vec<Spanned<String>>>>,
    /// Target agents, or globs. Default: all agents of the reference run.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) agents: Option<Vec<Spanned<String>>>,
    /// Target agents of single failure modes instead of `agents`: mode code = list.
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>")]
    pub(super) mode_agents: Option<BTreeMap<String, Vec<Spanned<String>>>>,
    /// Codes of failure modes. Default: those of the templates.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) modes: Option<Vec<Spanned<String>>>,
    /// Sides. Default: both.
    pub(super) sides: Option<Vec<Side>>,
    /// Numbers of target agents per plan, drawn with equal frequency.
    #[schemars(with = "Option<Vec<std::num::NonZeroU32>>")]
    pub(super) targets: Option<Vec<Spanned<u32>>>,
    /// Which calls of the agent, drawn with equal frequency.
    pub(super) positions: Option<Vec<CallPosition>>,
    /// Number of plans per task.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) per_task: Option<Spanned<u32>>,
    /// Systems to use.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) systems: Option<Vec<Spanned<String>>>,
}

/// Which of an agent's calls a drawn injection targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPosition {
    /// Every call.
    Every,
    /// The agent's first call.
    First,
    /// One call, drawn uniformly from those of the reference run.
    Uniform,
}

impl CallPosition {
    /// Its name in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Every => "every",
            Self::First => "first",
            Self::Uniform => "uniform",
        }
    }
}

/// `[natural]`: clean runs that fail their task are traced, by the checkers of the task and within the budget. Those with a
/// proven step are rows of the data set too. `[missed_catch]`: in each failure with a proven label, each agent that spoke after the
/// error is tested: could another reply of it have saved the run?
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchEntry {
    /// Where corrections come from: of the steps of clean runs that failed, or of agents that spoke after an error.
    pub(super) corrections: CorrectionSource,
    /// Upstream of the model that proposes corrections; with `corrections = "analyzer"`.
    #[schemars(with = "Option<String>")]
    pub(super) analyzer: Option<Spanned<String>>,
    /// Model of the analyzer.
    #[schemars(with = "Option<String>")]
    pub(super) model: Option<Spanned<String>>,
    /// Environment variable with the analyzer's key.
    #[schemars(with = "Option<String>")]
    pub(super) key_env: Option<Spanned<String>>,
    /// Maximum executions per failure; 100 if not given.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) runs: Option<Spanned<u32>>,
}

/// Where corrections of a failure come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionSource {
    /// A model proposes them. It knows the right answer; corrections that reveal it are refused.
    Analyzer,
    /// The live model is asked again at each step.
    Redraw,
    /// The replies of a clean run of the same task that passed.
    Twin,
}

/// `[budget]`: limits of what the campaign spends; calls served from a recording do not count.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetEntry {
    /// Maximum model calls.
    pub(super) calls: Option<u64>,
    /// Maximum tokens, input and output.
    pub(super) tokens: Option<u64>,
    /// Maximum cost, in the currency of the prices.
    #[schemars(with = "Option<f64>")]
    pub(super) money: Option<Spanned<f64>>,
    /// Output tokens assumed for a request without a limit.
    #[schemars(with = "Option<u64>")]
    pub(super) max_output_tokens: Option<Spanned<u64>>,
    /// Input tokens assumed per request in forecasts of cost.
    pub(super) max_input_tokens: Option<u64>,
}

/// `[[price]]`: price of a model per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceEntry {
    /// Model; `*` stands for any text.
    #[schemars(required, with = "String")]
    pub(super) model: Option<Spanned<String>>,
    /// Price of a million input tokens.
    #[schemars(required, with = "f64")]
    pub(super) input: Option<Spanned<f64>>,
    /// Price of a million output tokens.
    #[schemars(required, with = "f64")]
    pub(super) output: Option<Spanned<f64>>,
}

/// `[dataset]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetEntry {
    /// Shares of its splits; each task lies in one.
    #[schemars(with = "Option<Splits>")]
    pub(super) splits: Option<Spanned<Splits>>,
}
