//! The rule for each proposed agent: the first of its candidates that fits all its calls and nobody else's.

use std::collections::{BTreeSet, HashSet};

use super::{Suggestion, fixed::FixedTemplate, portrait::Portrait, text::toml_string};
use crate::{
    identity::{Heard, HeardRun, Roster, RosterRule, fingerprint::Mark, mask, words::shingles},
    trajectory::AgentName,
};

/// Shortest text that a rule may ask for, in bytes.
const TELLING_MIN: usize = 8;
/// Fewest words of a text that tells on its own, where there is a choice.
const TELLING_WORDS: usize = 4;
/// Longest pattern that a rule may ask for, in bytes: it is there to be read.
const PATTERN_MAX: usize = 1500;
/// Texts that are tried for one rule.
const TRIED_MAX: usize = 64;

/// Calls of all runs: the agent's number among the suggestions, the call, its key.
type Calls<'a> = Vec<(usize, &'a Heard<'a>, u32)>;

/// Finds a rule for each suggestion that needs one.
pub(super) fn find(all: &mut [Suggestion<'_>], runs: &[HeardRun<'_>]) {
    let mut told: Vec<(usize, (Option<String>, String))> = Vec::new();
    let calls = calls_of(all, runs);
    for number in 0..all.len() {
        let Some(suggestion) = all.get(number).filter(|one| one.needs_rule()) else { continue };
        let candidates = candidates(suggestion, &calls, number, runs);
        let fits = candidates.iter().find(|rule| fits_alone(rule, number, &calls));
        let looks = looks(suggestion);
        let note = match fits {
            Some(_) => String::new(),
            None if fits_alone(&looks, number, &calls) => String::new(),
            None if suggestion.is_renewed() => {
                let note = "named by your roster; nothing in its prompt tells it from the others";
                told.push((number, (None, note.to_owned())));
                continue;
            }
            None => "this rule fits other agents' calls too: one look, told apart by nothing here".to_owned(),
        };
        told.push((number, (Some(fits.cloned().unwrap_or(looks)), note)));
    }
    for (number, (rule, note)) in told {
        let Some(suggestion) = all.get_mut(number) else { continue };
        suggestion.rule = rule;
        suggestion.notes.extend(Some(note).filter(|note| !note.is_empty()));
        let notes = notes(suggestion);
        suggestion.notes.extend(notes);
    }
}

