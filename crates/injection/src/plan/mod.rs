//! Injection plans: TOML in, decisions out. Same plan and same facts, same decision, whatever arrives when.
//!
//! A plan is read once ([`parse`], every error of the file with its place), never changes during a run, and is asked
//! for each step by [`decide`]. It holds no code and no expressions: literals and patterns of the `regex` crate.
//! Nothing here does IO; the exchange and `aegis plan` call it.

mod against;
mod agents;
mod catalogue;
mod check;
mod decide;
mod dialogue;
mod dry_edit;
mod error;
mod explain;
mod file;
mod neutral;
mod note;
mod page;
mod read;
mod resolve;
mod shipped;
mod validate;
mod when;

use std::ops::Range;
use std::sync::Arc;

pub use against::{ImpossibleStep, Matched, against};
pub use agents::{AgentPattern, Agents};
pub use catalogue::{CatalogueEntry, Operation, Parameter, catalogue, schema};
pub use check::{CheckReport, Expect, PlanCheck};
pub use decide::{Decision, Facts, Hit, MissedCondition, decide};
pub use dry_edit::DryRun;
pub use error::{PlanError, Problem};
pub use explain::explain;
pub use file::OneOrMany;
pub use note::{NoNotePlace, note};
pub use page::page;
pub use read::{Read, read_entry, syntax_problem, take_entries};
pub use resolve::{RecordedCall, Unresolvable, resolve};
pub use shipped::{ShippedPlan, nearest_shipped, shipped, shipped_as};
pub use when::{Target, When};

use crate::fault::Fault;
use crate::manipulator::{self, Adaptive, Context, Manipulator, ManipulatorError};
use crate::surface::{Conversation, Reply};
use crate::trajectory::{AgentName, Call, FailureMode, Side};

/// The newest plan format that this build reads, and the oldest.
pub const FORMATS: std::ops::RangeInclusive<i64> = 1..=1;
/// Longest plan, in bytes: a thousand injections with room for texts.
pub const SIZE_LIMIT: usize = 1 << 20;
/// Most injections of a plan. Each is matched against every step.
pub const INJECTION_LIMIT: usize = 1000;

/// What is to be planted in a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What every draw depends on.
    pub seed: u64,
    /// The run whose draws are to be repeated, if it is not the one that the plan is applied to.
    pub draws_of: Option<String>,
    /// A call whose edits were made once and are given again as they were, not made anew.
    pub settled: Option<Settled>,
    /// What is left out of the plan, to see whether a failure needs it.
    pub left_out: Option<Planted>,
    /// Whether its faults are left out, as in the arms of a proof: a fault is no error of an agent.
    pub without_faults: bool,
    /// The injections in the order in which they apply.
    pub injections: Vec<Injection>,
    /// The plan's own tests.
    pub checks: Vec<PlanCheck>,
    /// The text that it was read from; empty for one made by hand.
    pub text: String,
    /// blake3 of the text, in hex.
    pub digest: String,
}

/// All that an injection does to one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planted {
    /// The injection, by index.
    pub injection: u32,
    /// The agent.
    pub agent: AgentName,
    /// Its instance, 0-based.
    pub instance: u32,
}

/// A call of an earlier run whose edits are given again as bytes: a repeat neither draws nor asks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The agent.
    pub agent: String,
    /// Its instance, 0-based.
    pub instance: u32,
    /// Its own call, 0-based.
    pub call: Call,
    /// The injections whose edits are in the bytes, by index.
    pub injections: Vec<u32>,
}

/// Who is hit, when, and by what.
#[derive(Debug, Clone)]
pub struct Injection {
    /// The agents that it aims at.
    pub agents: Agents,
    /// Which of several equal agents, 0-based; `None` for each.
    pub instance: Option<u32>,
    /// What the error is; `None` for faults and for what is planted in tools.
    pub failure_mode: Option<FailureMode>,
    /// Which of the agent's calls.
    pub when: When,
    /// Which alternative answer is edited, 0-based; `None` for each.
    pub choice: Option<u32>,
    /// Whether a later request that goes on from the reply, which the upstream keeps unedited, says it as edited.
    pub retell: bool,
    /// The operator's name, as plans write it.
    pub name: String,
    /// What it does.
    pub operator: Operator,
    /// Where its `when` stands in the plan's text, in bytes; `0..0` for one made by hand.
    pub place: Range<usize>,
}

/// What an injection does.
#[derive(Debug, Clone)]
pub enum Operator {
    /// Edits content.
    Manipulator {
        /// The side that it edits.
        side: Side,
        /// The edit. Plans name those of the list; a library user may bring any other.
        manipulator: Arc<dyn Manipulator>,
    },
    /// Disturbs the transport or the protocol.
    Fault(Arc<dyn Fault>),
}

impl Injection {
    /// Whether it plants nothing and means nothing, whomever it meets.
    pub fn is_neutral(&self) -> bool {
        matches!(&self.operator, Operator::Manipulator { manipulator, .. } if manipulator.is_neutral())
    }

    /// Whether its edit follows words of the plan's author.
    pub fn is_instructed(&self) -> bool {
        matches!(&self.operator, Operator::Manipulator { manipulator, .. } if manipulator.is_instructed())
    }

