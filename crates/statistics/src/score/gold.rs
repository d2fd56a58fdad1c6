//! What a prediction is measured against.

use std::collections::BTreeMap;

use serde::Serialize;

use super::names::agent_key;

/// The truth of one failed run, as far as scoring needs it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Gold {
    /// Names the run in prediction files.
    pub id: String,
    /// Who failed, where, how. Several entries are a set: each of them is true. Empty for a run without error.
    pub culprits: Vec<Culprit>,
    /// Tools and peers that erred, where no agent did: whoever answers with one of them blames no agent, which is right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The speaker of each step, in step order; empty where the trace is not at hand.
    pub speakers: Vec<String>,
    /// The multi-agent system or framework, for the tables.
    pub system: String,
    /// The words of the task, so that one question is never both learnt from and asked about.
    pub task: String,
    /// What planted the errors: manipulator and mode; empty where nobody did.
    pub template: String,
    /// The outline of each step, for the shape probe; empty where the words are not at hand.
    #[serde(skip)]
    pub shape: Vec<super::shape::Features>,
    /// What the source file itself wrote, where it came from one: the public scorers compare these.
    pub raw: Option<RawLabel>,
}

/// One true error: an agent, and what is known of step and mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, schemars::JsonSchema)]
pub struct Culprit {
    /// The agent, as the trace names it; `None` where the label is one of the whole run.
    pub agent: Option<String>,
    /// Step of the run, 0-based, where the label knows it.
    pub step: Option<u32>,
    /// Failure mode code such as `FM-1.3`, where the label knows it.
    pub mode: Option<String>,
}

/// A label in the words of its source file, untouched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct RawLabel {
    /// The file's name, for example `12.json`.
    pub file: String,
    /// The agent as written.
    pub agent: String,
    /// The step as written, in the file's own base.
    pub step: String,
}

impl Gold {
    /// The distinct speakers by key, with how often each speaks and where first; in order of first appearance.
    pub(super) fn cast(&self) -> Vec<Speaker> {
        let mut place: BTreeMap<String, usize> = BTreeMap::new();
        let mut cast: Vec<Speaker> = Vec::new();
        for (step, name) in self.speakers.iter().enumerate() {
            let key = agent_key(name);
            let index = *place.entry(key.clone()).or_insert(cast.len());
            match cast.get_mut(index) {
                Some(speaker) => speaker.turns += 1,
                None => cast.push(Speaker { key, turns: 1, first: step }),
            }
        }
        cast
    }

    /// Whether the label names this agent, by key.
    pub(super) fn blames(&self, key: &str) -> bool {
        self.culprits.iter().any(|culprit| culprit.agent.as_deref().is_some_and(|agent| agent_key(agent) == key))
    }

    /// Whether the label names this step.
    pub(super) fn blames_step(&self, step: usize) -> bool {
        self.culprits.iter().any(|culprit| culprit.step.is_some_and(|gold| u32::try_from(step) == Ok(gold)))
    }
}

/// One speaker of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Speaker {
    /// The name, by key.
    pub(super) key: String,
    /// How many steps are its.
    pub(super) turns: usize,
    /// Its first step.
    pub(super) first: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_is_counted_by_key_in_order_of_appearance() {
        let speakers = ["B (thought)", "A", "b", "B (-> A)", "A"].map(str::to_owned).into();
        let gold = Gold { speakers, ..Gold::default() };
        let cast: Vec<_> = gold.cast().into_iter().map(|speaker| (speaker.key, speaker.turns, speaker.first)).collect();
        assert_eq!(cast, [("b".to_owned(), 3, 0), ("a".to_owned(), 2, 1)]);
    }

    #[test]
    fn a_label_blames_whom_and_when_any_of_its_entries_says() {
        let culprit = |agent: &str, step| Culprit { agent: Some(agent.into()), step, mode: None };
        let gold = Gold { culprits: vec![culprit("A", Some(3)), culprit("B", None)], ..Gold::default() };
        assert_eq!(["a", "b", "c"].map(|key| gold.blames(key)), [true, true, false]);
        assert_eq!([0, 3].map(|step| gold.blames_step(step)), [false, true]);
    }
}
