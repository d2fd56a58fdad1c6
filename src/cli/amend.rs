//! `aegis amend RUN…`: says of runs that have ended what was not known when they were recorded: the names of their agents, what
//! they achieved, their task.

use crate::cli::printed::{AmendedRuns, RunAmendment, printed};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use super::{Config, Exit, Failure, Finished, checkers::Checkers, counted, escape};
use crate::{
    dataset::{Corpus, formats},
    recording::{self, Amendment, AmendmentSource, FactContent, FactSource, GivenRoster, RunFact, Settings},
    ruling::{self, NoLabel},
    trajectory::{Label, Outcome, Reason, Verdict},
    viewer::{first_words, word},
};

/// The longest text of a task that is taken, in bytes.
const TASK_MAX: u64 = 1 << 20;

/// Options of `amend`.
#[derive(Debug, Args)]
pub(super) struct AmendArgs {
    /// Directories of the runs, or directories of runs: of these, all that are there.
    #[arg(value_name = "RUN_DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Name the agents by the `[[agent]]` rules of this aegis.toml. Replaces a roster that was added earlier.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["outcome", "task", "verify"])]
    roster: Option<PathBuf>,
    /// Outcome of the runs.
    #[arg(long, value_enum, value_name = "VERDICT")]
    outcome: Option<GivenVerdict>,
    /// Judge runs without an outcome by the checkers and right answers of a campaign file, or of one with `tasks.file`
    /// and `verify` alone. The last reply of a run is its output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["outcome", "task"])]
    verify: Option<PathBuf>,
    /// Evidence of the outcome, as text.
    #[arg(long, value_name = "TEXT", requires = "outcome", default_value = "")]
    evidence: String,
    /// File with the task's text.
    #[arg(long, value_name = "FILE")]
    task: Option<PathBuf>,
    /// Author of the facts, recorded with each.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What a run achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GivenVerdict {
    /// The task was solved.
    Success,
    /// The task was not solved.
    Failure,
    /// It cannot be told.
    Unknown,
}

impl From<GivenVerdict> for Verdict {
    fn from(given: GivenVerdict) -> Self {
        match given {
            GivenVerdict::Success => Self::Success,
            GivenVerdict::Failure => Self::Failure,
            GivenVerdict::Unknown => Self::Unknown,
        }
    }
}

/// What became of one run.
struct AmendedRun<'a> {
    dir: &'a Path,
    added: Vec<RunFact>,
    label: Result<Label, NoLabel>,
}

pub(super) fn run(arguments: &AmendArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let amendment = arguments.amendment()?;
    let settings = Config::load(arguments.config.as_deref())?.recording()?;
    let dirs = arguments.runs()?;
    let checkers = arguments.verify.as_deref().map(Checkers::read).transpose()?;
    let giver = AmendmentSource { source: FactSource::Amend, by: arguments.by.clone() };
    let mut amended: Vec<AmendedRun<'_>> = Vec::new();
    let mut unjudged = 0;
    for dir in &dirs {
        let outcome = match checkers.as_ref().map(|checkers| checked(dir, checkers)) {
            Some(Ok(outcome)) => outcome,
            // A run of no task stays unjudged, and keeps no other from being judged.
            Some(Err(failure)) => {
                unjudged += 1;
                talkln!("unjudged {}  {}", escape(&dir.display().to_string()), escape(&failure.error.to_string()));
                continue;
            }
            None => amendment.outcome.clone(),
        };
        amended.push(amend(dir, &Amendment { outcome, ..amendment.clone() }, &giver, &settings)?);
    }
    if !json {
        let written = amended.iter().try_for_each(|run| writeln!(out, "{}", escape(&run.line())));
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let told = amended.iter().filter(|run| !run.added.is_empty()).count();
    let facts = amended.iter().map(|run| run.added.len()).sum();
    let known = match amended.len() - told {
        0 => String::new(),
        known => format!("; of {} all of it was known", counted(known, "run")),
    };
    let unjudged = match unjudged {
        0 => String::new(),
        1 => "; 1 run is of no task".to_owned(),
        more => format!("; {more} runs are of no task"),
    };
    let summary = format!("{} added to {}{known}{unjudged}", counted(facts, "fact"), counted(told, "run"));
    let data = printed(&AmendedRuns { runs: amended.iter().map(AmendedRun::data).collect() });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// What a run achieved that nobody has judged yet.
fn checked(dir: &Path, checkers: &Checkers) -> Result<Option<Outcome>, Failure> {
    let recording = recording::read(dir)?;
    if recording.manifest.outcome.verdict != Verdict::Unknown {
        return Ok(None);
    }
    checkers.outcome(&recording, dir).map(|outcome| Some(Outcome { reason: Some(Reason::Amended), ..outcome }))
}

fn amend<'a>(
    dir: &'a Path,
    amendment: &Amendment,
    giver: &AmendmentSource,
    settings: &Settings,
) -> Result<AmendedRun<'a>, Failure> {
    let added = recording::amend(dir, amendment, giver, settings)?;
    // What is known by now may be enough for a label, or for none.
    let label = ruling::settle_amended(dir)?;
    Ok(AmendedRun { dir, added, label })
}

