//! A run as methods see it: who said what, after what. Nothing in it tells of plans, labels or ids.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    dataset::{Sample, SampleMessage, SampleStep},
    score::agent_key,
    trajectory::TokenDoubt,
};

/// Shortest reply that is looked for in later requests, in characters: a `yes` stands everywhere.
const QUOTED_MIN: usize = 12;

/// A run, its gold answer and its label kept apart from what methods are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedRun {
    /// Names the run in rows; never shown to a judge.
    pub id: String,
    /// What was to be solved.
    pub problem: String,
    /// The right answer, where the user lets judges know it.
    pub gold: Option<String>,
    /// Whether the run solved its task; `None` where nobody knows.
    pub passed: Option<bool>,
    /// Its directory, where it is a recording: runs of two directories may have one name.
    pub dir: Option<PathBuf>,
    /// Who said what, in order.
    pub turns: Vec<LoggedTurn>,
    /// The run as a row without its label, for tracers that are asked in the words of exported rows.
    pub row: Option<LoggedRow>,
}

/// A run as a row of a data set, without its label.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedRow {
    /// The row.
    pub sample: Arc<Sample>,
    /// The number of each of its steps in the run; empty where they are the same.
    pub places: Vec<u32>,
}

impl LoggedRow {
    /// A row, its label left out.
    pub fn unlabelled(sample: &Sample, places: Vec<u32>) -> Self {
        Self { sample: Arc::new(Sample { label: None, ..sample.clone() }), places }
    }

    /// The number in the run of a step that somebody counts as the row does.
    pub fn place(&self, step: u32) -> u32 {
        let known = usize::try_from(step).ok().and_then(|step| self.places.get(step));
        known.copied().unwrap_or(step)
    }
}

/// One step of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedTurn {
    /// Its number, 0-based, as `show` and labels count.
    pub step: u32,
    /// The agent by its canonical name.
    pub agent: String,
    /// The agent as the log writes it: `Orchestrator (thought)` of `Orchestrator`.
    pub speaker: String,
    /// What is new in its request since the agent's last one; empty where requests are not known.
    pub given: String,
    /// What it said.
    pub reply: String,
    /// The tools that it called.
    pub calls: Vec<LoggedCall>,
    /// Earlier steps whose replies stand in its request; of a log without requests, every earlier step.
    pub quoted: Vec<u32>,
    /// Why the model stopped, in the API's word.
    pub finish: Option<String>,
    /// The HTTP status, where it was not 200, or 0 where no answer came.
    pub status: Option<u16>,
    /// Tries that the call took.
    pub attempts: u32,
    /// How unsure the model was of its words, where the upstream said so.
    pub doubt: Option<TokenDoubt>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
}

impl LoggedRun {
    /// The run of a sample: of one of ours, or of a foreign file that was read into one. The gold answer is left out unless it
    /// is asked for.
    pub fn from_sample(sample: &Sample, gold: bool) -> Self {
        let wired = sample.steps.iter().any(|step| step.input.is_some());
        let turns: Vec<LoggedTurn> = sample.steps.iter().map(|step| turn(sample, step, wired)).collect();
        let problem = sample.task.question.clone();
        let known = sample.task.answer.trim();
        Self {
            id: sample.id.clone(),
            problem,
            gold: Some(known.to_owned()).filter(|known| gold && !known.is_empty()),
            passed: match sample.outcome {
                crate::trajectory::Verdict::Success => Some(true),
                crate::trajectory::Verdict::Failure => Some(false),
                crate::trajectory::Verdict::Unknown => None,
            },
            dir: None,
            turns,
            row: None,
        }
    }

    /// The same, recorded in this directory.
    #[must_use]
    pub fn recorded_in(self, dir: &Path) -> Self {
        Self { dir: Some(dir.canonicalize().unwrap_or_else(|_| dir.to_owned())), ..self }
    }

