//! What can be done with a recorded run, and why not: told once, from what its record says.
//!
//! Whatever suggests a verb for a run (a hint, a `next` line, a button of the page), and each of these verbs where it
//! refuses one, asks here. So no line is suggested that the verb would refuse. Words that only the user knows stand in it in
//! capitals, as in a synopsis: `CMD`, `URL`.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    launch::shell_word,
    recording::{Manifest, Recording},
    ruling::{self, PLANTED},
    trajectory::Verdict,
};

/// A verb that executes a run's program again, or answers it from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunVerb {
    /// Answers a program from the record.
    Replay,
    /// Executes the program again, live from a step on.
    Fork,
    /// Looks for the step that made the run fail.
    Trace,
    /// Asks whether a note to the blamed agent helps.
    Retry,
    /// Shows that what was planted made the run fail.
    Prove,
}

impl RunVerb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Replay, Self::Fork, Self::Trace, Self::Retry, Self::Prove];

    /// The verb as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Fork => "fork",
            Self::Trace => "trace",
            Self::Retry => "retry",
            Self::Prove => "prove",
        }
    }

    /// What it cannot do without, beside the run: where corrections come from, and at which step it leaves the record.
    fn options(self) -> &'static str {
        match self {
            Self::Replay | Self::Retry | Self::Prove => "",
            Self::Fork => "--at STEP",
            Self::Trace => "--redraw",
        }
    }

    /// Whether it makes live calls and judges what they lead to.
    fn executes(self) -> bool {
        self != Self::Replay
    }
}

/// Why a verb refuses a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It was imported.
    #[error(
        "was imported from {0}: its bodies are remade, so it cannot be replayed, forked, traced or proven; record a run of \
         the program for that (`aegis run -- CMD`)"
    )]
    Imported(String),
    /// It has no step.
    #[error("holds no step: there is nothing to replay")]
    Empty,
    /// It succeeded.
    #[error("succeeded: there is no failure to trace or to repair")]
    Succeeded,
    /// Nobody can be told anything.
    #[error(
        "can take no note: who makes its calls is only believed; `aegis agents RUN_DIR --suggest` proposes \
         [[agent]] rules, and `aegis amend RUN_DIR --roster FILE` names the agents by them"
    )]
    NobodyNamed,
    /// It did not fail.
    #[error(
        "did not fail, as far as is known, so there is no flip to show; `aegis amend RUN_DIR --outcome failure` says it did"
    )]
    NoFailure,
    /// It has no label.
    #[error("has nothing to prove, no label: {0}")]
    NoLabel(String),
    /// Its label is not of an injection.
    #[error("has a label that is not of an injection: `aegis trace` shows errors that nobody planted")]
    NotPlanted,
}

impl Obstacle {
    /// In how many words it is told beside others.
    fn in_short(&self) -> String {
        match self {
            Self::Imported(format) => format!("imported from {format}, its bodies are remade"),
            Self::Empty => "it has no step".to_owned(),
            Self::Succeeded => "it succeeded".to_owned(),
            Self::NobodyNamed => "no agent has a certain name".to_owned(),
            Self::NoFailure => "it is not known to have failed".to_owned(),
            // Why it has none stands beside the label.
            Self::NoLabel(_) => "no label".to_owned(),
            Self::NotPlanted => "nobody planted its error".to_owned(),
        }
    }
}

/// What can be done with a run.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities<'a> {
    recording: &'a Recording,
    run_dir: &'a Path,
}

impl<'a> Capabilities<'a> {
    /// Of a run in its directory. Takes a recording with its requests.
    pub fn new(recording: &'a Recording, run_dir: &'a Path) -> Self {
        Self { recording, run_dir }
    }