fn calls_of<'a>(all: &[Suggestion<'a>], runs: &[HeardRun<'_>]) -> Calls<'a> {
    let keys: Vec<Vec<u32>> = runs.iter().map(|run| run.all_looks().map(|looks| looks.key).collect()).collect();
    let mut calls = Calls::new();
    for (number, suggestion) in all.iter().enumerate() {
        for member in &suggestion.members {
            for ((run, at), step) in member.places.iter().zip(&member.steps) {
                let key = keys.get(*run).and_then(|keys| keys.get(*at)).copied().unwrap_or_default();
                calls.push((number, *step, key));
            }
        }
    }
    calls
}

/// Whether a rule fits all calls of an agent and no other call.
fn fits_alone(conditions: &str, number: usize, calls: &Calls<'_>) -> bool {
    let rule = toml::from_str::<RosterRule>(&format!("name = \"x\"\n{conditions}"));
    let Some(roster) = rule.ok().and_then(|rule| Roster::new(vec![rule]).ok()) else { return false };
    calls.iter().all(|(of, step, key)| roster.identify(&step.outline, *key).is_some() == (*of == number))
}

/// Rules that may fit, the one that is best to read and lasts longest first.
fn candidates(suggestion: &Suggestion<'_>, calls: &Calls<'_>, number: usize, runs: &[HeardRun<'_>]) -> Vec<String> {
    let Some(first) = suggestion.members.first() else { return Vec::new() };
    let texts = texts(suggestion);
    let Some(template) = template(&texts) else { return Vec::new() };
    let proven = texts.len() > 1 || first.runs().len() > 1;
    // Of a user text, what others are asked too is the task's; there its words need not be known.
    let task = if proven || first.looks.framed { HashSet::new() } else { task_words(runs) };
    let excerpts = excerpts(template.excerpts(proven), &task);
    let mut rules: Vec<String> = Vec::new();
    if first.looks.framed {
        let mut telling = telling(excerpts, suggestion, calls, number);
        telling.sort_by_key(|text| std::cmp::Reverse(text.len()));
        rules.extend(telling.iter().map(|text| format!("bare = true\nfirst_user_contains = {}\n", toml_string(text))));
        return rules;
    }
    if !first.looks.prompted {
        return rules;
    }
    let mut system: Vec<String> =
        excerpts.iter().map(|text| format!("system_contains = {}\n", toml_string(text))).collect();
    let pattern = template.regex();
    if template.words() > 2 && pattern.len() <= PATTERN_MAX {
        system.push(format!("system_regex = {}\n", toml_string(&pattern)));
    }
    if let Some(called) = &first.called {
        let user = format!("first_user_contains = {}\n", toml_string(called));
        rules.extend(system.iter().map(|rule| format!("{rule}{user}")));
        rules.push(format!("{}{user}", looks(suggestion)));
        return rules;
    }
    let tools: BTreeSet<&str> =
        first.steps.iter().flat_map(|step| step.outline.tools.iter().map(|tool| &**tool)).collect();
    let with_tools = |rule: &String| {
        let tools: Vec<String> = tools.iter().map(|tool| toml_string(tool)).collect();
        format!("{rule}tools = [{}]\n", tools.join(", "))
    };
    let by_tools: Vec<String> = system.iter().filter(|_| !tools.is_empty()).map(with_tools).collect();
    rules.extend(system);
    rules.extend(by_tools);
    rules
}

fn texts(suggestion: &Suggestion<'_>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in suggestion.members.iter().flat_map(Portrait::texts) {
        let text = text.lines().filter(|line| mask::header_name(line).is_none()).collect::<Vec<_>>().join("\n");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

fn template(texts: &[String]) -> Option<FixedTemplate> {
    let (first, rest) = texts.split_first()?;
    Some(rest.iter().take(TRIED_MAX).fold(FixedTemplate::of(first), |template, text| template.with(text)))
}

/// Fixed texts without words of the task; those of several words first.
fn excerpts(fixed: Vec<String>, task: &HashSet<String>) -> Vec<String> {
    let plain = |word: &str| word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
    let mut excerpts: Vec<String> = fixed
        .into_iter()
        .filter(|text| text.len() >= TELLING_MIN && !text.split_whitespace().any(|word| task.contains(&plain(word))))
        .take(TRIED_MAX)
        .collect();
    excerpts.sort_by_key(|text| text.split_whitespace().count() < TELLING_WORDS);
    excerpts
}

/// The words that runs open with: of the task, but for the most common ones.
fn task_words(runs: &[HeardRun<'_>]) -> HashSet<String> {
    const COMMON: [&str; 40] = [
        "the", "and", "for", "with", "that", "this", "you", "your", "are", "from", "have", "has", "was", "not", "but",
        "all", "can", "will", "one", "its", "our", "about", "into", "please", "what", "which", "when", "how", "who",
        "why", "does", "answer", "question", "task", "write", "only", "then", "than", "there", "their",
    ];
    let openings =
        runs.iter().filter_map(|run| run.steps.first()?.outline.first_user().map(|text| text.to_lowercase()));
    let words = |text: String| -> Vec<String> {
        text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| word.len() > 2).map(str::to_owned).collect()
    };
    openings.flat_map(words).filter(|word| !COMMON.contains(&word.as_str())).collect()
}

/// Texts that no other agent was asked and that nobody answered.
fn telling(excerpts: Vec<String>, suggestion: &Suggestion<'_>, calls: &Calls<'_>, number: usize) -> Vec<String> {
    if calls.iter().all(|(of, _, _)| *of == number) && suggestion.members.len() == 1 {
        return Vec::new();
    }
    let others: Vec<String> = calls
        .iter()
        .filter(|(of, _, _)| *of != number)
        .flat_map(|(_, step, _)| step.outline.said.iter().map(|said| said.text().into_owned()))
        .collect();
    let replies = calls.iter().flat_map(|(_, step, _)| step.reply.iter().flat_map(|reply| &reply.answers));
    let quotable: HashSet<Mark> = replies.flat_map(|answer| shingles(&answer.message.text())).collect();
    let tells = |text: &String| {
        !others.iter().any(|other| other.contains(text.as_str()))
            && !shingles(text).iter().any(|mark| quotable.contains(mark))
    };
    excerpts.into_iter().filter(tells).collect()
}

fn looks(suggestion: &Suggestion<'_>) -> String {
    let keys: BTreeSet<u32> = suggestion.members.iter().flat_map(|member| member.keys.iter().copied()).collect();
    let keys: Vec<String> = keys.iter().map(|key| format!("\"{}\"", AgentName::unnamed(*key))).collect();
    format!("looks = [{}]\n", keys.join(", "))
}

/// What a person must know of a rule: what it covers, and what it cannot tell apart.
fn notes(suggestion: &Suggestion<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let texts = texts(suggestion);
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
    let beside = template.map(|template| template.beside(text)).unwrap_or_default();
    format!("\"{}\"", super::text::plain(&beside, 40))
}
