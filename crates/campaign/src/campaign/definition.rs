//! A campaign as it was read and checked: everything that its runs depend on, in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    time::Duration,
};

use super::{
    command::CommandTemplate,
    file::{CallPosition, CorrectionSource, Repeatable},
};
use crate::{
    dataset::{Splits, Task},
    plan::{self, AgentPattern, Agents, Plan},
    proof::{NeutralSentences, Terms},
    trajectory::{FailureMode, Side},
    verify::{Check, Verify},
};

/// Where the files that a campaign names are.
pub trait Files {
    /// Reads a text file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &str) -> io::Result<String>;

    /// The names of the files in a directory, in order.
    ///
    /// # Errors
    /// Why it cannot be listed.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;
}

/// Files beside the campaign file, and ready-made plans by name where there is no such file.
#[derive(Debug)]
pub struct PlanFolder(pub PathBuf);

impl Files for PlanFolder {
    fn read(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.0.join(path)).or_else(|error| match plan::shipped_as(path).as_slice() {
            [plan] if error.kind() == io::ErrorKind::NotFound => Ok(plan.text.to_owned()),
            _ => Err(error),
        })
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.0.join(directory))? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// What it is called in reports.
    pub name: String,
    /// What every draw depends on.
    pub seed: u64,
    /// Where the model calls go; as everywhere else if none.
    pub upstream: Option<String>,
    /// What the systems are asked, in the order of the file.
    pub tasks: Vec<Task>,
    /// The programs under test.
    pub systems: Vec<CampaignSystem>,
    /// How an outcome is judged; a task may say so itself.
    pub verify: Verify,
    /// Where a model judge is asked; the upstream of the first system if none.
    pub judge: Option<String>,
    /// How many clean runs of a task must all pass; at least 1.
    pub clean: u32,
    /// What becomes of a task whose clean runs ask different questions.
    pub repeatable: Repeatable,
    /// What a claim must reach to count as shown.
    pub proof: Terms,
    /// Whether the systems are declared to repeat themselves; it is checked.
    pub repeats_itself: bool,
    /// How many decoys are planted for each planned run; from 0 to below 1.
    pub decoys: f64,
    /// The share of runs without an error that may fail after neutral changes; in a task in which more do nothing is shown.
    pub chaotic: f64,
    /// The sentences of neutral changes of each system, by index; the shipped ones where none is there.
    pub sentences: Vec<NeutralSentences>,
    /// The plans that are applied as they stand.
    pub plans: Vec<Fixed>,
    /// The injections that are drawn.
    pub sample: Option<SampleSpace>,
    /// How clean runs that failed are searched; not at all if none.
    pub natural: Option<FailureSearch>,
    /// How verified failures are searched for later agents that could have saved the run; not at all if none.
    pub missed_catch: Option<FailureSearch>,
    /// What may be spent.
    pub budget: CampaignBudget,
    /// What models cost; the first that matches counts.
    pub prices: Vec<ModelPrice>,
    /// The parts of the dataset.
    pub splits: Splits,
}

/// A program under test.
#[derive(Debug, Clone)]
pub struct CampaignSystem {
    /// What it is called in the data.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<CommandTemplate>,
    /// The path of its `aegis.toml`, as written.
    pub config: Option<String>,
    /// The text of its `aegis.toml`.
    pub config_text: String,
    /// Where it runs, as written.
    pub directory: Option<String>,
    /// Variables beside the inherited ones.
    pub environment: BTreeMap<String, CommandTemplate>,
    /// Longest run of one cell.
    pub timeout: Duration,
    /// Most model calls of one run.
    pub max_calls: u64,
    /// Exit codes with which the program ends in order; any other is a crash.
    pub exit_codes: Vec<i32>,
}

/// A plan that is applied as it stands.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// Its file's name without ending.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// The systems that it is tried on, by index.
    pub systems: Vec<usize>,
    /// How many runs of it a task gets.
    pub repeats: u32,
}

