//! How far a method's scores can be trusted: split conformal prediction (Vovk, Gammerman and Shafer 2005) over rows whose truth
//! is known. The nonconformity of a step is 1 less its score; the interval of a run reaches from its first to its last step that
//! is no stranger than all but α of the calibration rows' true steps were. It holds the true step with a probability of at
//! least 1 − α, over calibration rows and runs that come from one source; for runs of another system it promises nothing.

use serde::Serialize;

/// The score of each step that a row names.
pub type StepScores = Vec<(u32, f64)>;

/// A row whose truth is known.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationRow {
    /// What the method said.
    pub scores: StepScores,
    /// The true steps.
    pub truth: Vec<u32>,
    /// How many steps the run has.
    pub steps: u32,
}

/// Scores that were held against the truth.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    alpha: f64,
    /// Nonconformity of the true steps, ascending.
    strange: Vec<f64>,
    /// Calibration rows whose own interval, by all the others, holds a true step.
    pub covered: usize,
    /// How wide those intervals are in the mean, in steps.
    pub width: f64,
}

/// Steps between which the true one lies, by a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StepInterval {
    /// The first.
    pub first: u32,
    /// The last, inclusive.
    pub last: u32,
    /// How often such an interval may miss.
    pub alpha: f64,
    /// The rows behind it.
    pub rows: usize,
}

impl Calibrated {
    /// Holds rows against their truth. `None` without any.
    pub fn calibrate(rows: &[CalibrationRow], alpha: f64) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let own: Vec<f64> = rows.iter().map(strangeness).collect();
        let (mut covered, mut width) = (0, 0.0);
        for (at, row) in rows.iter().enumerate() {
            let mut others = own.clone();
            others.swap_remove(at);
            others.sort_by(f64::total_cmp);
            let (first, last) = interval(&row.scores, row.steps, bound(&others, alpha));
            covered += usize::from(row.truth.iter().any(|step| (first..=last).contains(step)));
            width += f64::from(last - first + 1);
        }
        let mut strange = own;
        strange.sort_by(f64::total_cmp);
        let rows = u32::try_from(rows.len()).map_or(1.0, f64::from);
        Some(Self { alpha, strange, covered, width: width / rows })
    }

    /// How many rows it stands on.
    pub fn rows(&self) -> usize {
        self.strange.len()
    }

    /// The interval of a run of so many steps.
    pub fn interval(&self, scores: &StepScores, steps: u32) -> StepInterval {
        let (first, last) = interval(scores, steps, bound(&self.strange, self.alpha));
        StepInterval { first, last, alpha: self.alpha, rows: self.strange.len() }
    }
}

/// How strange the least strange of the true steps is.
fn strangeness(row: &CalibrationRow) -> f64 {
    let of = |step: &u32| row.scores.iter().find(|(named, _)| named == step).map_or(0.0, |(_, score)| *score);
    1.0 - row.truth.iter().map(of).fold(0.0, f64::max)
}

/// The ⌈(n + 1)(1 − α)⌉-th smallest strangeness; everything, where there are fewer rows than that.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between 1 and the rows and one more"
)]
fn bound(strange: &[f64], alpha: f64) -> f64 {
    let rank = (f64::from(u32::try_from(strange.len()).unwrap_or(u32::MAX)) + 1.0) * (1.0 - alpha);
    strange.get((rank.ceil() as usize).saturating_sub(1)).copied().unwrap_or(1.0)
}

/// From the first to the last step that is within the bound; steps that nobody named have score 0.
fn interval(scores: &StepScores, steps: u32, bound: f64) -> (u32, u32) {
    let whole = (0, steps.saturating_sub(1));
    if bound >= 1.0 {
        return whole;
    }
    let within = || scores.iter().filter(|(_, score)| 1.0 - score <= bound + 1e-9).map(|(step, _)| *step);
    match (within().min(), within().max()) {
        (Some(first), Some(last)) => (first, last),
        // Nothing is certain enough: the scores say nothing about this run.
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(score: f64) -> CalibrationRow {
        CalibrationRow { scores: vec![(3, score), (5, 1.0 - score)], truth: vec![3], steps: 10 }
    }

    #[test]
    fn by_hand() {
        // Of nine rows the true step has a score of 0.9 in eight, 0.2 in one: at α = 0.2 the eighth of nine counts.
        let rows: Vec<CalibrationRow> = (0..9).map(|at| row(if at == 0 { 0.2 } else { 0.9 })).collect();
        let calibrated = Calibrated::calibrate(&rows, 0.2).expect("rows");
        let of = |scores: &[(u32, f64)]| {
            let StepInterval { first, last, rows, .. } = calibrated.interval(&scores.to_vec(), 10);
            (first, last, rows)
        };
        assert_eq!(of(&[(4, 0.95)]), (4, 4, 9));
        assert_eq!(of(&[(4, 0.9), (6, 0.9)]), (4, 6, 9));
        assert_eq!(of(&[(4, 0.5)]), (0, 9, 9), "where nothing is certain enough, the whole run");
        assert_eq!(calibrated.covered, 9, "the odd one is covered by the whole run: its own scores say little");
        assert!(Calibrated::calibrate(&[], 0.2).is_none());
        // One row says nothing at that level.
        let one = Calibrated::calibrate(&rows[..1], 0.2).expect("a row");
        assert_eq!((one.interval(&vec![(4, 1.0)], 10).last, one.width), (9, 10.0));
    }

    /// Scores that mean something, drawn from one source: the intervals hold the true step as often as they say.
    #[test]
    fn it_covers_as_often_as_it_says() {
        let draw = |at: u32| {
            let hash = blake3::hash(&at.to_le_bytes());
            f64::from(u32::from_le_bytes(*hash.as_bytes().first_chunk().expect("four bytes"))) / f64::from(u32::MAX)
        };
        let rows: Vec<CalibrationRow> = (0..400).map(|at| row(draw(at))).collect();
        for alpha in [0.1, 0.2, 0.4] {
            let calibrated = Calibrated::calibrate(&rows, alpha).expect("rows");
            let share = f64::from(u32::try_from(calibrated.covered).expect("few")) / 400.0;
            assert!(share >= 1.0 - alpha - 0.05, "{alpha}: {share}");
        }
    }
}
