//! A recorded step as text: what was asked and what was answered, in blocks that can be compared.

use std::fmt::Write;

use super::Rules;
use crate::{
    equality::Form,
    surface::{self, Message, Part, Reply, Surface, door},
    trajectory::Step,
};

/// A named piece of a request or a reply, for example `messages[2] user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedBlock {
    pub(super) place: String,
    pub(super) text: String,
}

/// A step in blocks.
#[derive(Debug, Clone)]
pub(super) struct StepReading {
    pub(super) request: Vec<NamedBlock>,
    pub(super) reply: Vec<NamedBlock>,
    /// The request as an injection edited it and the upstream got it; `None` where it got what the agent asked.
    pub(super) sent: Option<Vec<NamedBlock>>,
    /// Equal requests have equal texts here; parameters and tools count, volatile parts do not.
    pub(super) request_key: String,
    /// The same of the reply: of a readable one the words, with what is volatile in its request too aside.
    pub(super) answered: String,
}

impl StepReading {
    pub(super) fn read(step: &Step, rules: &Rules) -> Self {
        let request = request_blocks(step, &step.request);
        let sent = step.request_sent.as_ref().map(|sent| request_blocks(step, sent));
        let (reply, answered) = if let Some(read) = reply_of(step) {
            let blocks: Vec<NamedBlock> = read.answers.iter().map(|answer| answer_block(answer, &read)).collect();
            let mut text = String::new();
            for block in &blocks {
                let _ = writeln!(text, "{}\n{}", block.place, block.text);
            }
            let answered = rules.apply_reply(&text, &String::from_utf8_lossy(&step.request));
            (blocks, answered)
        } else {
            let body = step.last_attempt().map(|attempt| attempt.delivered().clone()).unwrap_or_default();
            (raw(&body), Form::from_body("", &body, rules).text())
        };
        let status = step.last_attempt().and_then(|attempt| attempt.status);
        let answered = format!("{status:?} {answered}");
        Self {
            request,
            reply,
            sent,
            request_key: Form::from_body(&step.surface, &step.request, rules).text(),
            answered,
        }
    }

    /// All that was asked, as one text.
    pub(super) fn request_text(&self) -> String {
        joined(&self.request)
    }

    /// All that was answered, as one text.
    pub(super) fn answered_text(&self) -> String {
        joined(&self.reply)
    }
}

/// What a step was asked, as one text.
pub fn step_request_text(step: &Step) -> String {
    request_text(step, &step.request)
}

/// The same of a step whose request stands elsewhere.
pub(super) fn request_text(step: &Step, request: &[u8]) -> String {
    joined(&request_blocks(step, request))
}

/// What a step was answered, as one text: words, and calls of tools with their arguments.
pub(super) fn answered_text(step: &Step) -> String {
    let Some(reply) = reply_of(step) else { return String::new() };
    reply.answers.iter().map(|answer| text_of(&answer.message)).collect::<Vec<_>>().join("\n")
}

fn request_blocks(step: &Step, body: &[u8]) -> Vec<NamedBlock> {
    match surface_of(step).and_then(|surface| door::request(surface, body).ok()) {
        Some(conversation) => {
            conversation.messages.iter().enumerate().map(|(index, message)| message_block(index, message)).collect()
        }
        None => raw(body),
    }
}

fn joined(blocks: &[NamedBlock]) -> String {
    blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The surface of a step, if it can be read.
pub(super) fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::named(&step.surface)
}

/// What the agent got in the end, if it is a reply that can be read.
pub(super) fn reply_of(step: &Step) -> Option<Reply> {
    let (surface, attempt) = (surface_of(step)?, step.last_attempt()?);
    let body = attempt.delivered();
    let read = door::reply(surface, body, attempt.streamed);
    read.ok().filter(|reply| !reply.answers.is_empty())
}

fn raw(body: &[u8]) -> Vec<NamedBlock> {
    if body.is_empty() {
        return Vec::new();
    }
    vec![NamedBlock { place: "body".to_owned(), text: String::from_utf8_lossy(body).into_owned() }]
}

fn message_block(index: usize, message: &Message) -> NamedBlock {
    let name = message.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let role = format!("{:?}", message.role).to_lowercase();
    NamedBlock { place: format!("messages[{index}] {role}{name}"), text: text_of(message) }
}

fn answer_block(answer: &surface::Answer, reply: &Reply) -> NamedBlock {
    let number = if reply.answers.len() > 1 { format!("[{}]", answer.index) } else { String::new() };
    let ended = answer.finish_reason.as_deref().unwrap_or("no finish reason");
    NamedBlock { place: format!("reply{number} ({ended})"), text: text_of(&answer.message) }
}

fn text_of(message: &Message) -> String {
    let mut text = message.text();
    for part in &message.parts {
        if let Part::Opaque(opaque) = part {
            let _ = write!(text, "\n[{opaque}]");
        }
    }
    for call in &message.tool_calls {
        let _ = write!(text, "\n{}({})", call.name, call.arguments);
    }
    text.trim_start_matches('\n').to_owned()
}

/// Whether two steps were answered the same: ids of replies and token counts aside, and what is volatile in their requests too.
pub fn same_answer(a: &Step, b: &Step, rules: &Rules) -> bool {
    StepReading::read(a, rules).answered == StepReading::read(b, rules).answered
}
