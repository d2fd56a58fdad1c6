//! The rule for each proposed agent: the first of its candidates that fits all its calls and nobody else's, and that fits runs
//! which it was not made from.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Suggestion,
    candidates::{CallOfRun, CandidateRule, RuleKind, candidates, looks, template, texts},
    fixed::FixedTemplate,
    portrait::Portrait,
};
use crate::{
    identity::{ObservedRun, Roster, RosterRule, fingerprint::Mark},
    surface::{LazyMessage, Role},
};

/// Finds a rule for each suggestion that needs one.
pub(super) fn find(all: &mut [Suggestion<'_>], runs: &[ObservedRun<'_>]) {
    let calls = calls_of(all, runs);
    let of_several = used_by_several(&calls);
    let mut found: Vec<(usize, ProposedRule)> = Vec::new();
    for number in 0..all.len() {
        let Some(suggestion) = all.get(number).filter(|one| one.needs_rule()) else { continue };
        let proposed = if of_several.contains(&number) {
            let note = "NOT SURE: asked the same as several other agents, each time another one: they may ask again under this \
                        prompt, so that no rule is proposed";
            ProposedRule { conditions: None, note: Some(note.to_owned()) }
        } else {
            ProposedRule::from_suggestion(suggestion, &calls, number, runs)
        };
        found.push((number, proposed));
    }
    for (number, ProposedRule { conditions, note }) in found {
        let Some(suggestion) = all.get_mut(number) else { continue };
        suggestion.rule = conditions;
        suggestion.notes.extend(note);
        let notes = notes(suggestion);
        suggestion.notes.extend(notes);
    }
}

/// The suggestions under whose prompt several agents seem to ask again: whatever is asked under it, another agent was asked, and not
/// always the same one.
fn used_by_several(calls: &[CallOfRun<'_>]) -> BTreeSet<usize> {
    let asked = |call: &CallOfRun<'_>| -> (usize, Vec<Mark>) {
        let spoken =
            call.step.outline.messages.iter().filter(|message| !matches!(message.role, Role::System | Role::Developer));
        (call.run, spoken.map(LazyMessage::mark).collect())
    };
    let mut askers: HashMap<_, BTreeSet<usize>> = HashMap::new();
    for call in calls {
        askers.entry(asked(call)).or_default().insert(call.agent);
    }
    let mut beside: BTreeMap<usize, Vec<BTreeSet<usize>>> = BTreeMap::new();
    for call in calls {
        let others = askers.get(&asked(call)).into_iter().flatten().copied().filter(|other| *other != call.agent);
        beside.entry(call.agent).or_default().push(others.collect());
    }
    let is_shared = |beside: &[BTreeSet<usize>]| {
        let nobody_always = || beside.iter().flatten().all(|one| beside.iter().any(|others| !others.contains(one)));
        beside.iter().all(|others| !others.is_empty()) && nobody_always()
    };
    beside.into_iter().filter(|(_, beside)| is_shared(beside)).map(|(agent, _)| agent).collect()
}

/// What is proposed for an agent.
struct ProposedRule {
    /// The conditions as TOML lines; `None` where none tells it from the others.
    conditions: Option<String>,
    note: Option<String>,
}

