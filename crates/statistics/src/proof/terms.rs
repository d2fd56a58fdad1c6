//! What a claim must reach, and what may be spent on it.

/// On what terms something counts as shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The share of wrong claims that a data set may hold in the mean; above 0, below 1.
    pub alpha: f64,
    /// The share of the claims begun that is expected to be true at least: what a single claim must reach so that a data
    /// set of that yield can keep it. Above 0, at most 1.
    pub expected_yield: f64,
    /// Pairs of executions that a claim gets at most; at least 1.
    pub pairs: u32,
    /// An effect of this size counts as one that was missed, where a claim rests on there being none; above 0, at most 1.
    pub effect: f64,
    /// How probable it may be that such an effect was missed; above 0, below 1.
    pub miss: f64,
    /// What the order of the arms is drawn from, pair by pair: each claim has its own.
    pub draw: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { alpha: 0.01, expected_yield: 0.1, pairs: 40, effect: 0.5, miss: 0.05, draw: 0 }
    }
}

/// A term outside its range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("`{name}` is {value}: expected {expected}")]
pub struct BadTerms {
    /// The term, as files name it.
    pub name: &'static str,
    /// What it is.
    pub value: f64,
    /// What it may be.
    pub expected: &'static str,
}

impl Terms {
    /// The e-value that shows a claim: 1/(α · yield).
    pub fn target(&self) -> f64 {
        1.0 / (self.alpha * self.expected_yield)
    }

    /// The same terms, with an order of arms that is drawn from the name of what is claimed.
    #[must_use]
    pub fn drawn_for(self, name: &str) -> Self {
        let hash = blake3::hash(name.as_bytes());
        let draw = hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        Self { draw, ..self }
    }

    /// Whether the treated arm goes first in a pair, 0-based. What repeats itself every few executions (replicas that take turns,
    /// a file that a program toggles) must not line up with an arm, so nobody can know the order before.
    pub(super) fn treated_first(draw: u64, pair: usize) -> bool {
        let key = blake3::derive_key("aegis order of arms 1", &draw.to_le_bytes());
        let hash = blake3::keyed_hash(&key, &u64::try_from(pair).unwrap_or(u64::MAX).to_le_bytes());
        hash.as_bytes().first().is_some_and(|byte| byte & 1 == 0)
    }

    /// The same terms.
    ///
    /// # Errors
    /// [`BadTerms`] for the first that is out of its range.
    pub fn checked(self) -> Result<Self, BadTerms> {
        let open = |value: f64| value > 0.0 && value < 1.0;
        let half_open = |value: f64| value > 0.0 && value <= 1.0;
        let (between, to_one) = ("a number above 0 and below 1", "a number above 0, at most 1");
        for (name, value, holds, expected) in [
            ("alpha", self.alpha, open(self.alpha), between),
            ("yield", self.expected_yield, half_open(self.expected_yield), to_one),
            ("pairs", f64::from(self.pairs), self.pairs >= 1, "a whole number from 1 on"),
            ("effect", self.effect, half_open(self.effect), to_one),
            ("miss", self.miss, open(self.miss), between),
        ] {
            if !holds {
                return Err(BadTerms { name, value, expected });
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proof that is gone on with by a later version must find the order that it began with.
    #[test]
    fn the_order_of_arms_is_the_same_for_ever() {
        let first = |draw: u64| -> String {
            let arms = (0..16).map(|pair| if Terms::treated_first(draw, pair) { 't' } else { 'c' });
            arms.collect()
        };
        assert_eq!([first(0), first(7)], ["ccctcttcctcttttt", "ctcccccttcttctct"]);
    }

    #[test]
    fn terms_out_of_range_are_named() {
        let terms = Terms::default();
        assert_eq!(terms.checked(), Ok(terms));
        assert!((terms.target() - 1000.0).abs() < 1e-9);
        for (wrong, name) in [
            (Terms { alpha: 0.0, ..terms }, "alpha"),
            (Terms { alpha: f64::NAN, ..terms }, "alpha"),
            (Terms { expected_yield: 1.5, ..terms }, "yield"),
            (Terms { pairs: 0, ..terms }, "pairs"),
            (Terms { effect: -0.1, ..terms }, "effect"),
            (Terms { miss: 1.0, ..terms }, "miss"),
        ] {
            assert_eq!(wrong.checked().map_err(|bad| bad.name), Err(name));
        }
    }
}