    /// Why a verb refuses the run; `None` where it does not.
    pub fn obstacle(&self, verb: RunVerb) -> Option<Obstacle> {
        let Recording { trajectory, label, manifest, .. } = self.recording;
        if let Some(from) = &manifest.imported {
            return Some(Obstacle::Imported(from.format.clone()));
        }
        if trajectory.steps.is_empty() {
            return Some(Obstacle::Empty);
        }
        let verdict = trajectory.outcome.verdict;
        match (verb, label) {
            (RunVerb::Trace | RunVerb::Retry, _) if verdict == Verdict::Success => Some(Obstacle::Succeeded),
            (RunVerb::Replay | RunVerb::Fork | RunVerb::Trace, _) => None,
            (RunVerb::Retry, _) => {
                let is_named = trajectory.steps.iter().any(|step| step.attribution.is_certain());
                (!is_named).then_some(Obstacle::NobodyNamed)
            }
            (RunVerb::Prove, Some(label)) if label.definition != PLANTED => Some(Obstacle::NotPlanted),
            (RunVerb::Prove, _) => {
                let refused = ruling::objection(self.recording).map(Obstacle::NoLabel);
                refused.or_else(|| (verdict != Verdict::Failure).then_some(Obstacle::NoFailure))
            }
        }
    }

    /// The line that does it, for a shell. A command that can be started as it is recorded is started by `--again`, and judged as it was.
    ///
    /// # Errors
    /// Why the verb refuses the run.
    pub fn line(&self, verb: RunVerb) -> Result<String, Obstacle> {
        self.line_with(verb, verb.options())
    }

    /// The line that does it with these options in the place of those that it cannot do without.
    ///
    /// # Errors
    /// Why the verb refuses the run.
    pub fn line_with(&self, verb: RunVerb, options: &str) -> Result<String, Obstacle> {
        if let Some(obstacle) = self.obstacle(verb) {
            return Err(obstacle);
        }
        let manifest = &self.recording.manifest;
        let mut line = format!("aegis {} {}", verb.name(), shell_word(&self.run_dir.to_string_lossy()));
        let mut add = |words: &str| {
            if !words.is_empty() {
                let _ = write!(line, " {words}");
            }
        };
        add(options);
        let again = manifest.launched.as_ref().filter(|launched| !launched.masked);
        if verb.executes() {
            let check = again.and_then(|launched| launched.check.as_ref()).filter(|check| !check.is_masked());
            add(if check.is_some() { "" } else { "--check CMD" });
            add(&upstream(manifest));
        }
        add(if again.is_some() { "--again" } else { "-- CMD" });
        Ok(line)
    }

    /// What can be done, and why the rest cannot, in one line: `replay, fork; not trace, retry: it succeeded`.
    pub fn words(&self) -> String {
        let mut can = Vec::new();
        let mut cannot: Vec<(String, Vec<&str>)> = Vec::new();
        for verb in RunVerb::ALL {
            match self.obstacle(verb).map(|obstacle| obstacle.in_short()) {
                None => can.push(verb.name()),
                Some(why) => match cannot.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, verbs)) => verbs.push(verb.name()),
                    None => cannot.push((why, vec![verb.name()])),
                },
            }
        }
        let cannot = cannot.into_iter().map(|(why, verbs)| format!("not {} ({why})", verbs.join(", ")));
        let can = (!can.is_empty()).then(|| can.join(", "));
        can.into_iter().chain(cannot).collect::<Vec<_>>().join("; ")
    }

    /// The same for a program, by verb.
    pub fn by_verb(&self) -> BTreeMap<&'static str, ShownCapability> {
        let shown = RunVerb::ALL.map(|verb| {
            let shown = match self.line(verb) {
                Ok(line) => ShownCapability::Line(line),
                Err(why) => ShownCapability::Why(format!("the run {why}")),
            };
            (verb.name(), shown)
        });
        BTreeMap::from(shown)
    }

    /// The same as JSON.
    pub fn data(&self) -> Value {
        serde_json::to_value(self.by_verb()).unwrap_or_default()
    }
}

/// Whether a verb can do something with a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownCapability {
    /// The line to type.
    Line(String),
    /// Why there is none.
    Why(String),
}

/// Where live calls go, as far as a line must say it: a run of the simulator goes there again. A run that Aegis did not start
/// holds no more than scheme and host.
fn upstream(manifest: &Manifest) -> String {
    if manifest.upstream == "simulator" {
        return String::new();
    }
    let whole = manifest.launched.as_ref().and_then(|launched| launched.upstream.as_deref());
    let whole = whole.filter(|whole| !whole.contains("***"));
    format!("--upstream {}", whole.map_or("URL".to_owned(), shell_word))
}

#[cfg(test)]
mod tests;
