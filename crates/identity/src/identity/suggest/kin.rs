//! Which portraits are one agent: prompts that hold a task differ from run to run and are alike beside it; agents that
//! differ by a word live side by side in one run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    fixed::{FixedTemplate, telling},
    portrait::Portrait,
    role::{self, PromptRole},
};
use crate::{
    identity::{
        ObservedRun,
        fingerprint::{Mark, RequestLooks, mark_sentences, sentences},
    },
    trajectory::Source,
};

/// Fewest user texts of a run with one beginning that are taken for calls of one agent.
const ALIKE_MIN: usize = 3;
/// Fewest words of that beginning.
const BEGINNING_MIN: usize = 3;
/// Portraits that are compared with each other.
const COMPARED_MAX: usize = 256;

/// Portraits, each group one agent.
pub(super) fn groups<'a>(portraits: Vec<Portrait<'a>>, runs: &[ObservedRun<'_>]) -> Vec<Vec<Portrait<'a>>> {
    let mut group: Vec<usize> = (0..portraits.len()).collect();
    let roles = role::roles(&portraits, runs);
    let told: Vec<PromptSpan<'_>> = portraits
        .iter()
        .zip(&roles)
        .enumerate()
        .filter_map(|(at, (portrait, role))| PromptSpan::find(at, portrait, role))
        .collect();
    let told = told.get(..told.len().min(COMPARED_MAX)).unwrap_or_default();
    by_role(told, &mut group);
    one_after_another(told, &mut group);
    let common = common(&portraits, &group);
    over_runs(told, &common, &mut group);
    beginnings(&portraits, &mut group);
    let mut groups: Vec<(usize, Vec<Portrait<'_>>)> = Vec::new();
    for (portrait, root) in portraits.into_iter().zip(group) {
        match groups.iter_mut().find(|(known, _)| *known == root) {
            Some((_, members)) => members.push(portrait),
            None => groups.push((root, vec![portrait])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// What a portrait with a prompt is told, and when: first and last step in each run.
struct PromptSpan<'r> {
    at: usize,
    role: &'r PromptRole,
    looks: RequestLooks,
    text: String,
    sentences: HashSet<Mark>,
    spans: BTreeMap<usize, (usize, usize)>,
}

impl<'r> PromptSpan<'r> {
    fn find(at: usize, portrait: &Portrait<'_>, role: &'r PromptRole) -> Option<Self> {
        // A roster's names are what somebody told apart: they are never joined.
        if portrait.renewed || !portrait.needs_rule() || !portrait.looks.prompted || portrait.called.is_some() {
            return None;
        }
        let mut spans: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (run, step) in &portrait.places {
            spans.entry(*run).or_insert((*step, *step)).1 = *step;
        }
        let text = portrait.texts().into_iter().next()?;
        let looks = portrait.looks.clone();
        Some(Self { at, role, looks, text, sentences: portrait.looks.sentences.iter().copied().collect(), spans })
    }

    fn meets(&self, other: &Self) -> bool {
        self.spans.keys().any(|run| other.spans.contains_key(run))
    }

    /// Whether it has said its last in each run that both speak in when the other begins.
    fn precedes(&self, other: &Self) -> bool {
        self.spans.iter().all(|(run, (_, last))| other.spans.get(run).is_none_or(|(first, _)| last < first))
    }

    /// What is fixed in both texts, where that is most of what they tell.
    fn alike(&self, own: &str, other: &Self, theirs: &str) -> Option<FixedTemplate> {
        // Prompts that both come again word for word hold no task in which they could differ.
        let come_again = self.spans.len() > 1 && other.spans.len() > 1 && self.text != other.text;
        if self.role.differs(other.role) || come_again {
            return None;
        }
        // Tools that none of two sets has all of are two agents', and so are some and none.
        let (tools, others) = (&self.looks, &other.looks);
        let grown = !tools.tools.is_empty() && !others.tools.is_empty();
        let grown = grown && (tools.holds_tools(others) || others.holds_tools(tools));
        if tools.tools != others.tools && !grown {
            return None;
        }
        let begins = |text: &str| text.split_whitespace().take(BEGINNING_MIN).map(str::to_owned).collect::<Vec<_>>();
        if self.sentences.is_disjoint(&other.sentences) && begins(own) != begins(theirs) {
            return None;
        }
        let fixed = FixedTemplate::from_text(own).with(theirs);
        let most = telling(own).max(telling(theirs));
        let enough = fixed.telling() * 2 >= most && fixed.telling() > 1;
        let counted = |text: &str| text.chars().all(|sign| sign.is_ascii_digit() || !sign.is_alphanumeric());
        // Numbers tell agents apart.
        let numbered = own != theirs && counted(&fixed.without_fixed(own)) && counted(&fixed.without_fixed(theirs));
        (own == theirs || (enough && !numbered)).then_some(fixed)
    }
}

/// Joins prompts that say the same of their agent: within a run where all that differs is quoted, a moment or a place; over runs where
/// none has two agents of which the same is said.
fn by_role(told: &[PromptSpan<'_>], group: &mut [usize]) {
    for (number, one) in told.iter().enumerate() {
        for other in told.iter().skip(number + 1).filter(|other| one.meets(other)) {
            if one.role.is_one_agent(other.role) {
                join(group, one.at, other.at);
            }
        }
    }
    let mut said: BTreeMap<&[Mark], Vec<&PromptSpan<'_>>> = BTreeMap::new();
    for one in told.iter().filter(|one| !one.role.says.is_empty()) {
        said.entry(&one.role.says).or_default().push(one);
    }
    for alike in said.values() {
        let mut agents: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for one in alike {
            for run in one.spans.keys() {
                agents.entry(*run).or_default().extend(group.get(one.at));
            }
        }
        // Prompts that come again word for word in other runs need nobody to join them.
        let varies = |one: &&PromptSpan<'_>| (one.spans.len() == 1 || agents.len() == 1) && !one.role.says_otherwise;
        if agents.values().all(|agents| agents.len() == 1) && alike.iter().all(varies) {
            alike.windows(2).for_each(|pair| {
                if let [one, other] = pair {
                    join(group, one.at, other.at);
                }
            });
        }
    }
}

/// Joins what speaks one after the other in a run: where the same words are put in for the same ones in another agent's
/// prompt too, and all that was said with the former comes first, a new task has begun. One prompt whose tools have
/// grown is joined without that.
fn one_after_another(told: &[PromptSpan<'_>], group: &mut [usize]) {
    let mut pairs: Vec<(&PromptSpan<'_>, &PromptSpan<'_>, (String, String))> = Vec::new();
    for before in told {
        for after in told.iter().filter(|after| before.meets(after) && before.precedes(after)) {
            if let Some(fixed) = before.alike(&before.text, after, &after.text) {
                pairs.push((before, after, (fixed.without_fixed(&before.text), fixed.without_fixed(&after.text))));
            }
        }
    }
    for (before, after, put_in) in &pairs {
        let with = |(other, next, theirs): &&(&PromptSpan<'_>, &PromptSpan<'_>, (String, String))| {
            let apart = ![before.at, after.at].contains(&other.at) && ![before.at, after.at].contains(&next.at);
            apart && theirs == put_in && before.meets(other) && before.precedes(next) && other.precedes(after)
        };
        if before.text == after.text || pairs.iter().find(with).is_some() {
            join(group, before.at, after.at);
        }
    }
}

fn join(group: &mut [usize], a: usize, b: usize) {
    let (Some(a), Some(b)) = (group.get(a).copied(), group.get(b).copied()) else { return };
    group.iter_mut().filter(|root| **root == a.max(b)).for_each(|root| *root = a.min(b));
}

/// Joins prompts of agents that never speak in one run, those first that are most alike.
fn over_runs(told: &[PromptSpan<'_>], common: &HashSet<Mark>, group: &mut [usize]) {
    let own: Vec<String> = told.iter().map(|one| distinct_words(&one.text, common)).collect();
    let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
    for (number, (one, text)) in told.iter().zip(&own).enumerate() {
        for (other, theirs) in told.iter().zip(&own).skip(number + 1).filter(|(other, _)| !one.meets(other)) {
            if let Some(fixed) = one.alike(text, other, theirs) {
                let most = telling(text).max(telling(theirs)).max(1);
                pairs.push((fixed.telling() * 1000 / most, one.at, other.at));
            }
        }
    }
    pairs.sort_by(|x, y| y.0.cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
    let runs = |group: &[usize], root: usize| -> BTreeSet<usize> {
        let members = told.iter().filter(|one| group.get(one.at) == Some(&root));
        members.flat_map(|one| one.spans.keys().copied()).collect()
    };
    for (_, a, b) in pairs {
        let (Some(first), Some(second)) = (group.get(a).copied(), group.get(b).copied()) else { continue };
        if first != second && runs(group, first).is_disjoint(&runs(group, second)) {
            join(group, a, b);
        }
    }
}

/// Sentences that several agents of one run share: their house's, and no evidence of one agent.
fn common(portraits: &[Portrait<'_>], group: &[usize]) -> HashSet<Mark> {
    let mut said: HashMap<(usize, Mark), usize> = HashMap::new();
    let mut common = HashSet::new();
    for (portrait, root) in portraits.iter().zip(group).filter(|(portrait, _)| portrait.looks.prompted) {
        for run in portrait.runs() {
            for mark in &portrait.looks.sentences {
                if *said.entry((run, *mark)).or_insert(*root) != *root {
                    common.insert(*mark);
                }
            }
        }
    }
    common
}

/// What a text says beside what others of its run are told too.
fn distinct_words(text: &str, common: &HashSet<Mark>) -> String {
    let is_own = |sentence: &&str| {
        let mut marks = Vec::new();
        mark_sentences(sentence, &mut marks);
        marks.iter().any(|mark| !common.contains(mark))
    };
    sentences(text).filter(is_own).collect::<Vec<_>>().join(" ")
}

/// Joins user texts without a prompt that begin with the same words and go on otherwise each time.
fn beginnings(portraits: &[Portrait<'_>], group: &mut [usize]) {
    let words = |text: &str| text.split_whitespace().take(BEGINNING_MIN).collect::<Vec<_>>().join(" ");
    let single = |portrait: &Portrait<'_>| {
        portrait.looks.framed && portrait.source == Source::Frame && portrait.places.len() == 1
    };
    let mut starts: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, portrait) in portraits.iter().enumerate().filter(|(_, portrait)| single(portrait)) {
        let start = words(&portrait.texts().into_iter().next().unwrap_or_default());
        match starts.iter_mut().find(|(known, _)| *known == start) {
            Some((_, alike)) => alike.push(at),
            None => starts.push((start, vec![at])),
        }
    }
    for (_, alike) in starts.into_iter().filter(|(_, alike)| alike.len() >= ALIKE_MIN) {
        let Some(first) = alike.first().and_then(|at| group.get(*at)).copied() else { continue };
        for at in alike {
            if let Some(root) = group.get_mut(at) {
                *root = first;
            }
        }
    }
}
