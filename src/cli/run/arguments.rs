//! What `run` can be told.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    cli::{
        attribute::{AttributeArgs, JudgeArgs},
        budget::BudgetArgs,
        matching::MatchArgs,
        settings::{self, PlannedArgs, ProxyArgs},
        tracer::TracerArgs,
        watch::WatchArgs,
    },
    surface::ParameterSetting,
};

/// Options of `run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    pub(super) planned: PlannedArgs,
    /// Name of the run. Default: generated.
    #[arg(long, value_name = "NAME")]
    pub(super) run: Option<String>,
    /// Replace an existing recording of that name.
    #[arg(long, requires = "run")]
    pub(super) overwrite: bool,
    /// Directory of a recorded run of the same command without a plan: how often it asks what tells calls of its own from further
    /// attempts.
    #[arg(long, value_name = "RUN_DIR", requires = "plan")]
    pub(super) baseline: Option<PathBuf>,
    /// Command that judges the outcome, run by `sh -c` with the program's output on standard input and `AEGIS_RUN_DIR`
    /// set. Exit code 0: success; 1: failure; other: unknown.
    #[arg(long, value_name = "CMD")]
    pub(super) check: Option<String>,
    /// Timeout of the command in seconds.
    #[arg(long, value_name = "S", value_parser = settings::seconds)]
    pub(super) timeout: Option<f64>,
    /// Write a `JUnit` report on how the program met the plan's faults, one case per call. Red if and only if the exit
    /// code is not 0.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<std::path::PathBuf>,
    /// If the check fails, attribute the failure by these methods (`aegis attribute --list`). Judges use the run's
    /// upstream.
    #[arg(long, value_name = "METHOD", value_delimiter = ',', requires = "check")]
    pub(super) attribute: Vec<String>,
    #[command(flatten)]
    pub(super) tracers: TracerArgs,
    /// Model of the judge. Default: the first model that the run asked.
    #[arg(long, value_name = "NAME", requires = "attribute")]
    pub(super) attribute_model: Option<String>,
    /// Request parameter of the judge; VALUE `none` omits it; repeatable.
    #[arg(long, value_name = "NAME=VALUE", requires = "attribute")]
    pub(super) attribute_parameter: Vec<ParameterSetting>,
    /// Also request `logprobs`; they are recorded for `attribute --method confidence` and hidden from the program.
    #[arg(long)]
    pub(super) ask_logprobs: bool,
    #[command(flatten)]
    pub(super) budget: BudgetArgs,
    #[command(flatten)]
    pub(super) matching: MatchArgs,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
    /// Command to execute.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

impl RunArgs {
    /// Whether a failure is to be attributed.
    pub(super) fn attributes(&self) -> bool {
        !self.attribute.is_empty() || !self.tracers.tracer.is_empty()
    }

    /// How a failed run is attributed.
    pub(super) fn attributing(&self, run: &Path, judge: JudgeArgs) -> AttributeArgs {
        AttributeArgs::after(run, self.attribute.clone(), judge).traced_by(self.tracers.clone())
    }
}
