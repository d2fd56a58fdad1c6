//! What is to be attributed, and what it may be held against: runs of ours, datasets, Who&When files.

use std::path::{Path, PathBuf};

use super::arguments::{AttributeArgs, RunFacts, ShowAnswerArg};
use crate::{
    attribution::methods::LoggedRun,
    capability::{Capabilities, RunVerb},
    cli::{Exit, Failure, tracer::ChosenMethod},
    dataset::{
        self, Corpus, Dataset, Sample, SampleKind, Task,
        formats::{self, ImportSource},
    },
    launch::shell_word,
    recording::{self, Recording},
    score::Gold,
    surface::{self, door},
    trajectory::Verdict,
};

/// Most runs beside one that are looked at for others of its task.
const BESIDE_MAX: usize = 256;

/// A run that methods are asked about.
pub(super) struct RunLog {
    pub(super) run: LoggedRun,
    /// Whether it failed, or may have; of one that did not only tracers say anything.
    pub(super) failed: bool,
    /// Other runs of its task.
    pub(super) others: Vec<LoggedRun>,
    /// Its label, for the figures alone.
    pub(super) gold: Option<Gold>,
}

/// What a path holds.
pub(super) struct Logs {
    pub(super) runs: Vec<RunLog>,
    /// The recorded run's directory, where it is one.
    pub(super) recorded: Option<PathBuf>,
    /// The line that settles by execution what its log only suggests, where it can be executed.
    pub(super) trace: Option<String>,
    /// Words about what was read.
    pub(super) notes: Vec<String>,
}

/// Reads what is to be attributed.
pub(super) fn read(
    path: &Path,
    arguments: &AttributeArgs,
    methods: &[ChosenMethod],
    quiet: bool,
) -> Result<Logs, Failure> {
    let clean = methods.iter().any(|method| method.takes_clean());
    let gold = arguments.show_answer == ShowAnswerArg::On;
    let against = against(&arguments.run)?;
    if formats::is_recording(path) {
        return recorded(path, &arguments.run, gold, clean, against);
    }
    let (mut samples, notes) = match arguments.corpus.open_unlabelled(path, quiet) {
        Ok(dataset) if is_ours(path) => (all(&dataset)?, Vec::new()),
        Err(failure) if Corpus::is_at(path) => return Err(failure),
        _ => foreign(path)?,
    };
    if let Some(decoys) = Dataset::decoys(path).filter(|_| arguments.every_kind) {
        samples.extend(all(&decoys)?);
    }
    let mut runs = Vec::new();
    let asked = |sample: &&Sample| match sample.kind {
        SampleKind::Failure => true,
        SampleKind::Clean => clean || arguments.every_kind,
        SampleKind::Benign | SampleKind::Decoy => arguments.every_kind,
    };
    for sample in samples.iter().filter(asked) {
        let same = |other: &&Sample| {
            other.id != sample.id
                && other.system == sample.system
                && !other.task.id.is_empty()
                && other.task.id == sample.task.id
        };
        let run = LoggedRun::from_sample(sample, gold).with_row(sample);
        let others = samples.iter().filter(same).map(|other| LoggedRun::from_sample(other, false));
        let others = others
            .chain(against.iter().filter(|other| other.problem.is_empty() || run.problem == other.problem).cloned())
            .collect();
        // Who is measured is not told which runs failed.
        let failed = sample.kind == SampleKind::Failure || arguments.every_kind;
        runs.push(RunLog { run, failed, others, gold: dataset::gold(sample) });
    }
    if runs.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            format!("`{}` holds no failure: there is nothing to attribute", path.display()),
        ));
    }
    Ok(Logs { runs, recorded: None, trace: None, notes })
}

/// A dataset of ours: a directory with one, or a file of rows.
fn is_ours(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|extension| extension == "jsonl")
}

fn all(dataset: &Dataset) -> Result<Vec<Sample>, Failure> {
    dataset.numbered_samples().map(|placed| Ok(placed?.sample)).collect()
}

/// Who&When files.
fn foreign(path: &Path) -> Result<(Vec<Sample>, Vec<String>), Failure> {
    let (samples, defects) = formats::read_foreign(ImportSource::Whowhen, path).map_err(|error| {
        Failure::new(Exit::Usage, error)
            .hint("expected a run's directory, a dataset, or Who&When files; other formats come in by `aegis import --from FORMAT PATH`")
    })?;
    let note = format!(
        "read {} Who&When files, {} defects: `aegis import --from whowhen` lists them",
        samples.len(),
        defects.len()
    );
    Ok((samples, vec![note]))
}

