//! Which agent a tool was called for: the message to a tool server does not say, the replies before it do.
//!
//! A call of a tool is joined to the reply that asks for it, by the tool's name and its arguments. Where several agents asked for the
//! same, nobody can tell whose call it is, and it stays unjoined. What an agent has shown the result of is no longer open.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::ExchangeDetail;
use crate::{
    surface::{self, Conversation, Role, door},
    trajectory::{AgentName, Step, StepIndex, TOOLS},
};

/// Characters that clients put between the name of a server and that of its tool.
const SEPARATORS: &[char] = &['_', '-', '.', '/', ':'];

/// For whom a tool was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "known_by")]
pub enum ToolCaller {
    /// The request names the agent.
    Stated {
        /// The agent.
        agent: AgentName,
        /// The step whose reply asks for the call, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<StepIndex>,
    },
    /// The reply of this agent asks for it, and no other's.
    Reply {
        /// The agent.
        agent: AgentName,
        /// Its instance, 0-based.
        instance: u32,
        /// The step of the reply.
        step: StepIndex,
        /// The id of the call in the reply.
        call_id: String,
    },
    /// Nobody can tell.
    Unknown {
        /// Why.
        why: UnknownCaller,
    },
}

/// Why a call of a tool is joined to no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCaller {
    /// No reply before it calls this tool with these arguments: the program calls it by itself, or changes what a model wrote.
    NoReply,
    /// The replies of several agents do.
    Several,
}

impl ToolCaller {
    /// The agent, where it is known.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Stated { agent, .. } | Self::Reply { agent, .. } => Some(agent),
            Self::Unknown { .. } => None,
        }
    }
}

/// A call that a reply asks for and whose result its agent has not shown.
#[derive(Debug)]
struct PendingCall {
    agent: AgentName,
    instance: u32,
    step: StepIndex,
    id: String,
    name: String,
    arguments: Value,
}

/// A call of a tool, as its server got it.
#[derive(Debug)]
struct ServedCall {
    server: String,
    tool: String,
    arguments: Value,
    /// Whether it goes on with a call that its server had a question about.
    goes_on: bool,
}

/// For whom each call of a tool was made, by its step. `exchanges`: those of the steps, for their order in the log.
pub fn tool_callers(steps: &[Step], exchanges: &[ExchangeDetail]) -> BTreeMap<StepIndex, ToolCaller> {
    let mut callers = BTreeMap::new();
    if !steps.iter().any(|step| surface::is_of_server(&step.surface)) {
        return callers;
    }
    let mut joined: Vec<(ServedCall, ToolCaller)> = Vec::new();
    let mut open: Vec<PendingCall> = Vec::new();
    for (step, event) in in_order(steps, exchanges) {
        match (surface::is_of_server(&step.surface), event) {
            (false, CallMoment::Opened(_)) => show_results(&mut open, step),
            (false, CallMoment::Closed) => open.extend(asked_for(step)),
            (true, CallMoment::Opened(stated)) => {
                let Some(served) = ServedCall::read(step) else {
                    // A message to a peer, or one that calls no tool: nothing tells whose it is but its own word.
                    let stated = stated.map(|agent| ToolCaller::Stated { agent: agent.clone(), step: None });
                    callers.extend(stated.map(|caller| (step.step, caller)));
                    continue;
                };
                let again = joined.iter().rev().find(|(earlier, _)| served.goes_on && earlier.is_same(&served));
                let caller = match again {
                    Some((_, caller)) => caller.clone(),
                    None => take_caller(&mut open, &served, stated),
                };
                callers.insert(step.step, caller.clone());
                joined.push((served, caller));
            }
            (true, CallMoment::Closed) => {}
        }
    }
    callers
}

/// What the log says of a step, in its order.
#[derive(Debug, Clone, Copy)]
enum CallMoment<'a> {
    /// Its first request came, for this agent where it names one.
    Opened(Option<&'a AgentName>),
    /// Its last reply was over.
    Closed,
}

