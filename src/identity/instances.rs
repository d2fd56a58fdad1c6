//! Which of several equal agents asks: by its own history, else by when it asks. Where that is all there is, it is said.

use std::collections::{HashMap, VecDeque};

use super::{
    fingerprint::Mark,
    recent::Recent,
    tries::{SaidTries, Tries},
};

/// Different questions that a run remembers in order to know when one is asked again.
pub(super) const ASKED_MAX: usize = 4096;
/// Equal agents of one name that are told apart; what more there are is marked as not known.
const EQUALS_MAX: usize = 256;

/// An agent's number within its run.
pub(super) type AgentNumber = u32;

/// The questions of a run's agents.
#[derive(Debug)]
pub(super) struct Instances {
    asked: Recent<(AgentNumber, Mark), AskedWords>,
    /// Of agents that have been seen to be several: who they are, the one that asked longest ago first.
    several: HashMap<AgentNumber, VecDeque<u32>>,
    /// How often a client was seen to have tried.
    most: u32,
}

/// One agent's question, all its own earlier words included.
#[derive(Debug, Clone, Default)]
struct AskedWords {
    /// The instances that asked it, in order.
    by: Vec<u32>,
    tries: Tries<u32>,
}

/// Which instance, and whether order alone says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) number: u32,
    pub(super) ambiguous: bool,
}

impl Default for Instances {
    fn default() -> Self {
        Self { asked: Recent::new(ASKED_MAX), several: HashMap::new(), most: 0 }
    }
}

impl Instances {
    /// A question arrives. `own`: the instance that the request's own history names; `said`: how often the
    /// client says that it has tried.
    pub(super) fn ask(&mut self, agent: AgentNumber, question: Mark, own: Option<u32>, said: SaidTries) -> Instance {
        let asked = self.asked.entry((agent, question), AskedWords::default);
        let last = asked.by.last().copied();
        let at_once = asked.tries.in_flight();
        let most = self.most;
        self.most = most.max(said.unwrap_or_default());
        let retried =
            asked.tries.again(said, most, |number| own.is_none_or(|own| own == *number)).map(|(number, _)| *number);
        if let (Some(number), None) = (retried, own) {
            // Another attempt is whoever made the first.
            return Instance { number, ambiguous: self.several.contains_key(&agent) };
        }
        let again = last.is_some() && retried.is_none();
        let full = asked.by.len() >= EQUALS_MAX;
        let known = self.several.get(&agent);
        // Where nothing tells which, the one that asked longest ago: right where equal agents speak in rounds.
        let silent = || known.and_then(|order| order.iter().find(|number| !asked.by.contains(number)).copied());
        let next = || u32::try_from(known.map_or(asked.by.len(), VecDeque::len)).unwrap_or(u32::MAX);
        let number = own.or_else(silent).unwrap_or_else(next);
        let ambiguous = own.is_none() && ((again && (!at_once || full)) || (known.is_some() && !again));
        if !full {
            asked.by.push(number);
        }
        if retried.is_none() {
            asked.tries.ask(number);
        }
        if again && own.is_none() || known.is_some() {
            self.spoke(agent, number);
        }
        // The same words twice at once are two agents; one after the other they may be one that asks again.
        Instance { number, ambiguous }
    }

    /// Puts an instance behind all others of its agent; the first time, those before it come first.
    fn spoke(&mut self, agent: AgentNumber, number: u32) {
        let order = self.several.entry(agent).or_insert_with(|| (0..number).take(EQUALS_MAX).collect());
        order.retain(|known| *known != number);
        if order.len() < EQUALS_MAX {
            order.push_back(number);
        }
    }

    /// A question that was asked before a restart.
    pub(super) fn recall(&mut self, agent: AgentNumber, question: Mark, number: u32) {
        let asked = self.asked.entry((agent, question), AskedWords::default);
        if asked.by.len() < EQUALS_MAX && !asked.by.contains(&number) {
            asked.by.push(number);
        }
        if number > 0 || self.several.contains_key(&agent) {
            self.spoke(agent, number);
        }
    }

    /// A question was answered, or failed.
    pub(super) fn end(&mut self, agent: AgentNumber, question: Mark, number: u32, failed: bool) {
        if let Some(asked) = self.asked.get_mut(&(agent, question)) {
            asked.tries.end(|known| *known == number, failed);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions and ends in order → the instance of each question, `?` where order alone says so.
    fn told(events: &[&str]) -> String {
        let mut instances = Instances::default();
        let mut told = Vec::new();
        let mut open: Vec<(u64, u32)> = Vec::new();
        for event in events {
            let question = u64::from(event.as_bytes().get(1).copied().unwrap_or_default());
            match event.bytes().next() {
                Some(b'?') => {
                    let own = event.get(2..3).and_then(|own| own.parse().ok());
                    let instance = instances.ask(0, question, own, None);
                    open.push((question, instance.number));
                    told.push(format!("{}{}", instance.number, if instance.ambiguous { "?" } else { "" }));
                }
                end => {
                    let first = open.iter().position(|(asked, _)| *asked == question).expect("it was asked");
                    let (_, number) = open.remove(first);
                    instances.end(0, question, number, end != Some(b'.'));
                }
            }
        }
        told.join(" ")
    }

    #[test]
    fn equal_agents_are_told_apart_or_said_to_be_alike() {
        for (events, expected) in [
            // One agent that is called with different words.
            (vec!["?a", ".a", "?b", ".b", "?c"], "0 0 0"),
            // Its retry.
            (vec!["?a", "!a", "?a", ".a", "?b"], "0 0 0"),
            // Three at once that ask the same, then go on from their own answers.
            (vec!["?a", "?a", "?a", ".a", ".a", ".a", "?b1", "?c0", "?d2"], "0 1 2 1 0 2"),
            // The same words one after the other: the wire cannot tell, then or later.
            (vec!["?a", ".a", "?a", ".a", "?b"], "0 1? 0?"),
            // Three that speak in rounds, each round with new words: the order of the first round, in doubt.
            (vec!["?a", "?a", "?a", ".a", "?b", ".b", "?c", ".c", "?d", ".d", "?e"], "0 1 2 0? 1? 2? 0?"),
            // One of them speaks out of turn, known by its own words: the others come before it.
            (vec!["?a", "?a", "?a", ".a", "?b0", ".b", "?c", ".c", "?d"], "0 1 2 0 1? 2?"),
            // The retry of a question is whoever asked it.
            (vec!["?a", "?a", ".a", "?b", "!b", "?b", ".b", "?c"], "0 1 0? 0? 1?"),
        ] {
            assert_eq!(told(&events), expected, "{events:?}");
        }
    }
}
