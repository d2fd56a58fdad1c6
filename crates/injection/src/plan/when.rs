//! When an injection fires. Every condition that is given must hold.

use std::{collections::HashSet, sync::Arc};

use crate::surface::{Conversation, Message, Role};
use crate::trajectory::Pattern;
use crate::trajectory::{Call, StepIndex};

/// The conditions of an injection; without any it fires on every call of its agents.
#[derive(Debug, Clone, Default)]
pub struct When {
    /// The agent's own call is one of these, 0-based.
    pub call: Option<Vec<Call>>,
    /// The run's step is one of these, 0-based, counted in a recorded run. Needs [`super::resolve`].
    pub step: Option<Vec<StepIndex>>,
    /// The agent's own call is a multiple of this; never 0.
    pub every: Option<u32>,
    /// The agent's own call is one of the first so many.
    pub first: Option<u32>,
    /// The agent's own call is one of the last so many, counted in a recorded run. Needs [`super::resolve`].
    pub last_n: Option<u32>,
    /// The text of a message of the request matches.
    pub contains: Option<Pattern>,
    /// The request brings a result of this tool that the agent has not yet seen.
    pub tool: Option<String>,
    /// A draw says so; from 0 to 1.
    pub probability: Option<f64>,
    /// It was delivered fewer times than this to the agent instance.
    pub max_times: Option<u32>,
    /// What `step` and `last_n` came to in the recorded run.
    pub targets: Option<Vec<Target>>,
    /// Calls that it does not meet, for a record answers them.
    pub recorded: Option<Arc<HashSet<Target>>>,
}

/// A call of an agent instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The agent.
    pub agent: String,
    /// Its instance, 0-based.
    pub instance: u32,
    /// Its own call, 0-based.
    pub call: Call,
}

impl When {
    /// Whether it counts in a recorded run and none was given yet.
    pub fn is_unresolved(&self) -> bool {
        (self.step.is_some() || self.last_n.is_some()) && self.targets.is_none()
    }

    /// Whether it aims at calls by their numbers, or counts how many it has met.
    pub(super) fn counts_calls(&self) -> bool {
        self.call.is_some()
            || self.every.is_some()
            || self.first.is_some()
            || self.max_times.is_some()
            || self.targets.is_some()
    }

    /// The name of the condition that counts in a recorded run.
    pub(super) fn counted_by(&self) -> &'static str {
        if self.step.is_some() { "step" } else { "last_n" }
    }

    /// Whether the conditions on the agent's own call hold.
    pub(super) fn allows_call(&self, call: Call) -> bool {
        self.call.as_ref().is_none_or(|calls| calls.contains(&call))
            && self.every.is_none_or(|every| every != 0 && call.is_multiple_of(every))
            && self.first.is_none_or(|first| call < first)
    }
}

/// Whether a message of the request has a text like this.
pub(super) fn contains(conversation: &Conversation, pattern: &Pattern) -> bool {
    conversation.messages.iter().any(|message| pattern.regex().is_match(&message.text()))
}

/// Whether the request carries a result of this tool after the last message that the model said.
pub(super) fn brings_result(conversation: &Conversation, tool: &str) -> bool {
    let messages = &conversation.messages;
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let ids: Vec<&str> = calls.filter(|call| call.name == tool).map(|call| call.id.as_str()).collect();
    let is_result = |message: &Message| {
        let answers = message.answers_call.as_deref();
        let unknown_call = message.name.as_deref() == Some(tool);
        message.role == Role::Tool && (answers.is_some_and(|id| ids.contains(&id)) || unknown_call)
    };
    messages.iter().rev().take_while(|message| message.role != Role::Assistant).any(is_result)
}
