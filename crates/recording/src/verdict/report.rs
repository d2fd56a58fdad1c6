//! The verdict: per fault, per agent, per call; one result.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Met, RULES, TroubledCall, Weight};
use crate::trajectory::{self, AgentName, StepIndex};

/// What a verdict comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// No rule found a defect.
    Passed,
    /// A planned fault was never delivered: nothing is known.
    Inconclusive,
    /// A defect was found.
    Failed,
}

impl Judgement {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Judgement::Passed => "passed",
            Judgement::Inconclusive => "inconclusive",
            Judgement::Failed => "failed",
        }
    }
}

/// How the program met the faults of a run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClientVerdict {
    /// Failed where a defect was found; else inconclusive where a planned fault was never delivered, unless it is drawn
    /// by chance and another was delivered.
    pub result: Judgement,
    /// The planned faults, in the order of the plan.
    pub faults: Vec<FaultVerdict>,
    /// The agents that met trouble, by name.
    pub agents: Vec<AgentSummary>,
    /// The calls that met trouble, in the order of their first tries.
    pub calls: Vec<CallVerdict>,
}

/// A fault that the plan names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(super) struct PlannedFault {
    /// Its index in the plan, 0-based.
    pub(super) injection: u32,
    /// The fault, by name.
    pub(super) operator: String,
    /// The agents that it aims at, as the plan writes them.
    pub(super) agents: String,
    /// What it does, as the rest of a sentence that starts with "it".
    pub(super) says: String,
    /// Whether a draw decides on it.
    pub(super) by_chance: bool,
}

/// What became of a planned fault.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FaultVerdict {
    #[serde(flatten)]
    fault: PlannedFault,
    /// Tries that it acted on.
    pub delivered: u32,
    /// Inconclusive where that is none.
    pub result: Judgement,
}

impl FaultVerdict {
    /// Its index in the plan, 0-based.
    pub fn injection(&self) -> u32 {
        self.fault.injection
    }

    /// The fault, by name.
    pub fn operator(&self) -> &str {
        &self.fault.operator
    }

    /// The agents that it aims at, as the plan writes them.
    pub fn agents(&self) -> &str {
        &self.fault.agents
    }

    /// Whether it is drawn by chance: that it was not delivered then says nothing.
    pub fn by_chance(&self) -> bool {
        self.fault.by_chance
    }
}

/// How one agent met its trouble.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AgentSummary {
    /// The agent.
    pub agent: AgentName,
    /// Failed where one of its calls did.
    pub result: Judgement,
    /// Its calls that met trouble.
    pub calls: u32,
    /// Their tries.
    pub tries: u32,
    /// How often each rule held.
    pub rules: BTreeMap<&'static str, u32>,
}

/// How one call met its trouble.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CallVerdict {
    /// The agent.
    pub agent: AgentName,
    /// Which of several equal agents, 0-based.
    pub instance: u32,
    /// The step of the first try.
    pub step: StepIndex,
    /// The agent's own number of that step, 0-based.
    pub call: trajectory::Call,
    /// Failed where a defect was found.
    pub result: Judgement,
    /// Whether a planned fault acted on it; else the upstream failed by itself.
    pub planned: bool,
    /// The tries, oldest first.
    pub tries: Vec<TryVerdict>,
    /// What the rules say.
    pub remarks: Vec<Remark>,
}

/// One try.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TryVerdict {
    /// Its step.
    pub step: StepIndex,
    /// Its number within the step, 0 for the first.
    pub attempt: u32,
    /// The planned faults that acted on it, by their index in the plan.
    pub faults: Vec<u32>,
    /// What it met.
    pub met: Met,
    /// How long the client had waited since the try before, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// What a rule says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remark {
    /// The rule's name.
    pub rule: &'static str,
    /// What it says of the client.
    pub weight: Weight,
    /// What was seen, in words.
    pub seen: String,
}

/// Puts the verdict together.
pub(super) fn verdict(faults: Vec<PlannedFault>, calls: &[TroubledCall]) -> ClientVerdict {
    concluded(faults, calls.iter().map(of_call).collect())
}

fn concluded(faults: Vec<PlannedFault>, calls: Vec<CallVerdict>) -> ClientVerdict {
    let of_fault = |fault: PlannedFault| {
        let met_it = |tried: &&TryVerdict| tried.faults.contains(&fault.injection);
        let tries = calls.iter().flat_map(|call| &call.tries).filter(met_it).count();
        let failed = calls.iter().any(|call| call.is_failed() && call.tries.iter().any(|tried| met_it(&tried)));
        let result = match (tries, failed) {
            (0, _) => Judgement::Inconclusive,
            (_, true) => Judgement::Failed,
            (_, false) => Judgement::Passed,
        };
        FaultVerdict { delivered: u32::try_from(tries).unwrap_or(u32::MAX), result, fault }
    };
    let faults: Vec<FaultVerdict> = faults.into_iter().map(of_fault).collect();
    let none = !faults.is_empty() && faults.iter().all(|fault| fault.delivered == 0);
    let missed = faults.iter().any(|fault| fault.delivered == 0 && !fault.by_chance());
    let result = match (calls.iter().any(CallVerdict::is_failed), none || missed) {
        (true, _) => Judgement::Failed,
        (false, true) => Judgement::Inconclusive,
        (false, false) => Judgement::Passed,
    };
    ClientVerdict { result, agents: of_agents(&calls), faults, calls }
}

