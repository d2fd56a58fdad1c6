//! What `plan` prints.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// `plan check` of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct CheckedPlan<'a> {
    pub(in crate::cli) file: &'a str,
    pub(in crate::cli) passed: bool,
    pub(in crate::cli) injections: usize,
    /// Checks that the file has.
    pub(in crate::cli) checks: usize,
    pub(in crate::cli) failures: Vec<FailedCheck<'a>>,
    /// Each injection against a run, with `--against`.
    pub(in crate::cli) matched: Vec<MatchedInjection<'a>>,
    pub(in crate::cli) notes: &'a [String],
}

/// A check that failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct FailedCheck<'a> {
    pub(in crate::cli) line: usize,
    pub(in crate::cli) failure: &'a str,
}

/// An injection against a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MatchedInjection<'a> {
    pub(in crate::cli) injection: u32,
    /// The steps that meet every condition.
    pub(in crate::cli) steps: &'a [u32],
    /// What came nearest, where there is none.
    pub(in crate::cli) nearest_miss: &'a Option<String>,
    pub(in crate::cli) impossible: Vec<ImpossibleMode>,
}

/// A step at which the declared failure mode cannot be.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ImpossibleMode {
    pub(in crate::cli) step: u32,
    pub(in crate::cli) failure_mode: &'static str,
    /// What the mode needs and the step does not have, by its name.
    pub(in crate::cli) unmet: &'static str,
    pub(in crate::cli) why: &'static str,
}

/// `plan explain`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ExplainedPlan<'a> {
    pub(in crate::cli) file: &'a Path,
    pub(in crate::cli) explanation: String,
}

/// A row of `plan ready`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ReadyPlan<'a> {
    pub(in crate::cli) name: &'a str,
    pub(in crate::cli) about: String,
    pub(in crate::cli) text: &'a str,
}
