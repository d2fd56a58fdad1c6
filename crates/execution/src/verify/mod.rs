//! Outcome checkers: did a system solve its task? Success, failure or unknown, with what was seen.
//!
//! One rule for all: an expected answer that cannot be read makes `unknown` (nobody can tell), an output in which no
//! answer can be read makes `failure` (it does not solve the task). A checker is a file here and one line in the list;
//! its doc comment's table is its test.

#[macro_use]
mod list;

mod answer;
mod config;
mod latex;
mod quantity;
mod sandbox;
mod transcript;
mod value;

#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{proxy::upstream::Upstream, trajectory::Verdict};
pub use command::OnTimeout;
pub use config::{Output, Sources, Verified, Verify, VerifyError};
pub use numeric::Units;
pub use sandbox::words as sandbox_words;
pub use transcript::{ExecutionTranscript, Transcript, transcript_schema};

checks! {
    compare:
        exact::Exact,
        normalised::Normalised,
        numeric::Numeric,
        choice::Choice,
        boxed::Boxed,
        regex::Regex,
        json_pointer::JsonPointer;
    run:
        command::Command,
        model_judge::ModelJudge;
}

/// What is to be checked.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What was asked.
    pub question: &'a str,
    /// The task's answer, as its task set writes it.
    pub expected: &'a str,
    /// What the system gave: its answer, or all that it said.
    pub output: &'a str,
}

/// What a checker may use beside the case.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The recording of the run, for commands.
    pub run_dir: Option<PathBuf>,
    /// Where a model judge is asked.
    pub judge: Option<Arc<dyn Upstream>>,
}

/// What a checker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckFinding {
    /// Which one.
    pub checker: String,
    /// Success, failure or unknown.
    pub verdict: Verdict,
    /// What was seen, in a line.
    pub evidence: String,
}

/// A checker's verdict before its name is put to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UnnamedVerdict {
    verdict: Verdict,
    evidence: String,
}

/// Longest excerpt of a text in evidence, in characters.
const EXCERPT: usize = 160;

impl UnnamedVerdict {
    fn new(solved: bool, evidence: impl Into<String>) -> Self {
        let verdict = if solved { Verdict::Success } else { Verdict::Failure };
        Self { verdict, evidence: evidence.into() }
    }

    /// The output holds no answer: the task is not solved.
    fn no_answer(kind: &str, case: &Case<'_>) -> Self {
        Self::new(
            false,
            format!("no {kind} in the output {}; expected {}", excerpt(case.output), excerpt(case.expected)),
        )
    }

    /// Nobody can tell.
    fn unknown(evidence: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, evidence: evidence.into() }
    }

    /// The expected answer is not one that the checker can read.
    fn unreadable(kind: &str, case: &Case<'_>) -> Self {
        Self::unknown(format!("the expected answer {} is no {kind}", excerpt(case.expected)))
    }

    fn compared(solved: bool, got: &str, case: &Case<'_>) -> Self {
        Self::new(solved, format!("expected {}, got {}", excerpt(case.expected), excerpt(got)))
    }
}

/// Whether a text says the expected answer word for word, as [`Normalised`] reads it.
pub fn same_words(expected: &str, got: &str) -> bool {
    let expected = normalised::words(expected);
    !expected.is_empty() && expected == normalised::words(got)
}

/// The content of the last `\boxed{…}` of a text, braces balanced.
pub fn boxed(text: &str) -> Option<&str> {
    answer::boxed(text)
}

/// Whether a text is a number and nothing else, thousands separators and a full stop aside.
pub fn is_number(text: &str) -> bool {
    number(text).is_some()
}

fn number(text: &str) -> Option<f64> {
    answer::without_separators(text.trim()).trim_end_matches('.').parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether both texts are the same number, however it is written: `84` and `84.0`.
pub fn same_number(expected: &str, got: &str) -> bool {
    match (number(expected), number(got)) {
        (Some(expected), Some(got)) => value::close(expected, got, 1e-9, 0.0),
        _ => false,
    }
}

/// Whether any checker that compares answers would take this one. Only what is wrong for each of them, a margin of one
/// per cent for numbers included, is wrong whatever was configured. Choices that the question does not list were told
/// to the checker alone: then no words are wrong beside a letter.
pub fn answers(question: &str, expected: &str, got: &str) -> bool {
    let case = Case { question, expected, output: got };
    if choice::Choice::default().is_blind(&case) {
        return true;
    }
    let said = [
        exact::Exact::default().compare(&case),
        normalised::Normalised { contains: true }.compare(&case),
        numeric::Numeric { relative: 0.01, units: numeric::Units::Ignore, ..numeric::Numeric::default() }
            .compare(&case),
        choice::Choice::default().compare(&case),
        boxed::Boxed::default().compare(&case),
    ];
    said.iter().any(|said| said.verdict == Verdict::Success)
}

/// A text in back quotes, cut to a readable length, in one line.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(EXCERPT).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Runs a table of hard cases: (expected, output, verdict).
#[cfg(test)]
fn check_table(check: impl Fn(&Case<'_>) -> UnnamedVerdict, table: &[(&str, &str, Verdict)]) {
    let mut wrong = Vec::new();
    for (expected, output, verdict) in table {
        let said = check(&Case { question: "", expected, output });
        if said.verdict != *verdict {
            wrong.push(format!("expected {expected:?}, output {output:?}: {:?}, {}", said.verdict, said.evidence));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
