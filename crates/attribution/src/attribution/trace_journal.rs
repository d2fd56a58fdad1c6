//! What the executions of a trace came to, and what its analyzer said, written down as each ends. A trace that a signal or its
//! budget ended goes on from there: nothing is executed or asked twice. It lies beside the run while the trace is not finished.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    proof::ProofSample,
    recording::{AppendedLines, Masked, Redactor, RunFile},
    trajectory::RunId,
};

/// Its file, in the directory of the run.
const FILE: &str = "trace.journal.jsonl";
/// The format of its lines; files of others are begun anew.
const FORMAT: u32 = 1;

/// The journal of a trace under way.
#[derive(Debug)]
pub struct TraceJournal {
    path: PathBuf,
    salt: String,
    /// Which start of the trace this is, from 0: a run that an earlier one left unfinished keeps its name.
    sitting: u32,
    redactor: Redactor,
    lines: Mutex<TraceLines>,
}

#[derive(Debug)]
struct TraceLines {
    file: AppendedLines,
    trials: BTreeMap<TrialKey, EndedTrial>,
    answers: BTreeMap<String, String>,
}

/// An execution of a trace: its arm, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct TrialKey {
    pub(super) arm: String,
    pub(super) number: usize,
}

/// What an execution came to, as far as a trace makes use of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct EndedTrial {
    pub(super) run: RunId,
    pub(super) sample: ProofSample,
    pub(super) live_tokens: u64,
    pub(super) recorded_tokens: u64,
    pub(super) other_tool_results: bool,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TraceLine {
    /// A trace begins: what its executions depend on, hashed.
    Trace {
        format: u32,
        subject: String,
        salt: String,
    },
    /// It goes on.
    Sitting,
    Trial {
        #[serde(flatten)]
        key: TrialKey,
        #[serde(flatten)]
        ended: EndedTrial,
    },
    Answer {
        question: String,
        answer: String,
    },
}

/// The schema of a line of `trace.journal.jsonl`.
pub fn trace_journal_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<TraceLine>()
}