/// One recorded run, and those beside it that were given the same task.
fn recorded(
    path: &Path,
    facts: &RunFacts,
    gold: bool,
    clean: bool,
    mut others: Vec<LoggedRun>,
) -> Result<Logs, Failure> {
    let recording = recording::read(path)?;
    let succeeded = recording.trajectory.outcome.verdict == Verdict::Success;
    if succeeded && !clean {
        let error = format!("`{}` succeeded: there is no failure to attribute", path.display());
        return Err(Failure::new(Exit::Usage, error));
    }
    let run = logged(&recording, facts, gold)?.recorded_in(path);
    let mut notes = Vec::new();
    if run.turns.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("`{}` holds no model call", path.display())));
    }
    // Rows of a dataset are of many tasks; a run that was named is taken as it is said to be.
    others.retain(|other| other.problem.is_empty() || run.problem.contains(other.problem.trim()));
    if facts.against.is_empty() {
        others = sibling_runs(path, &run.problem)?;
        if !others.is_empty() {
            notes.push(format!("runs beside it that were given the same task: {}", others.len()));
        }
    }
    let twins = others.iter().filter(|other| other.passed == Some(true) && other.dir != run.dir);
    let mut twins = twins.filter_map(|other| other.dir.as_deref());
    let twin = twins.next().map(|twin| named_beside(path, twin));
    let runs = vec![RunLog { run, failed: !succeeded, others, gold: None }];
    let corrected = twin.as_ref().map(|twin| format!("--twin {} ", shell_word(&twin.to_string_lossy())));
    let corrected = format!("{}--redraw", corrected.unwrap_or_default());
    let trace = Capabilities::new(&recording, path).line_with(RunVerb::Trace, &corrected).ok();
    Ok(Logs { runs, recorded: Some(path.to_owned()), trace, notes })
}

/// The path of a run as it is typed: beside another one, where it is there.
fn named_beside(path: &Path, run: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| parent.canonicalize().ok().as_deref() == run.parent());
    parent.zip(run.file_name()).map_or_else(|| run.to_owned(), |(parent, name)| parent.join(name))
}

/// A recorded run as methods see it.
fn logged(recording: &Recording, facts: &RunFacts, gold: bool) -> Result<LoggedRun, Failure> {
    let task = Task {
        question: facts.question.clone().unwrap_or_default(),
        answer: facts.answer.clone().unwrap_or_default(),
        ..Task::default()
    };
    Ok(LoggedRun::recorded(recording, task, gold)?)
}

/// The model that a recorded run asked first.
pub(in crate::cli) fn model_of(recording: &Recording) -> Option<String> {
    let step = recording.trajectory.steps.iter().find(|step| !step.request.is_empty())?;
    let surface = surface::named(&step.surface)?;
    Some(door::request_at(surface, &step.path, &step.request).ok()?.model).filter(|model| !model.is_empty())
}

/// Finished runs in the same directory that were given the same task.
fn sibling_runs(path: &Path, problem: &str) -> Result<Vec<LoggedRun>, Failure> {
    let (Some(parent), Ok(own)) =
        (path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)), path.canonicalize())
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for dir in runs(&parent).into_iter().filter(|dir| *dir != own).take(BESIDE_MAX) {
        // One that cannot be read, or is still being written, is nobody's evidence.
        let Ok(recording) = recording::read(&dir) else { continue };
        let run = logged(&recording, &RunFacts::default(), false)?.recorded_in(&dir);
        if run.problem == problem && run.passed.is_some() && !run.turns.is_empty() {
            found.push(run);
        }
    }
    Ok(found)
}

/// What was given to compare with.
fn against(facts: &RunFacts) -> Result<Vec<LoggedRun>, Failure> {
    let mut found = Vec::new();
    for path in &facts.against {
        if formats::is_recording(path) {
            found.push(of_task(logged(&recording::read(path)?, &RunFacts::default(), false)?.recorded_in(path)));
        } else if let Ok(dataset) = Dataset::open(path) {
            found.extend(all(&dataset)?.iter().map(|sample| LoggedRun::from_sample(sample, false)));
        } else {
            let runs = runs(path);
            if runs.is_empty() {
                let error = format!("`{}` holds no run to compare with", path.display());
                return Err(
                    Failure::new(Exit::Usage, error).hint("--against takes runs, directories of runs and datasets")
                );
            }
            for run in runs {
                found.push(of_task(logged(&recording::read(&run)?, &RunFacts::default(), false)?.recorded_in(&run)));
            }
        }
    }
    Ok(found)
}

/// A run that the user says is of the task, whatever it was given.
fn of_task(run: LoggedRun) -> LoggedRun {
    LoggedRun { problem: String::new(), ..run }
}

/// The recorded runs of a directory, by name.
fn runs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| formats::is_recording(path)).collect();
    runs.sort();
    runs
}
