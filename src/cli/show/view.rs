//! A step as people read it: messages, tool calls, replies; raw where no surface reads the bodies.

use std::io::{self, Write};

use super::{attempt_text, injected_text, millis};
use crate::{
    cli::escape,
    recording::Recording,
    surface::{self, Message, Part, Role, Surface},
    trajectory::{Attempt, Step},
};

/// How much of a body that no surface reads is shown, in bytes.
const RAW: usize = 4000;

/// A step through its surface.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    step: &'a Step,
    surface: Option<&'static dyn Surface>,
}

impl<'a> View<'a> {
    /// The view of a step.
    pub(super) fn of(step: &'a Step) -> Self {
        let path = step.path.split('?').next().unwrap_or_default();
        Self { step, surface: surface::for_path(&step.method, path) }
    }

    /// A request body as messages; one raw block where it cannot be read.
    pub(super) fn request(&self, body: &[u8]) -> Vec<(String, String)> {
        match self.surface.map(|surface| surface.read_request(body)) {
            Some(Ok(conversation)) => conversation.messages.iter().map(block).collect(),
            _ if body.is_empty() => Vec::new(),
            _ => vec![("body".to_owned(), raw(body))],
        }
    }

    /// A reply body as messages; one raw block where it cannot be read.
    pub(super) fn reply(&self, body: &[u8], streamed: bool) -> Vec<(String, String)> {
        let read = |surface: &dyn Surface| if streamed { surface.read_stream(body) } else { surface.read_reply(body) };
        match self.surface.map(read) {
            Some(Ok(reply)) if !reply.answers.is_empty() => reply
                .answers
                .iter()
                .map(|answer| {
                    let ended = answer.finish_reason.as_deref().unwrap_or("no finish reason");
                    let (who, text) = block(&answer.message);
                    (format!("{who} ({ended})"), text)
                })
                .collect(),
            _ if body.is_empty() => Vec::new(),
            _ => vec![("body".to_owned(), raw(body))],
        }
    }

    /// What the agent got, as one text.
    pub(super) fn reply_text(&self) -> String {
        let Some(attempt) = self.step.last_attempt() else { return String::new() };
        let blocks = self.reply(attempt.delivered(), attempt.streamed);
        blocks.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
    }
}

/// One step, whole.
pub(super) fn write_step(step: &Step, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let attribution = &step.attribution;
    let doubt = if attribution.ambiguous { ", ambiguous" } else { "" };
    writeln!(
        out,
        "step {}  turn {}  {} call {}  (known by {}{doubt})",
        step.step,
        step.turn,
        escape(attribution.agent.as_str()),
        step.call,
        escape(&attribution.evidence),
    )?;
    writeln!(out, "{} {}  surface {}", escape(&step.method), escape(&step.path), escape(&step.surface))?;
    for error in &step.injected {
        let (operator, side) = (escape(&error.operator), super::data::word(&error.side));
        let arrived = if error.delivered { "delivered" } else { "not delivered" };
        let mode = error.failure_mode.map(|mode| format!("{} {}, ", mode.code(), mode.name())).unwrap_or_default();
        writeln!(out, "injected {mode}{operator}, {side} side, {arrived}")?;
    }
    let view = View::of(step);
    let sent = step.request_sent.as_ref();
    writeln!(
        out,
        "\n== request{}",
        if sent.is_some() { " as the agent sent it (an injection changed it)" } else { "" }
    )?;
    write_blocks(&view.request(&step.request), out)?;
    for attempt in &step.attempts {
        write_attempt(view, attempt, recording, out)?;
    }
    if !step.injected.is_empty() {
        writeln!(out, "\n{}: `--before-after` shows what was changed", injected_text(step))?;
    }
    Ok(())
}

fn write_attempt(view: View<'_>, attempt: &Attempt, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let first = attempt.first_byte_us.map(|micros| format!("  first byte {} ms", millis(micros))).unwrap_or_default();
    let last = attempt.last_byte_us.map(|micros| format!("  whole {} ms", millis(micros))).unwrap_or_default();
    let tokens = attempt.usage.map(|usage| format!("  tokens {}>{}", usage.input, usage.output)).unwrap_or_default();
    let detail = recording.exchanges.iter().find(|e| e.step == view.step.step && e.attempt == attempt.attempt);
    let events = detail.map_or(0, |detail| detail.frames.len());
    let events = if events > 0 { format!("  {events} events") } else { String::new() };
    let exact = if attempt.exact { "" } else { "  (stored bytes are masked or cut)" };
    writeln!(out, "\n== reply {}: {}{first}{last}{tokens}{events}{exact}", attempt.attempt, attempt_text(attempt))?;
    write_blocks(&view.reply(attempt.delivered(), attempt.streamed), out)
}

fn write_blocks(blocks: &[(String, String)], out: &mut dyn Write) -> io::Result<()> {
    for (who, text) in blocks {
        writeln!(out, "-- {}", escape(who))?;
        if !text.is_empty() {
            writeln!(out, "{}", escape(text))?;
        }
    }
    Ok(())
}

/// A message as its speaker and its text.
fn block(message: &Message) -> (String, String) {
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Other => "other",
    };
    let name = message.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let answers = message.answers_call.as_ref().map(|id| format!(" answers {id}")).unwrap_or_default();
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Opaque(what) => format!("[{}]", first_words(what, 60)),
    });
    let calls = message.tool_calls.iter().map(|call| format!("calls {}({})  [{}]", call.name, call.arguments, call.id));
    let text = parts.chain(calls).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    (format!("{role}{name}{answers}"), text)
}

/// The beginning of a text in one line of at most `most` characters.
pub(super) fn first_words(text: &str, most: usize) -> String {
    let line = text.split_whitespace().take(most).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn raw(body: &[u8]) -> String {
    let shown = body.get(..RAW).unwrap_or(body);
    let more = body.len() - shown.len();
    let text = String::from_utf8_lossy(shown);
    if more > 0 { format!("{text}\n[{more} bytes more]") } else { text.into_owned() }
}
