//! What is kept of a run so far: hashes and counts, never whole texts, and never more than a bound.

use std::collections::{HashMap, HashSet, VecDeque};

use twox_hash::XxHash3_64;

use super::{
    WatchedStep,
    notation::in_text,
    text::{folded_words, hash},
    tool_error::{PASSING, is_error},
};
use crate::trajectory::StepIndex;

/// Agents that a run keeps apart.
const AGENTS: usize = 512;
/// Replies, calls and numbers that are remembered at least, each of an agent or a run; at most twice as many.
const REMEMBERED: usize = 1024;
/// Turns that are looked back on for cycles.
pub(super) const TURNS: usize = 12;
/// Tool results of an agent that count as its last ones.
pub(super) const RESULTS: usize = 6;
/// Shortest reply whose repetition means anything, in words.
const WORDS: usize = 20;
/// Messages of a request that are remembered: of a longer one, the last.
const MESSAGES: usize = 4096;

/// What has hashes for names, and forgets what was not asked for lately: two generations, the older is dropped.
#[derive(Debug)]
pub(super) struct Memory<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<V: Copy> Memory<V> {
    pub(super) fn get(&self, name: u64) -> Option<V> {
        self.young.get(&name).or_else(|| self.old.get(&name)).copied()
    }

    pub(super) fn insert(&mut self, name: u64, value: V) {
        if self.young.len() >= REMEMBERED {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(name, value);
    }
}

/// What is kept of an agent.
#[derive(Debug, Default)]
pub(super) struct AgentPast {
    /// Its longer replies, and the step of each.
    pub(super) replies: Memory<StepIndex>,
    /// Its tool calls: how often, and whether the last one's result was an error that waiting does not mend.
    pub(super) called: Memory<(u32, bool)>,
    /// The messages of its last request, prompts and tools aside.
    pub(super) history: Vec<u64>,
    /// The calls of its last reply, by id: what each is called in `called`, and its tool.
    pub(super) open_calls: Vec<(String, u64, String)>,
    /// Whether its last tool results were errors, oldest first.
    pub(super) results: VecDeque<bool>,
    /// The messages of its last request as they were written, each with a hash of its words: what is not among them is new.
    pub(super) request_messages: HashMap<u64, u64>,
}

/// What is kept of a run.
#[derive(Debug, Default)]
pub struct Past {
    agents: HashMap<u64, AgentPast>,
    /// Its last turns: who, and a hash of what was said.
    pub(super) turns: VecDeque<(u64, u64)>,
    /// Numbers that stood in what was asked and said.
    pub(super) numbers: Memory<()>,
    /// Where the work was said to be at its end.
    pub(super) ended: Option<StepIndex>,
    /// Names of the agents that spoke.
    pub(super) spoke: HashSet<String>,
    /// The last step, and who made it.
    pub(super) last: Option<(StepIndex, String, u32)>,
}

impl Past {
    /// What is kept of the agent of a step; nothing before its first.
    pub(super) fn agent(&self, step: &WatchedStep) -> Option<&AgentPast> {
        self.agents.get(&agent_key(&step.agent, step.instance))
    }

    /// The same by name.
    pub(super) fn agent_named(&self, agent: &str, instance: u32) -> Option<&AgentPast> {
        self.agents.get(&agent_key(agent, instance))
    }

    /// A step as a turn: who, and a hash of what was said.
    pub(super) fn turn(step: &WatchedStep) -> (u64, u64) {
        (agent_key(&step.agent, step.instance), step_hash(step))
    }

    /// Takes the numbers of a text as known.
    pub(super) fn knows(&mut self, text: &str) {
        in_text(text).for_each(|number| self.numbers.insert(hash(&number), ()));
    }

    /// Takes a step in.
    pub(super) fn learn(&mut self, step: &WatchedStep, ends: bool) {
        let key = agent_key(&step.agent, step.instance);
        if self.agents.len() >= AGENTS && !self.agents.contains_key(&key) {
            self.agents.clear();
        }
        let own = self.agents.entry(key).or_default();
        own.learn(step);
        self.turns.push_back(Self::turn(step));
        if self.turns.len() > TURNS {
            self.turns.pop_front();
        }
        self.knows(&step.given);
        self.knows(&step.reply);
        if ends {
            self.ended.get_or_insert(step.step);
        }
        if self.spoke.len() < AGENTS {
            self.spoke.insert(step.agent.clone());
        }
        self.last = Some((step.step, step.agent.clone(), step.instance));
    }
}

impl AgentPast {
    fn learn(&mut self, step: &WatchedStep) {
        if let Some(said) = long(step) {
            self.replies.insert(said, step.step);
        }
        for (call, failed) in outcomes(self, step) {
            if self.results.len() >= RESULTS {
                self.results.pop_front();
            }
            self.results.push_back(failed.is_some());
            if let Some(call) = call {
                let times = self.called.get(call).map_or(1, |(times, _)| times);
                self.called.insert(call, (times, failed.is_some_and(|lasts| lasts)));
            }
        }
        self.open_calls.clear();
        for call in &step.calls {
            let name = call.key();
            let (times, failed) = self.called.get(name).unwrap_or_default();
            self.called.insert(name, (times + 1, failed));
            self.open_calls.push((call.id.clone(), name, call.tool.clone()));
        }
        if let Some(history) = &step.history {
            let kept = history.len().saturating_sub(MESSAGES);
            self.history = history.get(kept..).unwrap_or_default().to_vec();
        }
        if let Some(heard) = &step.request_messages {
            self.request_messages = heard.iter().rev().take(MESSAGES).copied().collect();
        }
    }
}

/// What the results of a request say of the calls that they answer: the call, and, where it failed, whether the error lasts.
pub(super) fn outcomes(own: &AgentPast, step: &WatchedStep) -> Vec<(Option<u64>, Option<bool>)> {
    let told = |result: &super::WatchedResult| {
        let call = result.call.as_ref().map(super::WatchedCall::key);
        let call = call.or_else(|| own.open_calls.iter().find(|(id, ..)| *id == result.id).map(|(_, key, _)| *key));
        let failed = is_error(&result.text).then(|| {
            let text = result.text.to_lowercase();
            !PASSING.iter().any(|words| text.contains(words))
        });
        (call, failed)
    };
    step.results.iter().map(told).collect()
}

/// The hash of a reply that is long enough to be repeated.
pub(super) fn long(step: &WatchedStep) -> Option<u64> {
    let is_long = step.reply.split_whitespace().nth(WORDS - 1).is_some();
    is_long.then(|| hash(&folded_words(&step.reply)))
}

/// The hash of all that a step says and does.
pub(super) fn step_hash(step: &WatchedStep) -> u64 {
    let calls = step.calls.iter().map(|call| format!("\n{:x}", call.key()));
    hash(&calls.fold(folded_words(&step.reply), |whole, call| whole + &call))
}

fn agent_key(agent: &str, instance: u32) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(instance), agent.as_bytes())
}
