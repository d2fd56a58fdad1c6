//! What an agent's requests look like: the sentences of its prompt after masking, its tools, its answer's format.
//!
//! Masked is what changes from call to call without meaning another agent: times, dates, long numbers, hex ids. Two
//! prompts are never one for a common beginning alone: reviewers that differ by one word are different agents, and so are
//! players that differ by a number.

use std::collections::HashSet;

use twox_hash::XxHash3_64;

use super::mask;
use crate::surface::{LazyMessage, Outline, Role};

/// A 64-bit hash of a text: compared, never shown.
pub type Mark = u64;

/// Sentences of a text that are marked one by one; what follows them has one mark for all of it.
const SENTENCES_MAX: usize = 4096;

/// What a request looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLooks {
    /// The short name of these looks: stable across restarts.
    pub key: u32,
    /// The prompt alone, without tools.
    pub prompt: Mark,
    /// Tools and format: looks of different families are never one agent by their sentences.
    pub family: Mark,
    /// Whether there is a system prompt; else the sentences are those of the first user text.
    pub prompted: bool,
    /// Whether they are known by that user text alone, without prompt and tools.
    pub framed: bool,
    /// Marks of the sentences that count.
    pub sentences: Vec<Mark>,
    /// Whether all of them are here.
    pub whole: bool,
    /// Marks of the names of the tools on offer, in order of the marks.
    pub tools: Vec<Mark>,
    /// The model, and the name of the answer's schema where one is asked for.
    pub made_for: (Mark, Option<Mark>),
}

impl RequestLooks {
    /// The looks of a request. `opening`: sentences of the run's first user text; a request without a prompt is known
    /// by what its user text says beside the task.
    pub fn read(outline: &Outline<'_>, opening: &HashSet<Mark>) -> Self {
        let prompted = !outline.prompts.iter().all(|prompt| prompt.trim().is_empty());
        let mut sentences = Vec::new();
        if prompted {
            outline.prompts.iter().for_each(|prompt| mark_sentences(prompt, &mut sentences));
        } else if let Some(user) = outline.first_user() {
            mark_sentences(&user, &mut sentences);
        }
        let names = tool_names(outline);
        let tools = if prompted { join(&names) } else { XxHash3_64::oneshot(outline.tool_text.as_bytes()) };
        let family = join(&[u64::from(prompted), tools, XxHash3_64::oneshot(outline.format.as_bytes())]);
        let prompt = join(&sentences);
        let known_by = if prompted {
            join(&[prompt, tools])
        } else if outline.tool_text.len() > 2 {
            // Without a prompt, a tool set with its schemas says more than a task does.
            family
        } else {
            frame(family, &sentences, opening)
        };
        let framed = !prompted && outline.tool_text.len() <= 2;
        let mark = |text: &str| XxHash3_64::oneshot(text.as_bytes());
        let made_for = (mark(&outline.model), (!outline.format.is_empty()).then(|| mark(&outline.format)));
        Self { key: fold(known_by), prompt, family, prompted, framed, sentences, whole: true, tools: names, made_for }
    }

    /// Equal for requests that look alike, whatever the run opened with: what [`RequestLooks::read`] reads, not looked into.
    pub(super) fn key(outline: &Outline<'_>) -> Mark {
        let mark = |text: &std::borrow::Cow<'_, str>| XxHash3_64::oneshot(text.as_bytes());
        let mut marks: Vec<Mark> = outline.prompts.iter().map(mark).collect();
        marks.push(outline.prompts.len() as Mark);
        marks.extend(outline.tools.iter().map(mark));
        marks.extend([mark(&outline.format), mark(&outline.model)]);
        if outline.prompts.iter().all(|prompt| prompt.trim().is_empty()) {
            marks.extend(first_user(outline).map(LazyMessage::mark));
            marks.push(mark(&outline.tool_text));
        }
        join(&marks)
    }

    /// Whether all tools of the other looks are on offer here too.
    pub(super) fn holds_tools(&self, other: &Self) -> bool {
        other.tools.iter().all(|tool| self.tools.binary_search(tool).is_ok())
    }

    /// The same looks with at most `most` sentences: the first, the last, and one mark for all, so that long texts that
    /// differ anywhere stay different.
    pub(super) fn shortened(&self, most: usize) -> Self {
        if self.sentences.len() <= most {
            return self.clone();
        }
        let half = most.saturating_sub(1) / 2;
        let first = self.sentences.iter().take(half);
        let last = self.sentences.iter().skip(self.sentences.len() - half);
        let sentences = first.chain(last).copied().chain([join(&self.sentences)]).collect();
        Self { sentences, whole: false, ..self.clone() }
    }
}

/// What a request without prompt and tools is known by: its user text beside the task.
pub(super) fn frame(family: Mark, sentences: &[Mark], opening: &HashSet<Mark>) -> Mark {
    let frame: Vec<Mark> = sentences.iter().copied().filter(|mark| !opening.contains(mark)).collect();
    join(&[family, join(&frame)])
}

/// Marks of a text's sentences, appended in order.
pub(super) fn mark_sentences(text: &str, marks: &mut Vec<Mark>) {
    let (mut masked, mut rest) = (String::new(), None);
    for (at, sentence) in sentences(text).enumerate() {
        let mark = mark_of_sentence(sentence, &mut masked);
        if at < SENTENCES_MAX {
            marks.push(mark);
        } else {
            rest = Some(XxHash3_64::oneshot_with_seed(rest.unwrap_or_default(), &mark.to_le_bytes()));
        }
    }
    marks.extend(rest);
}

