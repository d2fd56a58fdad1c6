//! Searches of a campaign: failures are traced, each by the line that a user would type.

use std::{path::PathBuf, sync::Arc};

use clap::Parser;

use crate::{
    campaign::{Campaign, CorrectionSource, FailureTracer, SearchGoal, SearchedFailure},
    cli::{
        Exit, Global, OutputFormat,
        trace::{self, TraceArgs},
    },
    execution::Meter,
};

/// Traces the failures of a campaign.
#[derive(Debug)]
pub(super) struct CampaignTracer {
    upstream: Option<String>,
    /// What paths of the campaign file are relative to.
    directory: PathBuf,
    ca_file: Option<PathBuf>,
    /// The options of a verb that is quiet: the campaign says what came of it.
    quiet: Global,
}

/// A line of `aegis trace`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct TraceCommand {
    #[command(flatten)]
    trace: TraceArgs,
}

impl CampaignTracer {
    /// What traces the failures of a campaign; `None` where none is to be traced.
    pub(super) fn of_campaign(
        campaign: &Campaign,
        directory: PathBuf,
        ca_file: Option<PathBuf>,
        global: &Global,
    ) -> Option<Arc<dyn FailureTracer>> {
        campaign.natural.as_ref().or(campaign.missed_catch.as_ref())?;
        let quiet = Global { format: OutputFormat::Json, quiet: true, ..global.clone() };
        Some(Arc::new(Self { upstream: campaign.upstream.clone(), directory, ca_file, quiet }))
    }

    /// The words behind `aegis trace`.
    fn words(&self, failure: &SearchedFailure) -> Vec<String> {
        let mut words = vec![failure.dir.display().to_string(), "--again".to_owned()];
        if failure.goal == SearchGoal::MissedCatch {
            words.push("--missed-catch".to_owned());
        }
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        let path = |path: PathBuf| path.display().to_string();
        option("--upstream", self.upstream.clone());
        option("--config", failure.system.config.as_ref().map(|file| path(self.directory.join(file))));
        option("--ca-file", self.ca_file.clone().map(path));
        option("--timeout", Some(failure.system.timeout.as_secs_f64().to_string()));
        let search = &failure.search;
        option("--budget", Some(format!("runs={}", search.runs)));
        option("--analyzer", search.analyzer.clone());
        option("--analyzer-model", search.model.clone());
        option("--analyzer-key-env", search.key_env.clone());
        match search.corrections {
            CorrectionSource::Analyzer => {
                option("--answer", Some(failure.answer.clone()).filter(|answer| !answer.is_empty()));
            }
            CorrectionSource::Twin => option("--twin", failure.twin.clone().map(path)),
            CorrectionSource::Redraw => words.push("--redraw".to_owned()),
        }
        words
    }
}

impl FailureTracer for CampaignTracer {
    fn trace(&self, failure: &SearchedFailure, meter: &Arc<Meter>) -> Result<(), String> {
        let line = TraceCommand::try_parse_from(self.words(failure)).map_err(|error| error.to_string())?;
        match trace::trace_run(&line.trace, Some(meter), &self.quiet) {
            Ok(_) => Ok(()),
            // What the budget or a signal ended goes on with the campaign.
            Err(failure) if matches!(failure.exit, Exit::Budget | Exit::Signal(_)) => Ok(()),
            Err(failure) => Err(failure.error.to_string()),
        }
    }
}
