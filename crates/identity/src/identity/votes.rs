//! Names that the wire lets slip: quotes under a name, hand-offs, delegate tools, a selector's choice. They are votes
//! for a display name, proposed to a person and never an identity.

use std::collections::{BTreeMap, HashMap};

use super::{
    fingerprint::{Mark, is_fresh, sentences},
    history::{id_mark, text_mark},
    labels::{is_name, is_thing, without_verb},
    words::{Words, shingles},
};
use crate::{
    surface::{Outline, Reply, Role, ToolCall},
    trajectory::{AgentName, patterns},
};

/// Words of a text that a delegate tool's argument is compared with, in bytes.
const COMPARED: usize = 4096;
/// Steps of others that are looked at for the task.
const OTHERS_MAX: usize = 64;
/// Levels of a delegate tool's arguments that are looked into.
const NESTED_MAX: u32 = 6;

/// One step as it was heard: who spoke, what was asked, what was answered.
#[derive(Debug, Clone)]
pub struct ObservedStep<'a> {
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
    /// Whether it is more than a guess: a framework's own field, a hand-off, a delegate whose answer came back, or a
    /// transcript of several speakers.
    pub firm: bool,
}

/// Votes for a name.
#[derive(Debug, Default)]
struct NameVotes {
    votes: u32,
    firm: u32,
    evidence: &'static str,
}

type Votes = BTreeMap<AgentName, BTreeMap<String, NameVotes>>;

/// Who made a tool call, and of what tool, by the call's id.
type Callers<'a> = HashMap<Mark, (&'a AgentName, &'a str)>;

/// What a delegate tool was called with.
#[derive(Debug)]
struct DelegatedTask {
    words: Words,
    /// Whom it names.
    name: String,
    /// Whether an argument that is there for names does, and not the tool's own name.
    told: bool,
    call: Option<Mark>,
}

