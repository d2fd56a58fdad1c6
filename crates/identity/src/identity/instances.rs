//! Which of several equal agents asks: by its own history, else by when it asks. Where that is all there is, it is said.

use std::collections::{HashMap, VecDeque};

use super::{
    fingerprint::Mark,
    recent::Recent,
    roster::{DeclaredOrder, SpeakingOrder},
};

/// Different requests that a run remembers.
pub(super) const QUESTIONS_MAX: usize = 4096;
/// Equal agents of one name that are told apart; what more there are is marked as not known.
const EQUALS_MAX: usize = 256;

/// An agent's number within its run.
pub(super) type AgentNumber = u32;

/// The questions of a run's agents.
#[derive(Debug)]
pub(super) struct Instances {
    questions: Recent<(AgentNumber, Mark), QuestionState>,
    /// Of agents that have been seen to be several: who they are, the one that asked longest ago first.
    several: HashMap<AgentNumber, VecDeque<u32>>,
    /// Of agents whose order is declared: the calls of each so far, and how many of them are under way.
    declared: HashMap<AgentNumber, DeclaredCalls>,
}

/// The calls of equal agents whose order is declared.
#[derive(Debug, Clone, Default)]
struct DeclaredCalls {
    /// How often each has begun to speak: a round is over when all have as often.
    spoken: Vec<u32>,
    in_flight: u32,
}

/// One agent's question, all its own earlier words included.
#[derive(Debug, Clone, Default)]
struct QuestionState {
    /// The instances that asked it, in order.
    by: Vec<u32>,
    in_flight: u32,
    /// The instances whose latest try failed, the earliest first.
    failed: VecDeque<u32>,
}

/// Which instance, and whether order alone says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) number: u32,
    pub(super) ambiguous: bool,
}

/// What is known of who asks beside the words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InstanceEvidence {
    /// The instance that the request's own history names.
    pub(super) own: Option<u32>,
    /// The instance whose call the request tries again.
    pub(super) retried: Option<u32>,
    /// The order that the user declares.
    pub(super) order: Option<DeclaredOrder>,
}

impl Default for Instances {
    fn default() -> Self {
        Self { questions: Recent::new(QUESTIONS_MAX), several: HashMap::new(), declared: HashMap::new() }
    }
}

impl Instances {
    /// A question arrives.
    pub(super) fn ask(&mut self, agent: AgentNumber, question: Mark, known: InstanceEvidence) -> Instance {
        let InstanceEvidence { own, retried, order } = known;
        if let Some(order) = order {
            return self.ask_in_order(agent, order, own.or(retried));
        }
        let asked = self.questions.entry((agent, question), QuestionState::default);
        let at_once = asked.in_flight > 0;
        asked.in_flight += 1;
        if let Some(retried) = retried {
            asked.failed.retain(|failed| *failed != retried);
        }
        if let (Some(number), None) = (retried, own) {
            // Another attempt is whoever made the first.
            return Instance { number, ambiguous: self.several.contains_key(&agent) };
        }
        let again = !asked.by.is_empty() && retried.is_none();
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
        if again && own.is_none() || known.is_some() {
            self.spoke(agent, number);
        }
        // The same words twice at once are two agents; one after the other they may be one that asks again.
        Instance { number, ambiguous }
    }

    /// Equal agents whose order is declared: who has spoken least often is next, the first of them by number.
    fn ask_in_order(&mut self, agent: AgentNumber, order: DeclaredOrder, known: Option<u32>) -> Instance {
        let calls = self.declared.entry(agent).or_default();
        let equals = usize::try_from(order.instances).unwrap_or(EQUALS_MAX).clamp(1, EQUALS_MAX);
        calls.spoken.resize(equals, 0);
        calls.in_flight += 1;
        let two_at_once = calls.in_flight > 1 && order.order == SpeakingOrder::Turn;
        if let Some(number) = known {
            return Instance { number, ambiguous: false };
        }
        let next = calls.spoken.iter().enumerate().min_by_key(|(number, spoken)| (**spoken, *number));
        let number = next.map_or(0, |(number, _)| number);
        if let Some(spoken) = calls.spoken.get_mut(number) {
            *spoken += 1;
        }
        Instance { number: u32::try_from(number).unwrap_or_default(), ambiguous: two_at_once }
    }

    /// The instance whose try of a question failed first and was not tried again.
    pub(super) fn earliest_failed(&self, agent: AgentNumber, question: Mark) -> Option<u32> {
        self.questions.get(&(agent, question))?.failed.front().copied()
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
        let asked = self.questions.entry((agent, question), QuestionState::default);
        if asked.by.len() < EQUALS_MAX && !asked.by.contains(&number) {
            asked.by.push(number);
        }
        if number > 0 || self.several.contains_key(&agent) {
            self.spoke(agent, number);
        }
    }

    /// A question was answered, or failed.
    pub(super) fn end(&mut self, agent: AgentNumber, question: Mark, number: u32, failed: bool) {
        if let Some(calls) = self.declared.get_mut(&agent) {
            calls.in_flight = calls.in_flight.saturating_sub(1);
        }
        if let Some(asked) = self.questions.get_mut(&(agent, question)) {
            asked.in_flight = asked.in_flight.saturating_sub(1);
            if failed && asked.failed.len() < EQUALS_MAX {
                asked.failed.push_back(number);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.questions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions and ends in order → the instance of each question, `?` where order alone says so.
    fn instances_of(events: &[&str]) -> String {
        let mut instances = Instances::default();
        let mut told = Vec::new();
        let mut open: Vec<(u64, u32)> = Vec::new();
        for event in events {
            let question = u64::from(event.as_bytes().get(1).copied().unwrap_or_default());
            match event.bytes().next() {
                Some(b'?') => {
                    let own = event.get(2..3).and_then(|own| own.parse().ok());
                    let retried = instances.earliest_failed(0, question);
                    let instance = instances.ask(0, question, InstanceEvidence { own, retried, order: None });
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
    fn a_declared_order_tells_equal_agents_apart() {
        // `?` asks, a digit behind it is the instance of its own history, `.` ends a call → instances, `?` where in doubt.
        for (order, events, expected) in [
            (SpeakingOrder::Turn, "? . ? . ? . ? .", "0 1 2 0"),
            // Who is known by its own words has had its turn before.
            (SpeakingOrder::Turn, "? . ? . ?0 . ? . ?1 .", "0 1 0 2 1"),
            // Two at once break the order.
            (SpeakingOrder::Turn, "? ? . . ? .", "0 1? 2"),
            (SpeakingOrder::Arrival, "? ? ? . . . ? ? ? . . .", "0 1 2 0 1 2"),
            (SpeakingOrder::Arrival, "? ? . ? . . ?2 ?0 ?1", "0 1 2 2 0 1"),
        ] {
            let mut instances = Instances::default();
            let order = Some(DeclaredOrder { order, instances: 3 });
            let mut told = Vec::new();
            for event in events.split(' ') {
                if event == "." {
                    instances.end(0, 0, 0, false);
                    continue;
                }
                let own = event.get(1..).and_then(|own| own.parse().ok());
                let Instance { number, ambiguous } =
                    instances.ask(0, 0, InstanceEvidence { own, retried: None, order });
                told.push(format!("{number}{}", if ambiguous { "?" } else { "" }));
            }
            assert_eq!(told.join(" "), expected, "{events}");
        }
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
            assert_eq!(instances_of(&events), expected, "{events:?}");
        }
    }
}
