//! Whether executions decide each other. An e-value holds where each is a draw of its own; four things say that they are not, and
//! each can be seen in what was executed anyway.
//!
//! - *One reply to two questions.* Executions have neutral changes of their own, so what they ask differs. One id and the same words for
//!   requests that differ come from a cache that overlooks such changes, where the upstream names its replies at all: where one id stands
//!   on different words, it names nothing. An equal reply to an equal request says nothing: two executions may draw the same change.
//! - *Replies that are not asked for again.* An agent that the reference asked behind the point at which the arms leave it, and none
//!   of five or more executions of either arm.
//!   A program that asks it by chance looks so in less than one claim of a hundred, whatever the chance is: at most
//!   `max p²(1-p)^10`, 0.5 %.
//! - *An order.* Outcomes of independent executions know no order. Two tests an arm, each exact over all orders of the same outcomes at
//!   a quarter of [`FALSE_ALARMS`]: whether outcomes move from one end to the other, and whether they alternate. That claims stop where
//!   they do is part of what the simulation beside this measures.

use std::collections::{BTreeMap, BTreeSet};

use super::sample::{ProofSample, verdicts};
use crate::trajectory::{AgentName, Dependence};

/// How often executions that are independent may be taken for such as follow an order, at most.
pub const FALSE_ALARMS: f64 = 0.01;
/// The fewest executions of an arm that ask an agent no more.
const FEWEST: usize = 5;

/// A live call behind the point at which a run left its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCall {
    /// Who asked.
    pub agent: AgentName,
    /// A digest of what the upstream was asked.
    pub request: u64,
    /// A digest of what it answered: words and calls of tools, no ids, no times.
    pub words: u64,
    /// What the reply calls itself, if anything.
    pub id: Option<String>,
}

/// What was seen of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedExecution {
    /// What it says of the claim.
    pub sample: ProofSample,
    /// Its live calls.
    pub calls: Vec<SeenCall>,
}

/// The executions of a claim, each arm in the order in which it was executed.
#[derive(Debug, Clone)]
pub struct SeenArms<'a> {
    /// Without the treatment.
    pub control: &'a [ObservedExecution],
    /// With it.
    pub treated: &'a [ObservedExecution],
    /// The agents that the reference asked behind that point.
    pub reference: &'a BTreeSet<AgentName>,
}

/// What was seen under one id.
#[derive(Debug, Default)]
struct RepliesOfOneId {
    executions: BTreeSet<usize>,
    requests: BTreeSet<u64>,
    words: BTreeSet<u64>,
}

impl SeenArms<'_> {
    /// What makes the executions depend on each other, if anything does.
    pub fn dependence(&self) -> Option<Dependence> {
        self.same_reply().or_else(|| self.uncalled_agent()).or_else(|| self.order())
    }

    fn all(&self) -> impl Iterator<Item = (usize, &SeenCall)> {
        let executions = self.control.iter().chain(self.treated).enumerate();
        executions.flat_map(|(number, execution)| execution.calls.iter().map(move |call| (number, call)))
    }

    fn same_reply(&self) -> Option<Dependence> {
        let mut named: BTreeMap<&str, RepliesOfOneId> = BTreeMap::new();
        for (number, call) in self.all() {
            if let Some(id) = call.id.as_deref().filter(|id| !id.is_empty()) {
                let seen = named.entry(id).or_default();
                seen.executions.insert(number);
                seen.requests.insert(call.request);
                seen.words.insert(call.words);
            }
        }
        if named.values().any(|seen| seen.words.len() > 1) {
            return None;
        }
        let shared = named.iter().find(|(_, seen)| seen.executions.len() > 1 && seen.requests.len() > 1);
        shared.map(|(id, _)| Dependence::SameReply((*id).to_owned()))
    }

    fn uncalled_agent(&self) -> Option<Dependence> {
        let never = |arm: &[ObservedExecution], agent: &AgentName| {
            let told = || arm.iter().filter(|execution| execution.sample.verdict().is_some());
            let asks = |execution: &ObservedExecution| execution.calls.iter().any(|call| call.agent == *agent);
            told().count() >= FEWEST && !told().any(asks)
        };
        let agent = self.reference.iter().find(|agent| never(self.control, agent) && never(self.treated, agent));
        agent.cloned().map(Dependence::AgentNotCalled)
    }

    fn order(&self) -> Option<Dependence> {
        let level = FALSE_ALARMS / 4.0;
        let outcomes = |arm: &[ObservedExecution]| verdicts(&arm.iter().map(|one| one.sample).collect::<Vec<_>>());
        let (control, treated) = (outcomes(self.control), outcomes(self.treated));
        [
            (trend(&control), Dependence::ControlTrend),
            (alternation(&control), Dependence::ControlRhythm),
            (trend(&treated), Dependence::TreatedTrend),
            (alternation(&treated), Dependence::TreatedRhythm),
        ]
        .into_iter()
        .find_map(|(p, dependence)| (p < level).then_some(dependence))
    }
}

/// How probable it is, all orders being equally so, that the places of those that passed lie so far to one end, or further, on
/// either side.
fn trend(outcomes: &[bool]) -> f64 {
    let passed = outcomes.iter().filter(|passed| **passed).count();
    let sum: usize = outcomes.iter().enumerate().filter(|(_, passed)| **passed).map(|(place, _)| place).sum();
    let most = outcomes.len() * outcomes.len().saturating_sub(1) / 2;
    // How many sets of so many places have which sum.
    let mut sets = vec![vec![0.0_f64; most + 1]; passed + 1];
    if let Some(none) = sets.first_mut().and_then(|of| of.first_mut()) {
        *none = 1.0;
    }
    for place in 0..outcomes.len() {
        for size in (1..=passed).rev() {
            for total in (place..=most).rev() {
                let with = sets.get(size - 1).and_then(|of| of.get(total - place)).copied().unwrap_or_default();
                if let Some(of) = sets.get_mut(size).and_then(|of| of.get_mut(total)) {
                    *of += with;
                }
            }
        }
    }
    let Some(sets) = sets.get(passed) else { return 1.0 };
    let all: f64 = sets.iter().sum();
    let below: f64 = sets.iter().take(sum + 1).sum();
    let above: f64 = sets.iter().skip(sum).sum();
    (2.0 * below.min(above) / all).min(1.0)
}

/// How probable it is, all orders being equally so, that outcomes change as often from one execution to the next, or more often.
fn alternation(outcomes: &[bool]) -> f64 {
    let passed = outcomes.iter().filter(|passed| **passed).count();
    let failed = outcomes.len() - passed;
    if passed == 0 || failed == 0 {
        return 1.0;
    }
    let runs = 1 + outcomes.windows(2).filter(|pair| pair.first() != pair.last()).count();
    let of = |runs: usize| {
        let half = runs / 2;
        let split = |outcomes: usize, parts: usize| choose(outcomes - 1, parts.wrapping_sub(1));
        if runs.is_multiple_of(2) {
            2.0 * split(passed, half) * split(failed, half)
        } else {
            split(passed, half + 1) * split(failed, half) + split(passed, half) * split(failed, half + 1)
        }
    };
    let more: f64 = (runs..=outcomes.len()).map(of).sum();
    more / choose(outcomes.len(), passed)
}

#[expect(clippy::cast_precision_loss, reason = "counts of executions are far below 2^52")]
fn choose(of: usize, taken: usize) -> f64 {
    if taken > of {
        return 0.0;
    }
    (0..taken).map(|number| (of - number) as f64 / (taken - number) as f64).product()
}

#[cfg(test)]
#[path = "dependence_tests.rs"]
mod tests;
