//! The simulator in the role of a rewriter: somebody hands it a message of another agent, names a weakness, and wants the
//! message back as that agent would have written it with this weakness.
//!
//! It reads all of that from the question, and really rewrites: each weakness has its own way, on either side. What it
//! knows of the weakness is what the question says; it sees no plan and no label.

mod answered;
mod requests;
mod data;
mod wording;

use serde_json::{Value, json};

use super::{reading::ReadConversation, utterance::Utterance};
use crate::trajectory::FailureMode;

/// Where the message begins.
const MESSAGE: &str = "## Message to rewrite";
/// How the title goes on when the message is one that the agent is about to be asked.
const ASKED: &str = "about to be asked";

/// A question of this kind, taken apart.
#[derive(Debug)]
struct RewriteQuestion<'a> {
    reading: &'a ReadConversation<'a>,
    /// The weakness.
    mode: FailureMode,
    /// Whether the message is what the agent is asked; else what it answered.
    is_request: bool,
    /// The message.
    text: &'a str,
    /// The agent's task.
    task: &'a str,
    /// The tool calls that the agent makes: id, name, arguments.
    calls: Vec<(String, String, Value)>,
}

/// The rewritten message, in the JSON that the question asks for.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    // Later messages of the caller only say what was wrong with an earlier answer.
    let question = reading.spoken.iter().map(|spoken| spoken.text.as_str()).find(|text| text.contains(MESSAGE))?;
    let wanted = RewriteQuestion::read(reading, question)?;
    let mut answer = serde_json::Map::new();
    let dropped = !wanted.is_request && wanted.mode == FailureMode::PrematureTermination && !wanted.calls.is_empty();
    let text = match wanted.text.trim() {
        "" if dropped => Some("This is settled as far as it goes.".to_owned()),
        "" => Some(String::new()),
        _ => wanted.rewritten(wanted.text),
    };
    let declined = text.is_none().then_some("nothing in the message can show it");
    answer.insert("does_not_apply".to_owned(), declined.into());
    answer.insert("edited_text".to_owned(), text.unwrap_or_default().into());
    if !wanted.calls.is_empty() {
        let made = wanted.calls.iter().filter(|_| !dropped);
        let call = |(id, name, arguments): &(String, String, Value)| {
            let arguments = data::rewritten(&wanted, arguments);
            json!({"id": id, "name": name, "arguments": arguments.to_string()})
        };
        answer.insert("calls".to_owned(), made.map(call).collect());
    }
    answer.insert("how_it_is_the_mode".to_owned(), format!("It now {}.", wanted.mode.meaning()).into());
    Some(Utterance::text(Value::Object(answer).to_string()))
}

impl<'a> RewriteQuestion<'a> {
    fn read(reading: &'a ReadConversation<'a>, question: &'a str) -> Option<Self> {
        let weakness = question.split("## Weakness").nth(1)?.trim_start();
        let mode = FailureMode::parse(weakness.split_whitespace().next()?).ok()?;
        let (before, message) = question.split_once(MESSAGE)?;
        let title = message.lines().next().unwrap_or_default();
        let calls = section(before, "## Tool calls").unwrap_or_default().lines().filter_map(call).collect();
        let task = section(before, "## Task").unwrap_or_default();
        let text = fenced(message)?;
        Some(Self { reading, mode, is_request: title.contains(ASKED), text, task, calls })
    }

    /// A text, rewritten: JSON stays JSON. `None` where the way of its weakness finds nothing to hold on to.
    fn rewritten(&self, text: &str) -> Option<String> {
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
            return Some(data::rewritten(self, &value).to_string());
        }
        let rewritten = if self.is_request { requests::rewritten(self, text) } else { answered::rewritten(self, text) };
        (rewritten.trim() != text.trim()).then_some(rewritten)
    }

    /// A whole number from 1 to `most` that depends on the message and on nothing else that changes.
    fn draw(&self, text: &str, most: u64) -> u64 {
        self.reading.draw(&[self.mode.code(), text], most) + 1
    }
}

/// The body of the section that this title begins.
fn section<'a>(question: &'a str, title: &str) -> Option<&'a str> {
    fenced(question.split_once(title)?.1)
}

/// What stands between the first fence and the same fence again.
fn fenced(text: &str) -> Option<&str> {
    let start = text.find("\n===")? + 1;
    let rest = text.get(start..)?;
    let fence = rest.lines().next()?;
    let body = rest.get(fence.len()..)?.strip_prefix('\n')?;
    let end = body.find(&format!("\n{fence}"))?;
    body.get(..end)
}

fn call(line: &str) -> Option<(String, String, Value)> {
    let call: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
    let arguments = serde_json::from_str(&text("arguments")?).ok()?;
    Some((text("id")?, text("name")?, arguments))
}

#[cfg(test)]
mod tests;
