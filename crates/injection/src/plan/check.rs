//! A plan's own tests: a call as the plan writes it, run through the plan without any model.

use serde_json::json;

use super::decide::{Decision, Facts, decide};
use super::{Injection, Plan, Target, dialogue};
use crate::manipulator::{Adaptive, Context, ManipulatorError, Question};
use crate::mode::{self, ObservedCall, Precondition};
use crate::surface::{Answer, Conversation, Message, Reply, RequiredFormat, Tool, ToolCall};
use crate::trajectory::{Call, Side, StepIndex};

/// A call and what is expected of it.
#[derive(Debug, Clone)]
pub struct PlanCheck {
    /// The agent that calls.
    pub agent: String,
    /// Which of several equal agents it is, 0-based.
    pub instance: u32,
    /// Its own call, 0-based.
    pub call: Call,
    /// The run's step, 0-based; 0 when not said.
    pub step: Option<StepIndex>,
    /// The request's messages.
    pub messages: Vec<Message>,
    /// Earlier answers of the run: (agent, text).
    pub earlier: Vec<(String, String)>,
    /// The tools on offer, by name.
    pub tools: Vec<String>,
    /// Whether the answer must be a JSON object.
    pub json: bool,
    /// What the model answers.
    pub answer: Option<Answer>,
    /// What the manipulator's model answers, if it is asked: the text and the tool calls as it rewrites them.
    pub rewrite: Option<(String, Vec<ToolCall>)>,
    /// What is expected; all of it.
    pub expect: Vec<Expect>,
    /// Where the check stands in its file, from 1.
    pub line: usize,
}

/// Something that a check expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The messages that the model is asked, as lines.
    Messages(Vec<String>),
    /// The text that the agent gets.
    Reply(String),
    /// The tool calls that the agent gets, as `name(arguments)`.
    Calls(Vec<String>),
    /// A text somewhere in the answer or, without one, in the request.
    Contains(String),
    /// Whether anything happens.
    Changed(bool),
    /// The names of the tools on offer.
    Tools(Vec<String>),
    /// A text somewhere in a question to the manipulator's model.
    Question(String),
    /// A fault, by name.
    Fault(String),
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Where the check stands in its file, from 1.
    pub line: usize,
    /// What was not as expected; empty when the check passed.
    pub failures: Vec<String>,
}

impl Plan {
    /// Runs every check of the plan.
    pub fn run_checks(&self) -> Vec<CheckReport> {
        self.checks.iter().map(|check| CheckReport { line: check.line, failures: check.run(self) }).collect()
    }
}

/// What became of a call.
struct CheckOutcome {
    request: Conversation,
    reply: Option<Reply>,
    faults: Vec<String>,
    changed: bool,
    /// What the manipulator's model was asked.
    questions: Vec<String>,
    errors: Vec<String>,
}

impl PlanCheck {
    /// What is not as expected. Draws of `when.probability` count as hits, and `step` and `last_n` as met by the
    /// check's own step.
    fn run(&self, plan: &Plan) -> Vec<String> {
        let outcome = self.outcome(plan);
        let mut failures: Vec<String> = self.expect.iter().filter_map(|expect| outcome.failure(expect)).collect();
        if !self.expect.contains(&Expect::Changed(false)) {
            failures.extend(outcome.errors);
        }
        failures
    }

    fn outcome(&self, plan: &Plan) -> CheckOutcome {
        let format = if self.json { RequiredFormat::JsonObject } else { RequiredFormat::Text };
        let tools = self.tools.iter().map(|name| Tool { name: name.clone(), ..Tool::default() }).collect();
        let messages = self.messages.clone();
        let asked = Conversation { messages, tools, choices: 1, format, ..Conversation::default() };
        let reply = self.answer.clone().map(|answer| Reply { answers: vec![answer], ..Reply::default() });
        let sure = self.made_sure(plan);
        let decision = decide(&sure, &self.facts(&asked));
        let mut outcome = CheckOutcome {
            faults: decision.faults.iter().filter_map(|hit| named(&sure, hit.injection)).collect(),
            changed: !decision.faults.is_empty(),
            request: asked,
            reply,
            questions: Vec::new(),
            errors: Vec::new(),
        };
        self.edit(&sure, &decision, &mut outcome);
        outcome
    }

    fn edit(&self, plan: &Plan, decision: &Decision, outcome: &mut CheckOutcome) {
        for hit in decision.request.iter().chain(&decision.response) {
            let Some(injection) = injection(plan, hit.injection) else { continue };
            let asked = outcome.request.clone();
            let reply = outcome.reply.clone();
            let is_request = decision.request.contains(hit);
            if !is_request && reply.is_none() {
                continue;
            }
            if let Some(why) = self.impossible(injection, &asked, reply.as_ref()) {
                outcome.errors.push(why);
                continue;
            }
            let edited = self.with_answer(&mut outcome.questions, |adaptive| {
                let context = Context {
                    agent: &self.agent,
                    conversation: &asked,
                    earlier: &self.earlier,
                    draw: hit.draw,
                    adaptive,
                };
                match &reply {
                    Some(reply) if !is_request => {
                        injection.edit_reply(reply, &context).map(|reply| (None, Some(reply)))
                    }
                    _ => injection.edit_request(&asked, &context).map(|request| (Some(request), None)),
                }
            });
            let edited = edited.map(|(request, reply)| {
                outcome.request = request.unwrap_or(asked);
                outcome.reply = reply.or(outcome.reply.take());
            });
            match edited {
                Ok(()) => outcome.changed = true,
                Err(error) => outcome.errors.push(format!("`{}` could not edit: {error}", injection.name)),
            }
        }
    }

