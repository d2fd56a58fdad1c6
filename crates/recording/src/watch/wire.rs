//! A step as rules see it, from what passed on the wire.

use std::collections::HashMap;

use super::{
    past::Past,
    text::{folded_words, hash},
    watched_step::{WatchedCall, WatchedResult, WatchedStep},
};
use crate::{
    surface::{LazyMessage, Outline, Reply, Role, Surface, door},
    trajectory::StepIndex,
};

/// Longest refusal that is looked at, in bytes.
const REFUSAL_MAX: usize = 4096;

/// An exchange as it passed.
#[derive(Debug, Clone, Copy)]
pub struct WireExchange<'a> {
    /// Its step.
    pub step: StepIndex,
    /// The agent.
    pub agent: &'a str,
    /// Its instance, 0-based.
    pub instance: u32,
    /// How its bodies are read.
    pub surface: &'static dyn Surface,
    /// The request, as the upstream got it.
    pub request: &'a [u8],
    /// What came of it.
    pub answered: WireAnswer<'a>,
}

/// What the upstream made of a request.
#[derive(Debug, Clone, Copy)]
pub enum WireAnswer<'a> {
    /// A reply, as the client got it.
    Reply(&'a Reply),
    /// A refusal of what was asked, and its body.
    Refused(&'a [u8]),
}

/// The step of an exchange; `None` where its request cannot be read, or asks for no words.
pub(super) fn step(past: &Past, exchange: &WireExchange<'_>) -> Option<WatchedStep> {
    let outline = door::outline(exchange.surface, exchange.request).ok().filter(|outline| !outline.vectors)?;
    let named = WatchedStep {
        step: exchange.step,
        agent: exchange.agent.to_owned(),
        instance: exchange.instance,
        ..WatchedStep::default()
    };
    match exchange.answered {
        WireAnswer::Refused(body) => {
            let body = body.get(..REFUSAL_MAX).unwrap_or(body);
            Some(WatchedStep { refused: Some(String::from_utf8_lossy(body).into_owned()), ..named })
        }
        WireAnswer::Reply(reply) => {
            let step = replied(with_request(named, past, &outline), reply);
            // Schemas are read only where something may break them.
            if step.calls.is_empty() && outline.format.is_empty() {
                return Some(step);
            }
            let whole = door::request(exchange.surface, exchange.request).unwrap_or_default();
            Some(WatchedStep { tools: Some(whole.tools), format: whole.format, ..step })
        }
    }
}

/// What the request says, as far as it is new.
fn with_request(step: WatchedStep, past: &Past, outline: &Outline<'_>) -> WatchedStep {
    let known: Option<&HashMap<u64, u64>> =
        past.agent_named(&step.agent, step.instance).map(|own| &own.request_messages);
    let (mut given, mut results) = (String::new(), Vec::new());
    let (mut heard, mut history) = (Vec::with_capacity(outline.messages.len()), Vec::new());
    for (at, message) in outline.messages.iter().enumerate() {
        let mark = message.mark();
        let words = known.and_then(|known| known.get(&mark)).copied();
        let words = words.unwrap_or_else(|| {
            let text = message.text();
            if !given.is_empty() {
                given.push('\n');
            }
            given.push_str(&text);
            if message.role == Role::Tool {
                results.push(result(outline, at, message, &text));
            }
            hash(&folded_words(&text))
        });
        heard.push((mark, words));
        let is_talk = !matches!(message.role, Role::System | Role::Developer | Role::Tool) && !message.has_calls();
        if is_talk && message.size() > 0 {
            history.push(words);
        }
    }
    // What the upstream keeps does not stand in the request.
    let is_whole = outline.continues.is_none() && outline.thread.is_none();
    WatchedStep { given, results, request_messages: Some(heard), history: is_whole.then_some(history), ..step }
}

/// A tool's result with the call that it answers, where that stands before it.
fn result(outline: &Outline<'_>, at: usize, message: &LazyMessage<'_>, text: &str) -> WatchedResult {
    let id = message.answers_call.as_deref().unwrap_or_default();
    let before = outline.messages.get(..at).unwrap_or_default().iter().rev().filter(|earlier| earlier.has_calls());
    let call = before
        .take(64)
        .find_map(|earlier| earlier.calls().iter().find(|call| call.id == id && !id.is_empty()).map(WatchedCall::from));
    WatchedResult { id: id.to_owned(), call, text: text.to_owned() }
}

/// What the reply says.
fn replied(step: WatchedStep, reply: &Reply) -> WatchedStep {
    let answer = reply.answers.first();
    let message = answer.map(|answer| &answer.message);
    WatchedStep {
        reply: message.map(crate::surface::Message::text).unwrap_or_default(),
        calls: message.map(|message| message.tool_calls.iter().map(WatchedCall::from).collect()).unwrap_or_default(),
        says_more: message.is_some_and(|message| message.parts.iter().any(|part| part.as_text().is_none())),
        finish: answer.and_then(|answer| answer.finish_reason.clone()),
        input_tokens: reply.usage.map(|usage| usage.input),
        ..step
    }
}
