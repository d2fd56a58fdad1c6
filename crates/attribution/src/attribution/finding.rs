//! What a trace has found: where each step stands, what was executed for it, and which steps are decisive.

use serde::Serialize;

use super::{CorrectionOrigin, Prior, SearchSpent};
use crate::{
    proof::{SearchEnding, Stands},
    trajectory::{AgentName, Call, Executed, Executions, FailureMode, Interval, RunId, StepIndex, difference},
};

/// What a trace has found.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct TraceFinding {
    /// Format of this file.
    pub format: u32,
    /// The failed run.
    pub run: RunId,
    /// The order of the search, by name.
    pub order: &'static str,
    /// What made steps suspicious before anything was executed, where something did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
    /// The highest probability with which the trace blames any step without effect.
    pub alpha: f64,
    /// Claims that could be made of the run: each e-value of the finding is shared by so many.
    pub claims: usize,
    /// The e-value that blames a step, 1/alpha: the same that its label rests on.
    pub target: f64,
    /// An effect of this size is what a step is cleared of.
    pub effect: f64,
    /// How probable it may be that such an effect was missed, over all steps.
    pub miss: f64,
    /// The record as it is: executions without any correction and without a live call.
    pub sanity: Executions,
    /// Every step of the run, in order.
    pub steps: Vec<StepFinding>,
    /// Pairs of steps that were tried together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub couples: Vec<CoupleFinding>,
    /// The agents as a whole, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// The earliest decisive step: its effect is shown, and every earlier step is cleared.
    pub earliest_flip: Option<Decisive>,
    /// The last decisive step: after it the failure stands, and every later step is cleared.
    pub commitment: Option<Decisive>,
    /// The steps whose own effect is shown, in order.
    pub flips: Vec<Decisive>,
    /// Two steps that heal the run together, and neither alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<Decisive>,
    /// Rules that name no step, and why.
    pub doubts: Vec<Doubt>,
    /// Why nothing was found, where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_found: Option<String>,
    /// Why the search ended before its steps were settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<SearchEnding>,
    /// What a check said that could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrunnable_check: Option<String>,
    /// What counted as equal in its executions beyond what the run says, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts_as_equal: Vec<String>,
    /// Executions whose tools gave other results than were recorded, where that was allowed.
    pub other_tool_results: u64,
    /// What it cost.
    pub spent: SearchSpent,
    /// Whether the budget ended the search.
    pub out_of_budget: bool,
}

/// Which of the found steps is the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelRule {
    /// The earliest step whose correction turns failure into success (`AgenTracer`'s rule, here against a control arm), all
    /// earlier ones cleared.
    #[default]
    EarliestFlip,
    /// The last one, all later ones cleared: after it the failure stands.
    Commitment,
    /// Any step whose correction turns failure into success: cheap, and true of that step alone.
    Flip,
}

impl LabelRule {
    /// All rules.
    pub const ALL: &'static [LabelRule] = &[LabelRule::EarliestFlip, LabelRule::Commitment, LabelRule::Flip];

    /// Its name, as a label's `definition`.
    pub fn name(self) -> &'static str {
        match self {
            LabelRule::EarliestFlip => "earliest_flip",
            LabelRule::Commitment => "commitment",
            LabelRule::Flip => "flip",
        }
    }
}

/// A rule that names no step, although one is sought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Doubt {
    /// The rule.
    pub rule: LabelRule,
    /// The step whose effect is shown, if one is.
    pub shown: Option<StepIndex>,
    /// The steps that may stand in its place.
    pub steps: Vec<StepIndex>,
    /// Why they are not cleared, and what would tell.
    pub why: String,
}

/// What was found of a step.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct StepFinding {
    /// The step.
    pub step: StepIndex,
    /// Its agent.
    pub agent: AgentName,
    /// The agent's call.
    pub call: Call,
    /// The agent's instance.
    pub instance: u32,
    /// blake3 of the reply as it was recorded.
    pub recorded: String,
    /// blake3 of the corrected reply; empty where it is drawn anew.
    pub corrected: String,
    /// What it said.
    pub said: String,
    /// What it was corrected with; `None` where it was not, or was drawn anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Where its correction came from.
    pub source: Option<CorrectionOrigin>,
    /// Why it was corrected so.
    pub reason: String,
    /// The failure mode that whoever corrected it proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<FailureMode>,
    /// Where it stands.
    pub stands: Stands,
    /// What was executed for it, and what it amounts to; `None` where it has no correction.
    pub executed: Option<Executed>,
    /// The difference of the two shares that pass, where both were executed: it describes, and decides nothing.
    pub effect: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The runs with its recorded reply.
    #[serde(rename = "null_runs")]
    pub control_runs: Vec<RunId>,
    /// The runs with the corrected one.
    pub treated_runs: Vec<RunId>,
    /// Why it has no correction.
    pub note: Option<String>,
}

/// What was found of two steps together.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct CoupleFinding {
    /// The steps.
    pub steps: [StepIndex; 2],
    /// What was executed with neither, and with both corrected.
    pub executed: Executed,
}

/// What was found of an agent.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct AgentFinding {
    /// The agent.
    pub agent: AgentName,
    /// What its replies were replaced by.
    pub replaced_by: &'static str,
    /// Its first step: what came before is recorded in both arms.
    pub from: StepIndex,
    /// Its recorded replies, call by call.
    #[serde(rename = "null")]
    pub control: Executions,
    /// Its replies replaced.
    pub treated: Executions,
    /// The difference of the two shares.
    pub effect: f64,
    /// Its interval.
    pub interval: Interval,
}

/// A decisive step, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Decisive {
    /// The step.
    pub step: StepIndex,
    /// Its agent.
    pub agent: AgentName,
    /// The agent's call.
    pub call: Call,
    /// The agent's instance.
    pub instance: u32,
    /// blake3 of the reply as it was recorded.
    pub recorded: String,
    /// blake3 of the reply that heals the run; empty where it was drawn anew.
    pub corrected: String,
    /// Where that reply came from.
    pub source: Option<CorrectionOrigin>,
    /// The failure mode that whoever corrected it proposes; nothing proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<FailureMode>,
    /// What was executed, and what it amounts to.
    pub executed: Executed,
}

impl StepFinding {
    /// Takes in what was executed.
    pub(super) fn conclude(&mut self, stands: Stands, executed: Option<Executed>) {
        self.stands = stands;
        if let Some(executed) = &executed {
            let (control, treated) = (executed.control.tally(), executed.treated.tally());
            if control.of > 0 && treated.of > 0 {
                let (effect, interval) = difference(treated, control);
                (self.effect, self.interval) = (Some(effect), Some(interval));
            }
        }
        self.executed = executed;
    }

    /// As a decisive step.
    pub(super) fn decisive(&self, executed: Executed) -> Decisive {
        Decisive {
            step: self.step,
            agent: self.agent.clone(),
            call: self.call,
            instance: self.instance,
            recorded: self.recorded.clone(),
            corrected: self.corrected.clone(),
            source: self.source,
            proposed_mode: self.proposed_mode,
            executed,
        }
    }
}

impl TraceFinding {
    /// Whether a rule that was to name a step names none.
    pub fn is_in_doubt(&self, rule: LabelRule) -> bool {
        self.doubts.iter().any(|doubt| doubt.rule == rule)
    }
}
