//! What `trace` can be told of a prior.

use std::path::PathBuf;

use clap::Args;

use crate::{cli::tracer::TracerArgs, surface::ParameterSetting};

/// Where a ranking comes from, and the judge of methods that ask one.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PriorArgs {
    /// Test the most suspicious step first, by a fused ranking of methods (`aegis attribute --list`), predictions of
    /// `attribute --out` (.jsonl) and rankers of `aegis learn` (.toml). Judges use the trace's upstream.
    #[arg(long, value_name = "METHOD|PRED.jsonl|PRIOR.toml", value_delimiter = ',')]
    pub(super) prior: Vec<String>,
    #[command(flatten)]
    pub(super) tracers: TracerArgs,
    /// Model of the judge. Default: the first model that the run asked.
    #[arg(long, value_name = "NAME", requires = "prior")]
    pub(super) prior_model: Option<String>,
    /// Directory that records the judge's answers; recorded questions are not asked again. Default: beside the trials.
    #[arg(long, value_name = "DIR", requires = "prior")]
    pub(super) prior_cassette: Option<PathBuf>,
    #[arg(long, hide = true, value_parser = former_budget)]
    prior_budget: Option<String>,
    /// Request parameter of the judge; VALUE `none` omits it; repeatable.
    #[arg(long, value_name = "NAME=VALUE", requires = "prior")]
    pub(super) prior_parameter: Vec<ParameterSetting>,
}

fn former_budget(limits: &str) -> Result<String, String> {
    Err(format!("write --budget {limits}: it holds the judge's questions, too"))
}

impl PriorArgs {
    /// Whether a ranking is asked for.
    pub(super) fn is_asked(&self) -> bool {
        !self.prior.is_empty() || !self.tracers.tracer.is_empty()
    }
}
