//! Adds facts to a run that has ended.

use std::path::Path;

use super::{
    Durability, Manifest, RecordingError, Settings,
    amended::{FACTS_FILE, FORMAT, FactsFile, LONGEST},
    disk::{Disk, failed},
    lock, own_hash,
    read::{read_run_file, read_unamended},
    renamed,
    run_fact::{FactContent, FactSource, LaterRoster, RunFact},
};
use crate::{
    identity::RosterRule,
    trajectory::{MissedCatch, ModeVerdict, Outcome},
};

/// What is to be added to what is known of a run.
#[derive(Debug, Clone, Default)]
pub struct Amendment {
    /// What the run achieved.
    pub outcome: Option<Outcome>,
    /// The task's text.
    pub task: Option<String>,
    /// A roster and the file that it was read from.
    pub roster: Option<GivenRoster>,
    /// What somebody says of the modes of planted changes.
    pub modes: Vec<ModeVerdict>,
    /// What executions say of agents that spoke after the run's error.
    pub missed_catch: Vec<MissedCatch>,
}

/// A roster as it is given.
#[derive(Debug, Clone)]
pub struct GivenRoster {
    /// The name of its file.
    pub file: String,
    /// Its rules.
    pub rules: Vec<RosterRule>,
}

/// How, and by whom, something is given.
#[derive(Debug, Clone)]
pub struct AmendmentSource {
    /// How.
    pub source: FactSource,
    /// By whom, where that is said.
    pub by: Option<String>,
}

/// Adds to what is known of a run that has ended; what is known already is not said again. The recording and its seal
/// stay as they are. Gives what was added.
///
/// Several may do so at once: each adds its lines behind those of the others.
///
/// # Errors
/// [`RecordingError::Locked`] while the run is being recorded; [`RecordingError::Roster`] where a rule cannot be used;
/// [`RecordingError::FactsFull`]; [`RecordingError::Io`], and what reading the run says.
pub fn amend(
    run_dir: &Path,
    amendment: &Amendment,
    giver: &AmendmentSource,
    settings: &Settings,
) -> Result<Vec<RunFact>, RecordingError> {
    let manifest = read_run_file(run_dir)?;
    refuse_open(run_dir, &manifest)?;
    let contents = amendment.contents(run_dir, settings)?;
    let disk = Disk::new(settings.durability == Durability::Synced);
    let path = run_dir.join(FACTS_FILE);
    let file = disk.open_append(&path)?;
    // Released when the file is closed.
    file.lock().map_err(|source| failed("lock", &path, source))?;
    let facts = FactsFile::read(run_dir)?;
    let at = settings.clock.wall().to_string();
    let by = giver.by.as_deref().map(|by| settings.redactor.text(by).into_owned());
    let mut added = Vec::new();
    for content in contents {
        let replaces = facts.holds(&manifest, &content, by.as_deref());
        if replaces.as_ref() != Some(&content) {
            added.push(RunFact {
                format: FORMAT,
                at: at.clone(),
                source: giver.source,
                by: by.clone(),
                content,
                replaces,
            });
        }
    }
    if added.is_empty() {
        return Ok(added);
    }
    // A line that was cut off stays, and is none.
    let mut lines = if facts.is_torn { vec![b'\n'] } else { Vec::new() };
    let mut before = facts.last_hash;
    for fact in &added {
        let unwritable =
            |error: serde_json::Error| RecordingError::Unreadable { path: path.clone(), why: error.to_string() };
        let mut line = serde_json::to_vec(fact).map_err(unwritable)?;
        before = own_hash::add(&mut line, &before).unwrap_or_default();
        line.push(b'\n');
        lines.extend(line);
    }
    if facts.length + lines.len() as u64 > LONGEST {
        return Err(RecordingError::FactsFull { path, most: LONGEST });
    }
    disk.append(&file, &path, &lines)?;
    if disk.synced {
        disk.sync(&file, &path)?;
    }
    Ok(added)
}

/// Refuses a run that is being recorded: what it comes to is its recorder's to say.
fn refuse_open(run_dir: &Path, manifest: &Manifest) -> Result<(), RecordingError> {
    if run_dir.join("seal.json").exists() {
        return Ok(());
    }
    lock::open_left(&Disk::default(), run_dir, manifest.run.as_str()).map(drop)
}

impl Amendment {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.outcome.is_none()
            && self.task.is_none()
            && self.roster.is_none()
            && self.modes.is_empty()
            && self.missed_catch.is_empty()
    }

    fn contents(&self, run_dir: &Path, settings: &Settings) -> Result<Vec<FactContent>, RecordingError> {
        let masked = |text: &str| settings.redactor.text(text).into_owned();
        let outcome = self.outcome.as_ref().map(|outcome| {
            let outcome = Outcome { evidence: masked(&outcome.evidence), ..outcome.clone() };
            FactContent::Outcome { outcome }
        });
        let task = self.task.as_deref().map(|task| FactContent::Task { task: masked(task) });
        let roster = self.roster.as_ref().map(|given| {
            let roster = renamed::roster(&given.rules)?;
            let (recording, requests) = read_unamended(run_dir, true)?;
            let later = renamed::by_roster(&recording, roster, |at, _| requests.get(at));
            let roster = LaterRoster { file: masked(&given.file), agent: given.rules.clone(), ..later };
            Ok(FactContent::Roster { roster })
        });
        let modes = self.modes.iter().map(|verdict| {
            let verdict = ModeVerdict { why: masked(&verdict.why), ..verdict.clone() };
            FactContent::Mode { verdict }
        });
        let missed = self.missed_catch.iter().map(|found| FactContent::MissedCatch { found: found.clone() });
        Ok([outcome, roster.transpose()?, task].into_iter().flatten().chain(modes).chain(missed).collect())
    }
}