/// Proposes display names for the agents of a run; agents that nobody named are left out.
pub fn propose(heard: &[ObservedStep<'_>]) -> BTreeMap<AgentName, Proposal> {
    let mut votes = Votes::new();
    let mut said: HashMap<Mark, &AgentName> = HashMap::new();
    let mut calls: Callers<'_> = HashMap::new();
    let mut tasks: Vec<DelegatedTask> = Vec::new();
    // Who took a delegate tool's call up, and what the tool calls it.
    let mut taken: HashMap<Mark, (&AgentName, String)> = HashMap::new();
    let mut answered: HashMap<&AgentName, Vec<Mark>> = HashMap::new();
    let mut chosen: Option<String> = None;
    let task = task(heard);
    for step in heard {
        if is_helper(step.agent) {
            chosen = step.reply.as_ref().and_then(|reply| reply.answers.first()).map(|answer| answer.message.text());
        } else if let Some(choice) = chosen.take().filter(|choice| is_name(choice.trim())) {
            vote(&mut votes, step.agent, choice.trim(), 1, true, "a selector chose it before this call");
        }
        quotes(step, &said, &calls, &mut votes);
        labels(step, &said, &task, &mut votes);
        hand_offs(step, &calls, &mut votes);
        came_back(step, &taken, &answered, &mut votes);
        taken.extend(delegates(step, &tasks, &mut votes));
        for answer in step.reply.iter().flat_map(|reply| &reply.answers) {
            let text = answer.message.text();
            said.extend(text_mark(&text).map(|mark| (mark, step.agent)));
            answered.entry(step.agent).or_default().extend(shingles(&text).into_iter().chain(text_mark(&text)));
            said.extend(
                text.lines().next().filter(|line| line.len() > 24).and_then(text_mark).map(|mark| (mark, step.agent)),
            );
            for call in &answer.message.tool_calls {
                calls.extend(id_mark(&call.id).map(|mark| (mark, (step.agent, call.name.as_str()))));
                tasks.extend(task_of(call));
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

fn vote(votes: &mut Votes, agent: &AgentName, name: &str, weight: u32, firm: bool, evidence: &'static str) {
    if AgentName::parse(name).is_ok() {
        let known = votes.entry(agent.clone()).or_default().entry(name.to_owned()).or_default();
        if known.votes == 0 || (firm && known.firm == 0) {
            known.evidence = evidence;
        }
        known.votes += weight;
        known.firm += if firm { weight } else { 0 };
    }
}

/// An answer comes back later under a name that a field says.
fn quotes(step: &ObservedStep<'_>, said: &HashMap<Mark, &AgentName>, calls: &Callers<'_>, votes: &mut Votes) {
    for message in &step.outline.messages {
        let text = message.text();
        if let (Some(name), Some(agent)) = (&message.name, text_mark(&text).and_then(|mark| said.get(&mark))) {
            vote(votes, agent, name, 2, true, "its answer came back under this name");
        }
        if let (Some(name), true) = (&message.name, message.role == Role::Assistant && message.has_calls()) {
            let own = |id: &str| Some(calls.get(&id_mark(id)?)?.0);
            if let Some(agent) = message.calls().iter().find_map(|call| own(&call.id)) {
                vote(votes, agent, name, 2, true, "its tool call came back under this name");
            }
        }
    }
}

/// Answers come back behind `Name: `. One such line may as well say what the answer is (`Draft: …`); two of different
/// speakers make a transcript, unless the words say what was made or stand in the task.
fn labels<'a>(step: &ObservedStep<'_>, said: &HashMap<Mark, &'a AgentName>, task: &str, votes: &mut Votes) {
    let mut labels: Vec<(&'a AgentName, String)> = Vec::new();
    for message in &step.outline.messages {
        let text = message.text();
        for line in text.lines() {
            let Some((name, words)) = line.split_once(": ") else { continue };
            let name = without_verb(name.trim());
            let speaker = text_mark(words).and_then(|mark| said.get(&mark)).filter(|_| is_name(name));
            labels.extend(speaker.map(|agent| (*agent, name.to_owned())));
        }
    }
    let is_transcript = |(agent, name): &(&AgentName, String)| {
        labels.iter().any(|(other, theirs)| other != agent && theirs != name && !is_thing(theirs))
    };
    for label in &labels {
        let (agent, name) = label;
        let of_task = || name.split(' ').any(|word| task.contains(&word.to_lowercase()));
        let firm = is_transcript(label) && !is_thing(name) && !of_task();
        vote(votes, agent, name, 2, firm, "its answer came back behind this name");
    }
}

/// The task, in lower case: what the run opens with, as far as others are asked it too.
fn task(heard: &[ObservedStep<'_>]) -> String {
    let Some(first) = heard.first() else { return String::new() };
    let opening = first.outline.first_user().unwrap_or_default();
    let others: Vec<_> = heard.iter().filter(|step| step.agent != first.agent).take(OTHERS_MAX).collect();
    let asked = |sentence: &&str| {
        let mut texts = others.iter().flat_map(|step| &step.outline.messages);
        texts.any(|said| said.text().contains(sentence))
    };
    let shared: Vec<&str> = sentences(&opening).filter(asked).collect();
    if shared.is_empty() { opening.to_lowercase() } else { shared.join(" ").to_lowercase() }
}

/// A delegate tool's result holds what was answered by who took its call up: the tool is that agent's.
fn came_back(
    step: &ObservedStep<'_>,
    taken: &HashMap<Mark, (&AgentName, String)>,
    answered: &HashMap<&AgentName, Vec<Mark>>,
    votes: &mut Votes,
) {
    for message in step.outline.messages.iter().rev().take_while(|message| message.role == Role::Tool) {
        let call = message.answers_call.as_deref().and_then(id_mark);
        let Some((agent, name)) = call.and_then(|call| taken.get(&call)) else { continue };
        let words = answered.get(agent).map(Vec::as_slice).unwrap_or_default();
        // Five words in a row, or all of a shorter answer.
        let text = message.text();
        if shingles(&text).iter().chain(&text_mark(&text)).any(|mark| words.contains(mark)) {
            vote(votes, agent, name, 1, true, "a delegate tool was called with its task and gave its answer back");
        }
    }
}

/// The request follows a hand-off that names who goes on.
fn hand_offs(step: &ObservedStep<'_>, calls: &Callers<'_>, votes: &mut Votes) {
    let Some(last) = step.outline.messages.last() else { return };
    let text = last.text();
    if let Some(name) = ACTIVE.captures(&text).and_then(|captures| captures.get(1)) {
        return vote(votes, step.agent, name.as_str(), 3, true, "a hand-off's result names it");
    }
    if last.role == Role::Tool
        && let Some((caller, tool)) = last.answers_call.as_deref().and_then(id_mark).and_then(|mark| calls.get(&mark))
        && *caller != step.agent
        && let Some(name) = TRANSFER.captures(tool).and_then(|captures| captures.get(1))
    {
        return vote(votes, step.agent, name.as_str(), 1, true, "a hand-off's tool names it");
    }
    if let Some(name) = MOVED.captures(&text).and_then(|captures| captures.get(1)) {
        // Words alone may be anybody's; a tool of that name makes them a hand-off's.
        let handed = |(_, tool): &(&AgentName, &str)| {
            TRANSFER.captures(tool).and_then(|captures| captures.get(1)).is_some_and(|to| to.as_str() == name.as_str())
        };
        let firm = last.role == Role::Tool || calls.values().any(handed);
        vote(votes, step.agent, name.as_str(), 1, firm, "a hand-off's words name it");
    }
}

/// The first user text is what a delegate tool was called with. Only the request that takes the work up tells: later
/// ones have it too, and so has whoever passed it on since.
fn delegates<'a>(
    step: &ObservedStep<'a>,
    tasks: &[DelegatedTask],
    votes: &mut Votes,
) -> Option<(Mark, (&'a AgentName, String))> {
    let user = step.outline.first_user().filter(|_| is_fresh(&step.outline))?;
    let user = Words::new(&user, COMPARED);
    let task = tasks.iter().rev().find(|task| task.words.are_in(&user))?;
    vote(votes, step.agent, &task.name, 1, task.told, "a delegate tool was called with its task");
    Some((task.call?, (step.agent, task.name.clone())))
}

/// What a delegate tool asks of whom: the longest text among its arguments, and the agent in the tool's name or arguments.
fn task_of(call: &ToolCall) -> Option<DelegatedTask> {
    const NAMES: [&str; 8] =
        ["coworker", "agent_name", "member_id", "agent", "to_agent", "subagent_type", "recipient_agent", "recipient"];
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
    let told = NAMES.iter().find_map(|key| arguments.get(*key)?.as_str()).map(str::to_owned);
    let is_told = told.is_some();
    let name = told.or_else(|| DELEGATE.captures(&call.name)?.get(1).map(|name| name.as_str().to_owned()))?;
    let name = Some(name).filter(|name| is_name(name))?;
    let mut longest = "";
    longest_text(&arguments, NESTED_MAX, &mut longest);
    let words = Words::new(longest, COMPARED);
    let call = id_mark(&call.id);
    words.are_enough().then_some(DelegatedTask { words, name, told: is_told, call })
}

/// The longest text in a value, so many levels deep.
fn longest_text<'a>(value: &'a serde_json::Value, levels: u32, longest: &mut &'a str) {
    let inner: Box<dyn Iterator<Item = &serde_json::Value>> = match value {
        serde_json::Value::String(text) if text.len() > longest.len() => {
            *longest = text;
            return;
        }
        serde_json::Value::Array(values) if levels > 0 => Box::new(values.iter()),
        serde_json::Value::Object(values) if levels > 0 => Box::new(values.values()),
        _ => return,
    };
    for value in inner {
        longest_text(value, levels - 1, longest);
    }
}

/// The name with most votes, where it has most of them and no other agent has more for it. Where some are more than
/// guesses, only those count.
fn decide(votes: &Votes) -> BTreeMap<AgentName, Proposal> {
    let best = |names: &BTreeMap<String, NameVotes>| {
        let firm = names.values().any(|known| known.firm > 0);
        let count = |known: &NameVotes| if firm { known.firm } else { known.votes };
        let (name, known) = names.iter().max_by_key(|(_, known)| count(known))?;
        let (votes, all) = (count(known), names.values().map(count).sum::<u32>());
        let proposal = Proposal { name: name.clone(), votes, against: all - votes, evidence: known.evidence, firm };
        (proposal.votes > proposal.against).then_some(proposal)
    };
    let proposals: BTreeMap<AgentName, Proposal> =
        votes.iter().filter_map(|(agent, names)| Some((agent.clone(), best(names)?))).collect();
    let rivals = |agent: &AgentName, proposal: &Proposal| {
        let strong = |of: &Proposal| (of.firm, of.votes);
        proposals
            .iter()
            .any(|(other, theirs)| other != agent && theirs.name == proposal.name && strong(theirs) >= strong(proposal))
    };
    let clear = proposals.iter().filter(|(agent, proposal)| !rivals(agent, proposal));
    clear.map(|(agent, proposal)| (agent.clone(), proposal.clone())).collect()
}

patterns! {
    ACTIVE = r#"\A\{"assistant": ?"([^"]{1,128})"\}\z"#;
    TRANSFER = r"(?:transfer|hand_?off)_(?:back_)?to_([A-Za-z0-9_-]{1,64})\z";
    MOVED = r"(?:\A(?:Successfully )?[Tt]ransferr(?:ed|ing) (?:back )?to |\AAgent )([A-Za-z0-9_.-]{1,64}?)(?:\.|,|\z| is now handling)";
    DELEGATE = r"\A(?:task|agent|ask|call|delegate_to)[_-]([A-Za-z0-9_-]{1,64})\z";
}

#[cfg(test)]
#[path = "votes_tests.rs"]
mod tests;
