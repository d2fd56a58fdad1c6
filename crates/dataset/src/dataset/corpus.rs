//! A directory of recorded runs, whoever recorded them: read as a data set, its rows made from the recordings each time.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
};

use super::{
    ALPHA, Dataset, DatasetError, FILE, Harvest, Sample, SampleKind, Splits, Task, UnrecordedFacts, Writer,
    lint::hash_of_run,
};
use crate::{
    recording::{self, Recording, RunOrigin},
    ruling::Ruling,
    trajectory::{Evidence, Label, LabelStatus, RunId, Verdict},
};

/// Deepest directory below a corpus that is looked into for runs.
const DEEPEST: usize = 4;
/// Directories of runs that a verb executed for itself.
const OF_VERBS: [&str; 3] = ["trials", "proof", "aside"];

/// The runs of a directory.
#[derive(Debug, Clone)]
pub struct Corpus {
    root: PathBuf,
    /// Their directories, in the order of their names.
    runs: Vec<PathBuf>,
}

/// What a corpus does not say of its runs itself.
#[derive(Debug, Clone, Default)]
pub struct CorpusFacts {
    /// Tasks that the runs may be of: a run is of the one whose question its first request, or its command, holds.
    pub tasks: Vec<Task>,
    /// The multi-agent system.
    pub system: String,
    /// Whether failures without a label are rows too: what is to be attributed has none.
    pub unlabelled: bool,
}

impl Corpus {
    /// Finds the runs below a directory.
    ///
    /// # Errors
    /// [`DatasetError::NotADataset`] where there is none; [`DatasetError::LogsOfDataset`] where they are those of a data set.
    pub fn open(root: &Path) -> Result<Self, DatasetError> {
        if let Some(dataset) = root.parent().filter(|parent| parent.join(FILE).is_file()) {
            let dataset = if dataset.as_os_str().is_empty() { Path::new(".") } else { dataset };
            return Err(DatasetError::LogsOfDataset { path: root.to_owned(), dataset: dataset.to_owned() });
        }
        let mut runs = Vec::new();
        find(root, 0, &mut runs);
        if runs.is_empty() {
            Err(DatasetError::NotADataset { path: root.to_owned() })
        } else {
            Ok(Self { root: root.to_owned(), runs })
        }
    }

    /// Whether there are runs below a directory.
    pub fn is_at(root: &Path) -> bool {
        let mut runs = Vec::new();
        find(root, 0, &mut runs);
        !runs.is_empty()
    }

    /// The directories of its runs.
    pub fn runs(&self) -> &[PathBuf] {
        &self.runs
    }

    /// Makes rows of its runs, and reads them as a data set.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn harvest(&self, facts: &CorpusFacts) -> Result<Dataset, DatasetError> {
        let unwritten = |source| DatasetError::Io { doing: "write", path: std::env::temp_dir(), source };
        let rows = tempfile::tempdir().map_err(unwritten)?;
        let mut writer = Writer::create(rows.path())?;
        let (mut recordings, mut known, mut begun) = (BTreeMap::new(), BTreeMap::new(), 0);
        let (mut left_out, mut unproven) = (BTreeMap::<_, Vec<_>>::new(), 0);
        for dir in &self.runs {
            let below = dir.strip_prefix(&self.root).ok().filter(|below| !below.as_os_str().is_empty());
            let name = below.unwrap_or(dir).display().to_string();
            let mut leave_out = |why: String| left_out.entry(why).or_default().push(name.clone());
            let recording = match recording::read(dir) {
                Ok(recording) => recording,
                Err(error) => {
                    leave_out(format!("cannot be read ({error})"));
                    continue;
                }
            };
            begun += usize::from(is_begun(&recording));
            match kind(&recording, facts) {
                Ok(kind) => {
                    let mut sample = sample(&recording, kind, facts)?;
                    if recordings.contains_key(&sample.id) {
                        // Runs of several users, or of several directories, may have one name.
                        sample.id = name.replace(['/', '\\'], ".");
                    }
                    match known.entry((kind, hash_of_run(&sample))) {
                        Entry::Occupied(earlier) => leave_out(format!("holds the same as `{}`", earlier.get())),
                        Entry::Vacant(new) => {
                            writer.push(&sample)?;
                            // By its own command alone a run can be executed again without more words.
                            let is_launched = recording.manifest.launched.is_some();
                            unproven += usize::from(is_launched && is_unproven(&sample));
                            new.insert(name.clone());
                            recordings.insert(sample.id, dir.clone());
                        }
                    }
                }
                Err(why) => leave_out(why),
            }
        }
        writer.state_begun(ALPHA, begun);
        let manifest = writer.finish()?;
        let harvest = Harvest { rows, root: self.root.clone(), manifest, recordings, unproven, left_out };
        Dataset::harvested(harvest)
    }
}

