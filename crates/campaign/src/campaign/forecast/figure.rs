//! A figure that was measured: what it is, and how much it varies.

use super::{draws::PlayDraws, measured::real};

/// How much calls vary between tasks, before two or more say it: the deviation as a share of the mean.
pub(super) const USUAL_CALLS: f64 = 0.3;
/// The same of what the injected runs of a task come to, their proof included.
pub(super) const USUAL_CHAIN: f64 = 0.4;
/// The same where a flip is proven by pairs: one more costs dozens of runs.
pub(super) const USUAL_PAIRED_CHAIN: f64 = 0.6;
/// The same of a single kind of run.
pub(super) const USUAL_RUN: f64 = 0.3;
/// The same of the tokens of a call.
pub(super) const USUAL_TOKENS: f64 = 0.15;
/// How much systems differ in calls a run, where one has none of its own yet.
pub(super) const USUAL_SYSTEM: f64 = 0.5;
/// As many parts as a usual variation weighs.
const USUAL_WEIGHT: f64 = 2.0;
/// How much more than the deviation of few parts the true one may be: by this share for a single further part.
const FEW_PARTS: f64 = 1.5;

/// A figure that was measured in several parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredFigure {
    mean: f64,
    /// Between parts, as a share of the mean.
    variation: f64,
    parts: f64,
}

/// What a part of a measured figure came to, and of how much.
pub(super) struct FigurePart {
    pub(super) came: f64,
    pub(super) of: f64,
}

impl MeasuredFigure {
    /// The figure that these parts amount to; `None` where there is nothing to measure.
    pub(super) fn from_parts(parts: impl Iterator<Item = FigurePart>, usual: f64) -> Option<Self> {
        let parts: Vec<FigurePart> = parts.filter(|part| part.of > 0.0).collect();
        let mean = parts.iter().map(|part| part.came).sum::<f64>() / parts.iter().map(|part| part.of).sum::<f64>();
        let count = real(parts.len() as u64);
        let squares = |part: &FigurePart| (part.came / part.of / mean - 1.0).powi(2);
        let seen = if mean > 0.0 { parts.iter().map(squares).sum::<f64>() } else { 0.0 };
        let variation = ((seen + USUAL_WEIGHT * usual * usual) / (count - 1.0 + USUAL_WEIGHT)).sqrt();
        // Two parts that happen to be alike say little of how far others are off.
        let few = if count > 1.0 { 1.0 + FEW_PARTS / (count + 1.0) } else { 1.0 };
        let variation = variation * few;
        (!parts.is_empty()).then_some(Self { mean, variation, parts: count })
    }

    /// The mean of so many parts that are still to come.
    pub(super) fn drawn(self, further: f64, draws: &mut PlayDraws<'_>) -> f64 {
        let spread = (1.0 / self.parts + 1.0 / further.max(1.0)).sqrt();
        draws.around(self.mean, self.variation * spread)
    }
}