    /// Whether it aims at this agent, and this one of several equal ones.
    pub fn aims_at(&self, agent: &str, instance: u32) -> bool {
        self.agents.matches(agent) && self.instance.is_none_or(|wanted| wanted == instance)
    }

    /// Whether it edits replies.
    pub fn edits_reply(&self) -> bool {
        matches!(self.operator, Operator::Manipulator { side: Side::Response, .. })
    }

    /// The edited request; the request side only.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited: the step then passes untouched.
    pub fn edit_request(
        &self,
        request: &Conversation,
        context: &Context<'_>,
    ) -> Result<Conversation, ManipulatorError> {
        match &self.operator {
            Operator::Manipulator { side: Side::Request, manipulator } if !self.agents.are_agents() => {
                manipulator::edited_message(manipulator.as_ref(), request, &self.seen_in(context))
            }
            Operator::Manipulator { side: Side::Request, manipulator } => {
                manipulator::edited_request(manipulator.as_ref(), request, &self.seen_in(context))
            }
            _ => Err(ManipulatorError::WrongSide),
        }
    }

    /// The edited reply; the response side only.
    ///
    /// # Errors
    /// [`ManipulatorError`] when nothing could be edited: the step then passes untouched.
    pub fn edit_reply(&self, reply: &Reply, context: &Context<'_>) -> Result<Reply, ManipulatorError> {
        match &self.operator {
            Operator::Manipulator { side: Side::Response, manipulator } => {
                let edited =
                    manipulator::edited_reply(manipulator.as_ref(), reply, self.choice, &self.seen_in(context))?;
                Ok(if self.agents.are_agents() { edited } else { ended_as(edited, reply) })
            }
            _ => Err(ManipulatorError::WrongSide),
        }
    }

    /// Whether its edit may need a model's answer.
    pub fn asks_model(&self) -> bool {
        self.questions() > 0
    }

    /// How often an edit of one text may ask a model; 0 if it needs none.
    pub fn questions(&self) -> u32 {
        match &self.operator {
            Operator::Manipulator { manipulator, .. } => manipulator.questions(),
            Operator::Fault(..) => 0,
        }
    }

    /// The context, with what this injection plants.
    fn seen_in<'a>(&self, context: &Context<'a>) -> Context<'a> {
        let adaptive = Adaptive { failure_mode: self.failure_mode, ..context.adaptive };
        Context { adaptive, ..*context }
    }
}

/// The edited reply of a tool or a peer: no model stopped there, so nothing says why it did.
fn ended_as(mut edited: Reply, before: &Reply) -> Reply {
    for (answer, before) in edited.answers.iter_mut().zip(&before.answers) {
        answer.finish_reason.clone_from(&before.finish_reason);
    }
    edited
}

impl Plan {
    /// Whether replies that the upstream keeps are told again as they were edited.
    pub fn retells(&self) -> bool {
        self.injections.iter().any(|injection| injection.retell)
    }

    /// Whether an edit of it may need a model's answer.
    pub fn asks_model(&self) -> bool {
        self.injections.iter().any(Injection::asks_model)
    }

    /// Whether live requests get neutral changes.
    pub fn has_neutral_changes(&self) -> bool {
        self.injections.iter().any(Injection::is_neutral)
    }

    /// What a run under it says of itself where it repeats another: the bytes that were altered there are given again, so
    /// that nothing in its record is marked as altered. Begins with [`REPEATS`].
    pub fn repeats(&self) -> Option<String> {
        let (settled, of) = (self.settled.as_ref()?, self.draws_of.as_ref()?);
        let Settled { agent, instance, call, injections } = settled;
        let who = if *instance == 0 { agent.clone() } else { format!("{agent}#{instance}") };
        let altered = !injections.is_empty();
        altered
            .then(|| format!("{REPEATS}{of}: {who} call {call} got the altered bytes that it got there, given again"))
    }
}

/// How the note of a run begins that repeats another, before that run's name.
pub const REPEATS: &str = "repeats ";

/// Reads a plan. `file` is only named in errors.
///
/// # Errors
/// [`PlanError`] with every problem of the file; a syntax error or an unknown format hides the others.
pub fn parse(text: &str, file: &str) -> Result<Plan, PlanError> {
    read::read(text).and_then(validate::validate).map_err(|problems| PlanError::new(file, text, problems))
}

/// What must be known before a run and is not: injections by `step` or `last_n` that [`resolve`] has not seen.
/// `file` is only named in errors; `lends` is how this verb can be given a recorded run, if it can.
///
/// # Errors
/// [`PlanError`] that names each.
pub fn require_resolved(plan: &Plan, file: &str, lends: Option<&str>) -> Result<(), PlanError> {
    let waiting = plan.injections.iter().filter(|injection| injection.when.is_unresolved());
    let problems: Vec<Problem> = waiting
        .map(|injection| Problem {
            span: injection.place.clone(),
            message: format!("`{}` needs a recorded run to count in", injection.when.counted_by()),
            hint: Some(match lends {
                Some(option) => format!("give one with `{option}`, or aim by `call`, the agent's own count"),
                None => "aim by `call`, the agent's own count; `aegis plan check FILE --against RUN_DIR` counts in a \
                         recorded run, and `aegis fork RUN_DIR --plan FILE` executes it again with the plan"
                    .to_owned(),
            }),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(PlanError::new(file, &plan.text, problems)) }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod shipped_tests;
