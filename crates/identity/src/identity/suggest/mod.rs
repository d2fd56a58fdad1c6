//! A roster proposed from recorded runs: commented TOML, for a person to edit and keep.
//!
//! A rule asks for what is fixed in an agent's calls over all runs given, not for one task's words; two agents are never
//! put under one rule without a word; what is only guessed is a comment.

mod called;
mod candidates;
mod fixed;
mod kin;
mod portrait;
mod role;
mod rules;
mod text;
mod toml_text;

use std::collections::BTreeMap;

pub use text::source_name;

use self::portrait::Portrait;
use super::{ObservedRun, Proposal};
use crate::trajectory::{AgentName, Source};

/// One proposed agent: its calls over all runs, and the rule that fits them.
#[derive(Debug)]
struct Suggestion<'a> {
    /// What is one agent, as far as can be seen: prompts of other tasks, tools that have grown.
    members: Vec<Portrait<'a>>,
    /// The name that the rule gives.
    name: String,
    /// The rule's conditions as TOML lines; none where the agent needs no rule.
    rule: Option<String>,
    /// What a person must know of the rule.
    notes: Vec<String>,
}

/// A proposed roster.
#[derive(Debug)]
pub struct Suggestions<'a> {
    all: Vec<Suggestion<'a>>,
    names: &'a BTreeMap<AgentName, Proposal>,
}

impl<'a> Suggestions<'a> {
    /// Works rules out for the agents of these runs. `names`: what the wire lets slip of their names.
    pub fn for_runs(runs: &'a [ObservedRun<'a>], names: &'a BTreeMap<AgentName, Proposal>) -> Self {
        Self::of_portraits(portrait::portraits(runs), runs, names)
    }

    /// The same where the roster that named agents is not at hand: they get rules too, under their names.
    pub fn anew(runs: &'a [ObservedRun<'a>], names: &'a BTreeMap<AgentName, Proposal>) -> Self {
        let mut portraits = portrait::portraits(runs);
        for portrait in &mut portraits {
            portrait.renewed = portrait.source == Source::Roster;
        }
        Self::of_portraits(portraits, runs, names)
    }

    fn of_portraits(
        portraits: Vec<Portrait<'a>>,
        runs: &'a [ObservedRun<'a>],
        names: &'a BTreeMap<AgentName, Proposal>,
    ) -> Self {
        let groups = kin::groups(portraits, runs);
        let mut all: Vec<Suggestion<'a>> = Vec::with_capacity(groups.len());
        for members in groups {
            let name = name(&members, names);
            all.push(Suggestion { members, name, rule: None, notes: Vec::new() });
        }
        // One name for two would make one agent of them.
        for at in 0..all.len() {
            let Some(name) = all.get(at).map(|one| one.name.clone()) else { continue };
            if all.iter().filter(|other| other.name == name).count() > 1 {
                all.iter_mut().filter(|one| one.name == name && one.needs_rule()).for_each(Suggestion::unname);
            }
        }
        rules::find(&mut all, runs);
        Self { all, names }
    }

    /// The name that the proposed roster gives each step of each run.
    pub fn of_steps(&self, runs: &[ObservedRun<'_>]) -> Vec<Vec<String>> {
        let mut names: Vec<Vec<String>> = runs.iter().map(|run| vec![String::new(); run.steps.len()]).collect();
        for suggestion in &self.all {
            for (run, step) in suggestion.members.iter().flat_map(|member| &member.places) {
                if let Some(place) = names.get_mut(*run).and_then(|steps| steps.get_mut(*step)) {
                    place.clone_from(&suggestion.name);
                }
            }
        }
        names
    }

    /// The roster as TOML text. Agents that the user declared already, and names that stand on the wire, need no rule
    /// and are only listed.
    pub fn to_toml(&self) -> String {
        text::write(&self.all, self.names)
    }
}

impl Suggestion<'_> {
    fn needs_rule(&self) -> bool {
        self.members.iter().any(Portrait::needs_rule)
    }

    fn is_renewed(&self) -> bool {
        self.members.iter().any(|member| member.renewed)
    }

    fn unname(&mut self) {
        if let Some(first) = self.members.first() {
            self.name = first.id();
        }
    }
}

/// The name that all proposals for an agent give; its own where there is none that is more than a guess.
fn name(members: &[Portrait<'_>], names: &BTreeMap<AgentName, Proposal>) -> String {
    let firm = |member: &Portrait<'_>| names.get(member.proposed_as()?).filter(|proposal| proposal.firm);
    let mut found = members.iter().filter_map(firm).map(|proposal| proposal.name.as_str());
    let own = || members.first().map(Portrait::id).unwrap_or_default();
    match found.next() {
        Some(name) if found.all(|other| other == name) => name.to_owned(),
        _ => own(),
    }
}

/// A number of calls, in words.
pub fn calls(count: usize) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

#[cfg(test)]
mod tests;
