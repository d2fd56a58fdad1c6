//! What a recorded run says for a first configuration, plan and campaign.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    campaign::MAX_CALLS,
    cli::agents::{LateRun, roster_of},
    identity::ObservedStep,
    mode,
    recording::{Launched, Recording},
    trajectory::{FailureMode, Side, Source, StepIndex, Verdict},
};

/// Shortest argument that is taken for the task, in characters: a model's name is shorter.
const TASK_MIN: usize = 8;
/// Model calls that a run of the campaign may make for each that the recorded run made.
const TIMES: usize = 4;
/// What stands where nothing is known.
const UNKNOWN: &str = "FILL IN: the right answer";

/// An agent's call that answered in words.
struct AnsweredCall {
    step: StepIndex,
    agent: String,
    call: u32,
    text: String,
}

/// The files, as far as a run tells what belongs in them.
pub(super) struct Proposed<'a> {
    recording: &'a Recording,
    roster: String,
    /// Calls with words, in the order of the run.
    answered: Vec<AnsweredCall>,
    /// What the first call was asked.
    first_request: String,
}

impl<'a> Proposed<'a> {
    /// Of a run; `None` where no call of a known agent has an answer in words.
    pub(super) fn from_recording(recording: &'a Recording) -> Option<Self> {
        let late = LateRun::from_recording(recording);
        let roster = roster_of(recording);
        let words = |heard: &ObservedStep<'_>| {
            let reply = heard.reply.as_ref()?;
            reply.answers.first().map(|answer| answer.message.text()).filter(|text| !text.trim().is_empty())
        };
        let answered = recording.trajectory.steps.iter().zip(&late.steps.steps).filter_map(|(step, heard)| {
            let agent = step.attribution.agent.as_str().to_owned();
            // Known by its looks is enough here: the roster that is written beside names it.
            let known = !step.attribution.ambiguous && step.attribution.source != Source::Fallback;
            known.then_some(AnsweredCall { step: step.step, agent, call: step.call, text: words(heard)? })
        });
        let answered: Vec<AnsweredCall> = answered.collect();
        let asked = late.steps.steps.first().and_then(|heard| heard.outline.first_user()).unwrap_or_default();
        (!answered.is_empty()).then(|| Self { recording, roster, answered, first_request: asked.into_owned() })
    }

    /// Names and texts.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        vec![
            ("aegis.toml", self.roster.clone()),
            ("plan.toml", self.plan()),
            ("campaign.toml", self.campaign()),
            ("tasks.jsonl", self.tasks()),
        ]
    }

    /// An error for one call: another number where there is one, else an answer cut short.
    fn plan(&self) -> String {
        let has_number = |answered: &&AnsweredCall| answered.text.contains(|c: char| c.is_ascii_digit());
        let numbered = self.answered.iter().find(has_number);
        let (wanted, edit, said) = match numbered {
            Some(_) => (
                FailureMode::ReasoningActionMismatch,
                "manipulator.corrupt_number = { which = \"last\", by = 10 }",
                "its last number is off by ten",
            ),
            None => {
                (FailureMode::InformationWithholding, "manipulator.truncate_output = { keep = 0.3 }", "it is cut short")
            }
        };
        let Some(AnsweredCall { step, agent, call, .. }) = numbered.or(self.answered.first()) else {
            return String::new();
        };
        // A wrong figure in a plan is no act against its reasoning; that it is not what the task asks for, it is anywhere.
        let can_be = mode::of_run(&self.recording.trajectory.steps, &[]).unmet(*step, wanted, Side::Response).is_none();
        let mode = if can_be { wanted } else { FailureMode::DisobeyTaskSpecification }.code();
        let others: BTreeSet<&str> = self.answered.iter().map(|answered| answered.agent.as_str()).collect();
        let others: Vec<String> = others.into_iter().map(quoted).collect();
        format!(
            "# Proposed from the run {run}: the answer of {agent} to its call {call} is changed: {said}.\n\
             # `aegis plan explain plan.toml` says it in words; `aegis plan list` names all edits and faults.\n\
             # Agents of the run: {others}. \"*\" is any.\n\
             format = 1\nseed = 7\n\n[[injection]]\nagent = {quoted}\nfailure_mode = \"{mode}\"\nwhen.call = {call}\n{edit}\n",
            run = self.recording.manifest.run,
            agent = comment_name(agent),
            others = others.join(", "),
            quoted = quoted(agent),
        )
    }

    /// The command as a system under test.
    fn campaign(&self) -> String {
        let launched = self.recording.manifest.launched.as_ref();
        let upstream = launched.and_then(|launched| launched.upstream.clone());
        let upstream = upstream.unwrap_or_else(|| self.recording.manifest.upstream.clone());
        let question = self.question();
        let own = ["python", "my_agents.py", "{question}"].map(str::to_owned).to_vec();
        let command = launched.map_or(own, |launched| command(launched, &question));
        let mut text = format!(
            "# Proposed from the run {}. First: aegis campaign campaign.toml --dry-run\nformat = 1\nseed = 7\nupstream = {}\n\
             tasks.file = \"tasks.jsonl\"\nclean.repeats = 2   # a task goes on where all its clean runs succeed\n",
            self.recording.manifest.run,
            quoted(&upstream)
        );
        if upstream == "simulator" {
            text.push_str("proof.repeatable = true   # the simulator answers alike each time; it is checked\n");
        }
        let answer = self.answer();
        if answer.is_some() {
            text.push_str("verify.answer = 'ANSWER: (.*)'\n");
        }
        let check = match &answer {
            Some(answer) if answer.parse::<f64>().is_ok() => "numeric",
            _ => "normalised",
        };
        let _ = writeln!(text, "verify.checks = [{{ {check} = {{}} }}]   # how an answer is compared with the task's");
        if self.recording.trajectory.outcome.verdict == Verdict::Failure {
            text.push_str("# The run failed: begin with a task that your program solves.\n");
        }
        text.push_str("\n[[system]]\nname = \"mine\"\n");
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "command = [{}]", words.join(", "));
        if !command.iter().any(|word| word.contains("{question}")) {
            text.push_str("# The task does not stand in the command: put {question} where your program takes it.\n");
        }
        if launched.is_none_or(|launched| launched.masked) {
            text.push_str("# The record does not hold the whole command: write it as you type it. Keys belong in the environment.\n");
        }
        if let Some(directory) = launched.and_then(|launched| launched.directory.as_ref()) {
            let _ = writeln!(text, "directory = {}", quoted(directory));
        }
        text.push_str("config = \"aegis.toml\"\ntimeout_s = 300\nexit_codes = [0]\n");
        text.push_str(&self.bound());
        text.push_str("\n[[plan]]\nfile = \"plan.toml\"\n");
        text
    }

    /// How many model calls a run of the program may make: a multiple of what the recorded one made, for an error may make the
    /// program ask more often.
    fn bound(&self) -> String {
        let made: usize = self.recording.trajectory.steps.iter().map(|step| step.attempts.len().max(1)).sum();
        let calls = if made == 1 { "1 model call" } else { &format!("{made} model calls") };
        format!(
            "max_calls = {}   # of one run: {TIMES} times the {calls} of the recorded one; the default is {MAX_CALLS}\n",
            TIMES * made
        )
    }

    /// The run's task.
    fn tasks(&self) -> String {
        let answer = self.answer().unwrap_or_else(|| UNKNOWN.to_owned());
        format!("{}\n", serde_json::json!({"id": "first", "question": self.question(), "answer": answer}))
    }

    /// What the program was asked: the argument that its first call repeats, else what that call was asked.
    fn question(&self) -> String {
        let launched = self.recording.manifest.launched.as_ref();
        let arguments = launched.map(|launched| launched.command.as_slice()).unwrap_or_default();
        let repeated =
            |argument: &&String| argument.chars().count() >= TASK_MIN && self.first_request.contains(argument.as_str());
        match arguments.iter().skip(1).filter(repeated).max_by_key(|argument| argument.len()) {
            Some(argument) => argument.clone(),
            None => self.first_request.clone(),
        }
    }

    /// What the last call that states an answer says.
    fn answer(&self) -> Option<String> {
        let stated = |answered: &AnsweredCall| {
            let line = answered.text.lines().rev().find_map(|line| line.split_once("ANSWER: "))?;
            Some(line.1.trim().to_owned()).filter(|answer| !answer.is_empty())
        };
        self.answered.iter().rev().find_map(stated)
    }
}

/// The command with the task's place in it.
fn command(launched: &Launched, question: &str) -> Vec<String> {
    let own = |word: &String| std::path::Path::new(word).file_name().is_some_and(|name| name == "aegis");
    let word = |(number, word): (usize, &String)| match number {
        0 if own(word) => "{aegis}".to_owned(),
        0 => word.clone(),
        _ if word.as_str() == question => "{question}".to_owned(),
        _ => word.clone(),
    };
    launched.command.iter().enumerate().map(word).collect()
}

/// A text as TOML has it, on one line.
fn quoted(text: &str) -> String {
    // Escapes are those of JSON; this one character JSON leaves as it is.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A name within a comment.
fn comment_name(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
