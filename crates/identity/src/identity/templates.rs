//! Sentences that stay: what of a user text without a prompt is the agent's, and what was put in for one run.
//!
//! Texts of one agent differ *between* runs; agents that differ by a word live *side by side* in one run. So texts are
//! only ever joined over runs, and never for sentences that several agents of one run share.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::fingerprint::{Mark, RequestLooks, join};
use crate::trajectory::AgentName;

/// Agents that one sentence leads to; what more there are have it in common and are not told by it.
const ALIKE_MAX: usize = 64;

/// What is known of one agent's texts.
#[derive(Debug)]
struct AgentTemplate {
    family: Mark,
    name: AgentName,
    statics: HashSet<Mark>,
}

/// The agents of all runs so far.
#[derive(Debug, Default)]
pub(super) struct AgentTemplates {
    agents: Vec<AgentTemplate>,
    texts: HashMap<(Mark, Mark), usize>,
    /// The agents whose first text had a sentence.
    by_sentence: HashMap<Mark, Vec<usize>>,
    /// Sentences that several agents of one run share.
    common: HashSet<Mark>,
}

impl AgentTemplates {
    /// Takes in the texts of one run, with the names that they have by themselves.
    pub(super) fn learn(&mut self, seen: Vec<(&RequestLooks, AgentName)>) {
        let mut texts: Vec<((Mark, Mark), &RequestLooks, AgentName)> = Vec::new();
        let mut said_by: HashMap<Mark, (Mark, Mark)> = HashMap::new();
        let mut known = HashSet::new();
        for (looks, name) in seen {
            let text = text(looks);
            if !known.insert(text) {
                continue;
            }
            let shared = looks.sentences.iter().filter(|mark| *said_by.entry(**mark).or_insert(text) != text);
            self.common.extend(shared);
            texts.push((text, looks, name));
        }
        let mut taken: HashSet<usize> = texts.iter().filter_map(|(text, _, _)| self.texts.get(text).copied()).collect();
        texts.retain(|(text, _, _)| !self.texts.contains_key(text));
        // The pair that shares most goes first, so that agents of one run do not take each other's place.
        let mut pairs = Vec::new();
        for (at, (_, looks, _)) in texts.iter().enumerate() {
            for number in self.alike(looks).into_iter().filter(|number| !taken.contains(number)) {
                let shared = self.agents.get(number).map_or(0, |template| self.shared(template, looks));
                if shared > 0 {
                    pairs.push((shared, at, number));
                }
            }
        }
        pairs.sort_unstable_by(|a, b| b.cmp(a));
        let mut placed = HashSet::new();
        for (_, at, number) in pairs {
            if placed.contains(&at) || taken.contains(&number) {
                continue;
            }
            let (Some((text, looks, _)), Some(template)) = (texts.get(at), self.agents.get_mut(number)) else {
                continue;
            };
            template.statics.retain(|mark| looks.sentences.contains(mark));
            self.texts.insert(*text, number);
            taken.insert(number);
            placed.insert(at);
        }
        for (at, (text, looks, name)) in texts.into_iter().enumerate() {
            if !placed.contains(&at) {
                let statics: HashSet<Mark> = looks.sentences.iter().copied().collect();
                for mark in &statics {
                    let agents = self.by_sentence.entry(*mark).or_default();
                    if agents.len() < ALIKE_MAX {
                        agents.push(self.agents.len());
                    }
                }
                self.agents.push(AgentTemplate { family: looks.family, name, statics });
                self.texts.insert(text, self.agents.len() - 1);
            }
        }
    }

    /// The agent of these looks, by the name of its first text.
    pub(super) fn name(&self, looks: &RequestLooks) -> Option<AgentName> {
        let number = self.texts.get(&text(looks))?;
        self.agents.get(*number).map(|template| template.name.clone())
    }

    /// The agents that a text may be of: those that have said one of its sentences.
    fn alike(&self, looks: &RequestLooks) -> BTreeSet<usize> {
        let telling = looks.sentences.iter().filter(|mark| !self.common.contains(mark));
        telling.filter_map(|mark| self.by_sentence.get(mark)).flatten().copied().collect()
    }

    /// How many sentences of its own a template has in common with a text; 0 where that is too few.
    fn shared(&self, template: &AgentTemplate, looks: &RequestLooks) -> usize {
        if template.family != looks.family {
            return 0;
        }
        let own = template.statics.iter().filter(|mark| !self.common.contains(mark));
        let (own, shared) =
            own.fold((0, 0), |(own, shared), mark| (own + 1, shared + usize::from(looks.sentences.contains(mark))));
        // A user text without a prompt is mostly task and quotes; two sentences that stay are its frame.
        let enough = shared * 2 >= own || (looks.framed && shared >= 2);
        if enough { shared } else { 0 }
    }
}

fn text(looks: &RequestLooks) -> (Mark, Mark) {
    (looks.family, join(&looks.sentences))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(runs: &[&[(&str, u32)]]) -> Vec<String> {
        let looks = |text: &str| RequestLooks {
            key: 0,
            prompt: 0,
            family: 1,
            prompted: true,
            framed: false,
            whole: true,
            tools: Vec::new(),
            made_for: (0, None),
            sentences: text.split('.').map(|s| twox_hash::XxHash3_64::oneshot(s.trim().as_bytes())).collect(),
        };
        let mut templates = AgentTemplates::default();
        let runs: Vec<Vec<_>> =
            runs.iter().map(|run| run.iter().map(|(text, key)| (looks(text), *key)).collect()).collect();
        for run in &runs {
            templates.learn(run.iter().map(|(looks, key)| (looks, AgentName::unnamed(*key))).collect());
        }
        runs.iter().flatten().map(|(looks, _)| templates.name(looks).expect("learned").to_string()).collect()
    }

    #[test]
    fn texts_are_one_agent_over_runs_and_never_within_one() {
        let names = |runs: &[&[(&str, u32)]]| {
            learn(runs).iter().map(|name| name.trim_start_matches("agent-0000000").to_owned()).collect::<String>()
        };
        // The topic changes from run to run.
        assert_eq!(names(&[&[("You write. Topic: tides", 1)], &[("You write. Topic: bees", 2)]]), "11");
        // Reviewers that differ by a word, in one run and the next.
        assert_eq!(
            names(&[&[("Review cost. Be brief", 1), ("Review speed. Be brief", 2)], &[("Review speed. Be brief", 2)]]),
            "122"
        );
        // A beginning that all share joins nobody.
        assert_eq!(
            names(&[
                &[("Part of a team. You plan", 1), ("Part of a team. You act", 2)],
                &[("Part of a team. You judge", 3)]
            ]),
            "123"
        );
    }
}
