//! A linear ranker of the steps of a run, learned from pairs: in each run a step that is to come first, and one that is not.
//!
//! Logistic loss of the difference of a pair with an L2 penalty, each run weighing the same however many pairs it gives, made
//! small by Newton's method on all pairs at once: no dice and no learning rate, the same weights each time. What a step is in
//! numbers, others say.

mod held_out;

pub use held_out::{HeldOut, LooksTaken, held_out};

use super::real;

/// Weight of the penalty on standardised features.
const PENALTY: f64 = 1.0;
/// Most rounds; five to eight are usual.
const ROUNDS: usize = 50;
/// A change of the loss, relative to it, that ends the search.
const SETTLED: f64 = 1e-10;
/// Most pairs of a run, so that time is bounded.
const PAIRS_MAX: usize = 4_000;

/// A run in numbers, and what is known of its steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankerRun {
    /// The system that it is of.
    pub system: String,
    /// The task that it was given.
    pub task: String,
    /// Each step in numbers, in order.
    pub steps: Vec<Vec<f64>>,
    /// The places of steps that are to come first.
    pub blamed: Vec<usize>,
    /// The places of steps that are not. Of all others nothing is known.
    pub cleared: Vec<usize>,
}

/// A trained ranker: a weight a feature, and what features are brought to one measure with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinearRanker {
    /// Of standardised features.
    pub weights: Vec<f64>,
    /// What is taken off a feature.
    pub mean: Vec<f64>,
    /// What it is then divided by.
    pub scale: Vec<f64>,
}

impl LinearRanker {
    /// Learns from runs.
    pub fn train(runs: &[&RankerRun]) -> Self {
        let steps: Vec<&Vec<f64>> = runs.iter().flat_map(|run| &run.steps).collect();
        let size = steps.iter().map(|step| step.len()).max().unwrap_or_default();
        let (mean, scale) = measure(&steps, size);
        let mut ranker = Self { weights: vec![0.0; size], mean, scale };
        let pairs: Vec<(f64, Vec<f64>)> = runs.iter().flat_map(|run| ranker.pairs(run)).collect();
        let mut lowest = loss(&ranker.weights, &pairs);
        for _ in 0..ROUNDS {
            let Some(step) = newton(&ranker.weights, &pairs) else { break };
            // The loss is convex: a step that goes too far is halved until it falls.
            let mut tried = (0..30).map(|halvings| {
                let part = 0.5_f64.powi(halvings);
                let weights: Vec<f64> =
                    ranker.weights.iter().zip(&step).map(|(weight, step)| weight - part * step).collect();
                (loss(&weights, &pairs), weights)
            });
            let Some((lower, weights)) = tried.find(|(tried, _)| *tried <= lowest) else { break };
            ranker.weights = weights;
            let settled = lowest - lower <= SETTLED * lowest.abs();
            lowest = lower;
            if settled {
                break;
            }
        }
        ranker
    }

    /// How much speaks for a step; compares steps of one run.
    pub fn score(&self, step: &[f64]) -> f64 {
        dot(&self.weights, &self.scaled(step))
    }

    fn scaled(&self, step: &[f64]) -> Vec<f64> {
        let measured = self.mean.iter().zip(&self.scale);
        step.iter().zip(measured).map(|(value, (mean, scale))| (value - mean) / scale).collect()
    }

    /// Differences of what is to come first and what is not, each with its weight; all of a run weigh 1 together.
    fn pairs(&self, run: &RankerRun) -> Vec<(f64, Vec<f64>)> {
        let at = |place: &usize| run.steps.get(*place).map(|step| self.scaled(step));
        let (blamed, cleared): (Vec<_>, Vec<_>) =
            (run.blamed.iter().filter_map(at).collect(), run.cleared.iter().filter_map(at).collect());
        let both = blamed.iter().flat_map(|first| cleared.iter().map(move |second| (first, second)));
        let difference = |(first, second): (&Vec<f64>, &Vec<f64>)| {
            first.iter().zip(second).map(|(a, b)| a - b).collect::<Vec<f64>>()
        };
        let pairs: Vec<Vec<f64>> = both.take(PAIRS_MAX).map(difference).collect();
        let weight = 1.0 / real(pairs.len().max(1));
        pairs.into_iter().map(|pair| (weight, pair)).collect()
    }
}

