//! `facts.jsonl`: what was learned of a run after it was recorded. A line a fact, only ever appended to.
//!
//! The file lies outside the seal's hash: the recording stays as it is, and what is known of it may grow. Each line has a hash of
//! itself and of the line before it. The newest fact of
//! a kind holds; each says when it was given, how, by whom, and what it takes the place of. Every reader of a run reads
//! through it.

use std::path::Path;

use super::{
    Manifest, Recording, RecordingError, disk,
    own_hash::{self, OwnHash},
    renamed,
    run_fact::{FactContent, FactSource, LaterRoster, RunFact},
};
use crate::{
    identity::RosterRule,
    trajectory::{
        GivenModeVerdict, Label, LabelStatus, LaterNames, MissedCatch, ModeJudge, Outcome, Step, StepIndex, Verdict,
    },
};

/// Where the facts of a run stand.
pub const FACTS_FILE: &str = "facts.jsonl";
/// The newest format of a line that is read.
pub(super) const FORMAT: u64 = 1;
/// The longest file, in bytes.
pub(super) const LONGEST: u64 = 8 << 20;

/// The facts of a run, as its file has them.
#[derive(Debug, Default)]
pub(super) struct FactsFile {
    all: Vec<RunFact>,
    /// Words about lines that cannot be read, or are without a hash.
    unread: Vec<String>,
    /// How long the file is, in bytes.
    pub(super) length: u64,
    /// Whether its last line was cut off.
    pub(super) is_torn: bool,
    /// The hash of its last line that has one.
    pub(super) last_hash: String,
}

impl FactsFile {
    /// Reads the facts of a run; none where it has no such file. A line that cannot be read is left out, and said.
    ///
    /// # Errors
    /// [`RecordingError::Io`] when the file cannot be read.
    pub(super) fn read(run_dir: &Path) -> Result<Self, RecordingError> {
        let Some(bytes) = disk::read_whole(&run_dir.join(FACTS_FILE), LONGEST)? else { return Ok(Self::default()) };
        let mut facts = Self {
            length: bytes.len() as u64,
            is_torn: bytes.last().is_some_and(|last| *last != b'\n'),
            ..Self::default()
        };
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let mut line = line.to_vec();
            let (hash, stated) = own_hash::take(&mut line, &facts.last_hash);
            facts.last_hash = stated.unwrap_or(facts.last_hash);
            match serde_json::from_slice::<RunFact>(&line) {
                Ok(_) if hash == OwnHash::Differs => {
                    let why = "it differs from its hash: it, or what was before it, was edited";
                    facts.unread.push(format!("{FACTS_FILE} line {} is left out: {why}", at + 1));
                }
                Ok(fact) if fact.format <= FORMAT => {
                    let note = format!("{FACTS_FILE} line {} is without a hash: an earlier version wrote it", at + 1);
                    facts.unread.extend((hash == OwnHash::Missing).then_some(note));
                    facts.all.push(fact);
                }
                Ok(RunFact { format, .. }) => {
                    let why = format!("it has format {format}: expected at most {FORMAT}");
                    facts.unread.push(format!("{FACTS_FILE} line {} is left out: {why}", at + 1));
                }
                Err(error) => facts.unread.push(format!("{FACTS_FILE} line {} is left out: {error}", at + 1)),
            }
        }
        Ok(facts)
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.all.iter().rev().find_map(|fact| match &fact.content {
            FactContent::Outcome { outcome } => Some(outcome),
            _ => None,
        })
    }

    fn task(&self) -> Option<&String> {
        self.all.iter().rev().find_map(|fact| match &fact.content {
            FactContent::Task { task } => Some(task),
            _ => None,
        })
    }

    /// The roster that holds, and the fact that says it.
    pub(super) fn roster(&self) -> Option<(&RunFact, &LaterRoster)> {
        roster_of(&self.all)
    }

    /// What is shown of agents that spoke after the run's error, in the order of their steps, under the names that hold.
    fn missed_catch(&self) -> Vec<MissedCatch> {
        let shown = holding(&self.all).filter_map(|fact| match &fact.content {
            FactContent::MissedCatch { found } => Some(found.clone()),
            _ => None,
        });
        let mut shown: Vec<MissedCatch> = shown.collect();
        for (found, group) in shown.iter_mut().filter_map(|found| {
            let group = self.roster()?.1.named.iter().find(|group| group.steps.contains(&found.step))?;
            Some((found, group))
        }) {
            found.agent.clone_from(&group.agent);
            found.instance = group.instance;
        }
        shown.sort_by_key(|found| found.step);
        shown
    }

    /// A manifest as it reads with them.
    pub(super) fn amend_manifest(&self, manifest: &mut Manifest) {
        if let Some(outcome) = self.outcome() {
            manifest.outcome.clone_from(outcome);
        }
        if let Some(task) = self.task() {
            manifest.task = Some(task.clone());
        }
        if let Some((_, roster)) = self.roster() {
            manifest.agents.clone_from(&roster.agents);
        }
    }

    /// A label as it reads with them: under the names that its steps got since, with what was said of its errors' modes and, where
    /// it claims nothing of what caused the outcome, with the outcome that is known by now.
    pub(super) fn name(&self, label: Label) -> Label {
        let label = match self.roster() {
            None => label,
            Some((fact, roster)) => label.named_later(&later_names(fact, roster), |step| {
                let group = roster.named.iter().find(|group| group.steps.contains(&step))?;
                Some((group.agent.clone(), group.instance))
            }),
        };
        let label = label.with_mode_verdicts(&mode_verdicts(&self.all)).with_missed_catch(self.missed_catch());
        match self.outcome() {
            Some(outcome) if label.status == LabelStatus::Delivered => label.with_outcome(outcome.verdict),
            _ => label,
        }
    }

    /// A recording as it reads with them. `request`: the request of the step at a position.
    pub(super) fn amend(self, recording: &mut Recording, request: impl Fn(usize, &Step) -> bytes::Bytes) {
        self.amend_manifest(&mut recording.manifest);
        recording.trajectory.outcome.clone_from(&recording.manifest.outcome);
        if let Some((_, roster)) = self.roster() {
            renamed::apply(recording, &roster.named, request);
        }
        recording.notes.extend(self.unread);
        recording.facts = self.all;
    }

    /// What holds of the kind of a fact that is to be added, by the same giver where several may hold side by side.
    pub(super) fn holds(&self, manifest: &Manifest, content: &FactContent, by: Option<&str>) -> Option<FactContent> {
        let same = |fact: &&RunFact| fact.is_of_kind(content, by);
        let given = self.all.iter().rev().find(same).map(|fact| fact.content.clone());
        given.or_else(|| match content {
            FactContent::Outcome { .. } => {
                let outcome = manifest.outcome.clone();
                let is_said = outcome.reason.is_some() || outcome.verdict != Verdict::Unknown;
                is_said.then_some(FactContent::Outcome { outcome })
            }
            FactContent::Task { .. } => manifest.task.clone().map(|task| FactContent::Task { task }),
            FactContent::Roster { .. } | FactContent::Mode { .. } | FactContent::MissedCatch { .. } => None,
        })
    }
}

