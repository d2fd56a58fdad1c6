//! What may differ in a request that is still the same: one setting for all verbs that compare or execute.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, escape, logging, settings};
use crate::{
    execution::LearningReference,
    replay::{Cassette, Rules, ToolResults},
};

/// What may differ in a request that is still the same one.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct MatchArgs {
    /// TOML file of what may differ between runs, besides dates, ids and temporary paths.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// How far tool results may differ: not at all, in words with a digit (durations, counts, hashes), or in
    /// everything. Kept in `run.json`, like the rules: a run that is executed again inherits both. Default: `exact`,
    /// and what executions of the same run show beyond that; where it is set, they add nothing.
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

    /// The record that executions begin like: what they show to be equal is said.
    pub(super) fn reference(&self, quiet: bool) -> LearningReference {
        let say = |learned: &[String]| {
            let learned = escape(&learned.join("; "));
            let why = "an execution differs from the record in nothing else";
            logging::line(format_args!("equal    counts as equal: {learned}: {why}; it is executed again"));
        };
        LearningReference::new(self.tool_results().is_some(), (!quiet).then_some(say as fn(&[String])))
    }

    /// What may differ, results of tools too.
    pub(super) fn equality(&self) -> Result<Rules, Failure> {
        Ok(settings::rules(self.rules.as_deref())?.with_tool_results(self.tool_results().unwrap_or_default()))
    }

    /// The same for a run that was recorded: what is not given here is as its `run.json` says.
    pub(super) fn inherited(&self, recorded: &Rules, quiet: bool) -> Result<Rules, Failure> {
        let rules = if self.rules.is_some() { self.equality()? } else { recorded.clone() };
        let rules = rules.with_tool_results(self.tool_results().unwrap_or(recorded.tool_results()));
        let setting = rules.setting();
        if !quiet && !setting.is_default() && setting == recorded.setting() {
            let setting = escape(&setting.to_string());
            logging::line(format_args!("equal    as the run was recorded ({setting}); the same option says otherwise"));
        }
        Ok(rules)
    }

    /// Opens a recording that is replayed or executed again.
    pub(super) fn open(&self, dir: &Path, quiet: bool) -> Result<Arc<Cassette>, Failure> {
        let cassette = Cassette::open(dir)?;
        let rules = self.inherited(cassette.rules(), quiet)?;
        let cassette = cassette.with_rules(rules);
        if cassette.bare_steps().is_empty() {
            let error = format!("`{}` holds no step: there is nothing to replay", dir.display());
            return Err(Failure::new(Exit::Usage, error).hint(format!(
                "`aegis show {}` says what became of it",
                crate::launch::shell_word(&dir.to_string_lossy())
            )));
        }
        Ok(Arc::new(cassette))
    }
}
