//! The evidence of pairs of executions, as one number.

/// Executions that a prior stands for.
const PRIOR: f64 = 4.0;

/// Which arm is claimed to pass more often; what the first pairs are judged by, before there is anything to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The treatment is an error: null passes (prior 0.9), treated fails (0.1).
    Breaks,
    /// The treatment is a repair: null fails (0.1), treated passes (0.9).
    Heals,
}

/// The evidence so far, and what it was learned from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairEvidence {
    expected: Expected,
    pairs: u32,
    control_passed: u32,
    treated_passed: u32,
    pub(super) e: f64,
}

impl Expected {
    /// The prior chance to pass: null, treated.
    fn prior(self) -> (f64, f64) {
        match self {
            Expected::Breaks => (0.9, 0.1),
            Expected::Heals => (0.1, 0.9),
        }
    }

    /// The pair that speaks most for the claim: null, treated.
    pub(super) fn best(self) -> (bool, bool) {
        match self {
            Expected::Breaks => (true, false),
            Expected::Heals => (false, true),
        }
    }
}

impl PairEvidence {
    pub(super) fn none(expected: Expected) -> Self {
        Self { expected, pairs: 0, control_passed: 0, treated_passed: 0, e: 1.0 }
    }

    /// The evidence with one more pair. The estimates come from earlier pairs alone, which makes the factor an
    /// e-variable: where both arms pass with the same chance its mean is at most 1.
    pub(super) fn and(self, control: bool, treated: bool) -> Self {
        let (control_prior, treated_prior) = self.expected.prior();
        let weight = PRIOR + f64::from(self.pairs);
        let a = PRIOR.mul_add(control_prior, f64::from(self.control_passed)) / weight;
        let c = PRIOR.mul_add(treated_prior, f64::from(self.treated_passed)) / weight;
        let middle = f64::midpoint(a, c);
        let against = match self.expected {
            Expected::Breaks => a <= c,
            Expected::Heals => c <= a,
        };
        let factor = if against {
            1.0
        } else {
            chance(control, a) * chance(treated, c) / (chance(control, middle) * chance(treated, middle))
        };
        Self {
            e: self.e * factor,
            pairs: self.pairs + 1,
            control_passed: self.control_passed + u32::from(control),
            treated_passed: self.treated_passed + u32::from(treated),
            ..self
        }
    }

    /// Whether so many more pairs could bring it to the target. The best pair never takes from it, so the look ahead ends
    /// where the target is reached: forecasts ask this millions of times.
    pub(super) fn could_reach(self, target: f64, more: u32) -> bool {
        let (control, treated) = self.expected.best();
        let ahead = std::iter::successors(Some(self), |evidence| Some(evidence.and(control, treated)));
        ahead.take(more as usize + 1).any(|evidence| evidence.e >= target)
    }

    /// Whether the arm that is claimed to pass more often has not passed once in so many pairs.
    pub(super) fn is_barren(&self, pairs: u32) -> bool {
        let passed = match self.expected {
            Expected::Breaks => self.control_passed,
            Expected::Heals => self.treated_passed,
        };
        self.pairs >= pairs && passed == 0
    }

    pub(super) fn pairs(&self) -> u32 {
        self.pairs
    }
}

/// The chance of an outcome whose chance to pass is `rate`.
pub(super) fn chance(passed: bool, rate: f64) -> f64 {
    if passed { rate } else { 1.0 - rate }
}

/// The e-value of the pairs (null, treated), in order.
pub fn e_value(expected: Expected, pairs: impl IntoIterator<Item = (bool, bool)>) -> f64 {
    pairs
        .into_iter()
        .fold(PairEvidence::none(expected), |evidence, (control, treated)| evidence.and(control, treated))
        .e
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Worked out apart: six pairs without a flaw, from the priors on.
        let clean = |pairs| e_value(Expected::Breaks, std::iter::repeat_n((true, false), pairs));
        assert!((clean(6) - 1792.03).abs() < 0.01, "{}", clean(6));
        assert!((clean(1) - 3.24).abs() < 1e-9 && clean(5) < 1000.0);
        let heals = e_value(Expected::Heals, std::iter::repeat_n((false, true), 6));
        assert!((heals - clean(6)).abs() < 1e-6, "a repair is an error read backwards");
        assert!((e_value(Expected::Breaks, []) - 1.0).abs() < 1e-12);
        // (pass, pass) at first: 0.9 · 0.1 / 0.25.
        assert!((e_value(Expected::Breaks, [(true, true)]) - 0.36).abs() < 1e-9);
    }

    #[test]
    fn without_an_effect_no_further_pair_is_worth_more_than_none() {
        // The mean factor of the next pair, after any earlier pairs, at any rate that both arms share.
        for expected in [Expected::Breaks, Expected::Heals] {
            for (control_passed, treated_passed, pairs) in
                (0..8).flat_map(|n: u32| (0..=n).flat_map(move |x| (0..=n).map(move |y| (x, y, n))))
            {
                let so_far = PairEvidence { expected, pairs, control_passed, treated_passed, e: 1.0 };
                for rate in (0..=50).map(|step| f64::from(step) / 50.0) {
                    let of = |n: bool, t: bool| chance(n, rate) * chance(t, rate) * so_far.and(n, t).e;
                    let mean: f64 = [(false, false), (false, true), (true, false), (true, true)]
                        .into_iter()
                        .map(|(n, t)| of(n, t))
                        .sum();
                    assert!(
                        mean <= 1.0 + 1e-9,
                        "{expected:?} {control_passed} {treated_passed} of {pairs} at {rate}: {mean}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_best_that_can_come_is_the_best_that_comes() {
        let evidence = PairEvidence::none(Expected::Breaks).and(true, true).and(true, false);
        let best = evidence.and(true, false).and(true, false).e;
        for pair in [(true, true), (false, true), (false, false), (true, false)] {
            assert!(evidence.and(true, false).and(pair.0, pair.1).e <= best + 1e-9);
        }
        assert!(evidence.could_reach(best, 2) && !evidence.could_reach(best, 1));
        assert!(!evidence.could_reach(best + 1e-6, 2) && evidence.could_reach(evidence.e, 0));
    }

    #[test]
    fn the_best_pair_never_takes_from_the_evidence() {
        for expected in [Expected::Breaks, Expected::Heals] {
            let (control, treated) = expected.best();
            for (control_passed, treated_passed, pairs) in
                (0..12).flat_map(|n: u32| (0..=n).flat_map(move |x| (0..=n).map(move |y| (x, y, n))))
            {
                let so_far = PairEvidence { expected, pairs, control_passed, treated_passed, e: 1.0 };
                assert!(so_far.and(control, treated).e >= 1.0, "{so_far:?}");
            }
        }
    }
}