impl TraceJournal {
    /// Opens the journal in the directory of a run. `subject` is all that an execution depends on, in words; what was written down
    /// for another subject is thrown away. `salt` is a fresh one, for a trace that begins.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(dir: &Path, subject: &str, salt: String, redactor: Redactor) -> io::Result<Self> {
        Self::open_file(dir.join(FILE), subject, salt, redactor)
    }

    /// The journal of one of several searches of a run, each known by its number.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open_part(dir: &Path, part: usize, subject: &str, salt: String, redactor: Redactor) -> io::Result<Self> {
        Self::open_file(dir.join(format!("trace.journal.{part}.jsonl")), subject, salt, redactor)
    }

    fn open_file(path: PathBuf, subject: &str, salt: String, redactor: Redactor) -> io::Result<Self> {
        let subject = blake3::hash(subject.as_bytes()).to_hex().to_string();
        let text = match RunFile::text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut lines = text.lines().map(serde_json::from_str::<TraceLine>);
        let known = match lines.next() {
            Some(Ok(TraceLine::Trace { format: FORMAT, subject: known, salt })) if known == subject => Some(salt),
            _ => None,
        };
        let file = if known.is_some() { AppendedLines::open(&path)? } else { AppendedLines::open_anew(&path)? };
        let mut read = TraceLines { file, trials: BTreeMap::new(), answers: BTreeMap::new() };
        let goes_on = known.is_some();
        let mut sitting = u32::from(goes_on);
        // A line that was not written whole is of an execution that nobody took account of.
        for line in lines.filter_map(Result::ok).filter(|_| goes_on) {
            match line {
                TraceLine::Sitting => sitting += 1,
                TraceLine::Trial { key, ended } => drop(read.trials.insert(key, ended)),
                TraceLine::Answer { question, answer } => drop(read.answers.insert(question, answer)),
                TraceLine::Trace { .. } => {}
            }
        }
        let salt = known.unwrap_or(salt);
        if goes_on {
            read.write(&TraceLine::Sitting)?;
        } else {
            read.write(&TraceLine::Trace { format: FORMAT, subject, salt: salt.clone() })?;
        }
        Ok(Self { path, salt, sitting, redactor, lines: Mutex::new(read) })
    }

    /// Whether a trace of the run in a directory is not finished.
    pub fn is_at(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// What the ids of the trace's runs are made from.
    pub fn salt(&self) -> &str {
        &self.salt
    }

    /// How many executions were made by earlier starts.
    pub fn executions(&self) -> usize {
        self.lines().trials.len()
    }

    /// Ends the journal of a trace that is finished: `trace.json` holds all of it.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn finish(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// The id of the run of an execution that this start makes.
    pub(super) fn run(&self, key: &TrialKey) -> RunId {
        let sitting = if self.sitting == 0 { String::new() } else { format!(" {}", self.sitting) };
        RunId::hashed("t", format!("{} {} {}{sitting}", self.salt, key.arm, key.number).as_bytes())
    }

    /// What an execution came to, if it was made.
    pub(super) fn ended(&self, key: &TrialKey) -> Option<EndedTrial> {
        self.lines().trials.get(key).cloned()
    }

    /// Writes down what an execution came to; one that says nothing is made again.
    pub(super) fn add(&self, key: TrialKey, ended: EndedTrial) -> io::Result<()> {
        if matches!(ended.sample, ProofSample::Void(_)) {
            return Ok(());
        }
        let mut lines = self.lines();
        lines.write(&TraceLine::Trial { key: key.clone(), ended: ended.clone() })?;
        lines.trials.insert(key, ended);
        Ok(())
    }

    /// What a model answered to a question, if it was asked.
    pub(super) fn answer(&self, question: &[u8]) -> Option<String> {
        self.lines().answers.get(&hash_of(question)).cloned()
    }

    /// Writes down an answer, and gives it as it is written: masked.
    pub(super) fn add_answer(&self, question: &[u8], answer: &[u8]) -> io::Result<String> {
        let mut text = answer.to_vec();
        self.redactor.mask(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = self.lines();
        lines.write(&TraceLine::Answer { question: hash_of(question), answer: text.clone() })?;
        lines.answers.insert(hash_of(question), text.clone());
        Ok(text)
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, TraceLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceLines {
    fn write(&mut self, line: &TraceLine) -> io::Result<()> {
        self.file.add(&Masked::json_line(line)?)
    }
}

fn hash_of(question: &[u8]) -> String {
    blake3::hash(question).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    fn opened(dir: &Path, subject: &str, salt: &str) -> TraceJournal {
        TraceJournal::open(dir, subject, salt.to_owned(), Redactor::default()).expect("a file")
    }

    fn ended(journal: &TraceJournal, key: &TrialKey, sample: ProofSample) -> EndedTrial {
        let (live_tokens, recorded_tokens) = (10, 20);
        EndedTrial { run: journal.run(key), sample, live_tokens, recorded_tokens, other_tool_results: false }
    }

    #[test]
    fn a_trace_goes_on_where_it_ended_and_another_one_begins_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let key = |number| TrialKey { arm: "arm 1".to_owned(), number };
        let first = opened(dir.path(), "a subject", "salt");
        let made = ended(&first, &key(0), ProofSample::Passed);
        first.add(key(0), made.clone()).expect("written");
        first.add(key(1), ended(&first, &key(1), ProofSample::Void(Void::Budget))).expect("written");
        assert_eq!(first.add_answer(b"who?", b"nobody").expect("written"), "nobody");
        // A line that a kill cut off.
        let mut file = fs::OpenOptions::new().append(true).open(dir.path().join(FILE)).expect("it is there");
        std::io::Write::write_all(&mut file, b"{\"trial\":{\"arm\":").expect("written");
        let second = opened(dir.path(), "a subject", "other salt");
        assert_eq!((second.salt(), second.executions()), ("salt", 1));
        assert_eq!(second.ended(&key(0)), Some(made.clone()));
        assert_eq!(second.ended(&key(1)), None, "it said nothing");
        assert_eq!((second.answer(b"who?").as_deref(), second.answer(b"when?")), (Some("nobody"), None));
        assert_ne!(second.run(&key(0)), made.run, "a run that is there keeps its name");
        second.add(key(1), ended(&second, &key(1), ProofSample::Failed)).expect("written");
        assert_eq!(opened(dir.path(), "a subject", "x").executions(), 2);
        let other = opened(dir.path(), "another subject", "new salt");
        assert_eq!((other.salt(), other.executions()), ("new salt", 0));
        other.finish().expect("removed");
        assert_eq!(opened(dir.path(), "another subject", "newer").salt(), "newer");
    }
}
