//! `neutral_change`: a change that means nothing, as a decoy: what is planted like an error and is none.
//!
//! The kinds of neutral changes stand here, for whoever makes one: this manipulator, and each execution of a proof.

use rand::{
    RngExt, SeedableRng,
    rngs::ChaCha8Rng,
    seq::{IndexedRandom, IteratorRandom},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Answer, Conversation, Message, Role};

/// Fewest words of a reply that count as prose: programs parse shorter ones.
const PROSE: usize = 4;

const POLITE_WORDS: &[&str] = &["Please.", "Thank you.", "Thanks.", "Good luck.", "Many thanks.", "Best regards."];

const SENTENCES: &[&str] = &[
    "This is one of several requests.",
    "There is no hurry.",
    "Take the time that you need.",
    "The text above is complete.",
    "Nothing else is attached.",
    "This is all that is known here.",
];

/// Most blanks of a text that are doubled.
const DOUBLED_MAX: usize = 3;

/// Changes what means nothing: blanks, an empty line; in a request also a polite word, or a sentence that says nothing of the task.
///
/// It is planted like an error and is none. A campaign plants some by itself, as decoys (`proof.decoys`), and counts how many of
/// them its proof takes for errors. Which change, and where, depends on the draw. A request is changed at the end of its system
/// text or of its last user text; a reply only where it is prose, and only in its blanks, for programs read replies too.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.1"
/// when.call = 0
/// side = "request"
/// manipulator.neutral_change = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: What is 12 + 30?"]
/// expect_changed = true
/// ```
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeutralChange {}

/// A kind of change that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeutralKind {
    /// A blank at the end of the text.
    TrailingBlank,
    /// An empty line at the end of the text.
    EmptyLine,
    /// One to three blanks between words are doubled.
    DoubledBlanks,
    /// A polite word in a paragraph of its own, at the end of the text.
    PoliteWord,
    /// A sentence that says nothing of the task, in a paragraph of its own, at the end of the text.
    Sentence,
}

impl NeutralKind {
    /// What a request may get: words too, which only a model reads.
    const OF_REQUESTS: &[Self] =
        &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlanks, Self::PoliteWord, Self::Sentence];
    /// What may be put behind a text that a program reads.
    const AT_THE_END: &[Self] = &[Self::TrailingBlank, Self::EmptyLine];
    /// What prose may get that a program could read as well.
    const BLANKS: &[Self] = &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlanks];
}

impl Manipulator for NeutralChange {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let mut draws = ChaCha8Rng::seed_from_u64(context.draw);
        let of_system = draws.random_bool(0.5);
        let place = neutral_place(conversation, of_system);
        let message = place.and_then(|place| conversation.messages.get_mut(place));
        match message.and_then(|message| message.texts_mut().last()) {
            Some(text) => *text = neutral_request(text, &mut draws),
            None => return not_applicable("it has no text of the system or the user"),
        }
        Ok(())
    }

    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let mut draws = ChaCha8Rng::seed_from_u64(context.draw);
        let prose = answer.message.tool_calls.is_empty().then(|| neutral_reply(&answer.message.text(), &mut draws)).flatten();
        let Some(text) = prose else {
            return not_applicable("the answer is no prose, and a program may read what is none");
        };
        answer.message.set_text(&text);
        Ok(())
    }

    fn explain(&self) -> String {
        "changes what means nothing: blanks, a polite word, or a sentence that says nothing of the task".to_owned()
    }
}

/// The message of a request that gets a neutral change, by its index: the last of the system, or the last of the user; the other where
/// that one is missing. `None` where there is neither, or where vectors stand for each letter.
pub fn neutral_place(conversation: &Conversation, of_system: bool) -> Option<usize> {
    if conversation.vectors.is_some() {
        return None;
    }
    let is_system = |message: &Message| matches!(message.role, Role::System | Role::Developer);
    let is_user = |message: &Message| message.role == Role::User;
    let messages = &conversation.messages;
    let (system, user) = (messages.iter().rposition(is_system), messages.iter().rposition(is_user));
    if of_system { system.or(user) } else { user.or(system) }
}

/// A text of a request with a neutral change: words too, which only a model reads, where no program may parse it.
pub fn neutral_request(text: &str, draws: &mut ChaCha8Rng) -> String {
    let kinds = if is_parsed(text) { NeutralKind::AT_THE_END } else { NeutralKind::OF_REQUESTS };
    changed(text, kinds, draws)
}

/// The text of a reply with a neutral change of its blanks; `None` where it is no prose: a program may parse what is none.
pub fn neutral_reply(text: &str, draws: &mut ChaCha8Rng) -> Option<String> {
    let is_prose = text.split_whitespace().count() >= PROSE && !is_parsed(text);
    is_prose.then(|| changed(text, NeutralKind::BLANKS, draws))
}

/// Whether a text is, or holds, what a program reads: JSON, or code.
fn is_parsed(text: &str) -> bool {
    text.contains("```") || serde_json::from_str::<serde_json::Value>(text.trim()).is_ok()
}

