//! Which injections a step meets. Pure and stateless: a keyed hash of who calls takes the place of a random stream,
//! so that the order in which agents arrive decides nothing.

use crate::surface::Conversation;
use crate::trajectory::{Call, Side, StepIndex};

use super::when::{brings_result, contains};
use super::{Injection, Operator, Plan, Planted, Settled, Target};

/// What is known of a step when it is decided on.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The run's name, or that of its cell: what a draw depends on.
    pub run: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// Its instance, 0-based.
    pub instance: u32,
    /// Its own call, 0-based.
    pub call: Call,
    /// The run's step, 0-based. Decisions never depend on it; it is for reports.
    pub step: StepIndex,
    /// The request; `None` where it could not be read: conditions on its content then do not hold.
    pub conversation: Option<&'a Conversation>,
    /// How often an injection, by index, was delivered to this agent instance.
    pub delivered: &'a dyn Fn(u32) -> u32,
    /// Whether the wire cannot tell whose call it is, or whether it is one of its own.
    pub ambiguous: bool,
}

impl Facts<'_> {
    /// The call.
    fn as_target(&self) -> Target {
        Target { agent: self.agent.to_owned(), instance: self.instance, call: self.call }
    }
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, agent, instance, call, step, .. } = self;
        write!(formatter, "step {step} of {run}: call {call} of {agent} ({instance})")
    }
}

/// What a step meets, each list in plan order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Edits of the request.
    pub request: Vec<Hit>,
    /// Edits of the reply.
    pub response: Vec<Hit>,
    /// Faults.
    pub faults: Vec<Hit>,
}

/// An injection that a step meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Its index in the plan, 0-based.
    pub injection: u32,
    /// The operator's draw.
    pub draw: u64,
}

/// The condition that kept an injection from a step. Later ones are nearer to a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissedCondition {
    /// Another agent calls.
    Agent,
    /// Another one of several equal agents calls.
    Instance,
    /// It counts in a recorded run, and none was given.
    Unresolved,
    /// It counts calls, and whether this is a call of its own cannot be told.
    Undecided,
    /// `call`, `every` or `first` name other calls.
    Call,
    /// `step` or `last_n` came to other calls.
    Target,
    /// The request could not be read.
    Unreadable,
    /// The request brings no result of the tool.
    Tool,
    /// No message matches.
    Content,
    /// It was delivered often enough.
    Spent,
    /// The draw says no.
    Chance,
}

impl MissedCondition {
    /// Whether the program has nothing that the injection is for, as against a plan that names what is not there.
    pub fn is_of_the_program(self) -> bool {
        matches!(self, Self::Call | Self::Tool | Self::Content | Self::Spent)
    }
}

impl Decision {
    /// Whether the step passes untouched.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty() && self.faults.is_empty()
    }
}

/// Which injections this step meets.
pub fn decide(plan: &Plan, facts: &Facts<'_>) -> Decision {
    let drawing = Facts { run: plan.draws_of.as_deref().unwrap_or(facts.run), ..*facts };
    let mut decision = Decision::default();
    for (index, injection) in (0..).zip(&plan.injections) {
        if plan.left_out.as_ref().is_some_and(|planted| planted.is_on(index, facts)) {
            continue;
        }
        if plan.without_faults && matches!(injection.operator, Operator::Fault(_)) {
            continue;
        }
        let settled = plan.settled.as_ref().filter(|settled| settled.injections.contains(&index));
        if settled.is_some_and(|settled| settled.is_call_of(facts)) {
            continue;
        }
        // What is given again counts as delivered from its call on.
        let before = settled.map_or(0, |settled| u32::from(settled.is_before(facts)));
        let delivered = |injection: u32| (facts.delivered)(injection) + before;
        if meets(injection, index, &Facts { delivered: &delivered, ..*facts }).is_err() {
            continue;
        }
        let (chance, draw) = draws(plan.seed, &drawing, index);
        if injection.when.probability.is_some_and(|probability| chance >= probability) {
            continue;
        }
        let list = match injection.operator {
            Operator::Manipulator { side: Side::Request, .. } => &mut decision.request,
            Operator::Manipulator { side: Side::Response, .. } => &mut decision.response,
            Operator::Fault(_) => &mut decision.faults,
        };
        list.push(Hit { injection: index, draw });
    }
    decision
}

impl Planted {
    fn is_on(&self, injection: u32, facts: &Facts<'_>) -> bool {
        self.injection == injection && self.agent.as_str() == facts.agent && self.instance == facts.instance
    }
}

impl Settled {
    fn is_call_of(&self, facts: &Facts<'_>) -> bool {
        self.is_of(facts) && self.call == facts.call
    }

    fn is_before(&self, facts: &Facts<'_>) -> bool {
        self.is_of(facts) && self.call < facts.call
    }

    fn is_of(&self, facts: &Facts<'_>) -> bool {
        self.agent == facts.agent && self.instance == facts.instance
    }
}

/// Whether every condition but `probability` holds, or which is the first that does not.
pub(super) fn meets(injection: &Injection, index: u32, facts: &Facts<'_>) -> Result<(), MissedCondition> {
    let when = &injection.when;
    let holds = |condition: bool, miss: MissedCondition| if condition { Ok(()) } else { Err(miss) };
    if injection.is_neutral() {
        let is_recorded = when.recorded.as_ref().is_some_and(|recorded| recorded.contains(&facts.as_target()));
        return holds(!is_recorded, MissedCondition::Target);
    }
    holds(injection.agents.matches(facts.agent), MissedCondition::Agent)?;
    holds(injection.aims_at(facts.agent, facts.instance), MissedCondition::Instance)?;
    holds(!when.is_unresolved(), MissedCondition::Unresolved)?;
    holds(!(facts.ambiguous && when.counts_calls()), MissedCondition::Undecided)?;
    holds(when.allows_call(facts.call), MissedCondition::Call)?;
    let is_target = |targets: &Vec<super::Target>| {
        targets
            .iter()
            .any(|target| target.agent == facts.agent && target.instance == facts.instance && target.call == facts.call)
    };
    holds(when.targets.as_ref().is_none_or(is_target), MissedCondition::Target)?;
    if when.tool.is_some() || when.contains.is_some() {
        let conversation = facts.conversation.ok_or(MissedCondition::Unreadable)?;
        holds(when.tool.as_ref().is_none_or(|tool| brings_result(conversation, tool)), MissedCondition::Tool)?;
        holds(when.contains.as_ref().is_none_or(|pattern| contains(conversation, pattern)), MissedCondition::Content)?;
    }
    holds(when.max_times.is_none_or(|times| (facts.delivered)(index) < times), MissedCondition::Spent)
}

/// Two independent draws of an injection for a step: one from 0 to less than 1, and one of 64 bits.
fn draws(seed: u64, facts: &Facts<'_>, injection: u32) -> (f64, u64) {
    let key = blake3::derive_key("aegis plan draw 1", &seed.to_le_bytes());
    let mut hasher = blake3::Hasher::new_keyed(&key);
    for text in [facts.run, facts.agent] {
        // Lengths keep `ab` + `c` apart from `a` + `bc`.
        hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    for number in [facts.instance, facts.call, injection] {
        hasher.update(&number.to_le_bytes());
    }
    let mut bytes = [[0; 8]; 2];
    hasher.finalize_xof().fill(bytes.as_flattened_mut());
    let [chance, draw] = bytes.map(u64::from_le_bytes);
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds exactly")]
    let chance = (chance >> 11) as f64 / (1_u64 << 53) as f64;
    (chance, draw)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
