//! What `retry` can be told.

use std::path::PathBuf;

use clap::Args;

use crate::{
    attribution::RetrySettings,
    cli::{Failure, matching::MatchArgs, settings, trial::ExecuteArgs},
    surface::ParameterSetting,
    trajectory::StepIndex,
};

/// Options of `retry`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RetryArgs {
    /// The failed run's directory.
    #[arg(value_name = "RUN_DIR")]
    pub(super) dir: PathBuf,
    /// Who says who failed, and what was wrong: a method of `aegis attribute --list`. Each round asks it of the newest failure.
    #[arg(long, value_name = "METHOD", default_value = "rules")]
    pub(super) method: String,
    /// A file that says it: rows of `aegis attribute --out`, {"step": N, "note": "…"}, or plain words with --at. One round.
    #[arg(long, value_name = "FILE", conflicts_with = "method")]
    pub(super) critique: Option<PathBuf>,
    /// The step that the file speaks of.
    #[arg(long, value_name = "STEP", requires = "critique")]
    pub(super) at: Option<StepIndex>,
    /// Most rounds; the first in which the critique repairs the run is the last.
    #[arg(long, default_value_t = 3, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) rounds: u32,
    /// Executions of each of the four arms in a round.
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) samples: u32,
    /// The right answer: nobody is told; a note that holds it is cut, or refused.
    #[arg(long, value_name = "TEXT")]
    pub(super) gold: Option<String>,
    /// Write preference pairs: what the failed run said at the step, and what runs that passed said there.
    #[arg(long, value_name = "OUT.jsonl")]
    pub(super) pairs: Option<PathBuf>,
    /// Replace what is at OUT.jsonl.
    #[arg(long, requires = "pairs")]
    pub(super) overwrite: bool,
    /// Draws the other steps that get the note.
    #[arg(long, default_value_t = 7, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) judge: RetryJudgeArgs,
    /// Say what it would cost at most, and execute nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) matching: MatchArgs,
    #[command(flatten)]
    pub(super) execute: ExecuteArgs,
}

/// The model that a method asks.
#[derive(Debug, Clone, Args)]
pub(super) struct RetryJudgeArgs {
    /// Where the method's judge is. Without it: where the run's own calls go.
    #[arg(long, value_name = "URL")]
    pub(super) judge: Option<String>,
    /// Its name. Without it: the model that the run asked first.
    #[arg(long, value_name = "NAME")]
    pub(super) judge_model: Option<String>,
    /// Environment variable that holds its key.
    #[arg(long, value_name = "VAR", requires = "judge")]
    pub(super) judge_key_env: Option<String>,
    /// Set a parameter of its requests by hand: temperature=1, or temperature=none to leave it out; may be said several times.
    /// What its upstream refuses is left out or exchanged by itself.
    #[arg(long, visible_alias = "parameter", value_name = "NAME=VALUE")]
    pub(super) judge_parameter: Vec<ParameterSetting>,
}

impl RetryArgs {
    /// How it is made.
    ///
    /// # Errors
    /// A budget that bounds nothing.
    pub(super) fn settings(&self) -> Result<RetrySettings, Failure> {
        Ok(RetrySettings {
            samples: self.samples,
            jobs: self.execute.trial.jobs,
            any_tool_results: self.matching.any_tool_results(),
            seed: self.seed,
            salt: settings::fresh_token(),
            runs: self.execute.budget.limits()?.runs,
            price: self.execute.budget.price.unwrap_or_default(),
        })
    }
}
