//! Which failures go out: those that stand together at the share of wrong ones that was asked for.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ExportError, ExportOptions, Unfit};
use crate::{
    dataset::{
        Claims, Dataset, DecoyCounts, Ground, Grounds, LabelledError, SampleKind, Truth,
        claims::{ALPHA, grounds_beside, percent},
        lint::giveaways,
    },
    proof,
    trajectory::LabelStatus,
};

/// What of a dataset's claims goes out, over all its parts; the export's manifest has it as `claims`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SelectedClaims {
    /// The share of wrong failures that is allowed in the mean.
    pub alpha: f64,
    /// Claims that were begun.
    pub begun: usize,
    /// Whether those that came to nothing are among them, as the dataset's manifest states; else they are not known, and
    /// `begun` counts the failures that have an e-value.
    pub stated: bool,
    /// Failures with an e-value.
    pub rows: usize,
    /// Those of them that are kept.
    pub kept: usize,
    /// The lowest share at which these are kept; `None` of none.
    pub level: Option<f64>,
    /// Failures of systems that repeat themselves: all are taken, and nothing about them is chance.
    pub repeatable: usize,
    /// Failures verified under a former rule, which states no share: taken only where that is asked for.
    pub former: usize,
    /// Failures for which nothing was executed that shows them: imported ones, people's, delivered ones.
    pub unclaimed: usize,
    /// What came of the decoys; absent where none was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoys: Option<DecoyCounts>,
    /// The least e-value that is kept.
    #[serde(skip)]
    least: f64,
    /// Manipulators whose failures stay behind, for they give themselves away, each with what tells it: the manifest states it.
    #[serde(skip)]
    pub(super) giveaways: BTreeMap<String, String>,
}

/// Why a failure stays that a glance finds.
const OBVIOUS: Unfit = Unfit("a planted error that gives itself away (`--obvious` takes it)");

/// Why a failure stays that was verified before claims were made from pairs of executions, or before these got neutral changes.
pub(super) const FORMER: Unfit = Unfit(
    "a label of a former rule (`--former` takes it; `aegis prove` executes for what was planted, `aegis trace` for what was not)",
);

/// Why a failure stays of whose error it is not known that it can be of the mode that its plan calls it.
pub(super) const DECLARED: Unfit =
    Unfit("a failure mode that only its plan declares, or that was refuted (`--declared-modes` takes it)");

impl SelectedClaims {
    /// Looks at every failure of a dataset.
    ///
    /// # Errors
    /// A line that is no sample.
    pub(super) fn select(dataset: &Dataset, options: &ExportOptions) -> Result<Self, ExportError> {
        let mut grounds = Grounds::default();
        for placed in dataset.samples() {
            let sample = placed?.sample;
            let bytes_only = sample.label.as_ref().is_some_and(Truth::shows_bytes_only);
            if bytes_only && !options.former && sample.kind == SampleKind::Failure {
                grounds.former += 1;
            } else {
                grounds.add(&sample);
            }
        }
        let (stated, decoys) = dataset.manifest().map_or((None, None), |manifest| (manifest.claims, manifest.decoys));
        let giveaways = if options.obvious || options.recording { BTreeMap::new() } else { giveaways(dataset)? };
        Ok(Self { decoys, giveaways, ..Self::cut(grounds, stated.as_ref(), options.alpha.unwrap_or(ALPHA)) })
    }

    /// Whether none of the errors of a failure gives itself away.
    pub(super) fn hides(&self, truth: &Truth) -> Result<(), Unfit> {
        let mut planted = truth.errors.iter().filter_map(LabelledError::planted_by);
        if planted.any(|operator| self.giveaways.contains_key(operator)) { Err(OBVIOUS) } else { Ok(()) }
    }

    fn cut(grounds: Grounds, stated: Option<&Claims>, alpha: f64) -> Self {
        let Grounds { mut e_values, repeatable, former, unclaimed } = grounds;
        let rows = e_values.len();
        let begun = stated.map_or(rows, |stated| stated.begun.max(rows));
        let kept = proof::selected_count(&e_values, begun, alpha);
        e_values.sort_by(|a, b| b.total_cmp(a));
        e_values.truncate(kept);
        let least = e_values.last().copied().unwrap_or(f64::INFINITY);
        let level = proof::lowest_level(&e_values, begun);
        Self {
            alpha,
            begun,
            stated: stated.is_some(),
            rows,
            kept,
            level,
            repeatable,
            former,
            unclaimed,
            decoys: None,
            least,
            giveaways: BTreeMap::new(),
        }
    }

