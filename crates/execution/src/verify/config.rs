//! `[verify]`: where a system's answer is, and which checkers look at it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, Check, Surroundings};
use crate::{
    surface::{self, door},
    trajectory::{Outcome, Pattern, Reason, Step, Trajectory, Verdict},
};

/// `[verify]` of a campaign.
///
/// ```toml
/// output = "stdout"
/// answer = 'ANSWER: (.*)'
/// checks = [{ numeric = { relative = 0.001 } }]
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Verify {
    /// Where the system's output is.
    pub output: Output,
    /// Regular expression of the answer in the output: first group of the last match. Default: the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Pattern>,
    /// Checkers; the first that can tell decides. A task's own checker replaces them.
    pub checks: Vec<Check>,
    /// Allow commands in task files. They run with your rights: only for files that you trust.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_task_commands: bool,
}

/// Where a system's output is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// Standard output.
    #[default]
    Stdout,
    /// A file in the working directory.
    File(PathBuf),
    /// The last reply to an agent; `*` is any agent.
    Reply(String),
}

/// What a run leaves behind.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The child's standard output.
    pub stdout: &'a [u8],
    /// Its working directory.
    pub directory: &'a Path,
    /// What was recorded of it.
    pub trajectory: &'a Trajectory,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The verdict with its evidence.
    pub outcome: Outcome,
    /// The answer that was checked.
    pub answer: String,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Nobody would check anything.
    #[error("`checks` is empty: expected at least one checker of {}", Check::NAMES.join(", "))]
    NoChecks,
    /// A checker's parameters make no sense.
    #[error("check {number} (`{name}`): {why}")]
    Check {
        /// Which one, 1-based.
        number: usize,
        /// Its name.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// The longest file that is read as an output, in bytes; of a longer one the end.
const FILE_MAX: usize = 4 << 20;

impl Verify {
    /// Whether it can be used; `tasks_check` says that every task brings its own checker.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self, tasks_check: bool) -> Result<(), VerifyError> {
        if self.checks.is_empty() && !tasks_check {
            return Err(VerifyError::NoChecks);
        }
        for (number, check) in (1..).zip(&self.checks) {
            if let Some(why) = check.problem() {
                return Err(VerifyError::Check { number, name: check.name(), why });
            }
        }
        Ok(())
    }

    /// The system's answer; `None` where it gave none.
    pub fn answer(&self, sources: &Sources<'_>) -> Option<String> {
        let text = |bytes: &[u8]| {
            let end = bytes.get(bytes.len().saturating_sub(FILE_MAX)..).unwrap_or_default();
            String::from_utf8_lossy(end).into_owned()
        };
        let output = match &self.output {
            Output::Stdout => text(sources.stdout),
            Output::File(path) => text(&fs::read(sources.directory.join(path)).ok()?),
            Output::Reply(agent) => last_reply(sources.trajectory, agent)?,
        };
        match &self.answer {
            Some(pattern) => pattern.last_in(&output).map(|answer| answer.trim().to_owned()),
            None => Some(output),
        }
    }

    /// Checks an answer. `own` is the task's own checker; `None` as `answer` is a failure: no answer is none.
    pub async fn check(
        &self,
        question: &str,
        expected: &str,
        own: Option<&Check>,
        answer: Option<String>,
        surroundings: &Surroundings,
    ) -> Verified {
        let outcome = |verdict, evidence| Outcome { verdict, reason: Some(Reason::Verifier), evidence };
        let Some(answer) = answer else {
            let evidence = format!("no answer; expected {}", super::excerpt(expected));
            return Verified { outcome: outcome(Verdict::Failure, evidence), answer: String::new() };
        };
        let case = Case { question, expected, output: &answer };
        let checks = own.map_or(self.checks.as_slice(), std::slice::from_ref);
        let mut unknown = Vec::new();
        for check in checks {
            let finding = check.check(&case, surroundings).await;
            let evidence = format!("{}: {}", finding.checker, finding.evidence);
            if finding.verdict != Verdict::Unknown {
                return Verified { outcome: outcome(finding.verdict, evidence), answer };
            }
            unknown.push(evidence);
        }
        Verified { outcome: outcome(Verdict::Unknown, unknown.join("; ")), answer }
    }
}

impl Check {
    /// What is wrong with the parameters, if anything is.
    pub fn problem(&self) -> Option<String> {
        match self {
            Check::Command(command) => command.problem(),
            Check::Regex(regex) => {
                let error = Pattern::new(&regex.pattern.replace("{answer}", "")).err()?;
                Some(format!("`{}` {error}", regex.pattern))
            }
            Check::JsonPointer(json) if !json.pointer.is_empty() && !json.pointer.starts_with('/') => {
                Some(format!("`{}` is no JSON pointer: expected it to start with `/`", json.pointer))
            }
            Check::ModelJudge(judge) if judge.model.trim().is_empty() => Some("`model` is empty".to_owned()),
            _ => None,
        }
    }
}

/// The text of the last reply that an agent got.
fn last_reply(trajectory: &Trajectory, agent: &str) -> Option<String> {
    let its = |step: &&Step| agent == "*" || step.attribution.agent.as_str() == agent;
    trajectory.steps.iter().rev().filter(its).find_map(|step| {
        let surface = surface::named(&step.surface)?;
        let attempt = step.last_attempt()?;
        let body = attempt.delivered();
        let reply = door::reply(surface, body, attempt.streamed);
        let text = reply.ok()?.answers.first()?.message.text();
        (!text.trim().is_empty()).then_some(text)
    })
}
