//! The rules that may tell an agent's calls, the one that is best to read and lasts longest first.

use std::collections::{BTreeSet, HashSet};

use super::{
    Suggestion,
    fixed::{FixedTemplate, escaped},
    portrait::Portrait,
    toml_text::{toml_pattern, toml_string},
};
use crate::{
    identity::{ObservedRun, ObservedStep, fingerprint::Mark, mask, words::shingles},
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

/// A call of one of the runs.
#[derive(Clone, Copy)]
pub(super) struct CallOfRun<'a> {
    /// The agent's number among the suggestions.
    pub(super) agent: usize,
    pub(super) run: usize,
    pub(super) step: &'a ObservedStep<'a>,
    pub(super) key: u32,
}

/// Conditions that may tell an agent's calls, as TOML lines.
pub(super) struct CandidateRule {
    pub(super) kind: RuleKind,
    pub(super) conditions: String,
}

/// What a rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    /// How a prompt begins and ends.
    BothEnds,
    /// How it begins.
    Beginning,
    /// How it ends.
    Ending,
    /// A line of it, or of a user text.
    Line,
    /// All that is fixed in it.
    Whole,
    /// What it contains.
    Text,
}

/// Rules that may fit an agent which is told these texts in these calls. `number`: which of the suggestions it is.
pub(super) fn candidates(
    suggestion: &Suggestion<'_>,
    texts: &[String],
    calls: &[CallOfRun<'_>],
    number: usize,
    runs: &[ObservedRun<'_>],
) -> Vec<CandidateRule> {
    let Some(first) = suggestion.members.first() else { return Vec::new() };
    let Some(template) = template(texts) else { return Vec::new() };
    let proven = texts.len() > 1 || first.runs().len() > 1;
    // Of a user text, what others are asked too is the task's; there its words need not be known.
    let task = if proven || first.looks.framed { HashSet::new() } else { task_words(runs) };
    if first.looks.framed {
        if let Some(called) = &first.called {
            let conditions = format!("bare = true\n{}", called.condition());
            return vec![CandidateRule { kind: RuleKind::Line, conditions }];
        }
        let mut telling = telling(excerpts(template.excerpts(proven), &task), suggestion, calls, number);
        telling.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let rule = |text: &String| CandidateRule {
            kind: RuleKind::Text,
            conditions: format!("bare = true\nfirst_user_contains = {}\n", toml_string(text)),
        };
        return telling.iter().map(rule).collect();
    }
    if !first.looks.prompted {
        return Vec::new();
    }
    let system = of_prompt(&template, proven, &task);
    if let Some(called) = &first.called {
        let user = called.condition();
        let with_user = |rule: CandidateRule| CandidateRule { conditions: rule.conditions + &user, ..rule };
        let looks = CandidateRule { kind: RuleKind::Line, conditions: looks(suggestion) + &user };
        return system.into_iter().map(with_user).chain([looks]).collect();
    }
    let tools: BTreeSet<&str> =
        first.steps.iter().flat_map(|step| step.outline.tools.iter().map(|tool| &**tool)).collect();
    let tools: Vec<String> = tools.iter().map(|tool| toml_string(tool)).collect();
    let with_tools = |rule: &CandidateRule| CandidateRule {
        kind: rule.kind,
        conditions: format!("{}tools = [{}]\n", rule.conditions, tools.join(", ")),
    };
    let by_tools: Vec<CandidateRule> = system.iter().filter(|_| !tools.is_empty()).map(with_tools).collect();
    system.into_iter().chain(by_tools).collect()
}

/// What may be asked for in a prompt. A text in its place comes before one that may stand anywhere: a prompt may quote another
/// agent's.
fn of_prompt(template: &FixedTemplate, proven: bool, task: &HashSet<String>) -> Vec<CandidateRule> {
    let plain = |text: &str| !names_task(text, task);
    let tells = |text: &&str| text.len() >= TELLING_MIN && plain(text);
    let beginnings: Vec<&str> = template.beginnings(plain).into_iter().filter(tells).collect();
    let ending = template.ending(plain);
    let mut rules = Vec::new();
    let mut add = |kind: RuleKind, pattern: String| {
        if pattern.len() <= PATTERN_MAX {
            rules.push(CandidateRule { kind, conditions: format!("system_regex = {}\n", toml_pattern(&pattern)) });
        }
    };
    for begins in &beginnings {
        let Some(ends) = ending else { break };
        let is_all = template.is_whole(begins) || begins.ends_with(ends);
        let pattern = if is_all {
            format!(r"\A\s*{}\s*\z", escaped(begins))
        } else {
            format!(r"(?s)\A\s*{}\s.*{}\s*\z", escaped(begins), escaped(ends))
        };
        add(RuleKind::BothEnds, pattern);
    }
    for begins in &beginnings {
        add(RuleKind::Beginning, format!(r"\A\s*{}", escaped(begins)));
    }
    if let Some(ends) = ending.filter(tells) {
        add(RuleKind::Ending, format!(r"(?:^|\s){}\s*\z", escaped(ends)));
    }
    let excerpts = excerpts(template.excerpts(proven), task);
    for text in &excerpts {
        add(RuleKind::Line, format!(r"(?m)^\s*{}", escaped(text)));
    }
    if template.words() > 2 {
        add(RuleKind::Whole, template.regex());
    }
    let contains = |text: &String| CandidateRule {
        kind: RuleKind::Text,
        conditions: format!("system_contains = {}\n", toml_string(text)),
    };
    rules.extend(excerpts.iter().map(contains));
    rules
}

/// The rule by what the calls look like.
pub(super) fn looks(suggestion: &Suggestion<'_>) -> String {
    let keys: BTreeSet<u32> = suggestion.members.iter().flat_map(|member| member.keys.iter().copied()).collect();
    let keys: Vec<String> = keys.iter().map(|key| format!("\"{}\"", AgentName::unnamed(*key))).collect();
    format!("looks = [{}]\n", keys.join(", "))
}

/// What the agent is told, without header lines; in all runs but one.
pub(super) fn texts(suggestion: &Suggestion<'_>, left_out: Option<usize>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in suggestion.members.iter().flat_map(|member: &Portrait<'_>| member.texts_but(left_out)) {
        let text = text.lines().filter(|line| mask::header_name(line).is_none()).collect::<Vec<_>>().join("\n");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// What is fixed in all of these texts.
pub(super) fn template(texts: &[String]) -> Option<FixedTemplate> {
    let (first, rest) = texts.split_first()?;
    Some(rest.iter().take(TRIED_MAX).fold(FixedTemplate::from_text(first), |template, text| template.with(text)))
}

/// Whether a text holds words of the task.
fn names_task(text: &str, task: &HashSet<String>) -> bool {
    let plain = |word: &str| word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
    text.split_whitespace().any(|word| task.contains(&plain(word)))
}

/// Fixed texts without words of the task; those of several words first.
fn excerpts(fixed: Vec<String>, task: &HashSet<String>) -> Vec<String> {
    let telling = |text: &String| text.len() >= TELLING_MIN && !names_task(text, task);
    let mut excerpts: Vec<String> = fixed.into_iter().filter(telling).take(TRIED_MAX).collect();
    excerpts.sort_by_key(|text| text.split_whitespace().count() < TELLING_WORDS);
    excerpts
}

/// The words that runs open with: of the task, but for the most common ones.
fn task_words(runs: &[ObservedRun<'_>]) -> HashSet<String> {
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
fn telling(excerpts: Vec<String>, suggestion: &Suggestion<'_>, calls: &[CallOfRun<'_>], number: usize) -> Vec<String> {
    if calls.iter().all(|call| call.agent == number) && suggestion.members.len() == 1 {
        return Vec::new();
    }
    let others: Vec<String> = calls
        .iter()
        .filter(|call| call.agent != number)
        .flat_map(|call| call.step.outline.messages.iter().map(|said| said.text().into_owned()))
        .collect();
    let replies = calls.iter().flat_map(|call| call.step.reply.iter().flat_map(|reply| &reply.answers));
    let quotable: HashSet<Mark> = replies.flat_map(|answer| shingles(&answer.message.text())).collect();
    let tells = |text: &String| {
        !others.iter().any(|other| other.contains(text.as_str()))
            && !shingles(text).iter().any(|mark| quotable.contains(mark))
    };
    excerpts.into_iter().filter(tells).collect()
}
