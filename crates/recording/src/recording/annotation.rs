//! What people say of a run: who made the error that decided it, at which step, and why.
//!
//! It lies in files of its own beside the runs, `annotations/NAME.jsonl`, one a person, to which lines are added. It is
//! never part of a recording, and never a label: a label says what was executed, an annotation what somebody thinks.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AppendedLines, Masked, Recording, RunFile, make_private_dir};
use crate::trajectory::{RunId, StepIndex};

/// The directory beside the runs.
const DIR: &str = "annotations";
/// Format of a line.
const FORMAT: u32 = 1;
/// Longest reason, in bytes.
const WHY_MAX: usize = 8000;

/// What one person says of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Annotation {
    /// Format of this line.
    pub format: u32,
    /// The run.
    pub run: RunId,
    /// Who says it.
    pub annotator: String,
    /// When, RFC 3339 UTC.
    pub at: String,
    /// The error that decided the run; `None` where the annotator saw none.
    pub error: Option<AnnotatedStep>,
    /// Whether the annotator is sure.
    pub sure: bool,
    /// Whether it was said blind: without label, trace, injections and the words of others. False where it was imported.
    pub blind: bool,
}

/// Who, when, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnnotatedStep {
    /// The agent.
    pub agent: String,
    /// The step, 0-based, as the recording numbers it.
    pub step: StepIndex,
    /// The reason.
    pub why: String,
}

/// Why something is no annotation.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// A name that can be no file's.
    #[error("`{0}` is no name of an annotator: expected letters, digits, `.`, `_` and `-`, at most 128")]
    Name(String),
    /// No reason, or an endless one.
    #[error("expected a reason of 1 to {WHY_MAX} bytes")]
    Why,
    /// The run has no such step.
    #[error("the run has no step {0}")]
    Step(StepIndex),
    /// It cannot be read or written.
    #[error("`{path}`: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line that cannot be understood.
    #[error("`{path}`, line {line}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

impl Annotation {
    /// What somebody says now of a run.
    ///
    /// # Errors
    /// The name or the reason is none.
    pub fn now(run: RunId, annotator: &str, error: Option<AnnotatedStep>) -> Result<Self, AnnotationError> {
        let annotator = annotator_named(annotator)?;
        let told = |error: &AnnotatedStep| !error.why.trim().is_empty() && error.why.len() <= WHY_MAX;
        if !error.as_ref().is_none_or(told) {
            return Err(AnnotationError::Why);
        }
        let at = Timestamp::now().to_string();
        Ok(Self { format: FORMAT, run, annotator, at, error, sure: true, blind: false })
    }
}

/// What somebody says of a recorded run, as it is given: the step of the error that decided it, or none.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenAnnotation {
    /// The step, 0-based; none where no error is seen.
    pub step: Option<StepIndex>,
    /// The reason, where there is a step.
    #[serde(default)]
    pub why: String,
    /// Whether the annotator is sure.
    #[serde(default = "is_sure")]
    pub sure: bool,
    /// Who says it, where another one sends it.
    pub by: Option<String>,
    /// Whether whoever says it was shown only what happened: no label, trace, injection, nor the words of others. Only who sends it
    /// over HTTP knows.
    #[serde(default)]
    pub blind: bool,
}

fn is_sure() -> bool {
    true
}

impl GivenAnnotation {
    /// The annotation of a run, with the agent of its step. `sender`: who says it, where no other is named.
    ///
    /// # Errors
    /// The name or the reason is none, or the run has no such step.
    pub fn annotation(self, recording: &Recording, sender: &str, blind: bool) -> Result<Annotation, AnnotationError> {
        let steps = &recording.trajectory.steps;
        let error = self.step.map(|number| {
            let found = steps.iter().find(|step| step.step == number).ok_or(AnnotationError::Step(number))?;
            Ok(AnnotatedStep { agent: found.attribution.agent.to_string(), step: number, why: self.why })
        });
        let annotator = self.by.as_deref().unwrap_or(sender);
        let annotation = Annotation::now(recording.manifest.run.clone(), annotator, error.transpose()?)?;
        Ok(Annotation { sure: self.sure, blind, ..annotation })
    }
}

/// The name of an annotator, which is a file's: it is held to what a run's id is.
///
/// # Errors
/// It is none.
pub fn annotator_named(name: &str) -> Result<String, AnnotationError> {
    RunId::parse(name).map(|_| name.to_owned()).map_err(|_| AnnotationError::Name(name.chars().take(80).collect()))
}

