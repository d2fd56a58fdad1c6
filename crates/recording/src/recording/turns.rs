//! Which steps are one turn: an agent's calls that go on with its own tool loop are one activation of it.
//!
//! Only what the wire says counts: a request that answers tool calls of the same agent instance's step before. Where
//! no surface reads the bodies, each step is a turn of its own. An agent that waits for others goes on with its turn; one
//! that handed the conversation over begins a new one when it gets it back.

use std::collections::HashMap;

use bytes::Bytes;

use super::threads::each_in_threads;
use crate::{
    identity,
    surface::{self, Message, Role, Surface, ToolCall, door},
    trajectory::{AgentName, Step},
};

/// The turn of an agent instance that its next call may go on with.
#[derive(Debug)]
struct Activation {
    turn: u32,
    /// Tool calls that wait for an answer.
    awaited: Vec<String>,
    /// Whether they all hand the conversation over: who gets it back later begins anew.
    handed_over: bool,
    /// The run's step that this was.
    step: usize,
}

/// Numbers the turns of a run, 0-based, in order of their first steps. `request`: the request of the step at a position.
pub(super) fn number(steps: &mut [Step], request: impl Fn(usize, &Step) -> Bytes) {
    let mut running: HashMap<(AgentName, u32), Activation> = HashMap::new();
    let mut turns = 0;
    // Each reply is read, and none of them needs to know another.
    let calls = each_in_threads(&*steps, |step| surface_of(step).map(|surface| tool_calls(surface, step)));
    for ((at, step), calls) in steps.iter_mut().enumerate().zip(calls) {
        let surface = surface_of(step);
        let key = (step.attribution.agent.clone(), step.attribution.instance);
        let stays = |before: &&Activation| !before.handed_over || before.step + 1 == at;
        let before = running.get(&key).filter(|before| !before.awaited.is_empty()).filter(stays);
        let goes_on = before
            .filter(|before| surface.is_some_and(|surface| answers(surface, &request(at, step), &before.awaited)));
        step.turn = if let Some(before) = goes_on {
            before.turn
        } else {
            turns += 1;
            turns - 1
        };
        let calls = calls.unwrap_or_default();
        let handed_over = !calls.is_empty() && calls.iter().all(|call| identity::hands_over(&call.name));
        let awaited = calls.into_iter().map(|call| call.id).collect();
        running.insert(key, Activation { turn: step.turn, awaited, handed_over, step: at });
    }
}

/// What reads a step's bodies.
fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())
}

/// Whether the request ends with answers to these tool calls.
fn answers(surface: &dyn Surface, request: &[u8], awaited: &[String]) -> bool {
    let Ok(conversation) = door::request(surface, request) else { return false };
    let last_words = conversation.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
    // Some formats answer calls without ids: in order, and by whoever made them.
    let answers = |message: &Message| match &message.answers_call {
        Some(id) if !id.is_empty() => awaited.contains(id),
        _ => message.role == Role::Tool,
    };
    last_words.into_iter().any(answers)
}

/// The tool calls that the agent got.
fn tool_calls(surface: &dyn Surface, step: &Step) -> Vec<ToolCall> {
    let Some(attempt) = step.last_attempt() else { return Vec::new() };
    let body = attempt.delivered();
    let reply = door::reply(surface, body, attempt.streamed);
    let answers = reply.map(|reply| reply.answers).unwrap_or_default();
    answers.into_iter().flat_map(|answer| answer.message.tool_calls).collect()
}
