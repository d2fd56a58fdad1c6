//! Whether what was executed for a failure shows what its label says. Whether that can be is asked in
//! [`evidence`](super::evidence).

use std::collections::BTreeSet;

use super::{NotedFindings, Rule, is_imported, is_injected};
use crate::{
    dataset::{LabelledError, Sample, SampleKind, Truth},
    proof,
    trajectory::{
        AgentName, EffectExcluded, Evidence, Executed, Executions, JointCause, LabelStatus, Necessity, Need, Tally,
    },
};

/// The fewest executions of an arm of a system that repeats itself.
const FEWEST: u32 = 2;

pub(super) fn check(sample: &Sample, label: &Truth, noted: &mut NotedFindings<'_>) {
    let injected = is_injected(sample);
    // A person's word, and what another source found, rest on nothing that was executed here.
    let told = label.definition == "human" || (is_imported(sample) && !injected);
    if sample.kind != SampleKind::Failure || told {
        return;
    }
    // The clean runs of a run that stands alone are those that were executed without its error.
    let alone = noted.of_corpus;
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
    if injected && !evidence.clean.all() && !(alone && evidence.clean.of == 0) {
        unproven(passed("clean runs", evidence.clean));
    }
    if let Some(what) = evidence.executed.as_ref().and_then(wanting) {
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
    if let (Some(control), Some(treated)) = (evidence.control, evidence.treated)
        && treated.share() <= control.share()
    {
        let recorded = format!("{} of {} as recorded", control.passed, control.of);
        unproven(format!("{}, {recorded}", passed("corrected runs", treated)));
    }
}

/// What a claim lacks that is said to be shown; `None` of one that has it.
fn wanting(executed: &Executed) -> Option<String> {
    let words = || proof::in_words(executed, "without", "with");
    if executed.dependent.is_some() || executed.chaotic || proof::is_fragile(executed) {
        return Some(format!("its executions have no weight: {}", words()));
    }
    let has = executed.repeatable || (executed.e.is_some() && executed.target.is_some());
    (!has).then(|| format!("neither an e-value nor a system that repeats itself: {}", words()))
}

type ShownPlace<'a> = (Option<u32>, &'a AgentName, u32);

fn place(error: &LabelledError) -> ShownPlace<'_> {
    (error.injection, &error.agent, error.instance)
}

/// Whether the lists of errors are what the runs without one of them say.
fn necessity(label: &Truth, evidence: &Evidence, unproven: &mut dyn FnMut(String)) {
    let about = |one: &Necessity, error: &LabelledError| {
        (Some(one.injection), &one.agent, one.instance) == (error.injection, &error.agent, error.instance)
    };
    let at = |error: &LabelledError| format!("`{}` at step {}", error.agent, error.step.unwrap_or_default());
    let planted: BTreeSet<ShownPlace<'_>> = label.planted().map(place).collect();
    let unknown = |error: &LabelledError| !evidence.necessity.iter().any(|one| about(one, error));
    if planted.len() > 1 && label.planted().any(unknown) {
        unproven(format!("{} were planted, and nothing says of each whether the failure needs it", planted.len()));
    }
    let cause = evidence.joint_cause();
    for (name, said, is) in [
        ("overdetermined", evidence.overdetermined, cause == Some(JointCause::Overdetermined)),
        ("joint", evidence.joint, cause == Some(JointCause::Joint)),
    ] {
        if said != is {
            unproven(format!("by what is shown of each error, `{name}` is {is}, and the label says {said}"));
        }
    }
    let sorted = evidence.sorted(label.planted(), |one, error| about(one, error));
    for (name, own, found) in [
        ("errors", &label.errors, &sorted.errors),
        ("others", &label.others, &sorted.others),
        ("not_shown", &label.not_shown, &sorted.not_shown),
    ] {
        for error in own.iter().filter(|error| !found.contains(error) || (name == "others" && unknown(error))) {
            unproven(format!("{} is among `{name}`, and the runs without it do not say so", at(error)));
        }
    }
    for one in &evidence.necessity {
        let Some(what) = unshown(one) else { continue };
        let state = one.state.words();
        unproven(format!("injection {} at `{}` is {state}: {what}", one.injection, one.agent));
    }
}

/// What is wanting where the runs do not show what is said of an error; `None` where they do.
fn unshown(one: &Necessity) -> Option<String> {
    let words = || proof::need_in_words(one);
    match one.state {
        Need::Necessary => wanting(&one.executed),
        Need::NotShown => None,
        Need::NotNeeded if one.executed.repeatable => {
            let fails = |arm: &Executions| arm.all() >= FEWEST && arm.failed == arm.all();
            let equal = fails(&one.executed.control) && fails(&one.executed.treated);
            (!equal).then(|| format!("the run does not fail alike with and without it: {}", words()))
        }
        Need::NotNeeded => {
            let Some(EffectExcluded { effect, e, target }) = one.exclusion else {
                return Some(format!("nothing says that an effect is excluded: {}", words()));
            };
            let arms = [&one.executed.control, &one.executed.treated];
            let told = arms.map(|arm| arm.passed + arm.failed).into_iter().min().unwrap_or_default();
            let excludes = effect > 0.0 && effect <= 1.0 && target > 1.0 && e >= target && told > 0;
            (!excludes).then(|| format!("no effect is excluded: {}", words()))
        }
    }
}
