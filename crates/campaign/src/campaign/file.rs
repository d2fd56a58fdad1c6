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

/// A campaign: tasks, programs, what is planted in them, how outcomes are judged, what may be spent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:aegis:schema:campaign"))]
#[serde(deny_unknown_fields)]
#[schemars(title = "Campaign")]
pub(super) struct CampaignFile {
    /// The format of this file; 1.
    #[schemars(with = "Option<i64>", extend("const" = 1))]
    pub(super) format: Option<Spanned<i64>>,
    /// What the campaign is called in reports; the file's name if none.
    #[schemars(with = "Option<String>")]
    pub(super) name: Option<Spanned<String>>,
    /// What every draw depends on.
    pub(super) seed: Option<u64>,
    /// Where the model calls go: `simulator`, `http://…` or `https://…`.
    pub(super) upstream: Option<String>,
    /// What the systems are asked.
    #[schemars(required, with = "TasksEntry")]
    pub(super) tasks: Option<Spanned<TasksEntry>>,
    /// How an outcome is judged.
    #[schemars(with = "Option<Verify>")]
    pub(super) verify: Option<Spanned<Verify>>,
    /// Where a model judge is asked; the upstream of the first system if none.
    pub(super) judge: Option<String>,
    /// Clean runs.
    pub(super) clean: Option<RepeatsEntry>,
    /// What a claim must reach to count as shown.
    #[schemars(with = "Option<ProofEntry>")]
    pub(super) proof: Option<Spanned<ProofEntry>>,
    /// Injections that are drawn.
    #[schemars(with = "Option<SampleEntry>")]
    pub(super) sample: Option<Spanned<SampleEntry>>,
    /// What may be spent.
    #[schemars(with = "Option<BudgetEntry>")]
    pub(super) budget: Option<Spanned<BudgetEntry>>,
    /// The dataset.
    pub(super) dataset: Option<DatasetEntry>,
    /// The programs under test, at least one.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) system: Vec<SystemEntry>,
    /// Plans as they stand.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) plan: Vec<PlanEntry>,
    /// What models cost.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) price: Vec<PriceEntry>,
}

/// `[tasks]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksEntry {
    /// JSON lines: id, question, answer, extra. A list of files is read as one.
    #[schemars(with = "OneOrMany<String>")]
    pub(super) file: Spanned<OneOrMany<String>>,
    /// Only the first so many.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) first: Option<Spanned<usize>>,
    /// Only these.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) ids: Option<Vec<Spanned<String>>>,
}

/// `[[system]]`: a program under test.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemEntry {
    /// What it is called in the data.
    #[schemars(required, with = "String")]
    pub(super) name: Option<Spanned<String>>,
    /// Program and arguments, with placeholders.
    #[schemars(required, with = "Vec<String>")]
    pub(super) command: Option<Spanned<Vec<Spanned<String>>>>,
    /// Its `aegis.toml`: who is who, bounds.
    #[schemars(with = "Option<String>")]
    pub(super) config: Option<Spanned<String>>,
    /// Where it runs; the campaign file's directory if none.
    pub(super) directory: Option<String>,
    /// Variables, with placeholders.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) environment: BTreeMap<String, Spanned<String>>,
    /// Longest run of one cell, in seconds.
    #[schemars(with = "Option<f64>")]
    pub(super) timeout_s: Option<Spanned<f64>>,
    /// Most model calls of one run.
    #[schemars(with = "Option<u64>")]
    pub(super) max_calls: Option<Spanned<u64>>,
    /// Exit codes with which the program ends in order; 0 if none are given.
    #[schemars(with = "Option<Vec<i32>>")]
    pub(super) exit_codes: Option<Spanned<Vec<i32>>>,
}

/// `[clean]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepeatsEntry {
    /// How many clean runs of a task must all pass.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) repeats: Option<Spanned<u32>>,
    /// Whether a task whose clean runs ask different questions is left out.
    pub(super) repeatable: Option<Repeatable>,
}

/// What becomes of a task whose clean runs differ in what they ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeatable {
    /// The report names it.
    #[default]
    Report,
    /// It is left out, too.
    Require,
}