/// Mean and standard deviation of each feature; one that never changes keeps its place and says nothing.
fn measure(steps: &[&Vec<f64>], size: usize) -> (Vec<f64>, Vec<f64>) {
    let count = real(steps.len().max(1));
    let (mut mean, mut scale) = (vec![0.0; size], vec![0.0; size]);
    for step in steps {
        mean.iter_mut().zip(*step).for_each(|(mean, value)| *mean += value / count);
    }
    for step in steps {
        let off = step.iter().zip(&mean).map(|(value, mean)| (value - mean).powi(2) / count);
        scale.iter_mut().zip(off).for_each(|(scale, off)| *scale += off);
    }
    for scale in &mut scale {
        *scale = if *scale > 1e-18 { scale.sqrt() } else { 1.0 };
    }
    (mean, scale)
}

/// What is made small: the penalty, and how badly pairs are told apart.
fn loss(weights: &[f64], pairs: &[(f64, Vec<f64>)]) -> f64 {
    let each = pairs.iter().map(|(weight, pair)| {
        let odds = dot(weights, pair);
        // ln(1 + e^-odds), without overflow.
        weight * ((-odds).max(0.0) + (-odds.abs()).exp().ln_1p())
    });
    PENALTY / 2.0 * dot(weights, weights) + each.sum::<f64>()
}

/// The inverse curvature times the slope: what to take off the weights.
fn newton(weights: &[f64], pairs: &[(f64, Vec<f64>)]) -> Option<Vec<f64>> {
    let size = weights.len();
    let mut slope: Vec<f64> = weights.iter().map(|weight| PENALTY * weight).collect();
    let mut curve: Vec<Vec<f64>> = (0..size)
        .map(|at| {
            let mut line = vec![0.0; size];
            line.iter_mut().skip(at).take(1).for_each(|corner| *corner = PENALTY);
            line
        })
        .collect();
    for (weight, pair) in pairs {
        let chance = 1.0 / (1.0 + (-dot(weights, pair)).exp());
        let (wrong, sure) = (weight * (chance - 1.0), weight * chance * (1.0 - chance));
        for ((slope, line), value) in slope.iter_mut().zip(&mut curve).zip(pair) {
            *slope += wrong * value;
            line.iter_mut().zip(pair).for_each(|(cell, other)| *cell += sure * value * other);
        }
    }
    solve(&curve, &slope)
}