fn of_call(call: &TroubledCall) -> CallVerdict {
    let remarks: Vec<Remark> = RULES
        .iter()
        .filter_map(|rule| Some(Remark { rule: rule.name, weight: rule.weight, seen: (rule.judge)(call)? }))
        .collect();
    let defect = remarks.iter().any(|remark| remark.weight == Weight::Defect);
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let waits = std::iter::once(None).chain(call.waits().map(|(_, waited)| Some(millis(waited))));
    let tries = call.tries.iter().zip(waits).map(|(tried, waited_ms)| TryVerdict {
        step: tried.step,
        attempt: tried.attempt,
        faults: tried.faults.clone(),
        met: tried.met,
        waited_ms,
        took_ms: millis(tried.ended.saturating_sub(tried.began)),
    });
    CallVerdict {
        agent: call.agent.clone(),
        instance: call.instance,
        step: call.step,
        call: call.call,
        result: if defect { Judgement::Failed } else { Judgement::Passed },
        planned: call.tries.iter().any(|tried| !tried.faults.is_empty()),
        tries: tries.collect(),
        remarks,
    }
}

fn of_agents(calls: &[CallVerdict]) -> Vec<AgentSummary> {
    let mut agents: BTreeMap<&str, AgentSummary> = BTreeMap::new();
    for call in calls {
        let agent = agents.entry(call.agent.as_str()).or_insert_with(|| AgentSummary {
            agent: call.agent.clone(),
            result: Judgement::Passed,
            calls: 0,
            tries: 0,
            rules: BTreeMap::new(),
        });
        agent.result = agent.result.max(call.result);
        agent.calls += 1;
        agent.tries += u32::try_from(call.tries.len()).unwrap_or(u32::MAX);
        for remark in &call.remarks {
            *agent.rules.entry(remark.rule).or_default() += 1;
        }
    }
    agents.into_values().collect()
}

impl CallVerdict {
    /// Whether a defect was found.
    pub fn is_failed(&self) -> bool {
        self.result == Judgement::Failed
    }

    /// The tries in one line, with the waits between them.
    pub fn way(&self) -> String {
        let waited = |tried: &TryVerdict| {
            let waited = std::time::Duration::from_millis(tried.waited_ms?);
            Some(format!(" → {} → ", super::met::seconds(waited)))
        };
        let tries = self.tries.iter().map(|tried| format!("{}{}", waited(tried).unwrap_or_default(), tried.met));
        tries.collect()
    }
}

impl ClientVerdict {
    /// The same where the named rules find no defect: what they see is a trait.
    #[must_use]
    pub fn allowing(mut self, rules: &[String]) -> Self {
        if rules.is_empty() {
            return self;
        }
        for call in &mut self.calls {
            for remark in call.remarks.iter_mut().filter(|remark| rules.iter().any(|rule| rule == remark.rule)) {
                remark.weight = Weight::Trait;
            }
            let is_defect = |remark: &Remark| remark.weight == Weight::Defect;
            call.result = if call.remarks.iter().any(is_defect) { Judgement::Failed } else { Judgement::Passed };
        }
        concluded(self.faults.into_iter().map(|fault| fault.fault).collect(), self.calls)
    }

    /// Whether the run's plan had faults.
    pub fn is_planned(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Whether any of them was delivered.
    pub fn is_delivered(&self) -> bool {
        self.faults.iter().any(|fault| fault.delivered > 0)
    }

    /// The verdict in one line.
    pub fn summary(&self) -> String {
        let missed = self.faults.iter().filter(|fault| fault.delivered == 0).count();
        let failed = self.calls.iter().filter(|call| call.is_failed()).count();
        let mut text = format!("{}: {} met trouble", self.result.name(), counted(self.calls.len(), "call"));
        if failed > 0 {
            text = format!("{text}, {failed} badly");
        }
        let untold = self.calls.iter().filter(|call| call.remarks.iter().any(|remark| remark.rule == "cannot_be_told"));
        match untold.count() {
            0 => {}
            count => text = format!("{text}, of {count} it cannot be told whether they were tried again"),
        }
        if missed > 0 {
            let faults = counted(self.faults.len(), "fault");
            return format!("{text}; {missed} of {faults} never delivered");
        }
        text
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
