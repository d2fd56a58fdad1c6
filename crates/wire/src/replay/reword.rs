//! A recorded reply with other words: what a step is corrected with.

use bytes::Bytes;

use super::reading::{reply_of, surface_of};
use crate::{
    surface::{self, Answer, Message, Reply, Role, Surface, door},
    trajectory::{Step, StepIndex},
};

/// The step has no reply that other words could be put into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step} has no reply that can be replaced: {why}")]
pub struct NoReply {
    /// The step.
    pub step: StepIndex,
    /// Why.
    pub why: String,
}

/// The reply of a step with this text in place of its own; tool calls of the old reply are gone, its shape, ids and
/// framing stay. A text that is a whole reply of the step's API (JSON) is taken as it is.
///
/// # Errors
/// [`NoReply`] when the step was not answered, or no surface reads the answer.
pub fn reworded(step: &Step, text: &str) -> Result<Bytes, NoReply> {
    let (surface, before) = readable(step)?;
    if let Ok(reply) = surface.read_reply(text.as_bytes())
        && !reply.answers.is_empty()
    {
        let body = if is_streamed(step) { composed(surface, step, &reply) } else { Bytes::from(text.to_owned()) };
        return Ok(body);
    }
    let mut after = before.clone();
    for answer in &mut after.answers {
        answer.message.set_text(text);
    }
    written(surface, step, &before, &after)
}

/// The reply of a step with nothing in it.
///
/// # Errors
/// [`NoReply`] when the step was not answered, or no surface reads the answer.
pub fn emptied(step: &Step) -> Result<Bytes, NoReply> {
    let (surface, before) = readable(step)?;
    let mut after = before.clone();
    for answer in &mut after.answers {
        answer.message.set_text("");
    }
    written(surface, step, &before, &after)
}

/// The reply of one step as another recorded it: a twin's, in this step's framing.
///
/// # Errors
/// [`NoReply`] when one of the two was not answered readably.
pub fn as_answered_by(step: &Step, twin: &Step) -> Result<Bytes, NoReply> {
    let (surface, _) = readable(step)?;
    let (_, theirs) = readable(twin)?;
    let same_framing = is_streamed(step) == is_streamed(twin) && step.surface == twin.surface;
    let delivered = twin.last_attempt().map(|attempt| attempt.delivered().clone()).filter(|_| same_framing);
    Ok(delivered.unwrap_or_else(|| composed(surface, step, &theirs)))
}

/// What a step answered, as one text; empty where it cannot be read.
pub fn answer_text(step: &Step) -> String {
    let texts =
        reply_of(step).map(|reply| reply.answers.iter().map(|answer| answer.message.text()).collect::<Vec<_>>());
    texts.unwrap_or_default().join("\n")
}

fn readable(step: &Step) -> Result<(&'static dyn Surface, Reply), NoReply> {
    let no = |why: &str| NoReply { step: step.step, why: why.to_owned() };
    let surface = surface_of(step).ok_or_else(|| no("its API is recorded, but not read"))?;
    let attempt = step.last_attempt().ok_or_else(|| no("it was never sent"))?;
    match attempt.status {
        Some(200..=299) => {}
        Some(status) => return Err(no(&format!("it was answered by status {status}"))),
        None => return Err(no("it was never answered")),
    }
    Ok((surface, reply_of(step).ok_or_else(|| no("its answer cannot be read"))?))
}

fn is_streamed(step: &Step) -> bool {
    step.last_attempt().is_some_and(|attempt| attempt.streamed)
}

/// Writes other words into the recorded body; where they have no place there, a reply of a model is composed anew. What a tool says
/// has a type: a program would not take what it has no place for.
fn written(surface: &dyn Surface, step: &Step, before: &Reply, after: &Reply) -> Result<Bytes, NoReply> {
    let is_of_server = surface::is_of_server(surface.name());
    let body = step.last_attempt().map(|attempt| attempt.delivered().clone()).unwrap_or_default();
    let calls = before.answers.iter().any(|answer| !answer.message.tool_calls.is_empty());
    if !calls {
        let body = Bytes::from(door::without_codings(&body).into_owned());
        let spliced = door::write_reply(surface, &body, is_streamed(step), before, after);
        match spliced {
            Ok(spliced) if !is_of_server || spliced != body => return Ok(spliced),
            Err(error) if is_of_server => return Err(NoReply { step: step.step, why: error.to_string() }),
            Ok(_) => return Err(NoReply { step: step.step, why: "the words have no place in it".to_owned() }),
            Err(_) => {}
        }
    }
    let answers = after.answers.iter().map(|answer| Answer {
        index: answer.index,
        message: Message::text_of(Role::Assistant, answer.message.text()),
        finish_reason: Some(Answer::STOPPED.to_owned()),
    });
    Ok(composed(surface, step, &Reply { answers: answers.collect(), ..after.clone() }))
}

fn composed(surface: &dyn Surface, step: &Step, reply: &Reply) -> Bytes {
    if is_streamed(step) {
        let with_usage = door::request(surface, &step.request).is_ok_and(|asked| asked.stream_usage);
        return surface.compose_stream(reply, 0, with_usage).concat().into();
    }
    surface.compose(reply, 0)
}
