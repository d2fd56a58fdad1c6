//! Scores of predictions: who failed, at which step, in which mode, measured against labels, beside what a rule
//! without a model gets on the same data.
//!
//! [`score`] takes a prediction file and labels; [`evaluate`] is its strict measure. The public scorers are reproduced figure by figure in [`public`], with their
//! quirks named; [`reward`] holds the rewards for training. [`shape`] asks how far the outline of a log gets, [`ranker`] learns which step comes first. Text is read into predictions by [`read`].
//! Nothing here knows files: a [`Gold`] comes from whoever holds the data.

pub mod public;
pub mod ranker;
pub mod read;
pub mod reward;
pub mod shape;

mod accuracy;
mod agreement;
mod certificate;
mod baseline;
mod drawn;
mod gold;
mod interval;
mod answer_sets;
mod names;
mod prediction;
mod profile;
mod report;
mod scored;
mod sets;
mod table;

pub use accuracy::{Accuracy, TopK};
pub use agreement::{Agreement, agreement};
pub use baseline::{Baseline, shape_probe};
pub use certificate::{
    CalibrationBin, Certification, CertifiedFigures, CertifiedKind, CertifiedRun, ConfidenceCalibration,
};
pub use gold::{Culprit, Gold, RawLabel};
pub use interval::{Interval, RESAMPLED_MIN, Share, bootstrap, wilson};
pub use names::{agent_key, is_agent, mode_key};
pub use prediction::{Guess, PredictedAnswer, Prediction};
pub use profile::{Profile, UnknownProfile};
pub use report::{Coverage, Report, ScoreError, evaluate};
pub use scored::{RewardKind, Rewarded, Scored, ScoringError, reward_of, rewards, score};
pub use sets::{Classes, Counts, Figures, RuleF1, SetScore};
pub use table::{Row, Table};

/// A count as a real number. Counts here are rows and classes, far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts of rows and classes are far below 2^52")]
fn real(count: usize) -> f64 {
    count as f64
}

/// `part / whole`, and 0 of nothing is 0.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { real(part) / real(whole) }
}
