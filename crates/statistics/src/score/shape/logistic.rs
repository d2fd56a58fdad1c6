//! Logistic regression with an L2 penalty, by Newton's method on all rows at once: no dice, no learning rate, the same
//! weights each time.

use super::{super::real, features::Features};

/// Weight of the penalty on standardized features; 1 / 0.3, not tuned.
const PENALTY: f64 = 1.0 / 0.3;
/// Most rounds; five to eight are usual.
const ROUNDS: usize = 50;
/// A change of the loss, relative to it, that ends the search.
const SETTLED: f64 = 1e-10;

const COUNT: usize = std::mem::size_of::<Features>() / std::mem::size_of::<f64>();
/// The features, and the constant.
const SIZE: usize = COUNT + 1;

type Vector = [f64; SIZE];
/// Too large for the stack.
type Matrix = Vec<Vector>;

/// A trained model.
pub(super) struct Logistic {
    mean: Features,
    spread: Features,
    weights: Vector,
}

impl Logistic {
    /// Learns to tell the rows that are marked from the others.
    pub(super) fn train(rows: &[(&Features, bool)]) -> Self {
        let (mean, spread) = scale(rows);
        let mut model = Self { mean, spread, weights: [0.0; SIZE] };
        let scaled: Vec<(Vector, f64)> =
            rows.iter().map(|(row, marked)| (model.scaled(row), if *marked { 1.0 } else { 0.0 })).collect();
        let mut lowest = loss(&model.weights, &scaled);
        for _ in 0..ROUNDS {
            let Some(step) = newton(&model.weights, &scaled) else { break };
            // The loss is convex: a step that goes too far is halved until it falls.
            let mut tried = (0..30).map(|halvings| {
                let part = 0.5_f64.powi(halvings);
                let mut weights = model.weights;
                weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= part * step);
                (loss(&weights, &scaled), weights)
            });
            let Some((lower, weights)) = tried.find(|(tried, _)| *tried <= lowest) else { break };
            model.weights = weights;
            let settled = lowest - lower <= SETTLED * lowest.abs();
            lowest = lower;
            if settled {
                break;
            }
        }
        model
    }

    /// The log-odds of a row.
    pub(super) fn score(&self, row: &Features) -> f64 {
        dot(&self.weights, &self.scaled(row))
    }

    fn scaled(&self, row: &Features) -> Vector {
        let mut scaled = [1.0; SIZE];
        let values =
            row.iter().zip(&self.mean).zip(&self.spread).map(|((value, mean), spread)| (value - mean) / spread);
        scaled.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        scaled
    }
}

/// What is made small: the penalty and how badly the rows are told.
fn loss(weights: &Vector, rows: &[(Vector, f64)]) -> f64 {
    let penalty: f64 = weights.iter().take(COUNT).map(|weight| weight * weight).sum();
    let each = rows.iter().map(|(row, marked)| {
        let odds = dot(weights, row);
        // ln(1 + e^odds) − marked · odds, without overflow.
        odds.max(0.0) + (-odds.abs()).exp().ln_1p() - marked * odds
    });
    PENALTY / 2.0 * penalty + each.sum::<f64>()
}

/// Mean and standard deviation of each feature; one that never changes keeps its place and says nothing.
fn scale(rows: &[(&Features, bool)]) -> (Features, Features) {
    let count = real(rows.len().max(1));
    let (mut mean, mut spread) = ([0.0; COUNT], [0.0; COUNT]);
    for (row, _) in rows {
        mean.iter_mut().zip(*row).for_each(|(mean, value)| *mean += value / count);
    }
    for (row, _) in rows {
        let off = row.iter().zip(&mean).map(|(value, mean)| (value - mean).powi(2) / count);
        spread.iter_mut().zip(off).for_each(|(spread, off)| *spread += off);
    }
    for spread in &mut spread {
        *spread = if *spread > 1e-18 { spread.sqrt() } else { 1.0 };
    }
    (mean, spread)
}

/// The inverse curvature times the slope: what to take off the weights.
fn newton(weights: &Vector, rows: &[(Vector, f64)]) -> Option<Vector> {
    let mut slope = [0.0; SIZE];
    let mut curve: Matrix = vec![[0.0; SIZE]; SIZE];
    for (at, ((slope, weight), line)) in slope.iter_mut().zip(weights).zip(&mut curve).enumerate() {
        if let Some(corner) = line.get_mut(at).filter(|_| at < COUNT) {
            (*slope, *corner) = (PENALTY * weight, PENALTY);
        }
    }
    for (row, marked) in rows {
        let chance = 1.0 / (1.0 + (-dot(weights, row)).exp());
        let sure = chance * (1.0 - chance);
        for ((slope, line), value) in slope.iter_mut().zip(&mut curve).zip(row) {
            *slope += (chance - marked) * value;
            line.iter_mut().zip(row).for_each(|(cell, other)| *cell += sure * value * other);
        }
    }
    solve(curve, slope)
}

