//! Whether what was executed for a failure shows what its label says.

use std::collections::BTreeSet;

use super::{Noted, Rule, is_imported, is_injected};
use crate::{
    dataset::{LabelledError, Sample, SampleKind, Truth},
    proof,
    trajectory::{AgentName, Evidence, Executed, Executions, LabelStatus, Necessity, Tally},
};

/// The fewest executions of an arm of a system that repeats itself.
const FEWEST: u32 = 2;

pub(super) fn check(sample: &Sample, label: &Truth, noted: &mut Noted<'_>) {
    let injected = is_injected(sample);
    // A person's word, and what another source found, rest on nothing that was executed here.
    let told = label.definition == "human" || (is_imported(sample) && !injected);
    if sample.kind != SampleKind::Failure || told {
        return;
    }
    let mut unproven = |what: String| noted.note(Rule::Unproven, what);
    match label.status {
        LabelStatus::Verified => {}
        // That has a rule of its own.
        LabelStatus::Withdrawn => return,
        status => return unproven(format!("{}: expected `verified`", stands(status))),
    }
    let Some(evidence) = &label.evidence else {
        return unproven("`verified`, without the runs that prove it".to_owned());
    };
    if evidence.is_of_former_rule() {
        return former(evidence, injected, &mut unproven);
    }
    if injected && !evidence.clean.all() {
        unproven(passed("clean runs", evidence.clean));
    }
    if let Some(what) = evidence.executed.as_ref().and_then(|executed| wanting(executed, !injected)) {
        unproven(what);
    }
    if injected {
        necessity(label, evidence, &mut unproven);
    }
}

/// What a status says, in words.
fn stands(status: LabelStatus) -> &'static str {
    match status {
        LabelStatus::Delivered => "the label was delivered, and nothing was executed that shows it",
        LabelStatus::Contradicted => "the label is contradicted: the same change passed and failed",
        LabelStatus::Unproven => "the label is not shown, or not yet",
        LabelStatus::Void => "too many of the label's runs say nothing",
        LabelStatus::Verified | LabelStatus::Withdrawn => "the label",
    }
}

fn passed(what: &str, tally: Tally) -> String {
    format!("{} of {} {what} passed", tally.passed, tally.of)
}

/// Labels that were written before claims were made from pairs of executions, by what held then.
fn former(evidence: &Evidence, injected: bool, unproven: &mut dyn FnMut(String)) {
    let mut unproven = |what: String| unproven(format!("verified (former rule): {what}"));
    if injected {
        for (what, tally) in [("clean runs", evidence.clean), ("controls", evidence.controls)] {
            if !tally.all() {
                unproven(passed(what, tally));
            }
        }
    }
    if let (Some(null), Some(treated)) = (evidence.null, evidence.treated)
        && treated.share() <= null.share()
    {
        let recorded = format!("{} of {} as recorded", null.passed, null.of);
        unproven(format!("{}, {recorded}", passed("corrected runs", treated)));
    }
}

/// What a claim wants to be shown; `None` of one that is. `heals`: the treated arm is the one that is to pass.
fn wanting(executed: &Executed, heals: bool) -> Option<String> {
    let Executed { null, treated, pairs, e, target, repeatable, .. } = executed;
    let words = || proof::in_words(executed, "without", "with");
    if *repeatable {
        let (passes, fails) = if heals { (treated, null) } else { (null, treated) };
        let all = |arm: &Executions, count: u32| arm.all() >= FEWEST && count == arm.all();
        let repeats = all(passes, passes.passed) && all(fails, fails.failed);
        return (!repeats).then(|| format!("its arms are not equal, or not what is claimed: {}", words()));
    }
    let (Some(e), Some(target)) = (e, target) else {
        return Some(format!("neither an e-value nor a system that repeats itself: {}", words()));
    };
    let told = [null, treated].map(|arm| arm.passed + arm.failed).into_iter().min().unwrap_or_default();
    // Below 1 a target asks for nothing.
    if *target <= 1.0 || e < target {
        return Some(format!("it does not reach what shows it: {}", words()));
    }
    (*pairs == 0 || *pairs > told).then(|| format!("more pairs than executions: {}", words()))
}

type ShownPlace<'a> = (Option<u32>, &'a AgentName, u32);

fn place(error: &LabelledError) -> ShownPlace<'_> {
    (error.injection, &error.agent, error.instance)
}

/// Whether errors and others are what the runs without one of them say.
fn necessity(label: &Truth, evidence: &Evidence, unproven: &mut dyn FnMut(String)) {
    let runs: Vec<(ShownPlace<'_>, &Necessity)> =
        evidence.necessity.iter().map(|one| ((Some(one.injection), &one.agent, one.instance), one)).collect();
    let of = |error: &LabelledError| runs.iter().find(|(at, _)| *at == place(error)).map(|(_, one)| one.necessary);
    let at = |error: &LabelledError| format!("`{}` at step {}", error.agent, error.step.unwrap_or_default());
    let planted: BTreeSet<ShownPlace<'_>> = label.planted().map(place).collect();
    if planted.len() > 1 && label.planted().any(|error| of(error).is_none()) {
        unproven(format!("{} were planted, and nothing says of each whether the failure needs it", planted.len()));
    }
    let none = !runs.is_empty() && runs.iter().all(|(_, one)| !one.necessary);
    if evidence.overdetermined != none {
        let is = if none { "none is necessary by itself" } else { "not all that was planted is unnecessary" };
        unproven(format!("{is}, and `overdetermined` is {}", evidence.overdetermined));
    } else if !none {
        for error in label.errors.iter().filter(|error| of(error) == Some(false)) {
            unproven(format!("{} is labelled, and the failure does not need it", at(error)));
        }
    }
    for other in label.others.iter().filter(|error| none || of(error) != Some(false)) {
        unproven(format!("{} is among `others`, and no run says that the failure does not need it", at(other)));
    }
    for (_, one) in runs.iter().filter(|(_, one)| one.necessary) {
        if let Some(what) = wanting(&one.executed, false) {
            unproven(format!("that the failure needs `{}`, injection {}: {what}", one.agent, one.injection));
        }
    }
}
