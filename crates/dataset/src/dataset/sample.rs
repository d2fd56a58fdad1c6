//! One line of a dataset: a run as its agents lived it, its task, its outcome, its ground truth.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{SampleMessage, Truth};
use crate::{
    equality::EqualitySetting,
    trajectory::{AgentName, Call, Source, StepIndex, TokenDoubt, Verdict},
    verify::Check,
};

/// The newest format of a sample that is read, and the one that is written.
pub const FORMAT: u32 = 1;

/// The backend that is no model.
const SIMULATOR: &str = "simulator";

/// A run as data. Steps are numbered from 0 in canonical order; nothing in it is a clock, a port or a random id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// Format of the record; 1.
    pub format: u32,
    /// Its id, unique in a dataset: the run's, which tells nothing of task, agent or mode.
    pub id: String,
    /// What the run is in the dataset.
    pub kind: SampleKind,
    /// The multi-agent system, for example `pipeline` or `autogen`.
    #[serde(default)]
    pub system: String,
    /// What answered the model calls: `simulator`, `local` for a private address or name, or scheme and host. No port.
    #[serde(default)]
    pub backend: String,
    /// The task.
    pub task: Task,
    /// The part of the dataset; all samples of a task are in one part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// What the run achieved.
    pub outcome: Verdict,
    /// What the checker compared or saw.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome_evidence: String,
    /// The system's answer, as the checker read it.
    #[serde(default)]
    pub final_answer: String,
    /// Tools that any step was offered, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OfferedTool>,
    /// The model calls, in order.
    pub steps: Vec<SampleStep>,
    /// The ground truth; a clean run has none.
    pub label: Option<Truth>,
    /// The id of the clean run of the same task and system.
    pub clean_twin: Option<String>,
    /// What may differ in the requests of its run that are still the same, where that is not what holds without a word.
    #[serde(default, skip_serializing_if = "EqualitySetting::is_default")]
    pub equality: EqualitySetting,
    /// Fields of a foreign format that have no place here, by that format's names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// What a sample is in its dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// A run without injection that solved its task: the twin of failures.
    Clean,
    /// A run that failed, with ground truth.
    Failure,
    /// An injection was delivered and the run succeeded all the same.
    Benign,
    /// A neutral change was planted as if it were an error, whatever came of the run: it measures the proof, and is no error.
    Decoy,
}

/// The part of a dataset that a task belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// To learn from.
    Train,
    /// To choose by.
    Validation,
    /// To measure on.
    Test,
}

impl Split {
    /// Its name, as files and rows write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// A task with its answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Task {
    /// Its id, unique in a task set.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// What is right; what that means is the checker's to say.
    #[serde(default)]
    pub answer: String,
    /// How an answer to this task is checked, where the task set says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// Whatever else the task set says.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A tool as its agent's model saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// What it says it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON schema of its arguments.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
}

/// One model call as its agent lived it: what the agent asked, and the answer that it got.
///
/// There are no token counts in it. An upstream counts what it got and what it said; where an edit stood between it and
/// the agent, that is not what the step shows, and the counts, or their absence at that step alone, would tell where the
/// edit was. They are in the run's recording. Lines of earlier versions have a `usage`, which is not read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SampleStep {
    /// Number in the sample, 0-based; equal to its index.
    pub step: StepIndex,
    /// Number of the call of its agent instance, 0-based.
    #[serde(default)]
    pub call: Call,
    /// Number of the activation of the agent that the call belongs to, 0-based.
    #[serde(default)]
    pub turn: u32,
    /// Who made the call.
    pub agent: AgentName,
    /// The agent as a foreign format wrote it, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_agent: Option<String>,
    /// The instance of agents that share a name, 0-based.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instance: u32,
    /// The rule that named the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Set where the wire cannot tell which agent it was, or which of the agent's calls: another was under way at the same
    /// time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ambiguous: bool,
    /// Whether it was under way at the same time as the step before it, or as one that overlapped with that: the order
    /// of steps that did says nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overlaps: bool,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent's program sent; an injected order is never in it, its effects are. `None` where nobody knows.
    pub input: Option<Input>,
    /// The tools on offer, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The answer as the agent got it; `None` where it got none.
    pub output: Option<SampleMessage>,
    /// How much of the step was read, where that is not all: `partly read` or `unread`, as `aegis show` says it. What was not read
    /// stands neither in `input` nor in `output`. Lines of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Why the model stopped, in the API's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// HTTP status, where it was not 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Tries that the call took, where there were more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How unsure the model was of its words, where the upstream was asked (`--ask-logprobs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<TokenDoubt>,
    /// Fields of a foreign format that have no place here, by that format's names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The messages of a request, written as a difference, so that a growing conversation is stored once:
