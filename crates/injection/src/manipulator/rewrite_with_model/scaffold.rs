//! The parts of a question that hold its texts together: headings and fences. A small model copies them into its answer
//! where it takes the form for the content; an agent must never read them.

use std::sync::LazyLock;

use regex::Regex;

/// Title of the section that names the failure mode.
pub(super) const WEAKNESS: &str = "Weakness";
/// Title of the section that says what to do.
pub(super) const SHOWING: &str = "How it is to show";
/// Title of the section that names the agent.
pub(super) const AGENT: &str = "Agent";
/// What the kind of task stands behind.
pub(super) const KIND: &str = "Kind of task";
/// Title of the agent's own prompt.
pub(super) const TOLD: &str = "What the agent was told";
/// Title of the task.
pub(super) const TASK: &str = "Task";
/// Title of the latest messages.
pub(super) const LATEST: &str = "Latest messages";
/// Title of the tools.
pub(super) const TOOLS: &str = "Tools that the agent may call";
/// Title of the schema.
pub(super) const SCHEMA: &str = "JSON schema that the message must fit";
/// Title of the tool calls.
pub(super) const CALLS: &str = "Tool calls that the agent makes";
/// Title of a request's message.
pub(super) const ASKED: &str = "Message to rewrite: what the agent is about to be asked";
/// Title of an answer.
pub(super) const ANSWERED: &str = "Message to rewrite: what the agent answered";

/// What only a question of ours says, in lower case; titles of one word count only as titles.
const PHRASES: &[&str] = &[
    "## weakness",
    "how it is to show",
    "## agent",
    "kind of task:",
    "what the agent was told",
    "## task",
    "## latest messages",
    "tools that the agent may call",
    "json schema that the message must fit",
    "tool calls that the agent makes",
    "message to rewrite",
    "what the agent is about to be asked",
    "what the agent answered",
];

/// So many digits of a fence in a row are no chance any more.
const FENCE_DIGITS: usize = 5;

/// A fence with its bars, its digits copied badly or not.
static FENCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"={3,}[ \t]*[0-9a-f]{8,}").ok());

/// Sixteen digits of base sixteen, give or take two, as a word of their own.
static DIGITS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{14,18}\b").ok());

/// What parts texts of others from ours: a line that they cannot hold by chance.
pub(super) fn fence(draw: u64) -> String {
    format!("=== {draw:016x} ===")
}

/// The first part of an edited text that is a fence or a heading, where `before` does not say the same.
///
/// # Examples
/// `=== 1c79fec8f87b1a99 ===`, or “How it is to show”.
pub fn scaffold<'t>(after: &'t str, before: &str) -> Option<&'t str> {
    let known = before.to_lowercase();
    let is_new = |found: &&str| !known.contains(&found.to_lowercase());
    let fence = FENCE.as_ref().and_then(|pattern| pattern.find(after)).map(|found| found.as_str()).filter(is_new);
    let letters = |word: &&str| word.contains(|c: char| c.is_ascii_alphabetic()) && word.contains(|c: char| c.is_ascii_digit());
    let digits = || {
        let pattern = DIGITS.as_ref()?;
        pattern.find_iter(after).map(|found| found.as_str()).find(|word| letters(word) && is_new(word))
    };
    fence.or_else(digits).or_else(|| heading(after).filter(is_new))
}

/// Whether a text holds a piece of this very fence.
pub(super) fn is_of_fence(text: &str, draw: u64) -> bool {
    let digits = format!("{draw:016x}");
    let text = text.to_lowercase();
    (0..=digits.len() - FENCE_DIGITS).filter_map(|at| digits.get(at..at + FENCE_DIGITS)).any(|piece| {
        // A number that an agent computes is no fence: a piece counts only within a longer word of such digits.
        let is_word = |at: usize| {
            let is_hex = |c: &char| c.is_ascii_hexdigit();
            let left = text.get(..at).unwrap_or_default().chars().rev().take_while(is_hex).count();
            let right = text.get(at..).unwrap_or_default().chars().take_while(is_hex).count();
            left + right >= digits.len() / 2
        };
        text.match_indices(piece).any(|(at, _)| is_word(at))
    })
}

fn heading(text: &str) -> Option<&str> {
    // Titles are ASCII, so places in the lower case of ASCII are places in the text.
    let lower = text.to_ascii_lowercase();
    let found = PHRASES.iter().filter_map(|phrase| Some((lower.find(phrase)?, phrase.len())));
    let (at, length) = found.min()?;
    text.get(at..at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_and_headings_are_found_and_what_was_there_is_none() {
        for (after, before, expected) in [
            ("Paris.\n=== 1c79fec8f87b1a99 ===", "Paris.", Some("=== 1c79fec8f87b1a99")),
            ("==1c79fec8f87b1a9 Paris", "Paris", Some("1c79fec8f87b1a9")),
            ("Paris 1c79fec8f87b1a9", "Paris", Some("1c79fec8f87b1a9")),
            ("## How it is to show\nParis", "Paris", Some("How it is to show")),
            ("Message to rewrite: what the agent answered", "", Some("Message to rewrite")),
            ("The capital, what the agent answered, is Rome", "Paris", Some("what the agent answered")),
            ("The commit is 1c79fec8f87b1a99.", "commit 1c79fec8f87b1a99", None),
            ("a == b; x == 100000000; ===== Results =====", "", None),
            ("Call 1234567890123456 or facade", "", None),
            ("It is the task of the agent to show Paris", "", None),
            ("ŁÓDŹ\n## Task\nx", "", Some("## Task")),
        ] {
            assert_eq!(scaffold(after, before), expected, "{after:?}");
        }
        let draw = 0x1c79_fec8_f87b_1a99;
        for (text, expected) in [
            ("1c79fec8f87b1a99", true),
            ("0c79fec8f87b1a99", true),
            ("1c79fec8f8 and more", true),
            ("79fec", false),
            ("no fence at all", false),
        ] {
            assert_eq!(is_of_fence(text, draw), expected, "{text}");
        }
    }

    #[test]
    fn every_title_is_known() {
        for title in [WEAKNESS, AGENT, TASK, LATEST] {
            assert!(heading(&format!("## {title}")).is_some(), "{title}");
        }
        for title in [SHOWING, TOLD, TOOLS, SCHEMA, CALLS, ASKED, ANSWERED] {
            assert!(heading(title).is_some(), "{title}");
        }
        assert!(heading(&format!("{KIND}: maths")).is_some());
    }
}
