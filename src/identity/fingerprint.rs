//! What an agent's requests look like: the sentences of its prompt after masking, its tools, its answer's format.
//!
//! Masked is what changes from call to call without meaning another agent: numbers, times, hex ids. Two prompts are
//! never one for a common beginning alone: reviewers that differ by one word are different agents.

use std::collections::HashSet;

use twox_hash::XxHash3_64;

use crate::surface::{Outline, Role, Said};

/// A 64-bit hash of a text: compared, never shown.
pub type Mark = u64;

/// Sentences of a text that are marked one by one; what follows them has one mark for all of it.
const SENTENCES_MAX: usize = 4096;
/// Shortest run of hex digits and hyphens that is masked as an id.
const HEX_ID_MIN: usize = 12;
/// Longest one, in bytes: a text of nothing but hex digits and hyphens is not looked through again from each of them.
const HEX_ID_MAX: usize = 128;

/// What a request looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
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
}

impl Looks {
    /// The looks of a request. `opening`: sentences of the run's first user text; a request without a prompt is known
    /// by what its user text says beside the task.
    pub fn of(outline: &Outline<'_>, opening: &HashSet<Mark>) -> Self {
        let prompted = !outline.prompts.iter().all(|prompt| prompt.trim().is_empty());
        let mut sentences = Vec::new();
        if prompted {
            outline.prompts.iter().for_each(|prompt| mark_sentences(prompt, &mut sentences));
        } else if let Some(user) = outline.first_user() {
            mark_sentences(&user, &mut sentences);
        }
        let tools = if prompted { tool_names(outline) } else { XxHash3_64::oneshot(outline.tool_text.as_bytes()) };
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
        Self { key: fold(known_by), prompt, family, prompted, framed, sentences, whole: true }
    }

    /// Equal for requests that look alike, whatever the run opened with: what [`Looks::of`] reads, not looked into.
    pub(super) fn known_by(outline: &Outline<'_>) -> Mark {
        let mark = |text: &std::borrow::Cow<'_, str>| XxHash3_64::oneshot(text.as_bytes());
        let mut marks: Vec<Mark> = outline.prompts.iter().map(mark).collect();
        marks.push(outline.prompts.len() as Mark);
        marks.extend(outline.tools.iter().map(mark));
        marks.push(mark(&outline.format));
        if outline.prompts.iter().all(|prompt| prompt.trim().is_empty()) {
            marks.extend(first_user(outline).map(Said::mark));
            marks.push(mark(&outline.tool_text));
        }
        join(&marks)
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
        let Self { key, prompt, family, prompted, framed, .. } = *self;
        Self { key, prompt, family, prompted, framed, sentences, whole: false }
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
    masked.clear();
    mask(sentence, masked);
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

/// Appends the text with numbers and hex ids masked by `#`. Times and dates are numbers with signs between them. One
/// pass: prompts are long.
fn mask(text: &str, masked: &mut String) {
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let id = if first.is_ascii_hexdigit() && !ends_in_word(masked) { hex_id(rest) } else { 0 };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let taken = id.max(digits);
        if taken > 0 {
            masked.push('#');
            rest = rest.get(taken..).unwrap_or_default();
            continue;
        }
        // Up to the next number, but an id may begin at any word.
        let word = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let gap = rest.bytes().skip(word).take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let (plain, tail) = rest.split_at_checked((word + gap).max(1)).unwrap_or((rest, ""));
        masked.push_str(plain);
        rest = tail;
    }
}

fn ends_in_word(text: &str) -> bool {
    text.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'#')
}

/// The length of the hex id that the text begins with; 0 when it begins with none.
fn hex_id(text: &str) -> usize {
    let length = text.bytes().take(HEX_ID_MAX).take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    let id = text.as_bytes().get(..length).unwrap_or_default();
    let ends = !text.as_bytes().get(length).is_some_and(u8::is_ascii_alphanumeric);
    let is_id = length >= HEX_ID_MIN && ends && id.iter().any(u8::is_ascii_digit);
    if is_id { length } else { 0 }
}

/// The names of the tools on offer, whatever their order.
fn tool_names(outline: &Outline<'_>) -> Mark {
    let mut names: Vec<Mark> = outline.tools.iter().map(|name| XxHash3_64::oneshot(name.as_bytes())).collect();
    names.sort_unstable();
    join(&names)
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
pub(super) fn first_user<'a>(outline: &'a Outline<'a>) -> Option<&'a Said<'a>> {
    outline.said.iter().find(|said| said.role == Role::User)
}

/// What a request asks, whoever asks: equal for requests that say the same words to the same model.
pub(super) fn asked(outline: &Outline<'_>) -> Mark {
    let marks: Vec<Mark> = outline.said.iter().map(Said::mark).collect();
    join(&marks)
}

/// Whether nobody has answered anything in this conversation yet.
pub(super) fn is_fresh(outline: &Outline<'_>) -> bool {
    !outline.said.iter().any(|said| matches!(said.role, Role::Assistant | Role::Tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Message;

    #[test]
    fn what_changes_without_meaning_another_agent_is_masked() {
        for (text, masked) in [
            ("Now: 18:58:18.779420.", "Now: #:#:#.#."),
            ("Today is 2026-11-20T10:30:00Z", "Today is #-#-#T#:#:#Z"),
            ("id 3f2b8c1e-9d4a-4c7e-8f00-1234567890ab end", "id # end"),
            ("commit deadbeef0123 ok", "commit # ok"),
            ("a defaced facade", "a defaced facade"),
            ("use gpt4 and h2o", "use gpt# and h#o"),
            ("Zoë zählt bis 10 — 世界", "Zoë zählt bis # — 世界"),
            ("", ""),
        ] {
            let mut seen = String::new();
            mask(text, &mut seen);
            assert_eq!(seen, masked, "{text}");
        }
    }

    #[test]
    fn sentences_are_split_where_they_end() {
        let of = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(of("You plan. Be brief!\n\n- one\n- v1.2 only"), ["You plan.", "Be brief!", "- one", "- v1.2 only"]);
        assert_eq!(of("  \n \n"), Vec::<&str>::new());
        assert_eq!(of("…? ja. ő"), ["…?", "ja.", "ő"]);
    }

    fn looks(prompt: &str, user: &str, tools: &[&str]) -> Looks {
        let outline = Outline {
            prompts: if prompt.is_empty() { vec![] } else { vec![prompt.into()] },
            said: vec![Said::from(&Message::text_of(Role::User, user))],
            tools: tools.iter().map(|tool| (*tool).into()).collect(),
            ..Outline::default()
        };
        let mut opening = Vec::new();
        mark_sentences("What is 2 + 2?", &mut opening);
        Looks::of(&outline, &opening.into_iter().collect())
    }

    #[test]
    fn one_agent_has_one_key() {
        let same = |a: &Looks, b: &Looks| a.key == b.key;
        let clock = |time: &str| looks(&format!("You book seats. Now: {time}."), "hi", &["a", "b"]);
        assert!(same(&clock("10:30:01"), &clock("18:00:59")), "a clock in the prompt");
        assert!(same(&clock("1"), &looks("You book seats. Now: 2.", "other task", &["b", "a"])), "order of tools");
        assert!(!same(&clock("1"), &looks("You book seats. Now: 2.", "hi", &["a"])), "other tools");
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