/// Solves a symmetric positive definite system (Cholesky); `None` where it is none.
fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Option<Vec<f64>> {
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(right.len());
    let mut forward: Vec<f64> = Vec::with_capacity(right.len());
    for (line, value) in matrix.iter().zip(right) {
        let mut own: Vec<f64> = Vec::with_capacity(lower.len() + 1);
        for (column, other) in lower.iter().enumerate() {
            own.push((line.get(column)? - dot(&own, other)) / other.get(column)?);
        }
        let corner = line.get(lower.len())? - dot(&own, &own);
        if corner <= 0.0 || !corner.is_finite() {
            return None;
        }
        let corner = corner.sqrt();
        forward.push((value - dot(&own, &forward)) / corner);
        own.push(corner);
        lower.push(own);
    }
    let mut found = vec![0.0; right.len()];
    for at in (0..right.len()).rev() {
        let later: f64 =
            (at + 1..right.len()).map(|row| Some(lower.get(row)?.get(at)? * found.get(row)?)).sum::<Option<f64>>()?;
        *found.get_mut(at)? = (forward.get(at)? - later) / lower.get(at)?.get(at)?;
    }
    Some(found)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let found = solve(&[vec![4.0, 2.0], vec![2.0, 3.0]], &[10.0, 8.0]).expect("positive definite");
        assert!((found[0] - 1.75).abs() < 1e-12 && (found[1] - 1.5).abs() < 1e-12, "{found:?}");
        assert_eq!(solve(&[vec![0.0]], &[1.0]), None);
        let matrix = [vec![4.0, 2.0, 1.0], vec![2.0, 5.0, 3.0], vec![1.0, 3.0, 6.0]];
        let found = solve(&matrix, &[11.0, 21.0, 25.0]).expect("positive definite");
        assert!(found.iter().zip([1.0, 2.0, 3.0]).all(|(found, wanted)| (found - wanted).abs() < 1e-12), "{found:?}");
        assert_eq!(solve(&[], &[]), Some(vec![]));
    }

    /// Worked out apart, by plain gradient descent.
    #[test]
    fn small_runs_have_the_weights_that_another_way_finds() {
        let run = |steps: &[[f64; 3]], blamed: &[usize], cleared: &[usize]| RankerRun {
            steps: steps.iter().map(|step| step.to_vec()).collect(),
            blamed: blamed.to_vec(),
            cleared: cleared.to_vec(),
            ..RankerRun::default()
        };
        let runs = [
            run(&[[1.0, 5.0, 2.0], [3.0, 4.0, 2.0], [2.0, 9.0, 2.0]], &[1], &[0, 2]),
            run(&[[4.0, 1.0, 2.0], [2.0, 2.0, 2.0]], &[0], &[1]),
            run(&[[0.0, 3.0, 2.0], [1.0, 8.0, 2.0], [5.0, 7.0, 2.0], [2.0, 2.0, 2.0]], &[2, 3], &[0]),
        ];
        let ranker = LinearRanker::train(&runs.iter().collect::<Vec<_>>());
        let near = |found: &[f64], wanted: [f64; 3]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near(&ranker.mean, [2.222_222_222, 4.555_555_556, 2.0]), "{ranker:?}");
        assert!(near(&ranker.scale, [1.474_055_462, 2.712_567_915, 1.0]), "{ranker:?}");
        assert!(near(&ranker.weights, [0.833_250_348, -0.320_858_529, 0.0]), "{ranker:?}");
        assert!((ranker.score(&[3.0, 3.0, 2.0]) - 0.623_660_542).abs() < 1e-6);
        let pairs: Vec<_> = runs.iter().flat_map(|run| ranker.pairs(run)).collect();
        assert!((loss(&ranker.weights, &pairs) - 1.085_143_439).abs() < 1e-6);
        assert!((loss(&[0.5, -1.0, 2.0], &pairs) - 3.574_352_884).abs() < 1e-6);
    }

    #[test]
    fn what_tells_the_blamed_from_the_cleared_gets_the_weight() {
        let run = |steps: &[[f64; 3]], blamed: usize| RankerRun {
            steps: steps.iter().map(|step| step.to_vec()).collect(),
            blamed: vec![blamed],
            cleared: (0..steps.len()).filter(|place| *place != blamed).collect(),
            ..RankerRun::default()
        };
        // The first number tells, the second is noise, the third never changes.
        let runs = [
            run(&[[0.0, 3.0, 7.0], [1.0, 1.0, 7.0], [0.1, 2.0, 7.0]], 1),
            run(&[[0.9, 2.0, 7.0], [0.2, 1.0, 7.0]], 0),
            run(&[[0.0, 1.0, 7.0], [0.3, 3.0, 7.0], [1.2, 3.0, 7.0]], 2),
        ];
        let runs: Vec<&RankerRun> = runs.iter().collect();
        let ranker = LinearRanker::train(&runs);
        assert!(ranker.weights[0] > 0.5 && ranker.weights[0] > 2.0 * ranker.weights[1].abs(), "{ranker:?}");
        assert!(ranker.weights[2].abs() < 1e-9 && ranker.weights.iter().all(|weight| weight.is_finite()));
        assert!(ranker.score(&[1.0, 2.0, 7.0]) > ranker.score(&[0.0, 2.0, 7.0]));
        assert_eq!(LinearRanker::train(&runs), ranker, "the same each time");
        assert_eq!(LinearRanker::train(&[]), LinearRanker::default());
    }
}
