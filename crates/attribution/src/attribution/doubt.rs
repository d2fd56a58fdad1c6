//! Why a trace names no step, in words that say what would tell.

use std::path::Path;

use super::{CorrectionOrigin, StepFinding, TraceFinding};
use crate::{
    launch::shell_word,
    proof::{SearchEnding, Stands},
};

/// Of words that a model proposes.
pub(super) const PROPOSED: &str = "it is shown of words that an analyzer proposes: they may make up for another error \
                                   instead of correcting this one; a twin, or your own words, would tell";

/// Why these steps are not cleared, by place in the run.
pub(super) fn why(finding: &TraceFinding, open: &[usize]) -> String {
    let open: Vec<&StepFinding> = open.iter().filter_map(|place| finding.steps.get(*place)).collect();
    let mut reasons = Vec::new();
    for (stands, words) in [
        (Stands::Untouched, "no correction, so nothing was tried instead: --corrections FILE or --redraw would"),
        (Stands::Void, "too many executions that say nothing"),
        (Stands::Unsettled, "executions that neither show an effect nor exclude one: more --pairs may"),
        (Stands::Open, "too few executions: the search ended before"),
    ] {
        let mut steps = open.iter().filter(|step| step.stands == stands).map(|step| step.step.to_string());
        let first: Vec<String> = steps.by_ref().take(8).collect();
        let more = if steps.next().is_some() { ", …" } else { "" };
        if !first.is_empty() {
            reasons.push(format!("step {}{more}: {words}", first.join(", ")));
        }
    }
    reasons.join("; ")
}

/// Why no step is named. `run_dir`: where the traced run lies.
pub(super) fn nothing(finding: &TraceFinding, run_dir: &Path) -> String {
    match finding.ending {
        Some(SearchEnding::NotReproduced) => {
            let of = finding.sanity.passed + finding.sanity.failed;
            return format!(
                "the failure does not come again: the record, taken as it is, succeeded {} of {of} times",
                finding.sanity.passed
            );
        }
        Some(SearchEnding::Void(why)) => {
            return why.remedy(&shell_word(&run_dir.to_string_lossy()));
        }
        None => {}
    }
    let tried: Vec<&StepFinding> = finding.steps.iter().filter(|step| step.source.is_some()).collect();
    if tried.iter().any(|step| !step.stands.is_cleared()) {
        return "no correction was shown to heal the run".to_owned();
    }
    let effect = finding.effect;
    if tried.iter().all(|step| step.source == Some(CorrectionOrigin::Redraw)) {
        return format!(
            "no fresh draw of a step heals the run by {effect} more than chance: the model makes its error again (--twin or \
             --corrections would tell), or several errors are coupled"
        );
    }
    format!(
        "no single correction heals the run by {effect} more than chance: errors may be coupled (--coupled), or the error is \
         in no reply"
    )
}
