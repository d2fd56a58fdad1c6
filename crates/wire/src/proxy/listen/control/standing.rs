//! Where runs stand, and the end of one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use hyper::{Request, body::Incoming};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeAudit, ControlResult, Refusal, json as answered, read as body};
use crate::{
    identity::{Roster, RosterRule},
    proxy::{RunStanding, Runs, shared::Proxy},
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
    /// As it was given when the run was opened, or later.
    task: Option<String>,
    ended: Option<String>,
    steps: Option<u64>,
    /// Steps per agent, once it has ended.
    agents: BTreeMap<String, u64>,
    outcome: Outcome,
    label: Option<Label>,
    /// Whether it is kept, whatever is pruned.
    kept: bool,
    /// Calls that have begun and not ended, of a run that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_under_way: Option<usize>,
    /// Seconds since the last call, of a run that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_s: Option<u64>,
}

/// A run that is to be opened.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRun {
    /// Its name; one is made where none is given.
    run: Option<RunId>,
    /// Its task.
    task: Option<String>,
    /// Who its agents are: rules as the `[[agent]]` of a configuration, in the place of the server's.
    #[serde(default)]
    agents: Vec<RosterRule>,
}

/// A run that was opened.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenReply {
    #[serde(flatten)]
    opened: RunReply,
    /// What stands before the path of the API in the base URL of the run's calls, behind the proxy's address and, where one is
    /// required, `/t/TOKEN`.
    base_path: String,
}

/// Opens a run.
pub(super) async fn open(proxy: &Proxy, audit: &ChangeAudit, request: Request<Incoming>) -> ControlResult {
    let NewRun { run, task, agents } = body(request).await?;
    Roster::new(agents.clone()).map_err(|error| Refusal::roster(error.to_string()))?;
    if proxy.runs.template().recording.redactor.holds_secret(&serde_json::to_string(&agents).unwrap_or_default()) {
        return Err(Refusal::roster(
            "a rule of `agents` holds what looks like a key, and rules are recorded".to_owned(),
        ));
    }
    let run = run.unwrap_or_else(|| proxy.runs.made_id("run", 0));
    if proxy.runs.standing(&run).is_some() {
        return Err(Refusal::exists(&run));
    }
    let opening = async {
        proxy.runs.begin(&run, task, agents).await.map_err(|error| Refusal::proxy(&run, &error))?;
        let opened = run_reply(proxy, &run).await?;
        answered(&OpenReply { opened, base_path: format!("/r/{run}") })
    };
    audit.change(&run, "open", opening).await
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
    answered(&run_reply(proxy, run).await?)
}

async fn run_reply(proxy: &Proxy, run: &RunId) -> Result<RunReply, Refusal> {
    let standing = proxy.runs.standing(run).ok_or_else(|| Refusal::unknown(run))?;
    let dir = proxy.runs.template().log_dir.join(run.as_str());
    let told = tokio::task::spawn_blocking(move || tell(&dir, standing)).await.map_err(|_| Refusal::internal())?;
    let told = told.map_err(|error| Refusal::recording(run, &error))?;
    let OpenRunFacts { steps, calls_under_way, idle_s } = under_way(&proxy.runs, run);
    Ok(RunReply { steps: steps.map(u64::from).or(told.steps), calls_under_way, idle_s, ..told })
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
    let late = proxy.identity.late_names(std::slice::from_ref(run)).remove(run);
    let concluded = tokio::task::spawn_blocking(move || {
        ended.conclude(late.as_ref());
        tell(&ended.dir, RunStanding::Ended)
    });
    let told = concluded.await.map_err(|_| Refusal::internal())?;
    answered(&told.map_err(|error| Refusal::recording(run, &error))?)
}

/// Keeps a run whatever is pruned, or takes that back.
pub(super) async fn keep(proxy: &Proxy, audit: &ChangeAudit, run: &RunId, keeps: bool) -> ControlResult {
    if proxy.runs.standing(run).is_none() {
        return Err(Refusal::unknown(run));
    }
    let dir = proxy.runs.template().log_dir.join(run.as_str());
    let by = audit.user().to_owned();
    let change = async move {
        let change = move || if keeps { recording::keep_run(&dir, Some(&by)) } else { recording::release_run(&dir) };
        let changed = tokio::task::spawn_blocking(change).await.map_err(|_| Refusal::internal())?;
        changed.map_err(|error| Refusal::recording(run, &error))?;
        read(proxy, run).await
    };
    audit.change(run, if keeps { "keep" } else { "release" }, change).await
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
        task: manifest.task,
        ended: manifest.ended,
        steps,
        agents: manifest.agents,
        outcome: manifest.outcome,
        label: recording::read_label(dir)?,
        kept: !matches!(recording::read_kept(dir), Ok(None)),
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
