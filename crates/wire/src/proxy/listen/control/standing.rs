//! Where runs stand, and the end of one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{ChangeAudit, ControlResult, Refusal, json as answered};
use crate::{
    proxy::{RunStanding, Runs, exchange::Proxy},
    recording::{self, RecordingError},
    trajectory::{Label, Outcome, RunId},
};

/// Runs that a list shows.
const LISTED: usize = 1000;

/// The runs of a log directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    /// Those written last first.
    runs: Vec<ListedRun>,
    /// How many more there are.
    left_out: usize,
}

/// A run of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedRun {
    run: RunId,
    /// `open`, `idle` or `ended`.
    state: &'static str,
    #[serde(flatten)]
    open: OpenRunFacts,
}

/// What is known of a run that is open, and of no other.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct OpenRunFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    /// Calls that have begun and not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_under_way: Option<usize>,
    /// Seconds since the last call.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_s: Option<u64>,
}

/// What is known of one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunReply {
    run: RunId,
    /// `open`, `idle` or `ended`.
    state: &'static str,
    started: String,
    ended: Option<String>,
    steps: Option<u64>,
    /// Steps per agent, once it has ended.
    agents: BTreeMap<String, u64>,
    outcome: Outcome,
    label: Option<Label>,
    /// Calls that have begun and not ended, of a run that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_under_way: Option<usize>,
    /// Seconds since the last call, of a run that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_s: Option<u64>,
}

/// Lists the runs of the server's log directory, those written last first.
pub(super) async fn list(proxy: &Proxy) -> ControlResult {
    let runs = Arc::clone(&proxy.runs);
    let listed = tokio::task::spawn_blocking(move || {
        let found = latest(&runs.template().log_dir);
        let row = |run: &RunId| {
            let state = runs.standing(run)?.name();
            Some(ListedRun { run: run.clone(), state, open: under_way(&runs, run) })
        };
        let rows = found.iter().take(LISTED).filter_map(row).collect();
        RunList { runs: rows, left_out: found.len().saturating_sub(LISTED) }
    });
    answered(&listed.await.map_err(|_| Refusal::internal())?)
}

/// Tells what is known of one run.
pub(super) async fn read(proxy: &Proxy, run: &RunId) -> ControlResult {
    let standing = proxy.runs.standing(run).ok_or_else(|| Refusal::unknown(run))?;
    let dir = proxy.runs.template().log_dir.join(run.as_str());
    let told = tokio::task::spawn_blocking(move || tell(&dir, standing)).await.map_err(|_| Refusal::internal())?;
    let told = told.map_err(|error| Refusal::recording(run, &error))?;
    let OpenRunFacts { steps, calls_under_way, idle_s } = under_way(&proxy.runs, run);
    answered(&RunReply { steps: steps.map(u64::from).or(told.steps), calls_under_way, idle_s, ..told })
}

/// Ends a run. One that has ended is told as it is.
pub(super) async fn end(proxy: &Proxy, audit: &ChangeAudit, run: &RunId) -> ControlResult {
    match proxy.runs.standing(run) {
        Some(RunStanding::Open | RunStanding::Idle) => audit.change(run, "end", end_run(proxy, run)).await,
        Some(RunStanding::Ended) | None => end_run(proxy, run).await,
    }
}

async fn end_run(proxy: &Proxy, run: &RunId) -> ControlResult {
    let ended = proxy.runs.end(run).await.map_err(|error| Refusal::end(run, &error))?;
    let late = proxy.identity.late(std::slice::from_ref(run)).remove(run);
    let concluded = tokio::task::spawn_blocking(move || {
        ended.conclude(late.as_ref());
        tell(&ended.dir, RunStanding::Ended)
    });
    let told = concluded.await.map_err(|_| Refusal::internal())?;
    answered(&told.map_err(|error| Refusal::recording(run, &error))?)
}

/// What is known of a run that is open: how many steps it has, how many calls are under way, how long it has been silent.
fn under_way(runs: &Runs, run: &RunId) -> OpenRunFacts {
    let Some(open) = runs.find(run) else { return OpenRunFacts::default() };
    OpenRunFacts {
        steps: Some(open.steps()),
        calls_under_way: Some(open.in_flight()),
        idle_s: Some(open.idle_for().as_secs()),
    }
}

/// What the files of a run say.
fn tell(dir: &Path, standing: RunStanding) -> Result<RunReply, RecordingError> {
    let manifest = recording::read_manifest(dir)?;
    let seal = recording::read_seal(dir)?;
    let steps = match (&seal, standing) {
        (Some(seal), _) => Some(seal.steps),
        // The log of one that is open is not read: the server knows.
        (None, RunStanding::Open) => None,
        (None, _) => Some(recording::read_recorded(dir)?.trajectory.steps.len() as u64),
    };
    Ok(RunReply {
        run: manifest.run,
        state: standing.name(),
        started: manifest.started,
        ended: manifest.ended,
        steps,
        agents: manifest.agents,
        outcome: manifest.outcome,
        label: recording::read_label(dir)?,
        calls_under_way: None,
        idle_s: None,
    })
}

/// The runs of a directory, those written last first.
fn latest(log_dir: &PathBuf) -> Vec<RunId> {
    let written = |dir: &Path| {
        let times = ["seal.json", "log.jsonl", "run.json"].map(|name| dir.join(name).metadata()?.modified());
        times.into_iter().flatten().max().unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let entries = std::fs::read_dir(log_dir).into_iter().flatten().flatten();
    let runs = entries.filter_map(|entry| Some((RunId::parse(entry.file_name().to_str()?).ok()?, entry.path())));
    let mut runs: Vec<_> = runs.map(|(run, dir)| (written(&dir), run)).collect();
    runs.sort_by(|one, other| other.cmp(one));
    runs.into_iter().map(|(_, run)| run).collect()
}
