//! Whether a prompt says something itself, or quotes it: a child's prompt may hold its parent's.

use memchr::memmem::Finder;

/// Fewest words of a text that may be a quotation; a name in quotation marks is a name.
const QUOTED_WORDS: usize = 3;

/// Whether a text stands in a prompt, not only as a quotation.
pub(super) fn stands_in(text: &Finder<'_>, prompt: &str) -> bool {
    let may_be_quoted = || {
        let words = std::str::from_utf8(text.needle()).map_or(0, |needle| needle.split_whitespace().count());
        // Of a prompt that is JSON, or stands in marks as a whole, they are its form.
        words >= QUOTED_WORDS && !prompt.trim_start().starts_with(['{', '[', '"'])
    };
    let mut places = text.find_iter(prompt.as_bytes());
    let Some(first) = places.next() else { return false };
    !may_be_quoted() || std::iter::once(first).chain(places).any(|at| !is_quoted(prompt, at))
}

/// Whether a place of a text is in quotation marks that its paragraph opened, in a block quote, or in a code block.
fn is_quoted(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let paragraph = before.rsplit("\n\n").next().unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let count = |mark: char| paragraph.matches(mark).count();
    line.trim_start().starts_with('>')
        || count('"') % 2 == 1
        || count('\u{201c}') > count('\u{201d}')
        || count('\u{ab}') > count('\u{bb}')
        || before.matches("```").count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_not_what_a_prompt_says_itself() {
        for (text, prompt, stands) in [
            ("You are the planner.", "You are the planner. Be brief.", true),
            (
                "You are the planner.",
                "Help another agent. It was told: \"You are the planner. Be brief.\" Do that.",
                false,
            ),
            ("You are the planner.", "Help.\n> You are the planner.\n> Be brief.", false),
            ("You are the planner.", "Help.\n```\nYou are the planner.\n```\n", false),
            ("You are the planner.", "It said \u{201c}no. You are the planner.\u{201d}", false),
            ("You are the planner.", "Say \"yes\" or \"no\". You are the planner.", true),
            ("You are the planner.", "He said \"You are the planner.\"\n\nYou are the planner.", true),
            ("You are the planner.", "{\"role\": \"You are the planner.\"}", true),
            ("planner", "Your name is \"planner\".", true),
            ("You are \"Ann\", the clerk", "You are \"Ann\", the clerk of all.", true),
            ("You are the planner.", "You write.", false),
        ] {
            assert_eq!(stands_in(&Finder::new(text), prompt), stands, "{text} in {prompt}");
        }
    }
}