fn in_order<'a>(steps: &'a [Step], exchanges: &'a [ExchangeDetail]) -> Vec<(&'a Step, CallMoment<'a>)> {
    let by_number: BTreeMap<StepIndex, &Step> = steps.iter().map(|step| (step.step, step)).collect();
    let mut moments: Vec<(u64, &Step, CallMoment<'_>)> = Vec::new();
    for detail in exchanges {
        let Some(step) = by_number.get(&detail.step) else { continue };
        if detail.attempt == 0 {
            moments.push((detail.opened, step, CallMoment::Opened(detail.relates.called_by.as_ref())));
        }
        let is_last = step.last_attempt().is_some_and(|last| last.attempt == detail.attempt);
        moments.extend(detail.closed.filter(|_| is_last).map(|closed| (closed, *step, CallMoment::Closed)));
    }
    moments.sort_by_key(|(position, ..)| *position);
    moments.into_iter().map(|(_, step, event)| (step, event)).collect()
}

/// The calls that a step's reply asks for.
fn asked_for(step: &Step) -> Vec<PendingCall> {
    let Some((surface, attempt)) = surface::named(&step.surface).zip(step.last_attempt()) else { return Vec::new() };
    let Ok(reply) = door::reply(surface, attempt.delivered(), attempt.streamed) else { return Vec::new() };
    let calls = reply.answers.into_iter().flat_map(|answer| answer.message.tool_calls);
    let open = calls.map(|call| PendingCall {
        agent: step.attribution.agent.clone(),
        instance: step.attribution.instance,
        step: step.step,
        arguments: arguments(&call.arguments),
        id: call.id,
        name: call.name,
    });
    open.collect()
}

fn arguments(text: &str) -> Value {
    let none = || Value::Object(serde_json::Map::new());
    if text.trim().is_empty() { none() } else { serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)) }
}

/// Calls whose results a request shows are over.
fn show_results(open: &mut Vec<PendingCall>, step: &Step) {
    if open.is_empty() {
        return;
    }
    let Some(asked) = surface::named(&step.surface).and_then(|surface| door::request(surface, &step.request).ok())
    else {
        return;
    };
    let Conversation { messages, .. } = asked;
    let shown: Vec<String> =
        messages.into_iter().filter(|said| said.role == Role::Tool).filter_map(|said| said.answers_call).collect();
    open.retain(|call| !shown.contains(&call.id));
}

impl ServedCall {
    fn read(step: &Step) -> Option<Self> {
        let server = step.attribution.agent.as_str().strip_prefix(TOOLS)?.split('/').next()?.to_owned();
        let surface = surface::named(&step.surface)?;
        let asked = door::request(surface, &step.request).ok()?;
        let call = asked.messages.into_iter().flat_map(|message| message.tool_calls).next()?;
        let goes_on = memchr::memmem::find(&step.request, b"\"inputResponses\"").is_some();
        Some(Self { server, tool: call.name, arguments: arguments(&call.arguments), goes_on })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.server == other.server && self.tool == other.tool && self.arguments == other.arguments
    }

    /// Whether a model that calls this means the tool: clients offer it under its name, or with its server's before that.
    fn is_called(&self, name: &str) -> bool {
        let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let of_server = |before: &str| before.ends_with(SEPARATORS) && plain(before).contains(&plain(&self.server));
        name == self.tool || name.strip_suffix(self.tool.as_str()).is_some_and(of_server)
    }

    /// Whether a model's arguments are those that the server got, or those and what the client adds of its own.
    fn has_arguments(&self, asked: &Value, exact: bool) -> bool {
        match (asked, &self.arguments) {
            (Value::Object(asked), Value::Object(got)) if !exact => {
                asked.iter().all(|(key, value)| got.get(key) == Some(value))
            }
            (asked, got) => asked == got,
        }
    }
}

