//! Rows of a reply that holds the words of several agents, which the upstream names: one for each of their utterances.

use std::collections::{BTreeMap, BTreeSet};

use super::{SampleMessage, SampleStep, step_surface::surface_of};
use crate::{
    surface::{self, AgentUtterance, Part, Reply},
    trajectory::{AgentName, Call, InjectedError, Step, StepIndex},
};

/// By the agent that asks, and the agent that the upstream names: the steps in whose replies it speaks.
#[derive(Debug, Default)]
pub(super) struct SpokenRows(BTreeMap<(AgentName, u32, AgentName), BTreeSet<StepIndex>>);

impl SpokenRows {
    /// The rows of a step: the one that it is, or, where the reply that its agent got is a team's, one for each utterance. What
    /// the agent asked stands in the first row of the root, which answers it.
    pub(super) fn rows(&mut self, step: &Step, row: SampleStep) -> Vec<SampleStep> {
        let Some(reply) = reply_of(step, false) else { return vec![row] };
        for name in reply.named_agents().into_iter().filter_map(|name| AgentName::parse(name).ok()) {
            let key = (step.attribution.agent.clone(), step.attribution.instance, name);
            self.0.entry(key).or_default().insert(step.step);
        }
        let uttered = utterances(&reply);
        if reply.team().is_none() || uttered.is_empty() {
            return vec![row];
        }
        let asks =
            uttered.iter().position(|uttered| uttered.agent.as_deref().is_some_and(surface::is_root)).unwrap_or(0);
        let last = uttered.len() - 1;
        let rows = (0..).zip(uttered).enumerate().map(|(at, (number, uttered))| {
            let (agent, call) = self.speaker(step, uttered);
            let is_asker = agent == row.agent;
            SampleStep {
                step: row.step + number,
                call,
                agent,
                source: row.source.filter(|_| is_asker),
                input: row.input.clone().filter(|_| at == asks),
                tools: if at == asks { row.tools.clone() } else { Vec::new() },
                output: Some(utterance_message(uttered)),
                finish_reason: row.finish_reason.clone().filter(|_| at == last),
                doubt: None,
                ..row.clone()
            }
        });
        rows.collect()
    }

    fn speaker(&self, step: &Step, uttered: &AgentUtterance) -> (AgentName, Call) {
        let asker = &step.attribution;
        let name = uttered.agent.as_deref().and_then(|name| AgentName::parse(name).ok());
        let Some(name) = name.filter(|name| !speaks_for_asker(step, name)) else {
            return (asker.agent.clone(), step.call);
        };
        let steps = self.0.get(&(asker.agent.clone(), asker.instance, name.clone()));
        let earlier = steps.map_or(0, |steps| steps.range(..step.step).count());
        (name, Call::try_from(earlier).unwrap_or(Call::MAX))
    }
}

/// Whether what an agent says that the upstream names is what the agent says that asks: the root's is, where the asking agent has
/// a name of its own.
fn speaks_for_asker(step: &Step, name: &AgentName) -> bool {
    surface::is_root(name.as_str()) && step.attribution.is_certain()
}

/// The agent of an error, and its call, as the rows of its step have them.
pub(super) fn principal(step: &Step, error: &InjectedError) -> (AgentName, Call) {
    if error.speaker.as_ref().is_some_and(|name| speaks_for_asker(step, name)) {
        return (step.attribution.agent.clone(), step.call);
    }
    (error.agent.clone(), error.call)
}

/// Which of the rows of its step an error is in, 0-based: the first of its agent that the edit changed.
pub(super) fn row_of(step: &Step, error: &InjectedError) -> StepIndex {
    let at = edited(step, error).map_or(0, |(at, _)| at);
    StepIndex::try_from(at).unwrap_or_default()
}

/// What the agent of an error said in that row, and what the agent that asks got; `None` where its step has one row.
pub(super) fn changed(step: &Step, error: &InjectedError) -> Option<[SampleMessage; 2]> {
    edited(step, error).map(|(_, said)| said)
}

fn edited(step: &Step, error: &InjectedError) -> Option<(usize, [SampleMessage; 2])> {
    let name = error.speaker.as_ref()?;
    let [before, after] = [reply_of(step, true)?, reply_of(step, false)?];
    after.team()?;
    let got = utterances(&after);
    let of_agent = |uttered: &AgentUtterance| uttered.agent.as_deref() == Some(name.as_str());
    // An edit may end in an utterance more than there was.
    let was = utterances(&before);
    let said = |at: usize| was.get(at).map(|uttered| utterance_message(uttered)).unwrap_or_default();
    let mut own = got.iter().enumerate().filter(|(_, uttered)| of_agent(uttered)).peekable();
    let first = own.peek().map(|(at, uttered)| (*at, **uttered));
    let changed = own.find(|(at, uttered)| was.get(*at).is_none_or(|was| was != *uttered));
    let (at, now) = changed.map(|(at, uttered)| (at, *uttered)).or(first)?;
    Some((at, [said(at), self::utterance_message(now)]))
}

/// The reply of a step as the upstream sent it, or as its agent got it, where the upstream names agents in it.
fn reply_of(step: &Step, as_sent: bool) -> Option<Reply> {
    let attempt = step.last_attempt().filter(|attempt| attempt.status.is_none_or(|status| status < 400))?;
    let body = if as_sent { &attempt.reply } else { attempt.delivered() };
    surface::team_reply(surface_of(step)?, body, attempt.streamed)
}

/// The utterances that say something: reasoning alone does not.
fn utterances(reply: &Reply) -> Vec<&AgentUtterance> {
    let says = |uttered: &&AgentUtterance| {
        let opaque = |part: &Part| matches!(part, Part::Opaque(kind) if kind == "reasoning");
        !uttered.message.tool_calls.is_empty() || !uttered.message.parts.iter().all(opaque)
    };
    reply.utterances.iter().filter(says).collect()
}

/// An utterance as a message. What agents do with each other is told in words.
fn utterance_message(uttered: &AgentUtterance) -> SampleMessage {
    let mut said = SampleMessage::from(&uttered.message);
    if said.text.is_empty() {
        let done = uttered.message.parts.iter().filter_map(|part| match part {
            Part::Opaque(what) if what.starts_with("multi_agent_call") => Some(what.as_str()),
            _ => None,
        });
        said.text = done.collect::<Vec<_>>().join("\n");
    }
    said
}
