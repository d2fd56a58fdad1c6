//! What may differ in a request that is still the same: one setting for all verbs that compare or execute.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, settings};
use crate::replay::{Cassette, Rules, ToolResults};

/// What may differ in a request that is still the same one.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct MatchArgs {
    /// TOML file of what may differ between runs, besides dates, ids and temporary paths.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// How far tool results may differ: not at all, in words with a digit (durations, counts, hashes), or in
    /// everything. Default: `exact`; campaigns learn it from clean runs.
    #[arg(long, value_name = "HOW")]
    tool_results: Option<ToolResultsChoice>,
    /// The former spelling of `--tool-results any`.
    #[arg(long, hide = true, conflicts_with = "tool_results")]
    any_tool_results: bool,
}

/// How far results of tools may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolResultsChoice {
    Exact,
    Masked,
    Any,
}

impl MatchArgs {
    /// How far results of tools may differ, where that is said.
    pub(super) fn tool_results(&self) -> Option<ToolResults> {
        let choice = self.tool_results.or(self.any_tool_results.then_some(ToolResultsChoice::Any));
        choice.map(|choice| match choice {
            ToolResultsChoice::Exact => ToolResults::Exact,
            ToolResultsChoice::Masked => ToolResults::Masked,
            ToolResultsChoice::Any => ToolResults::Any,
        })
    }

    /// What may differ, results of tools too.
    pub(super) fn equality(&self) -> Result<Rules, Failure> {
        Ok(settings::rules(self.rules.as_deref())?.with_tool_results(self.tool_results().unwrap_or_default()))
    }

    /// Opens a recording that is replayed: where results of tools may be anything, the steps that are served so are flagged.
    pub(super) fn open(&self, dir: &Path) -> Result<Arc<Cassette>, Failure> {
        let rules = self.equality()?;
        let flagged = self.any_tool_results();
        let rules = if flagged { rules.with_tool_results(ToolResults::Exact) } else { rules };
        let cassette = Cassette::open(dir)?.with_rules(rules);
        if cassette.bare_steps().is_empty() {
            let error = format!("`{}` holds no step: there is nothing to replay", dir.display());
            return Err(Failure::new(Exit::Usage, error).hint(format!(
                "`aegis show {}` says what became of it",
                crate::launch::shell_word(&dir.to_string_lossy())
            )));
        }
        Ok(Arc::new(cassette))
    }

    /// Whether results of tools may be anything.
    pub(super) fn any_tool_results(&self) -> bool {
        self.tool_results() == Some(ToolResults::Any)
    }
}