    /// Whether both are one run.
    pub(super) fn is_same_run(&self, other: &LoggedRun) -> bool {
        self.id == other.id && self.dir == other.dir
    }

    /// The same with the row itself, for tracers.
    #[must_use]
    pub fn with_row(self, sample: &Sample) -> Self {
        Self { row: Some(LoggedRow::unlabelled(sample, Vec::new())), ..self }
    }

    /// The turn of that number.
    pub fn turn(&self, step: u32) -> Option<&LoggedTurn> {
        self.turns.iter().find(|turn| turn.step == step)
    }

    /// The canonical name of an agent that somebody wrote, where one of that name speaks.
    pub fn agent(&self, written: &str) -> Option<&str> {
        let key = agent_key(written);
        self.turns.iter().map(|turn| turn.agent.as_str()).find(|agent| agent_key(agent) == key)
    }

    /// The names of its agents, in order of their first turns.
    pub fn agents(&self) -> Vec<&str> {
        let mut agents: Vec<&str> = Vec::new();
        for turn in &self.turns {
            if !agents.contains(&turn.agent.as_str()) {
                agents.push(&turn.agent);
            }
        }
        agents
    }
}

impl LoggedTurn {
    /// Its words and its tool calls.
    pub fn words_and_calls(&self) -> String {
        let mut whole = self.reply.clone();
        for call in &self.calls {
            if !whole.is_empty() {
                whole.push('\n');
            }
            let _ = write!(whole, "[calls {}({})]", call.tool, call.arguments);
        }
        whole
    }
}

fn turn(sample: &Sample, step: &SampleStep, wired: bool) -> LoggedTurn {
    let output = step.output.as_ref();
    let calls = output.map(|output| output.calls.as_slice()).unwrap_or_default();
    LoggedTurn {
        step: step.step,
        agent: step.agent.as_str().to_owned(),
        speaker: step.raw_agent.clone().unwrap_or_else(|| step.agent.as_str().to_owned()),
        given: new_in_request(step),
        reply: output.map(|output| output.text.clone()).unwrap_or_default(),
        calls: calls
            .iter()
            .map(|call| LoggedCall { tool: call.name.clone(), arguments: call.arguments.clone() })
            .collect(),
        quoted: if wired { quoted_steps(sample, step) } else { (0..step.step).collect() },
        finish: step.finish_reason.clone(),
        status: step.status.or_else(|| (wired && output.is_none()).then_some(0)),
        attempts: step.attempts.unwrap_or(1),
        doubt: step.doubt,
    }
}

/// What is new in a step's request. The instruction that makes the agent what it is, is new once.
fn new_in_request(step: &SampleStep) -> String {
    let messages = step.input.iter().flat_map(|input| &input.messages);
    let told = |said: &SampleMessage| {
        let name = said.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let calls = said.calls.iter().map(|call| format!("\n[calls {}({})]", call.name, call.arguments));
        format!("[{}{name}] {}{}", said.role, said.text, calls.collect::<String>())
    };
    messages.map(told).collect::<Vec<_>>().join("\n")
}

/// Earlier steps of which a word-for-word reply stands in the request of this one.
fn quoted_steps(sample: &Sample, step: &SampleStep) -> Vec<u32> {
    let Some(input) = sample.input(step.step) else { return Vec::new() };
    let stands = |said: &SampleMessage| {
        let text = said.text.trim();
        let whole = |message: &&SampleMessage| message.text.trim() == text;
        let inside = |message: &&SampleMessage| text.chars().count() >= QUOTED_MIN && message.text.contains(text);
        let by_text = !text.is_empty() && input.iter().any(|message| whole(message) || inside(message));
        by_text || (!said.calls.is_empty() && input.iter().any(|message| message.calls == said.calls))
    };
    let earlier = sample.steps.iter().take_while(|earlier| earlier.step < step.step);
    earlier.filter(|earlier| earlier.output.as_ref().is_some_and(&stands)).map(|earlier| earlier.step).collect()
}