/// Solves a symmetric system by Gauss' elimination with the largest pivot; `None` where it has no single solution.
fn solve(mut matrix: Matrix, mut right: Vector) -> Option<Vector> {
    for column in 0..SIZE {
        let size = |line: usize| matrix.get(line).and_then(|line| line.get(column)).map_or(0.0, |cell| cell.abs());
        let pivot = (column..SIZE).max_by(|a, b| size(*a).total_cmp(&size(*b)))?;
        if size(pivot) < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (line, value) = (*matrix.get(column)?, *right.get(column)?);
        let corner = *line.get(column)?;
        for (other, right) in matrix.iter_mut().zip(&mut right).skip(column + 1) {
            let factor = other.get(column)? / corner;
            other.iter_mut().zip(line).for_each(|(cell, above)| *cell -= factor * above);
            *right -= factor * value;
        }
    }
    let mut found = [0.0; SIZE];
    for at in (0..SIZE).rev() {
        let line = matrix.get(at)?;
        let rest: f64 = line.iter().zip(&found).skip(at + 1).map(|(cell, value)| cell * value).sum();
        *found.get_mut(at)? = (right.get(at)? - rest) / line.get(at)?;
    }
    Some(found)
}

fn dot(one: &Vector, two: &Vector) -> f64 {
    one.iter().zip(two).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(first: f64, second: f64) -> Features {
        let mut row = [0.0; COUNT];
        (row[0], row[1]) = (first, second);
        row
    }

    #[test]
    fn a_system_is_solved() {
        let mut matrix = vec![[0.0; SIZE]; SIZE];
        (0..SIZE).for_each(|at| matrix[at][at] = 2.0);
        (matrix[0][1], matrix[1][0], matrix[0][0]) = (1.0, 1.0, 0.0);
        let mut wanted = [1.0; SIZE];
        (wanted[0], wanted[1]) = (3.0, -2.0);
        let mut right = [0.0; SIZE];
        (0..SIZE).for_each(|at| right[at] = dot(&matrix[at], &wanted));
        let found = solve(matrix, right).expect("a solution");
        assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        assert!(solve(vec![[0.0; SIZE]; SIZE], wanted).is_none());
    }

    /// Worked out apart, by plain gradient descent.
    #[test]
    fn a_small_set_has_the_weights_that_another_way_finds() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let rows = [(1.0, 10.0, true), (2.0, 10.0, false), (4.0, 20.0, true), (7.0, 40.0, true), (8.0, 20.0, false)];
        let rows = [&rows[..], &[(9.0, 50.0, true), (3.0, 30.0, false)]].concat();
        let rows: Vec<(Features, bool)> = rows.iter().map(|(a, b, marked)| (row(*a, *b), *marked)).collect();
        let rows: Vec<_> = rows.iter().map(|(row, marked)| (row, *marked)).collect();
        let model = Logistic::train(&rows);
        assert!(near(model.mean[0], 4.857_142_857) && near(model.mean[1], 25.714_285_714), "{:?}", model.mean);
        assert!(near(model.spread[0], 2.899_683_304) && near(model.spread[1], 13.997_084_244), "{:?}", model.spread);
        assert!(model.spread.iter().skip(2).all(|spread| near(*spread, 1.0)), "what never changes: {:?}", model.spread);
        let wanted = [(0, 0.048_981_143), (1, 0.231_893_794), (2, 0.0), (COUNT, 0.293_561_600)];
        assert!(wanted.iter().all(|(at, weight)| near(model.weights[*at], *weight)), "{:?}", model.weights);
        assert!(near(model.score(&row(5.0, 30.0)), 0.366_977_412));
        let scaled: Vec<_> =
            rows.iter().map(|(row, marked)| (model.scaled(row), if *marked { 1.0 } else { 0.0 })).collect();
        assert!(near(loss(&model.weights, &scaled), 4.625_627_169));
        let mut others = [0.0; SIZE];
        (others[0], others[1], others[COUNT]) = (0.5, -1.0, 0.25);
        assert!(near(loss(&others, &scaled), 8.231_766_832));
    }

    #[test]
    fn the_slope_vanishes_where_it_stops() {
        let rows: Vec<(Features, bool)> = (0..60)
            .map(|n| {
                let (a, b) = (f64::from(n % 7), f64::from(n % 5));
                (row(a, b), (a + b * 0.5 + f64::from(n % 3)) > 5.0)
            })
            .collect();
        let rows: Vec<_> = rows.iter().map(|(row, marked)| (row, *marked)).collect();
        let model = Logistic::train(&rows);
        let scaled: Vec<_> =
            rows.iter().map(|(row, marked)| (model.scaled(row), if *marked { 1.0 } else { 0.0 })).collect();
        let step = newton(&model.weights, &scaled).expect("a solution");
        assert!(step.iter().all(|part| part.abs() < 1e-4), "{step:?}");
        assert!(model.score(&row(6.0, 4.0)) > 0.0 && model.score(&row(0.0, 0.0)) < 0.0);
    }

    #[test]
    fn what_separates_fully_and_what_is_one_sided_has_finite_weights() {
        for marked in [vec![true, true], vec![false, false], vec![true, false], vec![]] {
            let features = [row(1.0, 0.0), row(-1.0, 0.0)];
            let rows: Vec<_> = features.iter().zip(&marked).map(|(row, marked)| (row, *marked)).collect();
            let model = Logistic::train(&rows);
            assert!(model.weights.iter().all(|weight| weight.is_finite()), "{marked:?}");
        }
    }
}