/// the first `kept` messages of step `follows`, then `messages`. [`Sample::input`] puts them together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Input {
    /// The earlier step whose messages begin this one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<StepIndex>,
    /// How many of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: u32,
    /// What follows.
    pub messages: Vec<SampleMessage>,
}

impl Sample {
    /// The same with the number of each of several equal agents in its name, as readers without a place for it need it:
    /// `debater`, `debater#1`, `debater#2`.
    #[must_use]
    pub fn with_numbered_agents(mut self) -> Self {
        fn numbered(agent: &mut AgentName, instance: u32) {
            if instance == 0 {
                return;
            }
            if let Ok(name) = AgentName::parse(&agent.numbered(instance)) {
                *agent = name;
            }
        }
        for step in &mut self.steps {
            numbered(&mut step.agent, step.instance);
        }
        let Some(label) = &mut self.label else { return self };
        for error in label.errors.iter_mut().chain(&mut label.others).chain(&mut label.not_shown) {
            numbered(&mut error.agent, error.instance);
        }
        for necessity in label.evidence.iter_mut().flat_map(|evidence| &mut evidence.necessity) {
            numbered(&mut necessity.agent, necessity.instance);
        }
        for found in &mut label.missed_catch {
            numbered(&mut found.agent, found.instance);
        }
        self
    }

    /// What the model is called where a format has no other place that tells what answered: what the simulator said is
    /// never told as a model's words.
    pub fn model_name(&self, model: &str) -> String {
        let simulated = self.backend == SIMULATOR && model != SIMULATOR;
        if simulated { format!("{SIMULATOR}/{model}") } else { model.to_owned() }
    }

    /// The whole input of a step; `None` where it is unknown, or follows a step that is not before it.
    pub fn input(&self, step: StepIndex) -> Option<Vec<&SampleMessage>> {
        let mut newest_first: Vec<&[SampleMessage]> = Vec::new();
        let mut at = step;
        let mut take = usize::MAX;
        loop {
            let input = self.steps.get(at as usize)?.input.as_ref()?;
            let kept = input.kept as usize;
            let own = input.messages.get(..take.saturating_sub(kept).min(input.messages.len()))?;
            newest_first.push(own);
            let Some(earlier) = input.follows.filter(|earlier| kept > 0 && *earlier < at) else {
                // What is kept must be kept from somewhere.
                return (kept == 0).then(|| newest_first.iter().rev().flat_map(|part| part.iter()).collect());
            };
            take = take.min(kept);
            at = earlier;
        }
    }

    /// The names of the agents, in order of their first step.
    pub fn agents(&self) -> Vec<&AgentName> {
        let mut agents: Vec<&AgentName> = Vec::new();
        for step in &self.steps {
            if !agents.contains(&&step.agent) {
                agents.push(&step.agent);
            }
        }
        agents
    }

    /// What a tracer may be shown and a model may be trained on: every text of task, steps and tools, with its place.
    /// Ids, label and twin are not among it.
    pub fn shown(&self) -> impl Iterator<Item = (Place, &str)> {
        let task = [(Place::Task, self.task.question.as_str()), (Place::Answer, self.final_answer.as_str())];
        let steps = self.steps.iter().flat_map(|step| {
            let input = step.input.iter().flat_map(|input| &input.messages).flat_map(SampleMessage::texts);
            let output = step.output.iter().flat_map(SampleMessage::texts);
            let agent = std::iter::once((Place::Agent(step.step), step.agent.as_str()));
            let input = input.map(|text| (Place::Input(step.step), text));
            agent.chain(input).chain(output.map(|text| (Place::Output(step.step), text)))
        });
        let tools =
            self.tools.iter().flat_map(|tool| [(Place::Tool, tool.name.as_str()), (Place::Tool, &tool.description)]);
        task.into_iter().chain(steps).chain(tools)
    }
}

/// Where in a sample a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The task's question.
    Task,
    /// The system's answer.
    Answer,
    /// The name of a step's agent.
    Agent(StepIndex),
    /// What a step's agent asked.
    Input(StepIndex),
    /// What it was answered.
    Output(StepIndex),
    /// A tool on offer.
    Tool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
