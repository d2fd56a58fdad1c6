//! Runs that no request has named, and that an earlier server left open: what they said is known again, so that their programs
//! go on with them, and those whose programs are gone end as idle.

use std::{fs, path::PathBuf};

use super::shared::Proxy;
use crate::{
    identity::{RunSource, step_hash},
    recording::{self, Manifest, Recording},
    surface::{self, door},
    trajectory::{RunId, Step},
};

/// Runs that are taken up again, latest first: as many as lineage remembers.
const MOST: usize = 1024;

impl Proxy {
    /// Takes up the runs again that lineage told before this server began; nothing where lineage is off. Gives how many there
    /// were. To be called before anything is served.
    pub async fn readopt(&self) -> usize {
        if self.identity.lineage.is_none() {
            return 0;
        }
        let log_dir = self.runs.template().log_dir.clone();
        let found = tokio::task::spawn_blocking(move || left_open(&log_dir)).await.unwrap_or_default();
        let mut adopted = 0;
        for id in found {
            // One that somebody else records, or that cannot be read, is not ours.
            let Ok(run) = self.runs.get(&id).await else { continue };
            let dir = run.dir().to_owned();
            let read = tokio::task::spawn_blocking(move || recording::read_recorded(&dir)).await;
            if let Ok(Ok(recording)) = read {
                adopted += 1;
                self.recall(&id, &recording);
            }
        }
        adopted
    }

    fn recall(&self, id: &RunId, recording: &Recording) {
        let exchanges = recording.exchanges.iter().filter(|exchange| exchange.attempt == 0);
        for (step, exchange) in recording.trajectory.steps.iter().zip(exchanges) {
            let source = RunSource::of_lineage(&exchange.run_source).unwrap_or(RunSource::New);
            self.recall_step(step, id.clone(), source);
        }
    }

    fn recall_step(&self, step: &Step, run: RunId, source: RunSource) {
        let path = step.path.split('?').next().unwrap_or_default();
        let Some(surface) = surface::for_path(&step.method, path) else { return };
        let Ok(outline) = door::outline_at(surface, &step.path, &step.request) else { return };
        let body = step_hash(step, &step.request);
        let Some(track) = self.identity.recall(&outline, body, run, source) else { return };
        track.opened(step.step, 0, &step.attribution);
        let answer = step.last_attempt().filter(|attempt| attempt.is_answered());
        let reply = answer.and_then(|answer| door::reply(surface, answer.delivered(), answer.streamed).ok());
        track.ended(reply.as_ref(), answer.is_none());
    }
}

/// The runs of a log directory that have a name of our own making and were left open, in the order in which they began.
fn left_open(log_dir: &PathBuf) -> Vec<RunId> {
    let is_open = |dir: &PathBuf| dir.join("log.jsonl").is_file() && !dir.join("seal.json").exists();
    let left = |dir: PathBuf| {
        let id = RunId::parse(dir.file_name()?.to_str()?).ok()?;
        let manifest = recording::read_manifest(&dir).ok()?;
        let Manifest { launched: None, plan: None, origin: None, started, .. } = manifest else { return None };
        Some((started, id))
    };
    let entries = fs::read_dir(log_dir).into_iter().flatten().flatten();
    let named_here = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_made_here));
    let mut found: Vec<_> = named_here.map(|entry| entry.path()).filter(is_open).filter_map(left).collect();
    found.sort();
    let surplus = found.len().saturating_sub(MOST);
    found.drain(..surplus);
    found.into_iter().map(|(_, id)| id).collect()
}

/// Whether a run's name is one that [`Runs::fresh_id`](super::Runs::fresh_id) makes.
fn is_made_here(name: &str) -> bool {
    name.strip_prefix("r-").is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
