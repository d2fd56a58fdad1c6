//! Many claims: which of them may stand together.

/// How many of a set's claims may be kept at level `alpha`, the strongest first: the greatest `k` whose `k`-th largest
/// e-value is at least `begun / (alpha · k)` (e-BH). Among those kept the wrong ones are at most a share `alpha` in the mean,
/// however the claims hang together. `begun` counts every claim that was begun, those that came to nothing included.
pub fn selected_count(e_values: &[f64], begun: usize, alpha: f64) -> usize {
    let ordered = descending(e_values);
    let enough = |(index, e): (usize, &f64)| (*e >= bound(begun, alpha, index + 1)).then_some(index + 1);
    ordered.iter().enumerate().filter_map(enough).max().unwrap_or_default()
}

/// The lowest level at which all of these claims are kept; `None` of no claims, and where one of them is worth nothing.
pub fn lowest_level(e_values: &[f64], begun: usize) -> Option<f64> {
    let least = descending(e_values).last().copied().filter(|least| *least > 0.0)?;
    Some(bound(begun, least, e_values.len()))
}

/// `begun / (by · kept)`.
fn bound(begun: usize, by: f64, kept: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of claims are far below 2^52")]
    let share = begun.max(kept) as f64 / kept as f64;
    share / by
}

fn descending(e_values: &[f64]) -> Vec<f64> {
    let mut ordered = e_values.to_vec();
    ordered.sort_by(|a, b| b.total_cmp(a));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_are_kept() {
        for (e_values, begun, alpha, expected) in [
            (&[][..], 0, 0.01, 0),
            (&[1000.0], 10, 0.01, 1),
            (&[999.0], 10, 0.01, 0),
            // One of twenty at 1,000 is not enough; two are.
            (&[1000.0], 20, 0.01, 0),
            (&[1000.0, 1000.0], 20, 0.01, 2),
            (&[0.0, 5000.0, 2.0], 50, 0.01, 1),
            (&[0.0, 4999.0, 2.0], 50, 0.01, 0),
            (&[300.0, 500.0, 400.0], 3, 0.01, 3),
        ] {
            assert_eq!(selected_count(e_values, begun, alpha), expected, "{e_values:?} of {begun}");
        }
    }

    #[test]
    fn the_level_is_the_lowest_that_keeps_all() {
        let e_values = [1792.0, 1000.0, 4000.0];
        let level = lowest_level(&e_values, 30).expect("a level");
        assert!((level - 0.01).abs() < 1e-12);
        assert_eq!(selected_count(&e_values, 30, level), 3);
        assert!(selected_count(&e_values, 30, level * 0.999) < 3);
        assert_eq!((super::lowest_level(&[], 3), super::lowest_level(&[0.0], 3)), (None, None));
    }
}