    /// Whether a failure that rests on this goes out.
    pub(super) fn check_ground(&self, ground: Ground, options: &ExportOptions) -> Result<(), Unfit> {
        match ground {
            Ground::Pairs(e) if e < self.least => Err(Unfit("a failure that is not sure enough for this alpha")),
            Ground::FormerRule if !options.former => Err(FORMER),
            Ground::Unproven(LabelStatus::Delivered) if options.unverified => Ok(()),
            Ground::Unproven(status) => Err(Unfit(unproven(status))),
            Ground::Pairs(_) | Ground::Repeats | Ground::FormerRule | Ground::Word => Ok(()),
        }
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        let Self { begun, rows, kept, alpha, level, repeatable, former, unclaimed, stated, .. } = self;
        let mut parts = Vec::new();
        if *rows > 0 || *repeatable > 0 {
            let (begun, rows, kept, alpha, repeatable) = (*begun, *rows, *kept, *alpha, *repeatable);
            let level = level.map_or(String::new(), |level| format!(", those kept at {}", percent(level)));
            parts.push(Claims { begun, rows, kept, alpha, level: None, repeatable }.in_words() + &level);
        }
        if !stated && *rows > 0 {
            parts.push("of claims that came to nothing nothing is known, for no `dataset.json` states them".to_owned());
        }
        parts.extend(grounds_beside(*former, *unclaimed));
        parts.extend(self.decoys.as_ref().map(DecoyCounts::in_words));
        if parts.is_empty() { "no failures".to_owned() } else { parts.join("; ") }
    }
}

/// Why a label that is not verified stays behind.
fn unproven(status: LabelStatus) -> &'static str {
    match status {
        LabelStatus::Withdrawn => "a withdrawn label",
        LabelStatus::Contradicted => "a contradicted label",
        LabelStatus::Void => "a label too many of whose runs say nothing",
        LabelStatus::Unproven => "a label that is not shown",
        LabelStatus::Delivered | LabelStatus::Verified => "a label that is not proven",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(e_values: &[f64], begun: Option<usize>, alpha: f64) -> SelectedClaims {
        let grounds = Grounds { e_values: e_values.to_vec(), repeatable: 2, former: 1, unclaimed: 4 };
        let stated = begun.map(|begun| Claims::from_e_values(0.01, begun, e_values, 2));
        SelectedClaims::cut(grounds, stated.as_ref(), alpha)
    }

    #[test]
    fn the_strongest_of_all_that_were_begun_are_kept() {
        let e_values = [2000.0, 90_000.0, 1000.0];
        for (begun, alpha, kept, taken) in [
            (Some(30), 0.01, 3, [true, true, true]),
            (Some(31), 0.01, 2, [true, true, false]),
            (Some(400), 0.01, 1, [false, true, false]),
            (Some(400), 0.2, 3, [true, true, true]),
            (Some(1_000_000), 0.01, 0, [false, false, false]),
            // Without a manifest: of those that are there.
            (None, 0.01, 3, [true, true, true]),
        ] {
            let cut = claims(&e_values, begun, alpha);
            let takes = e_values.map(|e| cut.check_ground(Ground::Pairs(e), &ExportOptions::default()).is_ok());
            assert_eq!((cut.kept, takes, cut.stated), (kept, taken, begun.is_some()), "{begun:?} {alpha}");
            assert!(cut.level.is_none_or(|level| level <= alpha + 1e-12) && (cut.level.is_some() == (kept > 0)));
        }
    }

    #[test]
    fn in_words() {
        assert_eq!(
            claims(&[2000.0, 3000.0], Some(50), 0.01).in_words(),
            "2 failures of systems that repeat themselves; 0 of 2 failures stand with at most 1 % wrong in the mean, of 50 \
             claims begun; 1 failure by a former rule, which states no share; 4 failures for which nothing was executed that shows them"
        );
        let alone = claims(&[2000.0], None, 0.01).in_words();
        assert!(alone.contains("of 1 claims begun, those kept at 0.05 %; of claims that came to nothing"), "{alone}");
    }
}