/// `[proof]`: what it takes for an injection to count as what turned success into failure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProofEntry {
    /// The systems give the same answers each time they are run: checked by running each arm twice, which then is all
    /// that a label takes. One difference, and the system is proven like any other.
    pub(super) repeatable: Option<bool>,
    /// The share of wrong rows that the data set may hold in the mean; 0.01 if none is given.
    pub(super) alpha: Option<f64>,
    /// The share of claims that is expected to be true at least; 0.1 if none is given.
    #[serde(rename = "yield")]
    pub(super) expected_yield: Option<f64>,
    /// Most pairs of runs, one with and one without the injection, for a claim; 40 if none is given.
    pub(super) pairs: Option<u32>,
    /// How many decoys are planted for each injected run: neutral changes that are proven as if they were errors; 0.1 if none is given,
    /// and 0 where the systems are said to repeat themselves.
    pub(super) decoys: Option<f64>,
    /// The share of runs without the injection, which get neutral changes alone, that may fail; a task in which more do is chaotic, and
    /// gets no label. 0.333 if none is given.
    pub(super) chaotic: Option<f64>,
}

/// `[[plan]]`: a plan as it stands.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanEntry {
    /// The plan file.
    #[schemars(required, with = "String")]
    pub(super) file: Option<Spanned<String>>,
    /// Only on these systems.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) systems: Option<Vec<Spanned<String>>>,
    /// How many runs of it a task gets.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) repeats: Option<Spanned<u32>>,
}

/// `[sample]`: injections drawn from templates, one full cross of templates, agents, positions and counts of targets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SampleEntry {
    /// Plan files whose injections are aimed anew; `*` in a file's name stands for any text.
    #[schemars(required, with = "Vec<String>")]
    pub(super) templates: Option<Spanned<Vec<Spanned<String>>>>,
    /// Agents to hit, or globs; every agent of the reference run if none.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) agents: Option<Vec<Spanned<String>>>,
    /// Agents to hit with a failure mode, in place of `agents`: a list for a mode's code.
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>")]
    pub(super) mode_agents: Option<BTreeMap<String, Vec<Spanned<String>>>>,
    /// Failure modes, by code; those of the templates if none.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) modes: Option<Vec<Spanned<String>>>,
    /// Sides; both if none.
    pub(super) sides: Option<Vec<Side>>,
    /// How many agents a plan hits; each number equally often.
    #[schemars(with = "Option<Vec<std::num::NonZeroU32>>")]
    pub(super) targets: Option<Vec<Spanned<u32>>>,
    /// Which of the agent's calls; each equally often.
    pub(super) positions: Option<Vec<CallPosition>>,
    /// How many plans a task gets.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) per_task: Option<Spanned<u32>>,
    /// Only on these systems.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) systems: Option<Vec<Spanned<String>>>,
}

/// Which of an agent's calls a drawn injection hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPosition {
    /// Each call.
    Every,
    /// The agent's first.
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

/// `[budget]`: what the campaign may spend at most, calls served from a recording not counted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetEntry {
    /// Model calls.
    pub(super) calls: Option<u64>,
    /// Tokens, both ways.
    pub(super) tokens: Option<u64>,
    /// Money, in the currency of the prices.
    #[schemars(with = "Option<f64>")]
    pub(super) money: Option<Spanned<f64>>,
    /// Tokens that a request which names no limit is taken to answer at most.
    #[schemars(with = "Option<u64>")]
    pub(super) max_output_tokens: Option<Spanned<u64>>,
    /// Tokens that a request is taken to have at most, where cost is foretold.
    pub(super) max_input_tokens: Option<u64>,
}

/// `[[price]]`: what a model costs, per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceEntry {
    /// The model; `*` stands for any text.
    #[schemars(required, with = "String")]
    pub(super) model: Option<Spanned<String>>,
    /// A million tokens of requests.
    #[schemars(required, with = "f64")]
    pub(super) input: Option<Spanned<f64>>,
    /// A million tokens of replies.
    #[schemars(required, with = "f64")]
    pub(super) output: Option<Spanned<f64>>,
}

/// `[dataset]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetEntry {
    /// Shares of its parts; each task lies in one.
    #[schemars(with = "Option<Splits>")]
    pub(super) splits: Option<Spanned<Splits>>,
}
