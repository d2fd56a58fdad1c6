//! Neutral changes that every execution of a claim gets, each its own: without them, two arms of a system that repeats its
//! words would show only that bytes decide.
//!
//! Draws depend on the names of arm and claim and on the execution's number alone, so that any machine and order of work draws
//! alike. The two arms draw independently of each other: where the treatment does nothing beyond what a neutral change does, both arms are equal in
//! distribution, whatever the system makes of them.

use std::{collections::HashSet, hash::Hash};

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

/// Most draws that are looked through for one that changes a text otherwise.
const DRAWS_MAX: u32 = 2_000;

/// Most blanks of a text that are doubled.
const DOUBLED_MAX: usize = 3;

/// A kind of change that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeutralChange {
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

impl NeutralChange {
    /// What a request may get: words too, which only a model reads.
    const OF_REQUESTS: &[Self] =
        &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlanks, Self::PoliteWord, Self::Sentence];
    /// What may be put behind a text that a program reads.
    const AT_THE_END: &[Self] = &[Self::TrailingBlank, Self::EmptyLine];
    /// What prose may get that a program could read as well.
    const BLANKS: &[Self] = &[Self::TrailingBlank, Self::EmptyLine, Self::DoubledBlanks];
}

/// The neutral changes of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perturbation {
    seed: [u8; 32],
}

impl Perturbation {
    /// A draw of an arm, by its number. `arm`: a name that no other arm of any claim has.
    pub fn drawn(arm: &str, number: u32) -> Self {
        Self { seed: blake3::derive_key("aegis perturbation 2", format!("{number} {arm}").as_bytes()) }
    }

    /// The first draws of an arm that change a text otherwise than those before them, the last of them being of this number,
    /// 0-based. `None` where no more is left: what a model or a cache replied to a text once is no draw of its own when it replies it again. `changed` is
    /// what a draw makes of the text.
    pub fn distinct<T: Hash + Eq>(arm: &str, number: u32, changed: impl Fn(&Self) -> T) -> Option<Self> {
        let (mut seen, wanted) = (HashSet::new(), usize::try_from(number).ok()?);
        let draws = (0..DRAWS_MAX).map(|number| Self::drawn(arm, number));
        draws.filter(|draw| seen.insert(changed(draw))).nth(wanted)
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
    let blanks = draws.random_range(1..=DOUBLED_MAX);
    match kind {
        NeutralChange::TrailingBlank => format!("{text} "),
        NeutralChange::EmptyLine => format!("{text}\n\n"),
        NeutralChange::PoliteWord => paragraph(POLITE_WORDS, draws),
        NeutralChange::Sentence => paragraph(SENTENCES, draws),
        NeutralChange::DoubledBlanks => {
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
        let of = |run: u32| Perturbation::drawn("c-1", run);
        assert_eq!(of(1).of_request(7, text), of(1).of_request(7, text), "the same anywhere");
        let runs: BTreeSet<_> = (0..100).map(|run| of(run).of_request(0, text)).collect();
        let calls: BTreeSet<_> = (0..100).map(|call| of(0).of_request(call, text)).collect();
        // Two of blanks at the end, six between words, twelve of words.
        assert!(runs.len() > 12 && calls.len() > 12, "{runs:?}");
        let system = (0..1000).filter(|run| of(*run).is_of_system_text(0)).count();
        assert!((450..550).contains(&system), "{system}");
    }

    #[test]
    fn an_arm_draws_no_change_of_a_text_twice_and_says_when_none_is_left() {
        let text = "The sum is 42.";
        let change = |draw: &Perturbation| draw.of_reply(text);
        let drawn: Vec<_> = (0..20).map_while(|number| Perturbation::distinct("a", number, change)).collect();
        let texts: BTreeSet<_> = drawn.iter().map(change).collect();
        // A blank at the end, an empty line, and some of three blanks doubled.
        assert_eq!((drawn.len(), texts.len()), (9, 9), "{texts:?}");
        let alike = |number| Perturbation::distinct("a", number, |_| ());
        assert_eq!((alike(0).is_some(), alike(1)), (true, None));
        assert_ne!(drawn.first(), Perturbation::distinct("b", 0, change).as_ref(), "arms draw independently");
    }

    #[test]
    fn nothing_but_blanks_and_shipped_words_is_added() {
        for text in
            ["Answer the question.", "é ü", "", " leading and trailing ", "a\n\nb c", "{\"a\": 1}", "run ```x```"]
        {
            for run in 0..200 {
                let changed = Perturbation::drawn("a", run).of_request(0, text);
                assert_ne!(changed, text);
                assert_eq!(meaning(&changed), meaning(text), "{changed:?}");
            }
        }
    }

    #[test]
    fn what_a_program_may_parse_gets_no_words_and_a_reply_nothing_but_blanks() {
        let blanks = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for run in 0..200 {
            let perturbation = Perturbation::drawn("a", run);
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
            let changed = Perturbation::drawn("a", run).of_request(3, text);
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