    /// Why the failure mode of an injection cannot be at this call, if that is known. What comes after the call is not.
    fn impossible(&self, injection: &Injection, asked: &Conversation, reply: Option<&Reply>) -> Option<String> {
        let mode = injection.failure_mode.filter(|_| !injection.is_neutral() && !injection.is_instructed())?;
        let side = if injection.edits_reply() { Side::Response } else { Side::Request };
        let call = ObservedCall {
            agent: &self.agent,
            request: Some(asked),
            answer: reply.and_then(|reply| reply.answers.first()),
            earlier: &self.earlier,
            later: None,
        };
        let unmet = mode::unmet(mode, side, &call)?;
        let hint = match unmet {
            Precondition::PeerInput | Precondition::History | Precondition::CompletedStep => {
                "; give what other agents answered before in `earlier`"
            }
            _ => "",
        };
        Some(format!("{} {} cannot be at this call: {}{hint}", mode.code(), mode.name(), unmet.missing()))
    }

    /// Makes an edit; where it asks a model, the check's own answer is handed back, once. The question is noted.
    pub(super) fn with_answer<T>(
        &self,
        questions: &mut Vec<String>,
        edit: impl Fn(Adaptive<'_>) -> Result<T, ManipulatorError>,
    ) -> Result<T, String> {
        let question = match edit(Adaptive::default()) {
            Err(ManipulatorError::Ask(question)) => *question,
            other => return other.map_err(|error| error.to_string()),
        };
        questions.push(format!("{}\n{}", question.system, question.user));
        let Some((text, calls)) = &self.rewrite else {
            return Err("it asks a model: give what the model answers in `rewrite`".to_owned());
        };
        let answers = [(question, model_answer(text, calls))];
        match edit(Adaptive { answers: &answers, ..Adaptive::default() }) {
            Err(ManipulatorError::Ask(again)) => Err(refusal_of(&again)),
            other => other.map_err(|error| error.to_string()),
        }
    }

    fn facts<'a>(&'a self, conversation: &'a Conversation) -> Facts<'a> {
        Facts {
            run: "check",
            agent: &self.agent,
            instance: self.instance,
            call: self.call,
            step: self.step.unwrap_or_default(),
            conversation: Some(conversation),
            delivered: &|_| 0,
            ambiguous: false,
        }
    }

    /// The plan without chance, and with `step` and `last_n` resolved to this call where they could mean it.
    fn made_sure(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let here = Target { agent: self.agent.clone(), instance: self.instance, call: self.call };
        for when in plan.injections.iter_mut().map(|injection| &mut injection.when) {
            when.probability = None;
            if when.is_unresolved() {
                let meant = when.step.as_ref().is_none_or(|steps| self.step.is_some_and(|step| steps.contains(&step)));
                when.targets = Some(if meant { vec![here.clone()] } else { Vec::new() });
            }
        }
        plan
    }
}

impl CheckOutcome {
    fn failure(&self, expect: &Expect) -> Option<String> {
        let answer = self.reply.as_ref().and_then(|reply| reply.answers.first());
        let text = answer.map(|answer| answer.message.text());
        let differs = |what: &str, expected: String, seen: String| {
            (expected != seen)
                .then(|| format!("{what}: expected\n  {}\ngot\n  {}", indented(&expected), indented(&seen)))
        };
        match expect {
            Expect::Messages(lines) => {
                differs("the request", lines.join("\n"), dialogue::lines(&self.request.messages).join("\n"))
            }
            Expect::Reply(expected) => differs("the answer", expected.clone(), text.unwrap_or_default()),
            Expect::Calls(expected) => {
                let calls = answer.map(|answer| answer.message.tool_calls.iter().map(dialogue::written).collect());
                let calls: Vec<String> = calls.unwrap_or_default();
                differs("the tool calls", expected.join("\n"), calls.join("\n"))
            }
            Expect::Contains(part) => {
                let seen = text.unwrap_or_else(|| dialogue::lines(&self.request.messages).join("\n"));
                (!seen.contains(part)).then(|| format!("expected `{part}` somewhere in\n  {}", indented(&seen)))
            }
            Expect::Changed(expected) => (*expected != self.changed).then(|| {
                let word = |changed| if changed { "a change" } else { "no change" };
                format!("expected {}, got {}", word(*expected), word(self.changed))
            }),
            Expect::Tools(expected) => {
                let seen: Vec<&str> = self.request.tools.iter().map(|tool| tool.name.as_str()).collect();
                differs("the tools", expected.join("\n"), seen.join("\n"))
            }
            Expect::Question(part) => {
                let seen = self.questions.join("\n");
                (!seen.contains(part))
                    .then(|| format!("expected `{part}` somewhere in the question\n  {}", indented(&seen)))
            }
            Expect::Fault(name) => (!self.faults.contains(name))
                .then(|| format!("expected the fault `{name}`, got {}", listed(&self.faults))),
        }
    }
}

/// An answer of the manipulator's model, in the form that it is asked for.
fn model_answer(text: &str, calls: &[ToolCall]) -> String {
    let calls = calls.iter().map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}));
    let calls: Vec<_> = calls.collect();
    json!({"edited_text": text, "calls": calls, "does_not_apply": null, "how_it_is_the_mode": "as the check has it"})
        .to_string()
}

fn refusal_of(again: &Question) -> String {
    let why = again.refused.last().map(|(_, why)| why.as_str()).unwrap_or_default();
    format!("the model's answer could not be used: {why}")
}

fn injection(plan: &Plan, index: u32) -> Option<&Injection> {
    plan.injections.get(usize::try_from(index).ok()?)
}

fn named(plan: &Plan, index: u32) -> Option<String> {
    injection(plan, index).map(|injection| injection.name.clone())
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
