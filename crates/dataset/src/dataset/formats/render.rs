//! The one place where a step becomes text: what its agent was given, and what it said. Every format that shows a trace as
//! words asks here.

use std::collections::HashMap;

use super::schema::{Field::Needed, Type};
use crate::dataset::{Called, Sample, SampleMessage, SampleStep};

/// How many of the latest replies are looked for inside of longer messages.
const QUOTED: usize = 32;
/// The shortest reply that a message may quote by its step's number, in bytes: shorter ones are no longer than that.
const QUOTE_MIN: usize = 40;

/// What of its input a step shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Nothing: replies only.
    None,
    /// What its agent had not seen in its call before: system prompt once, new messages, tool results.
    #[default]
    New,
    /// All of it, at every step.
    All,
}

/// A step as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RenderedStep {
    /// What its agent was given, a line or more a message; empty where nothing is shown or known.
    pub(super) given: String,
    /// What it said.
    pub(super) reply: String,
}

impl RenderedStep {
    /// Both, as they stand below the step's number and name.
    pub(super) fn both_parts(&self) -> String {
        if self.given.is_empty() { self.reply.clone() } else { format!("{}\n(says) {}", self.given, self.reply) }
    }
}

/// The texts of every step of a run, in order.
pub(super) fn render_steps(sample: &Sample, inputs: Inputs) -> Vec<RenderedStep> {
    let mut seen = DialogueHistory::default();
    let step = |step| {
        let (given, said) = (seen.input_lines(sample, step, inputs), spoken(step));
        seen.add_input(sample, step);
        RenderedStep { given, reply: said }
    };
    sample.steps.iter().map(step).collect()
}

/// The messages that every step of a run was given, whole, each with the tool that it answers for; in order.
pub(super) fn shared_messages(sample: &Sample, inputs: Inputs) -> Vec<Vec<(&SampleMessage, Option<&str>)>> {
    let mut seen = DialogueHistory::default();
    let mut all = Vec::with_capacity(sample.steps.len());
    for step in &sample.steps {
        let input = sample.input(step.step).unwrap_or_default();
        let fresh = seen.fresh(&input, step, inputs).into_iter();
        all.push(fresh.map(|message| (message, answering(message, &input))).collect());
        seen.add_input(sample, step);
    }
    all
}

/// What a step said, as one text: its words, then its tool calls.
pub(super) fn spoken(step: &SampleStep) -> String {
    let Some(output) = &step.output else { return String::new() };
    words(&output.text, &output.calls)
}

fn words(text: &str, calls: &[Called]) -> String {
    let mut text = text.to_owned();
    for Called { name, arguments, .. } in calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend(["[calls ", name, " with ", arguments, "]"]);
    }
    text
}

/// What was said before a step, and what each agent has seen.
#[derive(Default)]
struct DialogueHistory<'a> {
    /// The input of each agent's latest call, its own reply included.
    by_agent: HashMap<(&'a str, u32), Vec<&'a SampleMessage>>,
    /// Replies by their words, with the step that said them first.
    replies: HashMap<&'a str, u32>,
    /// The latest replies, newest last.
    latest: Vec<(u32, &'a str)>,
}

impl<'a> DialogueHistory<'a> {
    /// What a step was given, as lines.
    fn input_lines(&self, sample: &'a Sample, step: &'a SampleStep, inputs: Inputs) -> String {
        let input = sample.input(step.step).unwrap_or_default();
        let line = |message: &SampleMessage| {
            let text = words(&self.quoting(&message.text), &message.calls);
            format!("(given by {}) {text}", giver(message, &input))
        };
        self.fresh(&input, step, inputs).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The messages of an input that are to be shown.
    fn fresh(&self, input: &[&'a SampleMessage], step: &'a SampleStep, inputs: Inputs) -> Vec<&'a SampleMessage> {
        if inputs == Inputs::None {
            return Vec::new();
        }
        let before = self.by_agent.get(&(step.agent.as_str(), step.instance)).map(Vec::as_slice).unwrap_or_default();
        let mut known: Vec<Option<&SampleMessage>> =
            if inputs == Inputs::New { before.iter().copied().map(Some).collect() } else { Vec::new() };
        let mut fresh = Vec::new();
        for (place, message) in input.iter().copied().enumerate() {
            // As often as it was there before, and no more often: `go on` may be said twice. A conversation that grows has
            // it at the same place.
            let is_it = |other: Option<&SampleMessage>| other.is_some_and(|other| is_same_message(other, message));
            let there = known.get(place).filter(|other| is_it(**other)).map(|_| place);
            let found = there.or_else(|| known.iter().position(|other| is_it(*other)));
            match found.and_then(|found| known.get_mut(found)) {
                Some(slot) => *slot = None,
                None => fresh.push(message),
            }
        }
        fresh
    }

    /// A message with the replies that it repeats named by their steps: they stand above already.
    fn quoting(&self, text: &str) -> String {
        if let Some(step) = self.replies.get(text.trim()) {
            return format!("[the words of step {step}]");
        }
        let mut text = text.to_owned();
        for (step, reply) in self.latest.iter().rev().filter(|(_, reply)| reply.len() >= QUOTE_MIN) {
            if text.contains(reply) {
                text = text.replace(reply, &format!("[the words of step {step}]"));
            }
        }
        text
    }

    fn add_input(&mut self, sample: &'a Sample, step: &'a SampleStep) {
        let mut known = sample.input(step.step).unwrap_or_default();
        known.extend(&step.output);
        self.by_agent.insert((step.agent.as_str(), step.instance), known);
        let reply = step.output.as_ref().map(|output| output.text.trim()).filter(|reply| !reply.is_empty());
        if let Some(reply) = reply {
            self.replies.entry(reply).or_insert(step.step);
            self.latest.push((step.step, reply));
            if self.latest.len() > QUOTED {
                self.latest.remove(0);
            }
        }
    }
}

/// Whether two messages are one: a program may give its agent's own reply back without what was no text.
fn is_same_message(one: &SampleMessage, other: &SampleMessage) -> bool {
    let called = |(one, other): (&Called, &Called)| one.name == other.name && one.arguments == other.arguments;
    one.role == other.role
        && one.text.trim() == other.text.trim()
        && one.answers == other.answers
        && one.calls.len() == other.calls.len()
        && one.calls.iter().zip(&other.calls).all(called)
}

/// Who a message is from: its role, with the name that it carries, or that of the tool that answers.
fn giver(message: &SampleMessage, input: &[&SampleMessage]) -> String {
    let role = if message.role == "developer" { "system" } else { message.role.as_str() };
    match message.name.as_deref().or_else(|| answering(message, input)) {
        Some(name) => format!("{role} {name}"),
        None => role.to_owned(),
    }
}

/// The tool whose call a message answers.
fn answering<'a>(message: &SampleMessage, input: &[&'a SampleMessage]) -> Option<&'a str> {
    let id = message.answers.as_deref()?;
    let calls = input.iter().flat_map(|other| &other.calls);
    calls.into_iter().find(|call| call.id == id).map(|call| call.name.as_str())
}

/// What truncation left out of a prompt, as a row says it.
pub(super) const CUT: Type = Type::Record(&[
    Needed("shortened_inputs", Type::Whole),
    Needed("dropped_inputs", Type::Whole),
    Needed("shortened_steps", Type::Whole),
    Needed("dropped_steps", Type::Whole),
    Needed("gone", Type::Whole),
]);
