//! Which of several equal agents asks: by its own history, else by when it asks. Where that is all there is, it is said.

use std::collections::HashSet;

use super::{fingerprint::Mark, recent::Recent};

/// Different questions that a run remembers in order to know when one is asked again.
pub(super) const ASKED_MAX: usize = 4096;

/// An agent's number within its run.
pub(super) type AgentNumber = u32;

/// The questions of a run's agents.
#[derive(Debug)]
pub(super) struct Instances {
    asked: Recent<(AgentNumber, Mark), Asked>,
    /// Agents that have been seen to be several.
    several: HashSet<AgentNumber>,
}

/// One agent's question, all its own earlier words included.
#[derive(Debug, Clone, Default)]
struct Asked {
    times: u32,
    in_flight: u32,
    failed: bool,
}

/// Which instance, and whether order alone says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) number: u32,
    pub(super) ambiguous: bool,
}

impl Default for Instances {
    fn default() -> Self {
        Self { asked: Recent::new(ASKED_MAX), several: HashSet::new() }
    }
}

impl Instances {
    /// A question arrives. `own`: the instance that the request's own history names; `retry`: the client says that it
    /// tries again.
    pub(super) fn ask(&mut self, agent: AgentNumber, question: Mark, own: Option<u32>, retry: bool) -> Instance {
        let several = self.several.contains(&agent);
        let asked = self.asked.entry((agent, question), Asked::default);
        let again = asked.times > 0 && !asked.failed && !retry;
        let at_once = asked.in_flight > 0;
        let number = if again { asked.times } else { asked.times.saturating_sub(1) };
        asked.times += u32::from(again || asked.times == 0);
        asked.in_flight += 1;
        asked.failed = false;
        if let Some(own) = own {
            return Instance { number: own, ambiguous: false };
        }
        if again {
            self.several.insert(agent);
        }
        // The same words twice at once are two agents; one after the other they may be one that asks again.
        Instance { number, ambiguous: (again && !at_once) || (several && !again) }
    }

    /// A question that was asked before a restart.
    pub(super) fn recall(&mut self, agent: AgentNumber, question: Mark, number: u32) {
        let asked = self.asked.entry((agent, question), Asked::default);
        asked.times = asked.times.max(number + 1);
        if number > 0 {
            self.several.insert(agent);
        }
    }

    /// A question was answered, or failed.
    pub(super) fn end(&mut self, agent: AgentNumber, question: Mark, failed: bool) {
        if let Some(asked) = self.asked.get_mut(&(agent, question)) {
            asked.in_flight = asked.in_flight.saturating_sub(1);
            asked.failed = failed;
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
        for event in events {
            let question = u64::from(event.as_bytes().get(1).copied().unwrap_or_default());
            match event.bytes().next() {
                Some(b'?') => {
                    let own = event.get(2..3).and_then(|own| own.parse().ok());
                    let instance = instances.ask(0, question, own, false);
                    told.push(format!("{}{}", instance.number, if instance.ambiguous { "?" } else { "" }));
                }
                Some(b'.') => instances.end(0, question, false),
                _ => instances.end(0, question, true),
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
        ] {
            assert_eq!(told(&events), expected, "{events:?}");
        }
    }
}