/// The file of a person for the runs that lie where this one lies.
fn file_of(run_dir: &Path, annotator: &str) -> PathBuf {
    // `logs/run` and `./run` lie in a directory; `run` lies in the present one.
    let beside = run_dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    beside.join(DIR).join(format!("{annotator}.jsonl"))
}

/// Adds what somebody says of a run. What the same person said of it before stands in the file and counts no more.
///
/// # Errors
/// The file cannot be written.
pub fn annotate(run_dir: &Path, annotation: &Annotation) -> Result<(), AnnotationError> {
    let path = file_of(run_dir, &annotation.annotator);
    let write = || -> io::Result<()> {
        make_private_dir(path.parent().unwrap_or(Path::new(".")))?;
        let lines = AppendedLines::open(&path)?;
        lines.lock()?;
        lines.add(&Masked::json_line(annotation)?)?;
        lines.sync()
    };
    write().map_err(|source| AnnotationError::File { path: path.clone(), source })
}

/// What was said last of a run, by everybody, in the order of names.
///
/// # Errors
/// A file cannot be read or understood.
pub fn annotations(run_dir: &Path, run: &RunId) -> Result<Vec<Annotation>, AnnotationError> {
    let beside = file_of(run_dir, "-");
    let mut files: Vec<PathBuf> = fs::read_dir(beside.parent().unwrap_or(Path::new(".")))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        found.extend(read(&file)?.remove(run.as_str()));
    }
    Ok(found)
}

/// What one person said last of a run.
///
/// # Errors
/// The file cannot be read or understood.
pub fn annotation_of(run_dir: &Path, run: &str, annotator: &str) -> Result<Option<Annotation>, AnnotationError> {
    Ok(read(&file_of(run_dir, annotator))?.remove(run))
}

/// The annotations of a file, the last of each run.
fn read(path: &Path) -> Result<BTreeMap<String, Annotation>, AnnotationError> {
    let text = match RunFile::text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(AnnotationError::File { path: path.to_owned(), source }),
    };
    let mut last = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let annotation: Annotation = serde_json::from_str(line).map_err(|source| AnnotationError::Line {
            path: path.to_owned(),
            line: number + 1,
            source,
        })?;
        last.insert(annotation.run.to_string(), annotation);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(run: &str, annotator: &str, step: Option<StepIndex>) -> Annotation {
        let error = step.map(|step| AnnotatedStep { agent: "solver".to_owned(), step, why: "it is wrong".to_owned() });
        Annotation::now(RunId::parse(run).expect("an id"), annotator, error).expect("an annotation")
    }

    #[test]
    fn the_last_word_of_each_person_counts_and_the_former_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let run = dir.path().join("r");
        for annotation in
            [annotation("r", "ada", Some(1)), annotation("r", "bo", None), annotation("r", "ada", Some(2))]
        {
            annotate(&run, &annotation).expect("written");
        }
        let found = annotations(&run, &RunId::parse("r").expect("an id")).expect("readable");
        let steps: Vec<_> =
            found.iter().map(|one| (one.annotator.as_str(), one.error.as_ref().map(|e| e.step))).collect();
        assert_eq!(steps, [("ada", Some(2)), ("bo", None)]);
        let text = fs::read_to_string(dir.path().join("annotations/ada.jsonl")).expect("readable");
        assert_eq!(text.lines().count(), 2);
        assert!(!run.exists(), "nothing is written into the recording");
        assert_eq!(annotations(&run, &RunId::parse("other").expect("an id")).expect("readable"), []);
    }

    #[test]
    fn a_name_is_no_path_and_a_reason_is_one() {
        for name in ["", "../ada", "a/b", ".ada", "a b"] {
            assert!(annotator_named(name).is_err(), "{name}");
        }
        for why in [String::new(), "  ".to_owned(), "x".repeat(WHY_MAX + 1)] {
            let error = AnnotatedStep { agent: "solver".to_owned(), step: 0, why };
            let refused = Annotation::now(RunId::parse("r").expect("an id"), "ada", Some(error));
            assert!(matches!(refused, Err(AnnotationError::Why)));
        }
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let run = dir.path().join("r");
        annotate(&run, &annotation("r", "ada", None)).expect("written");
        let path = dir.path().join("annotations/ada.jsonl");
        fs::write(&path, fs::read_to_string(&path).expect("readable") + "{\n").expect("written");
        let refused = annotation_of(&run, "r", "ada").expect_err("refused").to_string();
        assert!(refused.contains("ada.jsonl`, line 2"), "{refused}");
    }
}
