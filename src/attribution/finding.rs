//! What a trace has found: arms, effects and labels, each with its evidence.

use serde::Serialize;

use super::{Interval, Origin, Share, Spent, difference};
use crate::trajectory::{AgentName, Call, RunId, StepIndex};

/// What a trace has found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The failed run.
    pub run: RunId,
    /// The order of the search, by name.
    pub order: &'static str,
    /// Samples of each arm, at most.
    pub samples: u32,
    /// The highest probability with which a step without effect is blamed.
    pub false_blame: f64,
    /// Every step of the run, in order.
    pub steps: Vec<StepFinding>,
    /// The agents as a whole, where that was asked for.
    pub agents: Vec<AgentFinding>,
    /// The earliest step with an effect, among those that were tested.
    pub earliest_flip: Option<Decisive>,
    /// The latest step with an effect, among those that were tested: after it the failure stands.
    pub commitment: Option<Decisive>,
    /// What it cost.
    pub spent: Spent,
    /// Whether the budget ended the search.
    pub out_of_budget: bool,
}

/// What was found of a step.
#[derive(Debug, Clone, Serialize)]
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
    /// Where its correction came from.
    pub source: Option<Origin>,
    /// Why it was corrected so.
    pub reason: String,
    /// Its recorded reply, and a live rest: what chance alone does.
    pub null: Arm,
    /// Its corrected reply, and a live rest.
    pub treated: Arm,
    /// The difference of the two shares, where both were sampled.
    pub effect: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// Whether the interval lies above zero.
    pub blamed: bool,
    /// Why it was not tested, or not to the end.
    pub note: Option<String>,
}

/// What was found of an agent.
#[derive(Debug, Clone, Serialize)]
pub struct AgentFinding {
    /// The agent.
    pub agent: AgentName,
    /// What its replies were replaced by.
    pub replaced_by: &'static str,
    /// Its first step: what came before is recorded in both arms.
    pub from: StepIndex,
    /// Its recorded replies, call by call.
    pub null: Arm,
    /// Its replies replaced.
    pub treated: Arm,
    /// The difference of the two shares.
    pub effect: f64,
    /// Its interval.
    pub interval: Interval,
}

/// Samples of one kind.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Arm {
    /// Successes among those that have a verdict.
    #[serde(flatten)]
    pub share: Share,
    /// Executions that left the recorded prefix, or whose outcome nobody could tell: they prove nothing.
    pub void: u32,
    /// The runs, in order.
    pub runs: Vec<RunId>,
}

/// A decisive step, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Successes with the recorded reply.
    pub null: Share,
    /// Successes with the corrected reply.
    pub treated: Share,
    /// The difference.
    pub effect: f64,
    /// Its interval.
    pub interval: Interval,
}

impl StepFinding {
    /// Works out the effect from the arms.
    pub(super) fn conclude(&mut self) {
        if self.null.share.samples == 0 || self.treated.share.samples == 0 {
            return;
        }
        let (effect, interval) = difference(self.treated.share, self.null.share);
        self.effect = Some(effect);
        self.interval = Some(interval);
        self.blamed = interval.low > 0.0;
    }

    fn decisive(&self) -> Option<Decisive> {
        Some(Decisive {
            step: self.step,
            agent: self.agent.clone(),
            call: self.call,
            instance: self.instance,
            recorded: self.recorded.clone(),
            corrected: self.corrected.clone(),
            null: self.null.share,
            treated: self.treated.share,
            effect: self.effect?,
            interval: self.interval.filter(|_| self.blamed)?,
        })
    }
}

impl Finding {
    /// Names the decisive steps among those that were tested.
    pub(super) fn conclude(&mut self) {
        self.earliest_flip = self.steps.iter().find_map(StepFinding::decisive);
        self.commitment = self.steps.iter().rev().find_map(StepFinding::decisive);
    }
}
