//! Names that the wire lets slip: quotes under a name, hand-offs, delegate tools, a selector's choice. They are votes
//! for a display name, proposed to a person and never an identity.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use regex::Regex;

use super::{
    fingerprint::{Mark, is_fresh},
    speakers::{id_mark, text_mark},
    words::Words,
};
use crate::{
    surface::{Outline, Reply, Role},
    trajectory::AgentName,
};

/// Words of a text that a delegate tool's argument is compared with, in bytes.
const COMPARED: usize = 4096;

/// One step as it was heard: who spoke, what was asked, what was answered.
#[derive(Debug, Clone)]
pub struct Heard<'a> {
    /// The agent, by the record or by the late pass.
    pub agent: &'a AgentName,
    /// The request.
    pub outline: Outline<'a>,
    /// The answer that was delivered.
    pub reply: Option<Reply>,
}

/// A proposed name, with what speaks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The name.
    pub name: String,
    /// Votes for it.
    pub votes: u32,
    /// Votes for other names.
    pub against: u32,
    /// Where the first vote came from.
    pub evidence: &'static str,
}

type Votes = BTreeMap<AgentName, BTreeMap<String, (u32, &'static str)>>;

/// Who made a tool call, and of what tool, by the call's id.
type Calls<'a> = HashMap<Mark, (&'a AgentName, &'a str)>;

/// Proposes display names for the agents of a run; agents that nobody named are left out.
pub fn propose(heard: &[Heard<'_>]) -> BTreeMap<AgentName, Proposal> {
    let mut votes = Votes::new();
    let mut said: HashMap<Mark, &AgentName> = HashMap::new();
    let mut calls: Calls<'_> = HashMap::new();
    let mut tasks: Vec<(Words, String)> = Vec::new();
    let mut chosen: Option<String> = None;
    for step in heard {
        if is_helper(step.agent) {
            chosen = step.reply.as_ref().and_then(|reply| reply.answers.first()).map(|answer| answer.message.text());
        } else if let Some(choice) = chosen.take().filter(|choice| is_name(choice.trim())) {
            vote(&mut votes, step.agent, choice.trim(), 1, "a selector chose it before this call");
        }
        quotes(step, &said, &calls, &mut votes);
        hand_offs(step, &calls, &mut votes);
        delegates(step, &tasks, &mut votes);
        for answer in step.reply.iter().flat_map(|reply| &reply.answers) {
            let text = answer.message.text();
            said.extend(text_mark(&text).map(|mark| (mark, step.agent)));
            said.extend(
                text.lines().next().filter(|line| line.len() > 24).and_then(text_mark).map(|mark| (mark, step.agent)),
            );
            for call in &answer.message.tool_calls {
                calls.extend(id_mark(&call.id).map(|mark| (mark, (step.agent, call.name.as_str()))));
                tasks.extend(task_of(&call.name, &call.arguments));
            }
        }
    }
    decide(&votes)
}

/// Whether an agent is another one's helper: a selector, a summariser, by its name.
pub fn is_helper(agent: &AgentName) -> bool {
    helper_role(agent).is_some()
}

/// The role of a helper.
pub fn helper_role(agent: &AgentName) -> Option<&str> {
    let (_, role) = agent.as_str().rsplit_once('/')?;
    ["selector", "summary", "planner", "ranker", "embedding"].into_iter().find(|known| *known == role)
}

/// Whether a tool hands the conversation over to another agent, by its name.
pub fn hands_over(tool: &str) -> bool {
    TRANSFER.captures(tool).is_some() || matches!(tool, "transfer_to_agent" | "handoff" | "handoff_to_agent")
}

fn vote(votes: &mut Votes, agent: &AgentName, name: &str, weight: u32, evidence: &'static str) {
    if AgentName::parse(name).is_ok() {
        votes.entry(agent.clone()).or_default().entry(name.to_owned()).or_insert((0, evidence)).0 += weight;
    }
}

/// An answer comes back later under a name, or after `Name: `.
fn quotes(step: &Heard<'_>, said: &HashMap<Mark, &AgentName>, calls: &Calls<'_>, votes: &mut Votes) {
    for message in &step.outline.said {
        let text = message.text();
        if let (Some(name), Some(agent)) = (&message.name, text_mark(&text).and_then(|mark| said.get(&mark))) {
            vote(votes, agent, name, 2, "its answer came back under this name");
        }
        if let (Some(name), true) = (&message.name, message.role == Role::Assistant && message.has_calls()) {
            let own = |id: &str| Some(calls.get(&id_mark(id)?)?.0);
            if let Some(agent) = message.calls().iter().find_map(|call| own(&call.id)) {
                vote(votes, agent, name, 2, "its tool call came back under this name");
            }
        }
        for line in text.lines() {
            let Some((name, words)) = line.split_once(": ").filter(|(name, _)| is_name(name)) else { continue };
            if let Some(agent) = text_mark(words).and_then(|mark| said.get(&mark)) {
                vote(votes, agent, name, 2, "its answer came back behind this name");
            }
        }
    }
}

/// The request follows a hand-off that names who goes on.
fn hand_offs(step: &Heard<'_>, calls: &Calls<'_>, votes: &mut Votes) {
    let Some(last) = step.outline.said.last() else { return };
    let text = last.text();
    if let Some(name) = ACTIVE.captures(&text).and_then(|captures| captures.get(1)) {
        return vote(votes, step.agent, name.as_str(), 3, "a hand-off's result names it");
    }
    if last.role == Role::Tool
        && let Some((caller, tool)) = last.answers_call.as_deref().and_then(id_mark).and_then(|mark| calls.get(&mark))
        && *caller != step.agent
        && let Some(name) = TRANSFER.captures(tool).and_then(|captures| captures.get(1))
    {
        return vote(votes, step.agent, name.as_str(), 1, "a hand-off's tool names it");
    }
    if let Some(name) = MOVED.captures(&text).and_then(|captures| captures.get(1)) {
        vote(votes, step.agent, name.as_str(), 1, "a hand-off's words name it");
    }
}

/// The first user text is what a delegate tool was called with. Only the request that takes the work up tells: later
/// ones have it too, and so has whoever passed it on since.
fn delegates(step: &Heard<'_>, tasks: &[(Words, String)], votes: &mut Votes) {
    let Some(user) = step.outline.first_user().filter(|_| is_fresh(&step.outline)) else { return };
    let user = Words::new(&user, COMPARED);
    if let Some((_, name)) = tasks.iter().rev().find(|(task, _)| task.are_in(&user)) {
        vote(votes, step.agent, name, 1, "a delegate tool was called with its task");
    }
}

/// What a delegate tool asks of whom: the longest string argument, and the agent in the tool's name or arguments.
fn task_of(tool: &str, arguments: &str) -> Option<(Words, String)> {
    let arguments: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).ok()?;
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(*key)?.as_str()).map(str::to_owned);
    let told = text(&["coworker", "agent_name", "member_id", "agent", "to_agent"]);
    let name = told.or_else(|| DELEGATE.captures(tool)?.get(1).map(|name| name.as_str().to_owned()))?;
    let name = Some(name).filter(|name| is_name(name))?;
    let task = arguments.values().filter_map(|value| value.as_str()).max_by_key(|task| task.len())?;
    let task = Words::new(task, COMPARED);
    task.are_enough().then_some((task, name))
}

