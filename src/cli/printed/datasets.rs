//! What verbs print that read or write data sets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    dataset::lint::{Finding, Rule},
    score::{Report, Rewarded, Scored},
};

/// `export --list`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedFormats {
    pub(in crate::cli) formats: Vec<ListedFormat>,
}

/// A format.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedFormat {
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) about: &'static str,
}

/// `certify --check`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct CheckedCertificate {
    /// Members that do not follow from the data set and the answers.
    pub(in crate::cli) differing: Vec<String>,
}

/// `lint`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedLint<'a> {
    pub(in crate::cli) samples: u64,
    pub(in crate::cli) findings: &'a [Finding],
    /// Findings by rule.
    pub(in crate::cli) rules: BTreeMap<&'static str, usize>,
    /// How sure the labels are, in words.
    pub(in crate::cli) sure: &'a str,
    pub(in crate::cli) modes: LintedModes,
}

/// Errors whose failure mode is only declared.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct LintedModes {
    pub(in crate::cli) planted: u64,
    pub(in crate::cli) declared: u64,
}

/// `lint --rules`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedRules {
    pub(in crate::cli) rules: Vec<ListedRule>,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedRule {
    pub(in crate::cli) rule: Rule,
    pub(in crate::cli) meaning: &'static str,
}

/// `learn`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedRanker<'a> {
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) systems: usize,
    pub(in crate::cli) tasks: usize,
    pub(in crate::cli) steps_blamed: usize,
    pub(in crate::cli) steps_cleared: usize,
    /// Of what it was learned from.
    pub(in crate::cli) digest: &'a str,
    pub(in crate::cli) left_out: NotLearned,
    pub(in crate::cli) held_out: Vec<HeldOutFigures>,
    /// The file; `null` where nothing was written.
    pub(in crate::cli) written: Option<String>,
}

/// Failures that nothing was learned from.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct NotLearned {
    pub(in crate::cli) other_labels: usize,
    pub(in crate::cli) nothing_cleared: usize,
}

/// What a ranker is worth on what it did not learn.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct HeldOutFigures {
    /// What was left out: systems or tasks.
    pub(in crate::cli) by: &'static str,
    pub(in crate::cli) groups: usize,
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) looks: RankerAgainstScan,
    pub(in crate::cli) first: RankerHits,
    pub(in crate::cli) top_3: RankerHits,
    pub(in crate::cli) saved: f64,
    pub(in crate::cli) saved_95: Option<[f64; 2]>,
}

/// A figure in the order of the ranker, and in that of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RankerAgainstScan {
    pub(in crate::cli) ranker: f64,
    pub(in crate::cli) scan: f64,
}

/// Runs whose step was among the first, in the order of the ranker, and in that of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RankerHits {
    pub(in crate::cli) ranker: usize,
    pub(in crate::cli) scan: usize,
}

/// `score`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedScore<'a> {
    #[serde(flatten)]
    pub(in crate::cli) scored: &'a Scored,
    /// How sure the labels are, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) gold_sure: Option<String>,
}

/// `score --reward`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ScoredRewards<'a> {
    pub(in crate::cli) rewards: &'a [Rewarded<'a>],
    /// Over the rows with a reward.
    pub(in crate::cli) mean: f64,
    pub(in crate::cli) rows: usize,
    pub(in crate::cli) known: usize,
}

/// `score --table`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ScoreTable<'a> {
    pub(in crate::cli) methods: &'a [String],
    pub(in crate::cli) sets: Vec<ScoredSet<'a>>,
}

/// A set of labels, with a report a method.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ScoredSet<'a> {
    pub(in crate::cli) gold: &'a str,
    pub(in crate::cli) strict: &'a [Option<Report>],
}
