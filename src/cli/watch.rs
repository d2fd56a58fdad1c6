//! `--watch` of `run` and `serve`: what runs are watched for, and how a sign is said.

use std::{str::FromStr, sync::Arc};

use clap::Args;

use super::{Config, Exit, Failure, escape, screen};
use crate::{
    identity::RosterRule,
    proxy::{LiveWatch, Proxy},
    trajectory::{Pattern, WatchSign},
    watch::WatchSettings,
};

/// Options of verbs whose runs can be watched.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct WatchArgs {
    /// Check each step for signs of trouble (docs/watch.md). `warn` reports and records them; `stop:RULE[,RULE]` also
    /// refuses the run's further calls.
    #[arg(long, value_name = "warn|stop:RULE")]
    watch: Option<WatchMode>,
    /// Rules to apply, or `all` (docs/watch.md). Default: all but `other-result` and `new-number`.
    #[arg(long, value_name = "RULE", value_delimiter = ',', requires = "watch")]
    watch_rules: Vec<String>,
    /// Regular expression of a reply that ends the work, for the rule `after-end`.
    #[arg(long, value_name = "REGEX", requires = "watch")]
    watch_end: Option<String>,
    /// Context window of the model in tokens, for the rule `context-full`.
    #[arg(long, value_name = "TOKENS", requires = "watch")]
    watch_window: Option<u64>,
}

/// What is done about a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchMode {
    /// The rules that stop a run; none to warn only.
    stops: Vec<String>,
}

impl FromStr for WatchMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected `warn`, or `stop:RULE[,RULE]`".to_owned();
        match text.split_once(':') {
            None if text == "warn" => Ok(Self { stops: Vec::new() }),
            Some(("stop", rules)) if !rules.is_empty() => {
                Ok(Self { stops: rules.split(',').map(|rule| rule.trim().to_owned()).collect() })
            }
            _ => Err(expected()),
        }
    }
}

impl WatchArgs {
    /// Has all runs of a proxy watched, where that is asked for. To be called before anything is served.
    ///
    /// # Errors
    /// A name that no rule has, or a pattern that is none.
    pub(super) fn apply(&self, proxy: &mut Proxy, config: &Config) -> Result<(), Failure> {
        let Some(settings) = self.settings()? else { return Ok(()) };
        let live = LiveWatch::new(
            settings,
            roster(config),
            Box::new(|run, sign| {
                screen::say_at_once(&format!("watch    {run}  {}", escape(&line(sign))));
                if sign.stops {
                    screen::say_at_once(&format!("stopped  {run}  its further calls are refused"));
                }
            }),
        );
        if let Some(runs) = Arc::get_mut(&mut proxy.runs) {
            runs.watch_all(live);
        }
        Ok(())
    }

    fn settings(&self) -> Result<Option<WatchSettings>, Failure> {
        let Some(mode) = &self.watch else { return Ok(None) };
        let settings = settings(&self.watch_rules, &mode.stops)?;
        let end = self.watch_end.as_deref().map(Pattern::new).transpose();
        let end = end.map_err(|error| Failure::new(Exit::Usage, format!("--watch-end {error}")))?;
        Ok(Some(settings.with_end(end).with_window(self.watch_window)))
    }
}

/// The rules of these names.
///
/// # Errors
/// A name that no rule has.
pub(super) fn settings(named: &[String], stops: &[String]) -> Result<WatchSettings, Failure> {
    WatchSettings::new(named, stops)
        .map_err(|error| Failure::new(Exit::Usage, error).hint("docs/watch.md lists the rules; `all` names every one"))
}

/// The names of the agents that a configuration knows.
pub(super) fn roster(config: &Config) -> Vec<String> {
    config.agent.iter().filter_map(|rule: &RosterRule| rule.name.clone()).collect()
}

/// A sign in one line.
pub(super) fn line(sign: &WatchSign) -> String {
    let WatchSign { rule, agent, step, instance, seen, quote, failure_mode, .. } = sign;
    let which = if *instance == 0 { String::new() } else { format!("#{instance}") };
    let mode = failure_mode.map(|mode| format!(" ({} {})", mode.code(), mode.name())).unwrap_or_default();
    let quote = if quote.is_empty() { String::new() } else { format!(": {quote:?}") };
    format!("{agent}{which} at step {step}: {rule}{mode}: {seen}{quote}")
}