/// A text with a change of one of these kinds.
fn changed(text: &str, kinds: &[NeutralKind], draws: &mut ChaCha8Rng) -> String {
    let kind = kinds.choose(draws).copied().unwrap_or(NeutralKind::TrailingBlank);
    let paragraph = |list: &[&str], draws: &mut ChaCha8Rng| {
        let words = list.choose(draws).copied().unwrap_or_default();
        format!("{text}\n\n{words}")
    };
    let blanks = draws.random_range(1..=DOUBLED_MAX);
    match kind {
        NeutralKind::TrailingBlank => format!("{text} "),
        NeutralKind::EmptyLine => format!("{text}\n\n"),
        NeutralKind::PoliteWord => paragraph(POLITE_WORDS, draws),
        NeutralKind::Sentence => paragraph(SENTENCES, draws),
        NeutralKind::DoubledBlanks => {
            let mut places = [0; DOUBLED_MAX];
            let asked = places.split_at_mut(blanks).0;
            let found = single_blanks(text).sample_fill(draws, asked);
            let places = asked.split_at_mut(found).0;
            places.sort_unstable();
            if places.is_empty() { format!("{text} ") } else { doubled(text, places) }
        }
    }
}

/// A text with a further blank at each of these places, in order.
fn doubled(text: &str, places: &[usize]) -> String {
    let mut doubled = String::with_capacity(text.len() + places.len());
    let mut from = 0;
    for place in places {
        doubled.push_str(text.get(from..*place).unwrap_or_default());
        doubled.push(' ');
        from = *place;
    }
    doubled.push_str(text.get(from..).unwrap_or_default());
    doubled
}

/// Where a single blank stands between two words of one line.
fn single_blanks(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let is_word = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| !byte.is_ascii_whitespace());
    let is_single = move |at: &usize| is_word(at.checked_sub(1)) && is_word(at.checked_add(1));
    text.match_indices(' ').map(|(at, _)| at).filter(is_single)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::RequiredFormat;

    fn draws(number: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(number)
    }

    /// A text without its blanks, its polite words and its sentences.
    fn meaning(text: &str) -> String {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for added in POLITE_WORDS.iter().chain(SENTENCES) {
            words = words.strip_suffix(added).unwrap_or(&words).trim_end().to_owned();
        }
        words
    }

    #[test]
    fn nothing_but_blanks_and_shipped_words_is_added() {
        for text in
            ["Answer the question.", "é ü", "", " leading and trailing ", "a\n\nb c", "{\"a\": 1}", "run ```x```"]
        {
            for number in 0..200 {
                let changed = neutral_request(text, &mut draws(number));
                assert_ne!(changed, text);
                assert_eq!(meaning(&changed), meaning(text), "{changed:?}");
            }
        }
    }

    #[test]
    fn what_a_program_may_parse_gets_no_words_and_a_reply_nothing_but_blanks() {
        let blanks = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for number in 0..200 {
            for json in ["{\"answer\": 12, \"why\": \"so it is\"}", "[1, 2]"] {
                assert_eq!(neutral_request(json, &mut draws(number)).trim(), json);
                assert_eq!(neutral_reply(json, &mut draws(number)), None);
            }
            for short in ["42", "APPROVED", "ANSWER: 7", "```\nlet it be so then\n```"] {
                assert_eq!(neutral_reply(short, &mut draws(number)), None, "{short}");
            }
            let prose = "The answer is found to be 42.";
            let changed = neutral_reply(prose, &mut draws(number)).expect("prose");
            assert!(changed != prose && blanks(&changed) == blanks(prose), "{changed:?}");
        }
    }

    #[test]
    fn all_kinds_are_drawn_about_as_often() {
        let text = "one two three four";
        let mut counts = [0_usize; 5];
        for number in 0..2_000 {
            let changed = neutral_request(text, &mut draws(number));
            let tail = changed.strip_prefix(text);
            let kind = match tail {
                Some(" ") => 0,
                Some("\n\n") => 1,
                None => 2,
                Some(tail) if POLITE_WORDS.contains(&tail.trim()) => 3,
                Some(_) => 4,
            };
            counts[kind] += 1;
        }
        assert!(counts.iter().all(|count| (330..470).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_request_is_changed_in_its_system_text_or_its_last_user_text() {
        let asked = |roles: &[Role]| Conversation {
            messages: roles.iter().map(|role| Message::text_of(*role, "One two three.")).collect(),
            ..Conversation::default()
        };
        for (roles, expected) in [
            (&[Role::System, Role::User, Role::Assistant, Role::User][..], &[0, 3][..]),
            (&[Role::User], &[0]),
            (&[Role::System], &[0]),
            (&[Role::Assistant], &[]),
            (&[], &[]),
        ] {
            let mut places = BTreeSet::new();
            for draw in 0..50 {
                let (before, mut after) = (asked(roles), asked(roles));
                let context = Context { draw, ..context(&before) };
                if NeutralChange::default().edit_request(&mut after, &context).is_ok() {
                    places.extend((0..roles.len()).filter(|at| before.messages[*at] != after.messages[*at]));
                }
            }
            assert_eq!(places.into_iter().collect::<Vec<_>>(), expected, "{roles:?}");
        }
    }

    #[test]
    fn only_an_answer_in_prose_is_changed() {
        let edited = |text: &str| answer(&NeutralChange {}, text, RequiredFormat::Text, 3).ok();
        let changed = edited("The sum of both is 42.").expect("prose").message.text();
        assert!(changed != "The sum of both is 42." && meaning(&changed) == "The sum of both is 42.", "{changed:?}");
        assert!(edited("42").is_none());
        let mut calling = reply("The sum of both is 42.").answers.remove(0);
        calling.message.tool_calls.push(call("f", "{}"));
        assert!(NeutralChange::default().edit_answer(&mut calling, &context(&Conversation::default())).is_err());
    }
}