impl Recording {
    /// The rules of the run's own roster: of that which was given after it was recorded, else of that which it was opened with.
    pub fn own_roster(&self) -> &[RosterRule] {
        roster_of(&self.facts).map_or(&self.manifest.roster, |(_, roster)| &roster.agent)
    }

    /// The facts that hold, the newest of each kind.
    pub fn facts_that_hold(&self) -> impl Iterator<Item = &RunFact> {
        holding(&self.facts)
    }

    /// What people and judges said last of the modes of its planted changes.
    pub fn mode_verdicts(&self) -> Vec<GivenModeVerdict<'_>> {
        mode_verdicts(&self.facts)
    }

    /// When, how and by whom the name of a step was given after the run was recorded; `None` where it was not.
    pub fn later_names(&self, step: StepIndex) -> Option<LaterNames> {
        let (fact, roster) = roster_of(&self.facts)?;
        let named = roster.named.iter().any(|group| group.steps.contains(&step));
        named.then(|| later_names(fact, roster))
    }
}

/// The roster that holds of a run's facts, and the fact that says it.
fn roster_of(facts: &[RunFact]) -> Option<(&RunFact, &LaterRoster)> {
    facts.iter().rev().find_map(|fact| match &fact.content {
        FactContent::Roster { roster } => Some((fact, roster)),
        _ => None,
    })
}

/// The facts that hold of a run's: the newest of each kind.
fn holding(facts: &[RunFact]) -> impl Iterator<Item = &RunFact> {
    let is_newest = |at: usize, fact: &RunFact| {
        !facts.iter().skip(at + 1).any(|later| later.is_of_kind(&fact.content, fact.by.as_deref()))
    };
    facts.iter().enumerate().filter(move |(at, fact)| is_newest(*at, fact)).map(|(_, fact)| fact)
}

/// What people and judges said of the modes of planted changes, by the facts of a run: the last word of each of them on each change.
pub fn mode_verdicts(facts: &[RunFact]) -> Vec<GivenModeVerdict<'_>> {
    let said = holding(facts).filter_map(|fact| {
        let FactContent::Mode { verdict } = &fact.content else { return None };
        let judge = if fact.source == FactSource::Judge { ModeJudge::Model } else { ModeJudge::Person };
        Some(GivenModeVerdict { by: fact.giver(), judge, verdict })
    });
    said.collect()
}

/// When, how and by whom the names of a roster were given.
fn later_names(fact: &RunFact, roster: &LaterRoster) -> LaterNames {
    LaterNames {
        at: fact.at.clone(),
        source: fact.source.name().to_owned(),
        by: fact.by.clone(),
        file: roster.file.clone(),
    }
}

/// The facts that were given of a run, the oldest first; its log is not read.
///
/// # Errors
/// [`RecordingError::Io`] when the file cannot be read.
pub fn read_facts(run_dir: &Path) -> Result<Vec<RunFact>, RecordingError> {
    FactsFile::read(run_dir).map(|facts| facts.all)
}

#[cfg(test)]
#[path = "amended_tests.rs"]
mod tests;