/// The marks of a text's first sentences.
pub(super) fn first_sentences(text: &str, most: usize) -> Vec<Mark> {
    let mut masked = String::new();
    sentences(text).take(most).map(|sentence| mark_of_sentence(sentence, &mut masked)).collect()
}

fn mark_of_sentence(sentence: &str, masked: &mut String) -> Mark {
    if !mask::may_hold_moments(sentence) {
        return XxHash3_64::oneshot(sentence.as_bytes());
    }
    masked.clear();
    mask::moments(sentence, masked);
    XxHash3_64::oneshot(masked.as_bytes())
}

/// The text's sentences, as they can be shown: trimmed, none empty.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(split_line).map(str::trim).filter(|sentence| !sentence.is_empty())
}

/// Splits a line behind `. `, `! ` and `? `.
fn split_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let bytes = text.as_bytes();
        let end = memchr::memchr_iter(b' ', bytes)
            .find(|at| at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(|byte| b".!?".contains(byte)));
        match end.and_then(|end| text.split_at_checked(end)) {
            Some((sentence, tail)) => {
                rest = Some(tail.trim_start());
                Some(sentence)
            }
            None => rest.take(),
        }
    })
}

/// The names of the tools on offer, whatever their order.
fn tool_names(outline: &Outline<'_>) -> Vec<Mark> {
    let mut names: Vec<Mark> = outline.tools.iter().map(|name| XxHash3_64::oneshot(name.as_bytes())).collect();
    names.sort_unstable();
    names
}

/// One mark for several, in order.
pub(super) fn join(marks: &[Mark]) -> Mark {
    let bytes: Vec<u8> = marks.iter().flat_map(|mark| mark.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes)
}

/// The short form of a mark, as it stands in a name.
pub(super) fn fold(mark: Mark) -> u32 {
    u32::try_from((mark ^ (mark >> 32)) & 0xffff_ffff).unwrap_or_default()
}

/// The first message of role user.
pub(super) fn first_user<'a>(outline: &'a Outline<'a>) -> Option<&'a LazyMessage<'a>> {
    outline.messages.iter().find(|said| said.role == Role::User)
}

/// What a request asks, whoever asks: equal for requests that say the same words to the same model.
pub(super) fn request_mark(outline: &Outline<'_>) -> Mark {
    let marks: Vec<Mark> = outline.messages.iter().map(LazyMessage::mark).collect();
    join(&marks)
}

/// Whether nobody has answered anything in this conversation yet.
pub(super) fn is_fresh(outline: &Outline<'_>) -> bool {
    !outline.messages.iter().any(|said| matches!(said.role, Role::Assistant | Role::Tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Message;

    #[test]
    fn sentences_are_split_where_they_end() {
        let of = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(of("You plan. Be brief!\n\n- one\n- v1.2 only"), ["You plan.", "Be brief!", "- one", "- v1.2 only"]);
        assert_eq!(of("  \n \n"), Vec::<&str>::new());
        assert_eq!(of("…? ja. ő"), ["…?", "ja.", "ő"]);
    }

    fn looks(prompt: &str, user: &str, tools: &[&str]) -> RequestLooks {
        let outline = Outline {
            prompts: if prompt.is_empty() { vec![] } else { vec![prompt.into()] },
            messages: vec![LazyMessage::from(&Message::text_of(Role::User, user))],
            tools: tools.iter().map(|tool| (*tool).into()).collect(),
            ..Outline::default()
        };
        let mut opening = Vec::new();
        mark_sentences("What is 2 + 2?", &mut opening);
        RequestLooks::read(&outline, &opening.into_iter().collect())
    }

    #[test]
    fn one_agent_has_one_key() {
        let same = |a: &RequestLooks, b: &RequestLooks| a.key == b.key;
        let clock = |time: &str| looks(&format!("You book seats. Now: {time}."), "hi", &["a", "b"]);
        assert!(same(&clock("10:30:01"), &clock("18:00:59")), "a clock in the prompt");
        assert!(
            same(&clock("9:30"), &looks("You book seats. Now: 8:15.", "other task", &["b", "a"])),
            "order of tools"
        );
        assert!(!same(&clock("9:30"), &looks("You book seats. Now: 8:15.", "hi", &["a"])), "other tools");
        let player = |number: &str| looks(&format!("You are player {number}. Be brief."), "x", &[]);
        assert!(!same(&player("1"), &player("2")), "a number apart");
        let reviewer = |of: &str| looks(&format!("You review for {of}. Be brief."), "x", &[]);
        assert!(!same(&reviewer("security"), &reviewer("performance")), "one word apart");
        let long = |end: &str| looks(&format!("{}{end}", "Follow this rule. ".repeat(60_000)), "x", &[]);
        assert!(!same(&long("You plan."), &long("You judge.")), "a megabyte that ends otherwise");
        assert!(same(&long("You plan."), &long("You plan.")));
        let bare = |text: &str| looks("", text, &[]);
        assert!(!same(&bare("What is 2 + 2? Think step by step."), &bare("What is 2 + 2? Answer with one number.")));
        assert!(same(&bare("What is 2 + 2?"), &bare("What is 2 + 2?")));
    }
}