/// The caller of a call, which is then no longer open.
fn take_caller(open: &mut Vec<PendingCall>, served: &ServedCall, stated: Option<&AgentName>) -> ToolCaller {
    let of = |exact: bool| {
        let fits = |call: &PendingCall| {
            served.is_called(&call.name)
                && served.has_arguments(&call.arguments, exact)
                && stated.is_none_or(|agent| *agent == call.agent)
        };
        open.iter().enumerate().filter(|(_, call)| fits(call)).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let mut fitting = of(true);
    if fitting.is_empty() {
        fitting = of(false);
    }
    let who = |at: &usize| open.get(*at).map(|call| (&call.agent, call.instance));
    let one_agent = fitting.windows(2).all(|pair| pair.first().and_then(who) == pair.last().and_then(who));
    let first = fitting.first().filter(|_| one_agent).map(|at| open.remove(*at));
    match (stated, first) {
        (Some(agent), call) => ToolCaller::Stated { agent: agent.clone(), step: call.map(|call| call.step) },
        (None, Some(PendingCall { agent, instance, step, id, .. })) => {
            ToolCaller::Reply { agent, instance, step, call_id: id }
        }
        (None, None) => {
            let why = if fitting.is_empty() { UnknownCaller::NoReply } else { UnknownCaller::Several };
            ToolCaller::Unknown { why }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(server: &str, tool: &str, given: &str) -> ServedCall {
        ServedCall { server: server.to_owned(), tool: tool.to_owned(), arguments: arguments(given), goes_on: false }
    }

    fn open(agent: &str, step: StepIndex, name: &str, given: &str) -> PendingCall {
        let agent = AgentName::parse(agent).expect("a name");
        PendingCall {
            agent,
            instance: 0,
            step,
            id: format!("c{step}"),
            name: name.to_owned(),
            arguments: arguments(given),
        }
    }

    #[test]
    fn names_of_tools_as_clients_offer_them() {
        let call = served("my-calc", "add", "{}");
        for (name, expected) in [
            ("add", true),
            ("my-calc_add", true),
            ("mcp__my_calc__add", true),
            ("my-calc-add", true),
            ("my_calc.add", true),
            ("readd", false),
            ("other_add", false),
            ("my-calc_sub", false),
        ] {
            assert_eq!(call.is_called(name), expected, "{name}");
        }
    }

    #[test]
    fn a_call_is_joined_to_the_one_agent_that_asked_for_it() {
        let given = r#"{"a":1}"#;
        for (asked, stated, expected) in [
            (vec![("x", "add", given)], None, Some("x")),
            (vec![("x", "add", r#"{ "a": 1 }"#), ("y", "sub", given)], None, Some("x")),
            (vec![("x", "add", given), ("y", "add", given)], None, None),
            (vec![("x", "add", given), ("x", "add", given)], None, Some("x")),
            (vec![("x", "add", "{}"), ("y", "add", given)], None, Some("y")),
            (vec![("x", "add", "{}")], None, Some("x")),
            (vec![("x", "add", r#"{"a":2}"#)], None, None),
            (vec![("x", "add", given), ("y", "add", given)], Some("y"), Some("y")),
            (vec![], Some("y"), Some("y")),
            (vec![], None, None),
        ] {
            let mut calls: Vec<PendingCall> =
                asked.iter().zip(0..).map(|((agent, name, given), step)| open(agent, step, name, given)).collect();
            let stated = stated.map(|agent| AgentName::parse(agent).expect("a name"));
            let caller = take_caller(&mut calls, &served("calc", "add", given), stated.as_ref());
            assert_eq!(caller.agent().map(AgentName::as_str), expected, "{asked:?} {stated:?}");
        }
    }

    #[test]
    fn each_call_of_a_reply_is_joined_once() {
        let mut calls = vec![open("x", 0, "add", "{}"), open("x", 3, "add", "{}")];
        let steps = [0, 1, 2].map(|_| match take_caller(&mut calls, &served("calc", "add", "{}"), None) {
            ToolCaller::Reply { step, .. } => Some(step),
            _ => None,
        });
        assert_eq!(steps, [Some(0), Some(3), None]);
    }
}
