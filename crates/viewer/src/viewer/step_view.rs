//! A step as people read it: messages, tool calls, replies; raw where no surface reads the bodies.

use serde::Serialize;

use crate::{
    surface::{self, Conversation, Message, Part, Reply, Surface, door},
    trajectory::{Attempt, ProxyErrorText, Step},
};

/// How much of a body that no surface reads is shown, in bytes.
const RAW: usize = 4000;

/// A message, or a body that is none: who speaks, and the words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
pub struct TextBlock {
    /// Role, name and what it answers; of a reply, why it ended.
    pub who: String,
    /// Its text and its tool calls.
    pub text: String,
}

/// A step through its surface.
#[derive(Debug, Clone, Copy)]
pub struct StepView<'a> {
    step: &'a Step,
    surface: Option<&'static dyn Surface>,
}

impl<'a> StepView<'a> {
    /// The view of a step.
    pub fn new(step: &'a Step) -> Self {
        let path = step.path.split('?').next().unwrap_or_default();
        Self { step, surface: surface::for_path(&step.method, path) }
    }

    /// A request body as messages; one raw block where it cannot be read.
    pub fn request(&self, body: &[u8]) -> Vec<TextBlock> {
        match self.conversation(body) {
            Some(conversation) => conversation.messages.iter().map(block).collect(),
            None if body.is_empty() => Vec::new(),
            None => vec![raw(body)],
        }
    }

    /// A request body as its surface reads it.
    pub fn conversation(&self, body: &[u8]) -> Option<Conversation> {
        self.surface.and_then(|surface| door::request(surface, body).ok())
    }

    /// A reply body as messages; one raw block where it cannot be read.
    pub fn reply(&self, body: &[u8], streamed: bool) -> Vec<TextBlock> {
        let read = |surface: &dyn Surface| door::reply(surface, body, streamed);
        match self.surface.map(read) {
            Some(Ok(reply)) if !reply.utterances.is_empty() => spoken(&reply),
            Some(Ok(reply)) if !reply.answers.is_empty() => reply
                .answers
                .iter()
                .map(|answer| {
                    let ended = answer.finish_reason.as_deref().unwrap_or("no finish reason");
                    let said = block(&answer.message);
                    TextBlock { who: format!("{} ({ended})", said.who), text: said.text }
                })
                .collect(),
            _ if body.is_empty() => Vec::new(),
            _ => vec![raw(body)],
        }
    }

    /// What the agent got, in blocks.
    pub fn answered(&self) -> Vec<TextBlock> {
        self.step.last_attempt().map(|attempt| self.received(attempt)).unwrap_or_default()
    }

    /// What the agent got by an attempt: a reply, or an error of the proxy itself.
    pub fn received(&self, attempt: &Attempt) -> Vec<TextBlock> {
        match &attempt.proxy_error {
            Some(ProxyErrorText { code, message }) => {
                vec![TextBlock { who: format!("Aegis ({code})"), text: message.clone() }]
            }
            None => self.reply(attempt.delivered(), attempt.streamed),
        }
    }

    /// What the agent got, as one text.
    pub fn reply_text(&self) -> String {
        self.answered().into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n")
    }
}

/// What agents say that the upstream names.
fn spoken(reply: &Reply) -> Vec<TextBlock> {
    let spoken = reply.utterances.iter().map(|utterance| {
        let said = block(&utterance.message);
        let agent = utterance.agent.clone().unwrap_or(said.who);
        let to = utterance.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        TextBlock { who: format!("{agent}{to}"), text: said.text }
    });
    spoken.collect()
}

/// A message as its speaker and its text.
fn block(message: &Message) -> TextBlock {
    let role = message.role.name();
    let name = message.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let answers = message.answers_call.as_ref().map(|id| format!(" answers {id}")).unwrap_or_default();
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Opaque(what) => format!("[{}]", first_words(what, 60)),
    });
    let calls = message.tool_calls.iter().map(|call| format!("calls {}({})  [{}]", call.name, call.arguments, call.id));
    let text = parts.chain(calls).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    TextBlock { who: format!("{role}{name}{answers}"), text }
}

/// The beginning of a text in one line of at most `most` characters.
pub fn first_words(text: &str, most: usize) -> String {
    let line = text.split_whitespace().take(most).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn raw(body: &[u8]) -> TextBlock {
    let shown = body.get(..RAW).unwrap_or(body);
    let more = body.len() - shown.len();
    let text = String::from_utf8_lossy(shown);
    let text = if more > 0 { format!("{text}\n[{more} bytes more]") } else { text.into_owned() };
    TextBlock { who: "body".to_owned(), text }
}
