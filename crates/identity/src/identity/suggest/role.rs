//! What prompts say of the agent itself, in the same words on each task: `You are the finder`. Prompts that hold a memory,
//! a task or a clock differ with each call, and are one agent's where they say the same of it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{fixed, portrait::Portrait};
use crate::{
    identity::{
        ObservedRun,
        fingerprint::{Mark, mark_sentences, sentences},
        words::shingles,
    },
    trajectory::patterns,
};

/// The sentences of a prompt, sorted by what they are.
#[derive(Debug, Default)]
pub(super) struct PromptRole {
    /// What it says of the agent on each task, in order; empty where it says no such thing.
    pub(super) says: Vec<Mark>,
    /// Sentences that are neither that, nor said on each task, nor quoted, nor a moment or place: they may be an agent's own.
    own: BTreeSet<Mark>,
    /// Whether it says things of the agent that it says on one task only.
    pub(super) says_otherwise: bool,
    /// Whether all of it is said on each task.
    lasting: bool,
}

impl PromptRole {
    /// Whether two prompts say that they are different agents.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.says.first().zip(other.says.first()).is_some_and(|(one, other)| one != other)
    }

    /// Whether two prompts say the same of the agent and nothing else that may tell two agents apart.
    pub(super) fn is_one_agent(&self, other: &Self) -> bool {
        let same = !self.says.is_empty() && self.says == other.says;
        // Two prompts that both come again word for word are two prompts.
        same && self.own == other.own && !(self.lasting && other.lasting)
    }
}

/// The roles of the portraits with a prompt; empty ones where a single run cannot tell what lasts.
pub(super) fn roles(portraits: &[Portrait<'_>], runs: &[ObservedRun<'_>]) -> Vec<PromptRole> {
    if runs.len() < 2 {
        return portraits.iter().map(|_| PromptRole::default()).collect();
    }
    let mut said_in: HashMap<Mark, BTreeSet<usize>> = HashMap::new();
    for portrait in portraits.iter().filter(|portrait| portrait.looks.prompted) {
        for text in portrait.texts() {
            for mark in sentences(&text).map(mark) {
                said_in.entry(mark).or_default().extend(portrait.runs());
            }
        }
    }
    let quotable: Vec<QuotableText> = runs.iter().map(QuotableText::from_run).collect();
    let role = |portrait: &Portrait<'_>| {
        let mut role = PromptRole { lasting: true, ..PromptRole::default() };
        let Some(text) = portrait.texts().into_iter().next().filter(|_| portrait.looks.prompted) else { return role };
        for sentence in sentences(&text) {
            let mark = mark(sentence);
            let lasts = said_in.get(&mark).is_some_and(|runs| runs.len() > 1);
            let of_itself = OF_ITSELF.is_match(sentence);
            role.lasting &= lasts;
            role.says_otherwise |= of_itself && !lasts;
            if lasts && of_itself {
                role.says.push(mark);
            } else if !lasts
                && !sentence.split_whitespace().any(fixed::moves)
                && !portrait.runs().iter().any(|run| quotable.get(*run).is_some_and(|texts| texts.hold(sentence)))
            {
                role.own.insert(mark);
            }
        }
        role
    };
    portraits.iter().map(role).collect()
}

fn mark(sentence: &str) -> Mark {
    let mut marks = Vec::new();
    mark_sentences(sentence, &mut marks);
    marks.first().copied().unwrap_or_default()
}

/// What prompts of a run may quote: its task, and what was answered.
struct QuotableText {
    texts: Vec<String>,
    shingles: HashSet<Mark>,
}

impl QuotableText {
    fn from_run(run: &ObservedRun<'_>) -> Self {
        let answers = run.steps.iter().flat_map(|step| step.reply.iter().flat_map(|reply| &reply.answers));
        let answers = answers.map(|answer| answer.message.text());
        let users = run.steps.iter().filter_map(|step| step.outline.first_user()).map(std::borrow::Cow::into_owned);
        let texts: Vec<String> = answers.chain(users).collect();
        let shingles = texts.iter().flat_map(|text| shingles(text)).collect();
        Self { texts, shingles }
    }

    fn hold(&self, sentence: &str) -> bool {
        let own = shingles(sentence);
        if own.is_empty() {
            return self.texts.iter().any(|text| text.contains(sentence));
        }
        own.iter().any(|mark| self.shingles.contains(mark))
    }
}

patterns! {
    OF_ITSELF = r"(?i)^(?:you|your|act as|as the|role:|name:|i am|i'm)\b";
}
