//! Neutral sentences that a user adds to the shipped ones: in the language of his prompts, in the tone of his system.

use std::{collections::HashSet, fmt, sync::Arc};

use rand::{rngs::ChaCha8Rng, seq::IndexedRandom};
use serde::Deserialize;

/// None says anything of the task, of what is known or of the text itself: a small model takes such a sentence for the matter.
pub(super) const SHIPPED: &[&str] = &[
    "There is no hurry.",
    "Take the time that you need.",
    "Take your time.",
    "Have a nice day.",
    "Thank you in advance.",
    "Your help is welcome.",
];

/// Longest sentence that a user may add, in characters.
const LENGTH_MAX: usize = 200;
/// Most sentences that a user may add.
const COUNT_MAX: usize = 100;

/// The sentences of which a neutral change may add one to a request: the shipped ones, and those of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeutralSentences {
    own: Arc<[String]>,
}

/// `[proof]` of an `aegis.toml`: what executions of `aegis campaign`, `aegis prove` and `aegis trace` may add.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProofConfig {
    /// Your own sentences that say nothing of any task, beside the shipped ones: a neutral change may add one to a request.
    /// For systems whose prompts are not in English.
    pub sentences: Vec<String>,
}

impl ProofConfig {
    /// The shipped sentences and these.
    ///
    /// # Errors
    /// One that cannot be a neutral change.
    pub fn sentences(self) -> Result<NeutralSentences, BadSentence> {
        NeutralSentences::with_own(self.sentences)
    }
}

/// A sentence that cannot be a neutral change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSentence {
    sentence: String,
    expected: &'static str,
}

impl fmt::Display for BadSentence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`sentences` of `[proof]` has {:?}: expected {}", self.sentence, self.expected)
    }
}

impl std::error::Error for BadSentence {}

impl NeutralSentences {
    /// The shipped sentences and these.
    ///
    /// # Errors
    /// One of them is empty, long, of several lines, there twice, or holds what may be taken for an answer, code or JSON: a
    /// digit, a backtick, a brace.
    fn with_own(own: Vec<String>) -> Result<Self, BadSentence> {
        let bad = |sentence: &String, expected| Err(BadSentence { sentence: sentence.clone(), expected });
        if let Some(beyond) = own.get(COUNT_MAX) {
            return bad(beyond, "at most 100 sentences");
        }
        let mut seen: HashSet<&str> = SHIPPED.iter().copied().collect();
        for sentence in &own {
            let is_marked = |character: char| character.is_numeric() || "`{}[]".contains(character);
            if sentence.trim().is_empty() || sentence.trim() != sentence {
                return bad(sentence, "words, without blanks at their ends");
            }
            if sentence.chars().count() > LENGTH_MAX || sentence.chars().any(char::is_control) {
                return bad(sentence, "one line of at most 200 characters");
            }
            if sentence.contains(is_marked) {
                return bad(
                    sentence,
                    "no digit, backtick, brace or bracket: a model or a program may take them for the matter",
                );
            }
            if !seen.insert(sentence) {
                return bad(sentence, "each sentence once; the shipped ones are there already");
            }
        }
        Ok(Self { own: own.into() })
    }

    /// A digest of what a user added; none where nothing was. Executions with other sentences are of another arm.
    pub fn digest(&self) -> Option<String> {
        let mut hash = blake3::Hasher::new();
        for sentence in self.own.iter() {
            hash.update(&(sentence.len() as u64).to_le_bytes()).update(sentence.as_bytes());
        }
        (!self.own.is_empty()).then(|| hash.finalize().to_hex().chars().take(16).collect())
    }

    /// One of them, drawn.
    pub(super) fn choose(&self, draws: &mut ChaCha8Rng) -> Option<&str> {
        let all: Vec<&str> = SHIPPED.iter().copied().chain(self.own.iter().map(String::as_str)).collect();
        all.choose(draws).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_users_sentences_are_drawn_beside_the_shipped_ones() {
        let own = ["请慢慢来。", "Nimm dir die Zeit."].map(str::to_owned);
        let sentences = NeutralSentences::with_own(own.to_vec()).expect("sentences");
        let drawn = |sentences: &NeutralSentences| -> BTreeSet<String> {
            let one = |seed| sentences.choose(&mut ChaCha8Rng::seed_from_u64(seed)).expect("one").to_owned();
            (0..200).map(one).collect()
        };
        let all = drawn(&sentences);
        assert_eq!(all.len(), SHIPPED.len() + own.len(), "{all:?}");
        assert!(own.iter().all(|one| all.contains(one)));
        assert_eq!(drawn(&NeutralSentences::default()).len(), SHIPPED.len());
        assert_eq!(NeutralSentences::default().digest(), None);
        NeutralSentences::with_own(vec!["a".repeat(200)]).expect("200 characters are not too many");
        let fewer = NeutralSentences::with_own(own[..1].to_vec()).expect("a sentence");
        assert!(sentences.digest().is_some() && sentences.digest() != fewer.digest());
    }

    #[test]
    fn what_may_be_taken_for_the_matter_is_refused() {
        let long = "a".repeat(201);
        for bad in ["", " blank", "two\nlines", "Take 5 minutes.", "`code`", "{}", "[1]", "Take your time.", &long] {
            let error = NeutralSentences::with_own(vec![bad.to_owned()]).expect_err(bad);
            assert!(error.to_string().starts_with("`sentences` of `[proof]` has "), "{error}");
        }
        assert!(NeutralSentences::with_own(vec!["Go on.".to_owned(), "Go on.".to_owned()]).is_err());
        assert!(NeutralSentences::with_own((0..101).map(|number| "x".repeat(number + 1)).collect()).is_err());
    }
}
