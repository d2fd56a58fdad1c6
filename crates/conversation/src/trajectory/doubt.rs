//! How unsure a model was of its own words, by the probabilities that its backend gives its tokens.

use serde::{Deserialize, Serialize};

/// How unsure a model was of a reply, in nats: minus the natural logarithm of a token's probability. 0: it could say nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TokenDoubt {
    /// The mean over all tokens.
    pub mean: f64,
    /// That of the least likely token.
    pub highest: f64,
    /// How many tokens there are.
    pub tokens: u32,
}

impl TokenDoubt {
    /// Of the log-probabilities of a reply's tokens; `None` without any. A token that a backend calls impossible counts as one of
    /// e⁻¹⁰⁰.
    pub fn from_logprobs(logprobs: &[f64]) -> Option<Self> {
        let doubts = logprobs.iter().filter(|logprob| !logprob.is_nan()).map(|logprob| (-logprob).clamp(0.0, 100.0));
        let (mut sum, mut highest, mut tokens) = (0.0, 0.0_f64, 0_u32);
        for doubt in doubts {
            (sum, highest, tokens) = (sum + doubt, highest.max(doubt), tokens.saturating_add(1));
        }
        (tokens > 0).then(|| Self { mean: sum / f64::from(tokens), highest, tokens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_of_a_reply() {
        assert_eq!(TokenDoubt::from_logprobs(&[]), None);
        assert_eq!(TokenDoubt::from_logprobs(&[f64::NAN]), None);
        assert_eq!(TokenDoubt::from_logprobs(&[-0.5, -1.5]), Some(TokenDoubt { mean: 1.0, highest: 1.5, tokens: 2 }));
        // What backends write for the impossible, and for what is a little more than certain.
        let odd = TokenDoubt::from_logprobs(&[-9_999.0, f64::NEG_INFINITY, 0.000_1]);
        assert_eq!(odd.map(|doubt| (doubt.highest, doubt.tokens)), Some((100.0, 3)));
    }
}
