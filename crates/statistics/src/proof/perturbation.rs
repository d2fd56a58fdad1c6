//! Neutral changes that every execution of a claim gets, each its own: without them, two arms of a system that repeats its
//! words would show only that bytes decide.
//!
//! Draws depend on the names of arm and claim and on the execution's number alone, so that any machine and order of work draws
//! alike. The two arms draw independently of each other: where the treatment does nothing beyond what a neutral change does, both arms are equal in
//! distribution, whatever the system makes of them.

use std::{collections::HashSet, hash::Hash};

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};

use super::{
    neutral::{neutral_reply, neutral_request},
    sentences::NeutralSentences,
};

/// Most draws that are looked through for one that changes a text otherwise.
const DRAWS_MAX: u32 = 2_000;

/// The neutral changes of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Perturbation {
    seed: [u8; 32],
    sentences: NeutralSentences,
}

impl Perturbation {
    /// A draw of an arm, by its number. `arm`: a name that no other arm of any claim has.
    pub fn drawn(arm: &str, number: u32, sentences: &NeutralSentences) -> Self {
        let seed = blake3::derive_key("aegis perturbation 2", format!("{number} {arm}").as_bytes());
        Self { seed, sentences: sentences.clone() }
    }

    /// The first draws of an arm that change a text otherwise than those before them, the last of them being of this number,
    /// 0-based. `None` where no more is left: what a model or a cache replied to a text once is no draw of its own when it replies it again. `changed` is
    /// what a draw makes of the text.
    pub fn distinct<T: Hash + Eq>(
        arm: &str,
        number: u32,
        sentences: &NeutralSentences,
        changed: impl Fn(&Self) -> T,
    ) -> Option<Self> {
        let (mut seen, wanted) = (HashSet::new(), usize::try_from(number).ok()?);
        let draws = (0..DRAWS_MAX).map(|number| Self::drawn(arm, number, sentences));
        draws.filter(|draw| seen.insert(changed(draw))).nth(wanted)
    }

    /// Whether a request's system text is changed rather than its user text. `call`: a number that each call of the run
    /// has for itself.
    pub fn is_of_system_text(&self, call: u64) -> bool {
        self.draws("place", call).random_bool(0.5)
    }

    /// A text of a request, changed.
    pub fn of_request(&self, call: u64, text: &str) -> String {
        neutral_request(text, &self.sentences, &mut self.draws("request", call))
    }

    /// The reply at the place where both arms begin, changed; `None` where it is no prose: a program may parse what is none.
    pub fn of_reply(&self, text: &str) -> Option<String> {
        neutral_reply(text, &mut self.draws("reply", 0))
    }

    fn draws(&self, what: &str, call: u64) -> ChaCha8Rng {
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&call.to_le_bytes());
        hasher.update(what.as_bytes());
        ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_execution_and_each_call_draws_its_own() {
        let text = "Answer the question in one short sentence.";
        let shipped = NeutralSentences::default();
        let of = |run: u32| Perturbation::drawn("c-1", run, &shipped);
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
        let shipped = NeutralSentences::default();
        let draw = |arm, number| Perturbation::distinct(arm, number, &shipped, change);
        let drawn: Vec<_> = (0..20).map_while(|number| draw("a", number)).collect();
        let texts: BTreeSet<_> = drawn.iter().map(change).collect();
        // A blank at the end, an empty line, and some of three blanks doubled.
        assert_eq!((drawn.len(), texts.len()), (9, 9), "{texts:?}");
        let alike = |number| Perturbation::distinct("a", number, &shipped, |_| ());
        assert_eq!((alike(0).is_some(), alike(1)), (true, None));
        assert_ne!(drawn.first(), draw("b", 0).as_ref(), "arms draw independently");
    }
}
