//! Changes of a text that mean nothing: what every execution of a proof gets, and what is planted as a decoy.

use rand::{
    RngExt,
    rngs::ChaCha8Rng,
    seq::{IndexedRandom, IteratorRandom},
};

use super::sentences::NeutralSentences;

/// Fewest words of a reply that count as prose: programs parse shorter ones.
const PROSE: usize = 4;

const POLITE_WORDS: &[&str] = &["Please.", "Thank you.", "Thanks.", "Good luck.", "Many thanks.", "Best regards."];

/// Most blanks of a text that are doubled.
const DOUBLED_MAX: usize = 3;

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

/// A text of a request with a neutral change: words too, which only a model reads, where no program may parse it.
pub fn neutral_request(text: &str, sentences: &NeutralSentences, draws: &mut ChaCha8Rng) -> String {
    let kinds = if is_parsed(text) { NeutralKind::AT_THE_END } else { NeutralKind::OF_REQUESTS };
    changed(text, kinds, sentences, draws)
}

/// The text of a reply with a neutral change of its blanks; `None` where it is no prose: a program may parse what is none.
pub fn neutral_reply(text: &str, draws: &mut ChaCha8Rng) -> Option<String> {
    let is_prose = text.split_whitespace().count() >= PROSE && !is_parsed(text);
    is_prose.then(|| changed(text, NeutralKind::BLANKS, &NeutralSentences::default(), draws))
}

/// A text of a tool's result with a neutral change of its blanks: where a program may parse it, at its end.
pub fn neutral_result(text: &str, draws: &mut ChaCha8Rng) -> String {
    let kinds = if is_parsed(text) { NeutralKind::AT_THE_END } else { NeutralKind::BLANKS };
    changed(text, kinds, &NeutralSentences::default(), draws)
}

/// Whether a text is, or holds, what a program reads: JSON, or code.
fn is_parsed(text: &str) -> bool {
    text.contains("```") || serde_json::from_str::<serde_json::Value>(text.trim()).is_ok()
}

/// A text with a change of one of these kinds.
fn changed(text: &str, kinds: &[NeutralKind], sentences: &NeutralSentences, draws: &mut ChaCha8Rng) -> String {
    let kind = kinds.choose(draws).copied().unwrap_or(NeutralKind::TrailingBlank);
    let paragraph = |words: Option<&str>| format!("{text}\n\n{}", words.unwrap_or_default());
    let blanks = draws.random_range(1..=DOUBLED_MAX);
    match kind {
        NeutralKind::TrailingBlank => format!("{text} "),
        NeutralKind::EmptyLine => format!("{text}\n\n"),
        NeutralKind::PoliteWord => paragraph(POLITE_WORDS.choose(draws).copied()),
        NeutralKind::Sentence => paragraph(sentences.choose(draws)),
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
    use rand::SeedableRng;

    use super::*;

    /// A text of a request with a change from the shipped lists.
    fn neutral_request(text: &str, draws: &mut ChaCha8Rng) -> String {
        super::neutral_request(text, &NeutralSentences::default(), draws)
    }

    fn draws(number: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(number)
    }

    /// A text without its blanks, its polite words and its sentences.
    fn meaning(text: &str) -> String {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for added in POLITE_WORDS.iter().chain(super::super::sentences::SHIPPED) {
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
                let result = neutral_result(json, &mut draws(number));
                assert!(result != json && result.trim() == json, "{result:?}");
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
}