fn find(dir: &Path, depth: usize, runs: &mut Vec<PathBuf>) {
    if dir.join("run.json").is_file() {
        runs.push(dir.to_owned());
        return;
    }
    if depth == DEEPEST {
        return;
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    // A link could lead back up, or to runs that are found already.
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut dirs: Vec<PathBuf> = dirs
        .filter(|entry| !OF_VERBS.iter().any(|name| entry.file_name() == *name))
        .map(|entry| entry.path())
        .collect();
    dirs.sort();
    for dir in &dirs {
        find(dir, depth + 1, runs);
    }
}

/// Whether something was executed to show what the run's label claims: such claims count, whatever came of them. Of a system
/// that repeats itself nothing is chance.
fn is_begun(recording: &Recording) -> bool {
    let evidence = recording.label.as_ref().and_then(|label| label.evidence.as_ref());
    evidence.is_some_and(|evidence| evidence.executed.is_some() && !Evidence::is_repeatable(evidence))
}

fn is_unproven(sample: &Sample) -> bool {
    let label = sample.label.as_ref().filter(|_| sample.kind == SampleKind::Failure);
    label.is_some_and(|label| label.status != LabelStatus::Verified)
}

/// What a run is as a row; why it is none, and what would make it one.
fn kind(recording: &Recording, facts: &CorpusFacts) -> Result<SampleKind, String> {
    let manifest = &recording.manifest;
    if matches!(manifest.origin, Some(RunOrigin::Proof | RunOrigin::Feedback | RunOrigin::Other)) {
        return Err("was executed by `prove`, `trace` or `retry`".to_owned());
    }
    if let Some(of) = &manifest.repeat_of {
        return Err(format!("repeats `{of}`"));
    }
    if !recording.sealed {
        return Err("is not sealed: it is under way, or was killed".to_owned());
    }
    if let Some(edited) = recording.edited.first() {
        return Err(format!("has an edited file: `{edited}` differs from its hash"));
    }
    let objection = |label: &Label| Ruling::new(recording).objects_to(label);
    let verdict = manifest.outcome.verdict;
    match (&recording.label, verdict) {
        (Some(label), _) if let Some(why) = objection(label) => Err(format!("has a label that does not hold: {why}")),
        (_, Verdict::Unknown) => Err("has no outcome: `run --check` gives one".to_owned()),
        (Some(_), Verdict::Failure) => Ok(SampleKind::Failure),
        (Some(_), Verdict::Success) => Ok(SampleKind::Benign),
        (None, Verdict::Failure) if facts.unlabelled => Ok(SampleKind::Failure),
        (None, Verdict::Failure) if manifest.imported.is_some() => {
            Err("failed by itself, and was imported: `attribute` says what its log suggests".to_owned())
        }
        (None, Verdict::Failure) if manifest.plan.is_none() => {
            Err("failed by itself: `trace` finds the step".to_owned())
        }
        (None, Verdict::Success) if manifest.plan.is_none() => Ok(SampleKind::Clean),
        (None, _) => Err(match Ruling::new(recording).label() {
            Err(why) => format!("has no label: {why}"),
            Ok(_) => "has lost its label".to_owned(),
        }),
    }
}

/// The task that a recorded run is of: the one whose question its first request, or its command, holds.
///
/// # Errors
/// The run cannot be read as a sample.
pub fn task_of_run<'a>(recording: &Recording, tasks: &'a [Task]) -> Result<Option<&'a Task>, DatasetError> {
    Ok(task_asked(recording, &Sample::alone(recording)?.task.question, tasks))
}

fn task_asked<'a>(recording: &Recording, asked: &str, tasks: &'a [Task]) -> Option<&'a Task> {
    let command = recording.manifest.launched.iter().flat_map(|launched| &launched.command);
    let held = |task: &&Task| {
        asked.contains(task.question.trim()) || command.clone().any(|word| word.contains(task.question.trim()))
    };
    // Of questions that begin alike the longest is meant.
    tasks.iter().filter(held).max_by_key(|task| task.question.len())
}

fn sample(recording: &Recording, kind: SampleKind, facts: &CorpusFacts) -> Result<Sample, DatasetError> {
    let alone = Sample::alone(recording)?;
    let asked = &alone.task.question;
    let task = task_asked(recording, asked, &facts.tasks).cloned().unwrap_or_else(|| Task {
        // Equal questions are one task: they belong into one part.
        id: RunId::hashed("t", asked.as_bytes()).to_string(),
        question: asked.clone(),
        ..Task::default()
    });
    let twin = recording.label.as_ref().and_then(|label| label.evidence.as_ref()?.twin.as_ref());
    let twin = twin.filter(|_| kind != SampleKind::Clean).map(ToString::to_string);
    let about = UnrecordedFacts {
        kind,
        system: facts.system.clone(),
        split: Some(Splits::default().assign(&task)),
        task,
        final_answer: alone.final_answer,
        clean_twin: twin,
    };
    Sample::from_recording(recording, about)
}
