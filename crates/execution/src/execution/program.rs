//! What is executed: a command as a child process, or whatever else makes model calls.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use nix::sys::signal::Signal;

use super::{ExecutionMeter, Stop};
use crate::{
    launch::{Echo, Ended, Launch, LaunchError, environment, server_addresses},
    proxy::NamedServers,
    proxy::RunTemplate,
    recording::{Launched, RecordedCheck, Redactor},
    trajectory::RunId,
};

/// What can be executed again and again.
pub trait System: Send + Sync {
    /// Executes it once.
    fn execute<'a>(&'a self, place: ExecutionPlace<'a>) -> Executing<'a>;

    /// The command that it is, if it is one: how it was started is kept with each of its runs.
    fn program(&self) -> Option<&Program> {
        None
    }
}

/// A system under way.
pub type Executing<'a> = Pin<Box<dyn Future<Output = Result<Ended, LaunchError>> + Send + 'a>>;

/// Where an execution happens, and what ends it early.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionPlace<'a> {
    /// The proxy: `http://host:port`.
    pub origin: &'a str,
    /// The run.
    pub run: &'a RunId,
    /// Its directory.
    pub run_dir: &'a Path,
    /// The header that names the run.
    pub run_header: &'a str,
    /// The servers of tools and the peers that it may ask.
    pub servers: &'a NamedServers,
    pub(super) stop: &'a Stop,
    pub(super) meter: &'a ExecutionMeter,
}

impl ExecutionPlace<'_> {
    /// Resolves when the program is to be ended: by the signal that we were told, or because it may spend no more.
    pub async fn ended_early(&self) -> Signal {
        tokio::select! {
            signal = stop_requested(self.stop.clone()) => signal,
            () = self.meter.halted() => Signal::SIGTERM,
        }
    }

    /// Resolves when all work is to stop.
    pub(super) async fn stop_requested(&self) -> Signal {
        stop_requested(self.stop.clone()).await
    }
}

/// Resolves with the signal that all work is to stop by; a channel that nobody holds any more never tells.
async fn stop_requested(mut stop: Stop) -> Signal {
    let told = stop.wait_for(Option::is_some).await.ok().and_then(|told| *told);
    match told {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}

/// A command as it is started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// The working directory; ours, if none.
    pub directory: Option<PathBuf>,
    /// Variables beside the inherited ones and those that point it at the proxy.
    pub environment: BTreeMap<String, String>,
    /// Longest run time.
    pub limit: Option<Duration>,
    /// What it reads, and where its words go.
    pub console: Console,
}

/// What a program reads, and where its words go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Console {
    /// Whether it reads our standard input; else its own is empty.
    pub reads: bool,
    /// Where its standard output goes beside what is kept of it.
    pub echo: Echo,
    /// Where its standard error goes.
    pub errors: ErrorOutput,
}

/// Where a program's standard error goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorOutput {
    /// To ours.
    Ours,
    /// Nowhere.
    Nowhere,
    /// Into this file.
    File(PathBuf),
    /// Into a file beside the run ([`output_file`]).
    Beside,
}

/// A file of what a run's program wrote, beside the run's directory: that holds nothing but what was recorded.
pub fn output_file(run_dir: &Path, ending: &str) -> PathBuf {
    let name = run_dir.file_name().unwrap_or_default().to_string_lossy();
    run_dir.with_file_name(format!("{name}.{ending}.txt"))
}

impl Default for Console {
    fn default() -> Self {
        Self { reads: false, echo: Echo::Silent, errors: ErrorOutput::Nowhere }
    }
}

impl Program {
    /// How it is started, and judged by this, as `run.json` keeps it.
    pub(super) fn launched(&self, template: &RunTemplate, check: Option<RecordedCheck>) -> Launched {
        let text = |argument: &OsString| argument.to_string_lossy().into_owned();
        let whole = |path: &Path| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned()).ok();
        let directory = match &self.directory {
            Some(directory) => whole(directory),
            None => std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned()),
        };
        Launched {
            command: self.command.iter().map(text).collect(),
            directory,
            environment: self.environment.clone(),
            config: template.config.as_deref().and_then(whole),
            check,
            upstream: template.base_url.clone(),
            masked: self.command.iter().any(|argument| argument.to_str().is_none()),
        }
    }
}

impl System for Program {
    fn execute<'a>(&'a self, place: ExecutionPlace<'a>) -> Executing<'a> {
        let Console { reads, echo, errors } = &self.console;
        let here = std::env::current_dir().unwrap_or_default();
        let directory = self.directory.as_deref().map_or_else(|| here.clone(), |below| here.join(below));
        let mut variables = environment(place.origin, place.run, place.run_header, &directory);
        variables.extend(server_addresses(place.origin, place.run, place.servers));
        variables.extend(self.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        let launch = Launch {
            environment: variables,
            directory: self.directory.clone(),
            limit: self.limit,
            input: (!reads).then(Vec::new),
            echo: *echo,
            hush: *errors == ErrorOutput::Nowhere,
            errors: match errors {
                ErrorOutput::File(path) => Some(path.clone()),
                ErrorOutput::Beside => Some(output_file(place.run_dir, "stderr")),
                ErrorOutput::Ours | ErrorOutput::Nowhere => None,
            },
            ..Launch::new(self.command.clone())
        };
        let errors = launch.errors.clone();
        Box::pin(async move {
            let ended = launch.run(place.ended_early()).await;
            if let Some(errors) = errors {
                // Programs print their keys when they fail. Where there is no such file, there is nothing to mask.
                let _ = Redactor::of_process().mask_file(&errors);
            }
            ended
        })
    }

    fn program(&self) -> Option<&Program> {
        Some(self)
    }
}
