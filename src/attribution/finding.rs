//! What a trace has found: arms, effects and labels, each with its evidence.

use serde::Serialize;

use super::{Interval, Origin, Share, Spent, difference};
use crate::trajectory::{AgentName, Call, FailureMode, RunId, StepIndex};

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
    /// What the search is not sure of. A rule that stands here names no step.
    pub doubts: Vec<Doubt>,
    /// Executions whose tools gave other results than were recorded, where that was allowed.
    pub other_tool_results: u64,
    /// What it cost.
    pub spent: Spent,
    /// Whether the budget ended the search.
    pub out_of_budget: bool,
}

/// Which of the found steps is the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelRule {
    /// The earliest step whose correction turns failure into success (`AgenTracer`'s rule, here against a null arm).
    #[default]
    EarliestFlip,
    /// The latest one: after it the failure stands.
    Commitment,
}

impl LabelRule {
    /// Both rules.
    pub const ALL: &'static [LabelRule] = &[LabelRule::EarliestFlip, LabelRule::Commitment];

    /// Its name, as a label's `definition`.
    pub fn name(self) -> &'static str {
        match self {
            LabelRule::EarliestFlip => "earliest_flip",
            LabelRule::Commitment => "commitment",
        }
    }
}

/// A rule of which the search cannot say which step it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// The rule.
    pub rule: LabelRule,
    /// The steps that it may be.
    pub steps: Vec<StepIndex>,
    /// Why it cannot be said, and what would tell.
    pub why: String,
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
    /// The failure mode that whoever corrected it proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<FailureMode>,
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
    /// The failure mode that whoever corrected it proposes; nothing proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<FailureMode>,
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
            proposed_mode: self.proposed_mode,
            null: self.null.share,
            treated: self.treated.share,
            effect: self.effect?,
            interval: self.interval.filter(|_| self.blamed)?,
        })
    }
}

/// An effect from which a step that is not blamed is suspected all the same: more samples might show it.
const SUSPECT: f64 = 0.3;

impl Finding {
    /// Names the decisive steps among those that were tested. A step that is suspected, and stands where the rule would
    /// rather look, is a doubt.
    pub(super) fn conclude(&mut self) {
        let first = self.steps.iter().position(|step| step.blamed);
        let last = self.steps.iter().rposition(|step| step.blamed);
        let all = self.steps.len();
        let sides = [(LabelRule::EarliestFlip, first, 0..first.unwrap_or(all))];
        let sides = sides.into_iter().chain([(LabelRule::Commitment, last, last.map_or(0, |last| last + 1)..all)]);
        for (rule, blamed, range) in sides {
            if self.is_in_doubt(rule) {
                continue;
            }
            let suspected = |step: &&StepFinding| !step.blamed && step.effect.is_some_and(|effect| effect >= SUSPECT);
            let suspects = self.steps.get(range).unwrap_or_default().iter().filter(suspected);
            let mut steps: Vec<StepIndex> = suspects.map(|step| step.step).collect();
            if !steps.is_empty() {
                steps.extend(blamed.and_then(|blamed| self.steps.get(blamed)).map(|step| step.step));
                steps.sort_unstable();
                let why = "a correction does more than chance, but not surely; more samples would tell".to_owned();
                self.doubts.push(Doubt { rule, steps, why });
            }
        }
        let named = |rule: LabelRule, index: Option<usize>| {
            let step = index.filter(|_| !self.is_in_doubt(rule)).and_then(|index| self.steps.get(index));
            step.and_then(StepFinding::decisive)
        };
        let (earliest, latest) = (named(LabelRule::EarliestFlip, first), named(LabelRule::Commitment, last));
        (self.earliest_flip, self.commitment) = (earliest, latest);
    }

    /// Whether the search is not sure which step a rule names.
    pub fn is_in_doubt(&self, rule: LabelRule) -> bool {
        self.doubts.iter().any(|doubt| doubt.rule == rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step with (null, treated) successes of 3 samples each; `None` where it was not tested.
    fn step(number: StepIndex, successes: Option<(u32, u32)>) -> StepFinding {
        let arm = |successes: Option<u32>| {
            let share = successes.map(|successes| Share { successes, samples: 3 }).unwrap_or_default();
            Arm { share, ..Arm::default() }
        };
        let mut finding = StepFinding {
            step: number,
            agent: AgentName::unnamed(0),
            call: number,
            instance: 0,
            recorded: String::new(),
            corrected: String::new(),
            source: None,
            reason: String::new(),
            proposed_mode: None,
            null: arm(successes.map(|(null, _)| null)),
            treated: arm(successes.map(|(_, treated)| treated)),
            effect: None,
            interval: None,
            blamed: false,
            note: None,
        };
        finding.conclude();
        finding
    }

    #[test]
    fn a_rule_names_no_step_where_another_may_be_meant() {
        let (blamed, innocent, suspect) = (Some((0, 3)), Some((0, 0)), Some((0, 2)));
        for (steps, earliest, latest, doubted) in [
            (&[innocent, blamed, None, innocent][..], Some(1), Some(1), &[][..]),
            (&[innocent, blamed, blamed], Some(1), Some(2), &[]),
            (&[suspect, blamed, innocent], None, Some(1), &[(LabelRule::EarliestFlip, vec![0, 1])]),
            (&[blamed, suspect], Some(0), None, &[(LabelRule::Commitment, vec![0, 1])]),
            (&[blamed, suspect, blamed], Some(0), Some(2), &[]),
            (&[innocent, suspect], None, None, &[(LabelRule::EarliestFlip, vec![1]), (LabelRule::Commitment, vec![1])]),
            (&[innocent, None], None, None, &[]),
        ] {
            let steps = (0..).zip(steps).map(|(number, successes)| step(number, *successes)).collect();
            let mut finding = Finding {
                run: RunId::parse("r").expect("an id"),
                order: "scan",
                samples: 3,
                false_blame: 0.0,
                steps,
                agents: Vec::new(),
                earliest_flip: None,
                commitment: None,
                doubts: Vec::new(),
                other_tool_results: 0,
                spent: Spent::default(),
                out_of_budget: false,
            };
            finding.conclude();
            let step = |decisive: &Option<Decisive>| decisive.as_ref().map(|decisive| decisive.step);
            assert_eq!((step(&finding.earliest_flip), step(&finding.commitment)), (earliest, latest));
            let doubts: Vec<_> = finding.doubts.iter().map(|doubt| (doubt.rule, doubt.steps.clone())).collect();
            assert_eq!(doubts, doubted);
        }
    }
}
