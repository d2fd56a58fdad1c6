//! Neutral changes that every execution of a claim gets, each its own: without them, two arms of a system that repeats its
//! words would show only that bytes decide.
//!
//! Draws depend on the execution's name alone, so that any machine and order of work draws alike. The two arms draw
//! independently of each other: where the treatment does nothing beyond what a neutral change does, both arms are equal in
//! distribution, whatever the system makes of them.

use rand::{
    RngExt, SeedableRng,
    rngs::ChaCha8Rng,
    seq::{IndexedRandom, IteratorRandom},
};

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

/// A kind of change that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeutralChange {
    /// A blank at the end of the text.
    TrailingBlank,
    /// An empty line at the end of the text.
    EmptyLine,
    /// A blank between two words is doubled.
    DoubledBlank,
    /// A polite word in a paragraph of its own, at the end of the text.
    PoliteWord,
    /// A sentence that says nothing of the task, in a paragraph of its own, at the end of the text.
    Sentence,
}

impl NeutralChange {
    /// What a request may get: words too, which only a model reads.
    const OF_REQUESTS: &[Self] =
        &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlank, Self::PoliteWord, Self::Sentence];
    /// What may be put behind a text that a program reads.
    const AT_THE_END: &[Self] = &[Self::TrailingBlank, Self::EmptyLine];
    /// What prose may get that a program could read as well.
    const BLANKS: &[Self] = &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlank];
}

/// The neutral changes of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perturbation {
    seed: [u8; 32],
}

impl Perturbation {
    /// Of an execution, by the name of its run, which is another for each claim, arm and number.
    pub fn of_run(name: &str) -> Self {
        Self { seed: blake3::derive_key("aegis perturbation 1", name.as_bytes()) }
    }

    /// Whether a request's system text is changed rather than its user text. `call`: a number that each call of the run
    /// has for itself.
    pub fn is_of_system_text(&self, call: u64) -> bool {
        self.draws("place", call).random_bool(0.5)
    }

    /// A text of a request, changed.
    pub fn of_request(&self, call: u64, text: &str) -> String {
        let kinds = if is_parsed(text) { NeutralChange::AT_THE_END } else { NeutralChange::OF_REQUESTS };
        changed(text, kinds, &mut self.draws("request", call))
    }

    /// The reply at the place where both arms begin, changed; `None` where it is no prose: a program may parse what is none.
    pub fn of_reply(&self, text: &str) -> Option<String> {
        let is_prose = text.split_whitespace().count() >= PROSE && !is_parsed(text);
        is_prose.then(|| changed(text, NeutralChange::BLANKS, &mut self.draws("reply", 0)))
    }

    fn draws(&self, what: &str, call: u64) -> ChaCha8Rng {
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&call.to_le_bytes());
        hasher.update(what.as_bytes());
        ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
    }
}

/// Whether a text is, or holds, what a program reads: JSON, or code.
fn is_parsed(text: &str) -> bool {
    text.contains("```") || serde_json::from_str::<serde_json::Value>(text.trim()).is_ok()
}

/// A text with a change of one of these kinds.
fn changed(text: &str, kinds: &[NeutralChange], draws: &mut ChaCha8Rng) -> String {
    let kind = kinds.choose(draws).copied().unwrap_or(NeutralChange::TrailingBlank);
    let paragraph = |list: &[&str], draws: &mut ChaCha8Rng| {
        let words = list.choose(draws).copied().unwrap_or_default();
        format!("{text}\n\n{words}")
    };
    match kind {
        NeutralChange::TrailingBlank => format!("{text} "),
        NeutralChange::EmptyLine => format!("{text}\n\n"),
        NeutralChange::PoliteWord => paragraph(POLITE_WORDS, draws),
        NeutralChange::Sentence => paragraph(SENTENCES, draws),
        NeutralChange::DoubledBlank => match single_blanks(text).choose(draws) {
            Some(at) => {
                let (before, after) = text.split_at(at);
                format!("{before} {after}")
            }
            None => format!("{text} "),
        },
    }
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

    /// A text without its blanks, its polite words and its sentences.
    fn meaning(text: &str) -> String {
        let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for added in POLITE_WORDS.iter().chain(SENTENCES) {
            words = words.strip_suffix(added).unwrap_or(&words).trim_end().to_owned();
        }
        words
    }

    #[test]
    fn each_execution_and_each_call_draws_its_own() {
        let text = "Answer the question in one short sentence.";
        let of = |run: usize| Perturbation::of_run(&format!("c-{run}"));
        assert_eq!(of(1).of_request(7, text), of(1).of_request(7, text), "the same anywhere");
        let runs: BTreeSet<_> = (0..100).map(|run| of(run).of_request(0, text)).collect();
        let calls: BTreeSet<_> = (0..100).map(|call| of(0).of_request(call, text)).collect();
        // Two of blanks at the end, six between words, twelve of words.
        assert!(runs.len() > 12 && calls.len() > 12, "{runs:?}");
        let system = (0..1000).filter(|run| of(*run).is_of_system_text(0)).count();
        assert!((450..550).contains(&system), "{system}");
    }

    #[test]
    fn nothing_but_blanks_and_shipped_words_is_added() {
        for text in
            ["Answer the question.", "é ü", "", " leading and trailing ", "a\n\nb c", "{\"a\": 1}", "run ```x```"]
        {
            for run in 0..200 {
                let changed = Perturbation::of_run(&run.to_string()).of_request(0, text);
                assert_ne!(changed, text);
                assert_eq!(meaning(&changed), meaning(text), "{changed:?}");
            }
        }
    }

    #[test]
    fn what_a_program_may_parse_gets_no_words_and_a_reply_nothing_but_blanks() {
        let blanks = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for run in 0..200 {
            let perturbation = Perturbation::of_run(&run.to_string());
            for json in ["{\"answer\": 12, \"why\": \"so it is\"}", "[1, 2]"] {
                let changed = perturbation.of_request(0, json);
                assert_eq!(changed.trim(), json);
                assert_eq!(perturbation.of_reply(json), None);
            }
            for short in ["42", "APPROVED", "ANSWER: 7", "```\nlet it be so then\n```"] {
                assert_eq!(perturbation.of_reply(short), None, "{short}");
            }
            let prose = "The answer is found to be 42.";
            let changed = perturbation.of_reply(prose).expect("prose");
            assert!(changed != prose && blanks(&changed) == blanks(prose), "{changed:?}");
        }
    }

    #[test]
    fn all_kinds_are_drawn_about_as_often() {
        let text = "one two three four";
        let mut counts = [0_usize; 5];
        for run in 0..2_000 {
            let changed = Perturbation::of_run(&run.to_string()).of_request(3, text);
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
