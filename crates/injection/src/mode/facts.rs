//! What is so at a call: from its request, its reply, what was said before it and who calls after it.

use std::{borrow::Cow, sync::OnceLock};

use super::{
    Precondition, preconditions,
    words::{
        gives_role, gives_verdict, instructs_to_check, instructs_to_rule, is_prose, names_ending, reaches_ending,
        reasons_and_concludes, speaks_of_checking,
    },
};
use crate::{
    surface::{self, Answer, Conversation, Message, Role, Served, door},
    trajectory::{FailureMode, Side, Step, StepIndex},
};

/// The fewest characters of a line by which a quotation is known.
const LINE: usize = 8;

/// A call as it was made, before any edit.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCall<'a> {
    /// The agent that makes it.
    pub agent: &'a str,
    /// What it asks; `None` where no surface reads it.
    pub request: Option<&'a Conversation>,
    /// What the model answers to the request as it was; `None` where that is not known.
    pub answer: Option<&'a Answer>,
    /// What was answered in the run before, oldest first: agent and text.
    pub earlier: &'a [(String, String)],
    /// The agents of the calls that come afterwards; `None` where that is not known yet.
    pub later: Option<&'a [String]>,
}

/// What a failure mode needs on this side and this call is known not to have; `None` where nothing is known to be missing.
pub fn unmet(mode: FailureMode, side: Side, call: &ObservedCall<'_>) -> Option<Precondition> {
    preconditions(mode, side).iter().copied().find(|needed| call.holds(*needed, side) == Some(false))
}

impl ObservedCall<'_> {
    /// Whether something is so at this call; `None` where it cannot be told. On the side of the request a reply tells only whether its
    /// agent reasons: what else it does there is what the request makes it do.
    pub fn holds(&self, precondition: Precondition, side: Side) -> Option<bool> {
        let answer = self.answer.filter(|_| side == Side::Response);
        let (text, request) = (answer.map(|answer| answer.message.text()), self.request);
        let is_unknown = side == Side::Response && answer.is_none();
        // A reply shows it, or is one of an agent that is told to do it; a tool call alone is neither.
        let by_reply = |told: Option<bool>, shows: fn(&str) -> bool| match text.as_deref() {
            Some(text) => Some(shows(text) || (told == Some(true) && is_prose(text))),
            None => told.filter(|_| !is_unknown),
        };
        match precondition {
            Precondition::Prose if side == Side::Request => request.map(has_words),
            Precondition::Prose => text.map(|text| is_prose(&text)),
            Precondition::Role => {
                request.map(|request| !request.prompt().trim().is_empty() || gives_role(&instructions(request)))
            }
            Precondition::History => request.map(|request| self.has_history(request)),
            Precondition::CompletedStep => {
                let own = self.earlier.iter().any(|(agent, _)| agent == self.agent);
                request.map(|request| own || self.has_history(request))
            }
            Precondition::Ending => {
                by_reply(request.map(|request| names_ending(&instruction_text(request))), reaches_ending)
            }
            Precondition::PeerInput => request.map(|request| self.has_peer_input(request)),
            Precondition::LaterPeer => self.later.map(|later| later.iter().any(|agent| agent != self.agent)),
            Precondition::LaterCall => self.later.map(|later| !later.is_empty()),
            Precondition::ReasonedAction => self.answer.map(|answer| {
                let text = answer.message.text();
                if answer.message.tool_calls.is_empty() { reasons_and_concludes(&text) } else { is_prose(&text) }
            }),
            Precondition::Checking => {
                by_reply(request.map(|request| instructs_to_check(&instructions(request))), |text| {
                    speaks_of_checking(text) || gives_verdict(text)
                })
            }
            Precondition::Verdict => {
                by_reply(request.map(|request| instructs_to_rule(&instructions(request))), gives_verdict)
            }
        }
    }

    /// Whether the request holds a turn of the agent's own, or words of another.
    fn has_history(&self, request: &Conversation) -> bool {
        request.goes_on()
            || request.messages.iter().any(|message| message.role == Role::Assistant)
            || self.has_peer_input(request)
    }

    /// Whether the request holds words of another agent: a message that bears another's name, or what another said before.
    fn has_peer_input(&self, request: &Conversation) -> bool {
        let is_named = |message: &Message| {
            let name = message.name.as_deref().filter(|_| matches!(message.role, Role::User | Role::Assistant));
            name.is_some_and(|name| name != self.agent && !is_of_human(name))
        };
        if request.messages.iter().any(is_named) {
            return true;
        }
        let texts: Vec<Cow<'_, str>> = request.messages.iter().map(Message::text_to_read).collect();
        let peers = self.earlier.iter().filter(|(agent, _)| agent != self.agent);
        peers.into_iter().any(|(_, said)| texts.iter().any(|text| quotes(text, said)))
    }
}

/// Whether a name of the wire is what frameworks call the user.
fn is_of_human(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "user" | "human" | "user_proxy" | "userproxy" | "admin")
}

