//! Whether what was executed for a label can be: its e-value, its pairs, its counts.

use super::{NotedFindings, Rule, controls::Controls, is_imported, is_injected};
use crate::{
    dataset::{PlacedSample, Sample, SampleKind, Truth},
    proof::{self, Expected, e_bounds, figure},
    trajectory::{Executed, Executions, LabelStatus, Need},
};

/// The fewest executions of an arm of a system that repeats itself.
const FEWEST: u32 = 2;
/// How far a stored e-value may lie beyond its bounds: whoever writes one may have rounded it.
const ROUNDED: f64 = 1e-3;
/// Executions of an arm from which on it is asked how many of them are void.
const ENOUGH: u32 = 3;

/// Looks at what was executed for the label as a whole, and for each error that it names.
pub(super) fn check(placed: &PlacedSample, controls: &Controls, noted: &mut NotedFindings<'_>) {
    let sample = &placed.sample;
    let Some(label) = &sample.label else { return };
    if label.definition == "human" || (is_imported(sample) && !is_injected(sample)) {
        return;
    }
    let Some(evidence) = &label.evidence else { return };
    let shown = sample.kind == SampleKind::Failure && label.status == LabelStatus::Verified;
    if let Some(executed) = &evidence.executed {
        let expected = if is_injected(sample) { Expected::Breaks } else { Expected::Heals };
        check_claim(executed, expected, shown, "", noted);
        order(sample, label, executed, controls, noted);
    }
    for one_of in &evidence.necessity {
        let what = format!("that the failure needs `{}`, injection {}: ", one_of.agent, one_of.injection);
        check_claim(&one_of.executed, Expected::Breaks, shown && one_of.state == Need::Necessary, &what, noted);
    }
}

/// One claim; `shown`: its label says that it is.
fn check_claim(executed: &Executed, expected: Expected, shown: bool, of: &str, noted: &mut NotedFindings<'_>) {
    let words = || proof::in_words(executed, "without", "with");
    let mut differs = |rule: Rule, what: &str| noted.note(rule, format!("{of}{what}: {}", words()));
    if executed.repeatable {
        if shown && !repeats(executed, expected) {
            differs(Rule::EvidenceRepeats, "its arms are not two and two that are equal, or not what is claimed");
        } else if executed.e.is_some() || executed.pairs > 0 {
            differs(Rule::EvidenceRepeats, "it has pairs or an e-value too, and a system that repeats itself has none");
        }
        return;
    }
    let Some(e) = executed.e else { return };
    let Some((low, high)) = e_bounds(expected, executed.pairs, &executed.control, &executed.treated) else {
        return differs(Rule::EvidencePairs, "more pairs than executions");
    };
    // The number of a trace is shared by all claims that can be made of its run.
    let low = if expected == Expected::Heals { 0.0 } else { low };
    // A claim whose treatment never did what is claimed is closed at 0.
    if e != 0.0 && !(low * (1.0 - ROUNDED)..=high * (1.0 + ROUNDED)).contains(&e) {
        let pairs = executed.pairs;
        let can = format!(
            "{pairs} pair{} of these verdicts give {} to {}, in whichever order, and the label says {}",
            if pairs == 1 { "" } else { "s" },
            figure(low),
            figure(high),
            figure(e)
        );
        return differs(Rule::EvidenceValue, &can);
    }
    if !shown {
        return;
    }
    let Some(target) = executed.target else { return };
    if executed.pairs == 0 {
        differs(Rule::EvidencePairs, "no pair");
    } else if target.is_nan() || target <= 1.0 || e < target {
        // Below 1 a target asks for nothing.
        differs(Rule::EvidenceTarget, "it does not reach what shows it");
    } else if spoilt(&executed.control) || spoilt(&executed.treated) {
        differs(Rule::EvidenceCounts, "more than a third of an arm says nothing, and the claim is said to be shown");
    }
}

/// Whether both arms were executed often enough, and each came to one end: the one that is claimed.
fn repeats(executed: &Executed, expected: Expected) -> bool {
    let Executed { control, treated, .. } = executed;
    let (passes, fails) = if expected == Expected::Heals { (treated, control) } else { (control, treated) };
    let all = |arm: &Executions, count: u32| arm.all() >= FEWEST && count == arm.all();
    all(passes, passes.passed) && all(fails, fails.failed)
}

fn spoilt(arm: &Executions) -> bool {
    arm.all() >= ENOUGH && arm.voids() > arm.all() / 3
}

/// Whether what a claim stands against was executed when it must have been: the twin before the run that left it, and
/// controls after it. Where only some of the recordings are there, nothing is said.
fn order(sample: &Sample, label: &Truth, executed: &Executed, controls: &Controls, noted: &mut NotedFindings<'_>) {
    let Some(twin) = sample.clean_twin.as_deref().filter(|_| is_injected(sample) && !label.errors.is_empty()) else {
        return;
    };
    let Some(run) = controls.started(&sample.id) else { return };
    if controls.started(twin).is_some_and(|twin| twin > run) {
        noted.note(Rule::EvidenceOrder, format!("`{twin}`, which the run begins with, was executed after it"));
    }
    let against = controls.against(twin);
    let older = against.iter().filter(|started| **started < run).count();
    let (counted, known) = (executed.control.all() as usize, against.len());
    if older > 0 && known >= counted && known - older < counted {
        let what = format!(
            "{counted} controls are counted, and of {known} that begin like `{twin}` {older} were executed before the run \
             that they stand against"
        );
        noted.note(Rule::EvidenceOrder, what);
    }
}
