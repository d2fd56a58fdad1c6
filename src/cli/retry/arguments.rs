//! What `retry` can be told.

use std::path::PathBuf;

use clap::Args;

use crate::{
    attribution::RetrySettings,
    cli::{Failure, matching::MatchArgs, settings, tracer::TracerArgs, trial::ExecuteArgs},
    surface::ParameterSetting,
    trajectory::StepIndex,
};

/// Options of `retry`.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct RetryArgs {
    /// Directory of the failed run, or of runs: each that failed by itself is retried, and the gain is over all of them.
    #[arg(value_name = "RUN_DIR")]
    pub(super) dir: PathBuf,
    /// Method that names agent, step and error (`aegis attribute --list`), applied to the newest failure in each round.
    /// Default: the label that a trace has proven, else `rules`.
    #[arg(long, value_name = "METHOD")]
    pub(super) method: Option<String>,
    #[command(flatten)]
    pub(super) tracers: TracerArgs,
    /// File with the critique: rows of `aegis attribute --out`, {"step": N, "note": "…"}, or plain text with --at. One
    /// round.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "tracer"])]
    pub(super) critique: Option<PathBuf>,
    /// Step that the critique refers to.
    #[arg(long, value_name = "STEP", requires = "critique")]
    pub(super) at: Option<StepIndex>,
    /// Maximum rounds. The first that repairs the run is the last.
    #[arg(long, default_value_t = 3, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) rounds: u32,
    /// Executions per round of each of the four arms.
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) samples: u32,
    /// Right answer, shown to no one. Notes that contain it are cut or refused.
    #[arg(long, alias = "gold", value_name = "TEXT")]
    pub(super) answer: Option<String>,
    /// Write preference pairs: replies at the step in the failed run and in passing runs.
    #[arg(long, alias = "pairs", value_name = "OUT.jsonl")]
    pub(super) preferences: Option<PathBuf>,
    /// Replace an existing OUT.jsonl.
    #[arg(long, requires = "preferences")]
    pub(super) overwrite: bool,
    /// Seed for the other steps that get the note.
    #[arg(long, default_value_t = 7, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) judge: RetryJudgeArgs,
    /// Print the maximum cost and execute nothing.
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
    /// Upstream of the method's judge. Default: the run's upstream.
    #[arg(long, value_name = "URL")]
    pub(super) judge: Option<String>,
    /// Model of the judge. Default: the first model that the run asked.
    #[arg(long, value_name = "NAME")]
    pub(super) judge_model: Option<String>,
    /// Environment variable with the judge's key.
    #[arg(long, value_name = "VAR", requires = "judge")]
    pub(super) judge_key_env: Option<String>,
    /// Request parameter of the judge; VALUE `none` omits it; repeatable.
    #[arg(long, visible_alias = "parameter", value_name = "NAME=VALUE")]
    pub(super) judge_parameter: Vec<ParameterSetting>,
}

impl RetryArgs {
    /// The method that is asked where no tracer is.
    pub(super) fn method_name(&self) -> &str {
        self.method.as_deref().unwrap_or("rules")
    }

    /// Who is asked for the error: a tracer, as the user names it, or a method.
    pub(super) fn critic_name(&self) -> &str {
        self.tracers.tracer.first().map_or(self.method_name(), String::as_str)
    }

    /// Whether a proven label speaks where there is one: nobody else is named.
    pub(super) fn takes_label(&self) -> bool {
        self.method.is_none() && self.tracers.tracer.is_empty()
    }

    /// How it is made.
    ///
    /// # Errors
    /// A budget that bounds nothing.
    pub(super) fn settings(&self) -> Result<RetrySettings, Failure> {
        Ok(RetrySettings {
            samples: self.samples,
            jobs: self.execute.trial.jobs,
            seed: self.seed,
            salt: settings::fresh_token(),
            runs: self.execute.budget.limits()?.runs,
            price: self.execute.budget.price.unwrap_or_default(),
        })
    }
}