impl ProposedRule {
    fn from_suggestion(
        suggestion: &Suggestion<'_>,
        calls: &[CallOfRun<'_>],
        number: usize,
        runs: &[ObservedRun<'_>],
    ) -> Self {
        let candidates = candidates(suggestion, &texts(suggestion, None), calls, number, runs);
        let fitting: Vec<&CandidateRule> =
            candidates.iter().filter(|rule| fits_alone(&rule.conditions, number, calls)).collect();
        let lasting = fitting.iter().find(|rule| lasts(rule.kind, suggestion, calls, number, runs));
        if let Some(rule) = lasting.or(fitting.first()) {
            let note = lasting.is_none().then(|| {
                "NOT SURE: made from all runs but one, such a rule does not fit that one: check it on another run"
                    .to_owned()
            });
            return Self { conditions: Some(rule.conditions.clone()), note };
        }
        let looks = looks(suggestion);
        if fits_alone(&looks, number, calls) {
            return Self { conditions: Some(looks), note: None };
        }
        let note = if suggestion.is_renewed() {
            "named by your roster; nothing in its prompt tells it from the others"
        } else {
            "NOT SURE: no rule tells these calls from another agent's, so that none is proposed"
        };
        Self { conditions: None, note: Some(note.to_owned()) }
    }
}

/// Whether rules of a kind that are made from all runs but one fit that one too, for each run in which the agent speaks.
fn lasts(
    kind: RuleKind,
    suggestion: &Suggestion<'_>,
    calls: &[CallOfRun<'_>],
    number: usize,
    runs: &[ObservedRun<'_>],
) -> bool {
    let spoken: BTreeSet<usize> = suggestion.members.iter().flat_map(Portrait::runs).collect();
    if spoken.len() < 2 {
        return true;
    }
    spoken.into_iter().all(|left_out| {
        let others: Vec<CallOfRun<'_>> = calls.iter().filter(|call| call.run != left_out).copied().collect();
        let of_one: Vec<CallOfRun<'_>> = calls.iter().filter(|call| call.run == left_out).copied().collect();
        let texts = texts(suggestion, Some(left_out));
        let candidates = candidates(suggestion, &texts, &others, number, runs);
        let mut made = candidates.iter().filter(|rule| rule.kind == kind);
        let made = made.find(|rule| fits_alone(&rule.conditions, number, &others));
        made.is_some_and(|rule| fits_alone(&rule.conditions, number, &of_one))
    })
}

fn calls_of<'a>(all: &[Suggestion<'a>], runs: &[ObservedRun<'_>]) -> Vec<CallOfRun<'a>> {
    let keys: Vec<Vec<u32>> = runs.iter().map(|run| run.all_looks().map(|looks| looks.key).collect()).collect();
    let mut calls = Vec::new();
    for (agent, suggestion) in all.iter().enumerate() {
        for member in &suggestion.members {
            for ((run, at), step) in member.places.iter().zip(&member.steps) {
                let key = keys.get(*run).and_then(|keys| keys.get(*at)).copied().unwrap_or_default();
                calls.push(CallOfRun { agent, run: *run, step, key });
            }
        }
    }
    calls
}

/// Whether a rule fits all calls of an agent and no other call.
fn fits_alone(conditions: &str, number: usize, calls: &[CallOfRun<'_>]) -> bool {
    let rule = toml::from_str::<RosterRule>(&format!("name = \"x\"\n{conditions}"));
    let Some(roster) = rule.ok().and_then(|rule| Roster::new(vec![rule]).ok()) else { return false };
    calls.iter().all(|call| roster.identify(&call.step.outline, call.key).is_some() == (call.agent == number))
}

/// What a person must know of a rule: what it covers, and what it cannot tell apart.
fn notes(suggestion: &Suggestion<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let texts = texts(suggestion, None);
    let prompted = suggestion.members.first().is_some_and(|first| first.looks.prompted);
    if texts.len() > 1 && (suggestion.members.len() > 1 || prompted) {
        let template = template(&texts);
        let differ: Vec<String> = texts.iter().take(3).map(|text| shown(template.as_ref(), text)).collect();
        let kind = if prompted { "prompts" } else { "user texts" };
        notes.push(format!(
            "covers {} {kind}, taken for one agent's; they differ in: {}",
            texts.len(),
            differ.join(" | ")
        ));
    }
    let sets: BTreeSet<Vec<&str>> = suggestion
        .members
        .iter()
        .flat_map(|member| &member.steps)
        .map(|step| step.outline.tools.iter().map(|tool| &**tool).collect())
        .collect();
    if prompted && sets.len() > 1 {
        notes.push(format!("covers {} sets of tools", sets.len()));
    }
    for (what, key, found) in [
        ("models", "model", suggestion.members.iter().flat_map(|member| &member.models).collect::<BTreeSet<_>>()),
        ("answer schemas", "", suggestion.members.iter().flat_map(|member| &member.schemas).collect()),
    ] {
        if found.len() > 1 {
            let found: Vec<&str> = found.into_iter().map(String::as_str).collect();
            let advice = if key.is_empty() { "" } else { "; `model = …` tells them apart" };
            notes.push(format!(
                "NOT SURE: one look, {} {what} ({}): perhaps several agents{advice}",
                found.len(),
                found.join(", ")
            ));
        }
    }
    notes
}

/// What of a text is not the template's, as a comment shows it.
fn shown(template: Option<&FixedTemplate>, text: &str) -> String {
    let beside = template.map(|template| template.without_fixed(text)).unwrap_or_default();
    format!("\"{}\"", super::text::comment_line(&beside, 40))
}