/// What injections are drawn from.
#[derive(Debug, Clone)]
pub struct SampleSpace {
    /// What may be planted.
    pub templates: Vec<Planting>,
    /// Agents to hit; every agent if none.
    pub agents: Vec<AgentPattern>,
    /// Agents to hit with a mode, in place of `agents`.
    pub mode_agents: BTreeMap<FailureMode, Vec<AgentPattern>>,
    /// How many agents a plan hits, each number equally often.
    pub targets: Vec<u32>,
    /// Which of an agent's calls, each equally often.
    pub positions: Vec<CallPosition>,
    /// How many plans a task gets.
    pub per_task: u32,
    /// The systems, by index.
    pub systems: Vec<usize>,
}

/// One injection of a template, to be aimed.
#[derive(Debug, Clone)]
pub struct Planting {
    /// The template file's name without ending.
    pub name: String,
    /// The injection as written, less whom it aims at and condition.
    pub injection: toml::Table,
    /// What it plants; `None` for what is planted in tools and peers.
    pub mode: Option<FailureMode>,
    /// The tools or peers that it aims at, by its own words; `None` where it aims at agents.
    pub servers: Option<Agents>,
    /// The side that it edits.
    pub side: Side,
    /// The manipulator, by name.
    pub manipulator: String,
    /// Whether a model is asked for its words.
    pub questions: u32,
}

/// How failures are searched: for the step that decides them, or for later agents that could have saved the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureSearch {
    /// Where corrections come from.
    pub corrections: CorrectionSource,
    /// Where the analyzer is asked; given where corrections are its own, and nowhere else.
    pub analyzer: Option<String>,
    /// The analyzer's model.
    pub model: Option<String>,
    /// The environment variable with the analyzer's key.
    pub key_env: Option<String>,
    /// Most executions of a failure; at least 1.
    pub runs: u32,
}

/// What may be spent; nothing given, no bound.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CampaignBudget {
    /// Model calls.
    pub calls: Option<u64>,
    /// Tokens, both ways.
    pub tokens: Option<u64>,
    /// Money, in the currency of the prices.
    pub money: Option<f64>,
    /// Tokens that a request which names no limit is taken to answer at most.
    pub max_output_tokens: u64,
    /// Tokens that a request is taken to have at most, where cost is foretold.
    pub max_input_tokens: Option<u64>,
}

/// What a model costs.
#[derive(Debug, Clone)]
pub struct ModelPrice {
    /// The model.
    pub model: regex::Regex,
    /// A million tokens of requests.
    pub input: f64,
    /// A million tokens of replies.
    pub output: f64,
}

impl Campaign {
    /// The sentences of which a neutral change in a run of a system may add one.
    pub(super) fn sentences_of(&self, system: usize) -> NeutralSentences {
        self.sentences.get(system).cloned().unwrap_or_default()
    }

    /// Whether a model is to judge any outcome.
    pub fn asks_a_judge(&self) -> bool {
        let of_tasks = self.tasks.iter().filter_map(|task| task.check.as_ref());
        self.verify.checks.iter().chain(of_tasks).any(|check| matches!(check, Check::ModelJudge(_)))
    }

    /// The first plan for a system, by index, that lets a model rewrite messages.
    pub fn asks_model(&self, system: usize) -> Option<&str> {
        let fixed = self.plans.iter().filter(|fixed| fixed.systems.contains(&system) && fixed.plan.asks_model());
        let sample = self.sample.iter().filter(|sample| sample.systems.contains(&system));
        let drawn = sample.flat_map(|sample| &sample.templates).filter(|template| template.questions > 0);
        fixed.map(|fixed| fixed.name.as_str()).chain(drawn.map(|template| template.name.as_str())).next()
    }

    /// Lets go of what tasks ask and answer, but for these: a worker holds no more of the others than their names.
    pub(super) fn forget_tasks_but(&mut self, kept: &BTreeSet<usize>) {
        for (_, task) in self.tasks.iter_mut().enumerate().filter(|(number, _)| !kept.contains(number)) {
            *task = Task { id: std::mem::take(&mut task.id), ..Task::default() };
        }
    }

    /// The price of a model, if one is given.
    pub fn price(&self, model: &str) -> Option<&ModelPrice> {
        self.prices.iter().find(|price| price.model.is_match(model))
    }
}