/// Whether a text holds the larger part of what was said, line by line. A short saying must be a line of it, or the end of one.
fn quotes(text: &str, said: &str) -> bool {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| line.chars().count() >= LINE).collect();
    if lines.is_empty() {
        let said = said.trim();
        let ends_with = |line: &str| {
            line.trim().strip_suffix(said).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric()))
        };
        return !said.is_empty() && text.lines().any(ends_with);
    }
    let length = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let quoted: Vec<&str> = lines.iter().copied().filter(|line| text.contains(line)).collect();
    2 * length(&quoted) >= length(&lines)
}

/// What makes the agent what it is: its prompt or, where there is none, the first message of the user.
fn instructions(request: &Conversation) -> String {
    let prompt = request.prompt();
    if prompt.trim().is_empty() { request.first_user().map(Message::text).unwrap_or_default() } else { prompt }
}

/// What the agent is told and asked: all but its own turns and what tools said.
fn instruction_text(request: &Conversation) -> String {
    let spoken = request.messages.iter().filter(|message| !matches!(message.role, Role::Assistant | Role::Tool));
    spoken.map(Message::text).collect::<Vec<_>>().join("\n")
}

fn has_words(request: &Conversation) -> bool {
    is_prose(&instruction_text(request))
}

/// A call of a recorded run, read.
#[derive(Debug)]
struct ReadCall {
    step: StepIndex,
    agent: String,
    request: Option<Conversation>,
    answer: Option<Answer>,
    /// Whether the request was edited, so that the answer is none to what the agent asked.
    is_edited: bool,
    /// What is so at it, by side and precondition, once it has been asked.
    known: [[OnceLock<Option<bool>>; Precondition::ALL.len()]; 2],
}

/// The calls of a recorded run, before any edit, and what was answered before each.
#[derive(Debug)]
pub struct CallFacts {
    calls: Vec<ReadCall>,
    /// What each call's agent got, in order.
    delivered: Vec<(String, String)>,
    /// Agents that would have come after a step, where another run tells.
    reference: Vec<(StepIndex, String)>,
}

/// Reads the calls of a run. `reference`: the steps of the run that begins alike and in which nothing was planted, where there is
/// one: an error that ends the run leaves no calls after it.
pub fn of_run(steps: &[Step], reference: &[Step]) -> CallFacts {
    let mut served = Served::default();
    let mut facts = CallFacts { calls: Vec::new(), delivered: Vec::new(), reference: Vec::new() };
    for step in steps {
        let agent = step.attribution.agent.as_str().to_owned();
        let mut read = ReadCall {
            step: step.step,
            agent: agent.clone(),
            request: None,
            answer: None,
            is_edited: step.request_sent.is_some(),
            known: Default::default(),
        };
        let mut delivered = String::new();
        if let Some(surface) = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default()) {
            read.request = door::request(surface, &step.request).ok();
            if let Some(request) = &mut read.request {
                served.name_results(request);
            }
            if let Some(last) = step.last_attempt() {
                read.answer = door::reply(surface, &last.reply, last.streamed)
                    .ok()
                    .and_then(|reply| reply.answers.into_iter().next());
                if let Ok(reply) = door::reply(surface, last.delivered(), last.streamed) {
                    served.learn(&reply);
                    delivered = reply.answers.first().map(|answer| answer.message.text()).unwrap_or_default();
                }
            }
        }
        facts.calls.push(read);
        facts.delivered.push((agent, delivered));
    }
    facts.reference = reference.iter().map(|step| (step.step, step.attribution.agent.as_str().to_owned())).collect();
    facts
}

impl CallFacts {
    /// What a mode needs on this side of a step and the step is known not to have. A step that the run does not have lacks nothing.
    pub fn unmet(&self, step: StepIndex, mode: FailureMode, side: Side) -> Option<Precondition> {
        let place = self.calls.iter().position(|call| call.step == step)?;
        let lacks = |needed: &Precondition| self.holds(place, *needed, side) == Some(false);
        preconditions(mode, side).iter().copied().find(lacks)
    }

    /// Whether something is so at a call; `None` where it cannot be told.
    fn holds(&self, place: usize, precondition: Precondition, side: Side) -> Option<bool> {
        let call = self.calls.get(place)?;
        let known = call.known.get(usize::from(side == Side::Response))?.get(precondition as usize)?;
        *known.get_or_init(|| {
            let own = self.calls.iter().filter(|other| other.step > call.step).map(|other| &other.agent);
            let others = self.reference.iter().filter(|(other, _)| *other > call.step).map(|(_, agent)| agent);
            let later: Vec<String> = own.chain(others).cloned().collect();
            let observed = ObservedCall {
                agent: &call.agent,
                request: call.request.as_ref(),
                answer: call.answer.as_ref().filter(|_| side == Side::Response || !call.is_edited),
                earlier: self.delivered.get(..place).unwrap_or_default(),
                later: Some(&later),
            };
            observed.holds(precondition, side)
        })
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
