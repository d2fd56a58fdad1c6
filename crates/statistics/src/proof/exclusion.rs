//! Whether an effect can be excluded: what a claim rests on that says "here, and nowhere earlier".

use super::pairs::{Expected, chance};

/// Halvings of an interval: beyond the precision of a number.
const HALVINGS: u32 = 60;

/// The evidence against an effect of a given size or more, as an e-value: where the effect is there, it ever reaches
/// `1/p` with a probability of at most `p` (the same safe test, against the hypothesis that the chances differ by
/// `effect` at least: Turner and Grünwald, 2022).
#[derive(Debug, Clone, Copy)]
pub struct Exclusion {
    expected: Expected,
    effect: f64,
    samples: u32,
    passed: u32,
    e: f64,
}

impl Exclusion {
    /// Nothing is known yet of whether the chances differ by `effect` (above 0, at most 1) in the expected direction.
    pub fn new(expected: Expected, effect: f64) -> Self {
        Self { expected, effect: effect.clamp(f64::EPSILON, 1.0), samples: 0, passed: 0, e: 1.0 }
    }

    /// With one more pair of executions.
    #[must_use]
    pub fn and_pair(self, control: bool, treated: bool) -> Self {
        let rate = self.rate();
        let (low, high) = match self.expected {
            Expected::Breaks => (treated, control),
            Expected::Heals => (control, treated),
        };
        let at = self.nearest(rate);
        let factor = ratio(low, rate, at) * ratio(high, rate, at + self.effect);
        self.learned(factor, [control, treated])
    }

    /// With one more execution of the arm that is said to pass more often, alone: an effect of that size would let it pass
    /// in a share of at least that size.
    #[must_use]
    pub fn and_alone(self, passed: bool) -> Self {
        let rate = self.rate();
        let factor = if rate < self.effect { ratio(passed, rate, self.effect) } else { 1.0 };
        self.learned(factor, [passed])
    }

    /// The e-value.
    pub fn e(&self) -> f64 {
        self.e
    }

    /// Whether the effect is excluded, where a share `miss` of such effects may be missed.
    pub fn holds(&self, miss: f64) -> bool {
        self.e >= 1.0 / miss
    }

    /// The chance to pass, of both arms: there is no effect, is what is held against there being one.
    fn rate(&self) -> f64 {
        (0.5 + f64::from(self.passed)) / (1.0 + f64::from(self.samples))
    }

    /// Of the chances that differ by the effect, the lower of those nearest to both being `rate` (in Kullback and
    /// Leibler's measure): the root of a function that grows.
    fn nearest(&self, rate: f64) -> f64 {
        let slope = |at: f64| {
            let high = at + self.effect;
            (1.0 - rate) / (1.0 - at) - rate / at + (1.0 - rate) / (1.0 - high) - rate / high
        };
        let (mut from, mut to) = (0.0, 1.0 - self.effect);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(from, to);
            if slope(middle) > 0.0 { to = middle } else { from = middle }
        }
        f64::midpoint(from, to)
    }

    fn learned<const N: usize>(self, factor: f64, seen: [bool; N]) -> Self {
        let passed = seen.iter().map(|passed| u32::from(*passed)).sum::<u32>();
        let all = u32::try_from(N).unwrap_or_default();
        Self { e: self.e * factor, samples: self.samples + all, passed: self.passed + passed, ..self }
    }
}

/// How much more likely an outcome is at one rate than at another.
fn ratio(passed: bool, rate: f64, other: f64) -> f64 {
    // An effect of 1 leaves an outcome that it forbids a chance of nothing.
    chance(passed, rate) / chance(passed, other).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOMES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    #[test]
    fn where_the_effect_is_there_no_further_pair_speaks_against_it_in_the_mean() {
        for effect in [0.3, 0.5, 0.8, 1.0] {
            for (samples, passed) in (0..10).flat_map(|all: u32| (0..=all).map(move |passed| (all, passed))) {
                let so_far = Exclusion { samples, passed, ..Exclusion::new(Expected::Heals, effect) };
                for (control, more) in
                    (0..=20).flat_map(|n| (0..=20).map(move |m| (f64::from(n) / 20.0, f64::from(m) / 20.0)))
                {
                    let treated = control + effect + more * (1.0 - effect - control);
                    if treated > 1.0 || control + effect > 1.0 {
                        continue;
                    }
                    let mean: f64 = OUTCOMES
                        .into_iter()
                        .filter(|(n, t)| chance(*n, control) * chance(*t, treated) > 0.0)
                        .map(|(n, t)| chance(n, control) * chance(t, treated) * so_far.and_pair(n, t).e)
                        .sum();
                    assert!(
                        mean <= 1.0 + 1e-6,
                        "effect {effect}, {passed} of {samples}, {control} and {treated}: {mean}"
                    );
                    let alone: f64 = [true, false].map(|t| chance(t, treated) * so_far.and_alone(t).e).iter().sum();
                    assert!(alone <= 1.0 + 1e-9, "alone: effect {effect}, {passed} of {samples}, {treated}: {alone}");
                }
            }
        }
    }

    #[test]
    fn a_step_without_effect_is_cleared_by_so_many_executions() {
        let pairs = |n: usize| (0..n).fold(Exclusion::new(Expected::Heals, 0.5), |e, _| e.and_pair(false, false));
        let alone = |n: usize| (0..n).fold(Exclusion::new(Expected::Heals, 0.5), |e, _| e.and_alone(false));
        let first = |holds: &dyn Fn(usize) -> bool| (0..100).find(|n| holds(*n));
        // One step, ten, a hundred.
        assert!(!pairs(0).holds(0.05) && !alone(0).holds(0.05), "nothing is excluded before anything was executed");
        let counts =
            [0.05, 0.005, 0.0005].map(|miss| (first(&|n| pairs(n).holds(miss)), first(&|n| alone(n).holds(miss))));
        println!("pairs, and executions of one arm, that clear one of 1, 10, 100 steps: {counts:?}");
        assert!(counts[0].0.is_some_and(|n| n <= 7) && counts[1].0.is_some_and(|n| n <= 11), "{counts:?}");
        // Both pass: no effect either, and only the pairs can tell.
        let both = (0..8).fold(Exclusion::new(Expected::Heals, 0.5), |e, _| e.and_pair(true, true));
        assert!(both.holds(0.05), "{}", both.e());
        assert!(
            (Exclusion::new(Expected::Breaks, 0.5).and_pair(true, false).e()) < 1.0,
            "that is what an effect looks like"
        );
    }
}
