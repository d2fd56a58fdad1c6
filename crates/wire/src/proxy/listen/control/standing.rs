//! Where runs stand, and the end of one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use serde_json::{Value, json};

use super::{ChangeAudit, ControlResult, Refusal, json as answered};
use crate::{
    proxy::{RunStanding, Runs, exchange::Proxy},
    recording::{self, RecordingError},
    trajectory::RunId,
};

/// Runs that a list shows.
const LISTED: usize = 1000;

/// Lists the runs of the server's log directory, those written last first.
pub(super) async fn list(proxy: &Proxy) -> ControlResult {
    let runs = Arc::clone(&proxy.runs);
    let listed = tokio::task::spawn_blocking(move || {
        let found = latest(&runs.template().log_dir);
        let row = |run: &RunId| {
            let mut row = json!({"run": run, "state": runs.standing(run)?.name()});
            under_way(&runs, run, &mut row);
            Some(row)
        };
        let rows: Vec<Value> = found.iter().take(LISTED).filter_map(row).collect();
        json!({"runs": rows, "left_out": found.len().saturating_sub(LISTED)})
    });
    Ok(answered(&listed.await.map_err(|_| Refusal::internal())?))
}

/// Tells what is known of one run.
pub(super) async fn read(proxy: &Proxy, run: &RunId) -> ControlResult {
    let standing = proxy.runs.standing(run).ok_or_else(|| Refusal::unknown(run))?;
    let dir = proxy.runs.template().log_dir.join(run.as_str());
    let told = tokio::task::spawn_blocking(move || tell(&dir, standing)).await.map_err(|_| Refusal::internal())?;
    let mut told = told.map_err(|error| Refusal::recording(run, &error))?;
    under_way(&proxy.runs, run, &mut told);
    Ok(answered(&told))
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
    Ok(answered(&told.map_err(|error| Refusal::recording(run, &error))?))
}

/// What is known of a run that is open: how many steps it has, how many calls are under way, how long it has been silent.
fn under_way(runs: &Runs, run: &RunId, told: &mut Value) {
    let Some(open) = runs.find(run) else { return };
    let known = json!({
        "steps": open.steps(), "calls_under_way": open.in_flight(), "idle_s": open.idle_for().as_secs(),
    });
    if let (Some(told), Value::Object(known)) = (told.as_object_mut(), known) {
        told.extend(known);
    }
}

/// What the files of a run say.
fn tell(dir: &Path, standing: RunStanding) -> Result<Value, RecordingError> {
    let manifest = recording::read_manifest(dir)?;
    let seal = recording::read_seal(dir)?;
    let steps = match (&seal, standing) {
        (Some(seal), _) => Some(seal.steps),
        // The log of one that is open is not read: the server knows.
        (None, RunStanding::Open) => None,
        (None, _) => Some(recording::read_recorded(dir)?.trajectory.steps.len() as u64),
    };
    Ok(json!({
        "run": manifest.run, "state": standing.name(), "started": manifest.started, "ended": manifest.ended,
        "steps": steps, "agents": manifest.agents, "outcome": manifest.outcome, "label": recording::read_label(dir)?,
    }))
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
