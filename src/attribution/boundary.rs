//! Where in a row of places one outcome gives way to the other, seen through noise.
//!
//! Before the boundary executions succeed at one rate, from it on at another; neither rate is known. What was seen
//! gives every place a probability (R. Waeber, P. Frazier, S. Henderson, "Bisection search with noisy responses", 2013;
//! here with rates that are summed over instead of known). No single outcome decides, so none misleads for good.

use super::Share;

/// Rates of success, where executions mostly succeed and where they mostly fail. A model heals a run half of the time
/// or nearly always; a failure that stands is seldom healed by chance.
const MOSTLY: [f64; 4] = [0.35, 0.6, 0.8, 0.95];
const SELDOM: [f64; 3] = [0.02, 0.1, 0.25];

/// On which side of the boundary executions succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Succeed {
    Before,
    From,
}

/// The probability of each boundary, 0 to the number of places: boundary `b` lies before place `b`. `prior` has one
/// weight a boundary; a boundary of weight 0 is impossible.
pub(super) fn posterior(seen: &[Share], prior: &[f64], succeed: Succeed) -> Vec<f64> {
    let mut sums = vec![f64::NEG_INFINITY; seen.len() + 1];
    for (high, low) in MOSTLY.iter().flat_map(|high| SELDOM.iter().map(move |low| (*high, *low))) {
        let (before, from) = if succeed == Succeed::Before { (high, low) } else { (low, high) };
        let mut likelihood: f64 = seen.iter().map(|share| log_likelihood(*share, from)).sum();
        for (boundary, sum) in sums.iter_mut().enumerate() {
            *sum = log_add(*sum, likelihood);
            likelihood +=
                seen.get(boundary).map_or(0.0, |share| log_likelihood(*share, before) - log_likelihood(*share, from));
        }
    }
    for (sum, prior) in sums.iter_mut().zip(prior.iter().copied().chain(std::iter::repeat(0.0))) {
        *sum = if prior > 0.0 { *sum + prior.ln() } else { f64::NEG_INFINITY };
    }
    let all = sums.iter().copied().fold(f64::NEG_INFINITY, log_add);
    sums.iter().map(|sum| (sum - all).exp()).map(|share| if share.is_finite() { share } else { 0.0 }).collect()
}

/// The place whose outcome tells most, of those that may be looked at: it halves the probability. `None` where every
/// such place is as good as known.
pub(super) fn most_telling(posterior: &[f64], may: impl Fn(usize) -> bool) -> Option<usize> {
    let mut behind = 1.0;
    let mut best: Option<(usize, f64)> = None;
    for (place, share) in posterior.iter().take(posterior.len().saturating_sub(1)).enumerate() {
        behind -= share;
        let off = (behind - 0.5_f64).abs();
        if off < 0.5 - KNOWN && may(place) && best.is_none_or(|(_, least)| off < least) {
            best = Some((place, off));
        }
    }
    best.map(|(place, _)| place)
}

/// Below this probability that an outcome is the other one, a place is as good as known.
const KNOWN: f64 = 0.02;

/// The most probable boundary and its probability; the earliest of equal ones.
pub(super) fn most_probable(posterior: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    posterior.iter().copied().enumerate().fold((0, 0.0), better)
}

fn log_likelihood(share: Share, rate: f64) -> f64 {
    f64::from(share.successes) * rate.ln() + f64::from(share.samples - share.successes) * (1.0 - rate).ln()
}

fn log_add(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if least == f64::NEG_INFINITY { most } else { most + (least - most).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until the boundary is settled; every look succeeds before `boundary`, but for those named in `wrong`.
    fn found(places: usize, boundary: usize, wrong: &[usize]) -> (usize, usize) {
        let mut seen = vec![Share::default(); places];
        let prior = vec![1.0; places + 1];
        for look in 0.. {
            let posterior = posterior(&seen, &prior, Succeed::Before);
            let (best, share) = most_probable(&posterior);
            let place = most_telling(&posterior, |place| seen[place].samples < 5).filter(|_| share < 0.85);
            let Some(place) = place else { return (best, look) };
            let succeeds = (place < boundary) != wrong.contains(&look);
            seen[place].samples += 1;
            seen[place].successes += u32::from(succeeds);
        }
        unreachable!("a row has an end")
    }

    #[test]
    fn every_boundary_is_found_at_a_logarithmic_price() {
        for places in [1, 2, 3, 8, 40, 1000] {
            for boundary in [0, 1, places / 2, places - 1, places] {
                let (best, looks) = found(places, boundary, &[]);
                assert_eq!(best, boundary, "of {places}");
                let most = 6 + 3 * places.ilog2() as usize;
                assert!(looks <= most, "{looks} looks of at most {most} for {boundary} of {places}");
            }
        }
    }

    #[test]
    fn one_wrong_outcome_does_not_mislead() {
        for boundary in 0..=16 {
            for wrong in 0..6 {
                let (best, _) = found(16, boundary, &[wrong]);
                assert_eq!(best, boundary, "look {wrong} was wrong");
            }
        }
    }

    #[test]
    fn an_impossible_boundary_stays_impossible_and_shares_add_up() {
        let seen = [Share { successes: 0, samples: 5 }, Share::default()];
        let shares = posterior(&seen, &[0.0, 1.0, 1.0], Succeed::Before);
        assert!(shares[0] == 0.0 && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(posterior(&seen, &[0.0; 3], Succeed::Before).iter().all(|share| *share == 0.0));
        let other = posterior(&[Share { successes: 4, samples: 4 }], &[1.0, 1.0], Succeed::From);
        assert!(other[0] > 0.95, "{other:?}");
    }
}