/// The name with most votes, where it has most of them and no other agent has more for it.
fn decide(votes: &Votes) -> BTreeMap<AgentName, Proposal> {
    let best = |names: &BTreeMap<String, (u32, &'static str)>| {
        let (name, (most, evidence)) = names.iter().max_by_key(|(_, (votes, _))| *votes)?;
        let all: u32 = names.values().map(|(votes, _)| votes).sum();
        let proposal = Proposal { name: name.clone(), votes: *most, against: all - most, evidence };
        (proposal.votes > proposal.against).then_some(proposal)
    };
    let proposals: BTreeMap<AgentName, Proposal> =
        votes.iter().filter_map(|(agent, names)| Some((agent.clone(), best(names)?))).collect();
    let rivals = |agent: &AgentName, proposal: &Proposal| {
        proposals
            .iter()
            .any(|(other, theirs)| other != agent && theirs.name == proposal.name && theirs.votes >= proposal.votes)
    };
    let clear = proposals.iter().filter(|(agent, proposal)| !rivals(agent, proposal));
    clear.map(|(agent, proposal)| (agent.clone(), proposal.clone())).collect()
}

/// Whether a text could be an agent's name: one to four words of letters, digits and `_ . -`.
fn is_name(text: &str) -> bool {
    let words = text.split(' ').count();
    let sign = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.');
    (1..=4).contains(&words)
        && text.len() <= 64
        && text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(sign)
}

/// A pattern of ours; one that is broken matches nothing, and a test says so.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

struct Lazy(LazyLock<Option<Regex>>);

impl Lazy {
    fn captures<'t>(&self, text: &'t str) -> Option<regex::Captures<'t>> {
        self.0.as_ref()?.captures(text)
    }
}