impl AmendArgs {
    /// The runs that are meant. Nothing is written where one of them is none.
    fn runs(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut runs = Vec::new();
        for dir in &self.dirs {
            if !formats::is_recording(dir) && Corpus::is_at(dir) {
                runs.extend(Corpus::open(dir)?.runs().iter().cloned());
            } else {
                recording::read_manifest(dir)?;
                runs.push(dir.clone());
            }
        }
        Ok(runs)
    }

    fn amendment(&self) -> Result<Amendment, Failure> {
        let outcome = self.outcome.map(|verdict| Outcome {
            verdict: verdict.into(),
            reason: Some(Reason::Amended),
            evidence: self.evidence.clone(),
        });
        let roster = self.roster.as_deref().map(roster).transpose()?;
        let task = self.task.as_deref().map(task).transpose()?;
        Ok(Amendment { outcome, task, roster, modes: Vec::new(), missed_catch: Vec::new() })
    }
}

/// The roster in a configuration.
fn roster(file: &Path) -> Result<GivenRoster, Failure> {
    let rules = Config::load(Some(file))?.agent;
    if rules.is_empty() {
        let error = format!("`{}` names no agent: expected `[[agent]]` rules", file.display());
        return Err(Failure::new(Exit::Usage, error).hint("`aegis agents RUN_DIR --suggest` proposes some"));
    }
    let name = file.file_name().unwrap_or(file.as_os_str());
    Ok(GivenRoster { file: name.to_string_lossy().into_owned(), rules })
}

fn task(file: &Path) -> Result<String, Failure> {
    let refuse = |why: String| Failure::new(Exit::Usage, format!("--task `{}`: {why}", file.display()));
    let length = fs::metadata(file).map_err(|error| refuse(error.to_string()))?.len();
    if length > TASK_MAX {
        return Err(refuse(format!("it is longer than {} kB", TASK_MAX >> 10)));
    }
    let text = fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    Ok(text.trim().to_owned())
}

impl AmendedRun<'_> {
    fn line(&self) -> String {
        let mut said: Vec<String> = self.added.iter().map(fact_text).collect();
        if said.is_empty() {
            said.push("all of it was known".to_owned());
        }
        if let Ok(label) = &self.label {
            said.push(format!("label {}", word(&label.status)));
        }
        format!("{}  {}", self.dir.display(), said.join("; "))
    }

    fn data(&self) -> RunAmendment<'_> {
        let Self { dir, added, label } = self;
        RunAmendment { dir, added, label: label.as_ref().ok(), no_label: label.as_ref().err() }
    }
}

/// A fact in words.
fn fact_text(fact: &RunFact) -> String {
    let replaced = fact.replaces.is_some();
    match &fact.content {
        FactContent::Outcome { outcome } => {
            let was = match &fact.replaces {
                Some(FactContent::Outcome { outcome }) => format!(", not {}", word(&outcome.verdict)),
                _ => String::new(),
            };
            format!("outcome {}{was}", word(&outcome.verdict))
        }
        FactContent::Task { task } => {
            format!("task {}{}", first_words(task, 60), if replaced { ", in place of another" } else { "" })
        }
        FactContent::Mode { .. } | FactContent::MissedCatch { .. } => fact.words(),
        FactContent::Roster { roster } => {
            let named: usize = roster.named.iter().map(|group| group.steps.len()).sum();
            let all: u64 = roster.agents.values().sum();
            let agents: Vec<String> = roster.agents.iter().map(|(agent, calls)| format!("{agent} {calls}")).collect();
            format!(
                "{named} of {} named: {}",
                counted(usize::try_from(all).unwrap_or(usize::MAX), "step"),
                agents.join(", ")
            )
        }
    }
}