static ACTIVE: Lazy = Lazy(LazyLock::new(|| pattern(r#"\A\{"assistant": ?"([^"]{1,128})"\}\z"#)));
static TRANSFER: Lazy = Lazy(LazyLock::new(|| pattern(r"(?:transfer|hand_?off)_(?:back_)?to_([A-Za-z0-9_-]{1,64})\z")));
static MOVED: Lazy = Lazy(LazyLock::new(|| {
    pattern(
        r"(?:\A(?:Successfully )?[Tt]ransferr(?:ed|ing) (?:back )?to |\AAgent )([A-Za-z0-9_.-]{1,64}?)(?:\.|,|\z| is now handling)",
    )
}));
static DELEGATE: Lazy =
    Lazy(LazyLock::new(|| pattern(r"\A(?:task|agent|ask|call|delegate_to)[_-]([A-Za-z0-9_-]{1,64})\z")));

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::surface::{OpenaiChat, Surface};

    /// Steps as (agent, messages, reply) → proposals as `agent=name`.
    fn proposed(steps: &[(&str, serde_json::Value, serde_json::Value)]) -> String {
        let steps: Vec<_> = steps
            .iter()
            .map(|(agent, messages, reply)| {
                let asked = json!({"model": "m", "messages": messages}).to_string();
                let answered = json!({"choices": [{"index": 0, "message": reply}]}).to_string();
                (AgentName::parse(agent).expect("a name"), asked, answered)
            })
            .collect();
        let heard: Vec<Heard<'_>> = steps
            .iter()
            .map(|(agent, asked, answered)| Heard {
                agent,
                outline: OpenaiChat.outline(asked.as_bytes()).expect("a request"),
                reply: OpenaiChat.read_reply(answered.as_bytes()).ok(),
            })
            .collect();
        propose(&heard).iter().map(|(agent, p)| format!("{agent}={}", p.name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn patterns_are_patterns() {
        for lazy in [&ACTIVE, &TRANSFER, &MOVED, &DELEGATE] {
            assert!(lazy.0.is_some());
        }
    }

    #[test]
    fn names_slip_out_where_agents_speak_of_each_other() {
        let say = |text: &str| json!({"role": "assistant", "content": text});
        let user = |text: &str| json!([{"role": "user", "content": text}]);
        let call = |name: &str, arguments: &str| {
            json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("id-{name}"), "type": "function", "function": {"name": name, "arguments": arguments}}]})
        };
        let answer = |name: &str, text: &str| {
            json!([{"role": "user", "content": "go"}, call(name, "{}"),
            {"role": "tool", "tool_call_id": format!("id-{name}"), "content": text}])
        };
        for (steps, expected) in [
            (
                vec![
                    ("a", user("go"), say("First words here.")),
                    ("b", json!([{"role": "user", "name": "writer", "content": "First words here."}]), say("x")),
                ],
                "a=writer",
            ),
            (
                vec![
                    ("a", user("go"), say("First words here.")),
                    ("b", user("So far\nTech Writer: First words here."), say("x")),
                ],
                "a=Tech Writer",
            ),
            (
                vec![
                    ("a", user("go"), call("transfer_to_seat_agent", "{}")),
                    ("b", answer("transfer_to_seat_agent", r#"{"assistant": "Seat Agent"}"#), say("x")),
                ],
                "b=Seat Agent",
            ),
            (
                vec![
                    ("a", user("go"), call("transfer_to_math", "{}")),
                    ("b", answer("transfer_to_math", "Successfully transferred to math"), say("x")),
                ],
                "b=math",
            ),
            (
                vec![
                    ("a", user("go"), call("task_finance", r#"{"objective": "Find what the vans cost us"}"#)),
                    ("b", user("Find what the vans cost us"), say("x")),
                ],
                "b=finance",
            ),
            // A text where a name should stand is no name.
            (
                vec![
                    (
                        "a",
                        user("go"),
                        call(
                            "delegate",
                            r#"{"member_id": "What the vans cost us?", "task": "Find what the vans cost us"}"#,
                        ),
                    ),
                    ("b", user("Find what the vans cost us"), say("x")),
                ],
                "",
            ),
            (vec![("s/selector", user("who?"), say("Planner")), ("b", user("go"), say("x"))], "b=Planner"),
            // Two agents that one name would fit: neither gets it.
            (
                vec![
                    ("s/selector", user("who?"), say("Planner")),
                    ("b", user("go"), say("x")),
                    ("s/selector", user("who?"), say("Planner")),
                    ("c", user("go"), say("x")),
                ],
                "",
            ),
            (vec![("a", user("go"), say("hello")), ("b", user("<b>x</b>: hello"), say("x"))], ""),
        ] {
            assert_eq!(proposed(&steps), expected);
        }
    }
}
