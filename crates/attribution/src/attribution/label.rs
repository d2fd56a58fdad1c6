//! From a finding to the run's label, and whether it contradicts a label that is there.

use super::{Decisive, LabelRule, TraceFinding};
use crate::{
    proof::{SearchEnding, Stands},
    ruling,
    trajectory::{Evidence, Label, LabelEntry, TAXONOMY},
};

/// The definition of labels that say two steps are at fault together.
const COUPLED: &str = "coupled";

/// The label of the failed run; `None` when nothing was shown. Where the rule names no step, a step whose own effect is
/// shown is a `flip`, which is true of that step and claims nothing of others. Its failure mode is not known: a trace tells
/// who and when, not what kind. What an analyzer takes it for stands beside it, as a proposal. A search most of whose
/// executions say nothing makes none.
pub fn label_of(finding: &TraceFinding, rule: LabelRule) -> Option<Label> {
    if finding.ending.is_some() {
        return None;
    }
    let named = match rule {
        LabelRule::EarliestFlip => finding.earliest_flip.as_ref(),
        LabelRule::Commitment => finding.commitment.as_ref(),
        LabelRule::Flip => None,
    };
    if let Some(decisive) = named {
        return Some(label(rule.name(), &[decisive], finding));
    }
    let flip = if rule == LabelRule::Commitment { finding.flips.last() } else { finding.flips.first() };
    if let Some(flip) = flip {
        return Some(label(LabelRule::Flip.name(), &[flip], finding));
    }
    let coupled: Vec<&Decisive> = finding.coupled.iter().collect();
    (!coupled.is_empty()).then(|| label(COUPLED, &coupled, finding))
}

fn label(definition: &str, steps: &[&Decisive], finding: &TraceFinding) -> Label {
    let entries = steps.iter().map(|decisive| {
        let Decisive { step, agent, call, recorded, corrected, instance, proposed_mode, .. } = (*decisive).clone();
        let entry = LabelEntry::natural(agent, instance, step, call, corrected, recorded, TAXONOMY);
        LabelEntry { proposed_mode, ..entry }
    });
    let first = steps.first();
    let evidence = Evidence {
        executed: first.map(|decisive| decisive.executed.clone()),
        fork_step: first.map(|decisive| decisive.step),
        cleared: finding.steps.iter().filter(|step| step.stands.is_cleared()).map(|step| step.step).collect(),
        source: first.and_then(|decisive| decisive.source).map(|source| source.name().to_owned()),
        counts_as_equal: finding.counts_as_equal.clone(),
        ..Evidence::default()
    };
    ruling::natural(definition, entries.collect(), evidence)
}

/// Whether a finding says that a label is wrong: the failure does not come again, the labelled step has no effect, or
/// another that may stand in its place has one.
pub fn is_contradicted(former: &Label, finding: &TraceFinding) -> bool {
    match finding.ending {
        Some(SearchEnding::NotReproduced) => return true,
        Some(SearchEnding::Void(_)) => return false,
        None => {}
    }
    let labelled: Vec<u32> = former.errors.iter().map(|entry| entry.error.step).collect();
    let cleared =
        |step: &u32| finding.steps.iter().any(|found| found.step == *step && found.stands == Stands::Excluded);
    let flips = || finding.flips.iter().map(|flip| flip.step);
    let (first, last) = (labelled.iter().min(), labelled.iter().max());
    match former.definition.as_str() {
        COUPLED => flips().any(|step| labelled.contains(&step)),
        "earliest_flip" => labelled.iter().any(cleared) || flips().any(|step| first.is_some_and(|first| step < *first)),
        "commitment" => labelled.iter().any(cleared) || flips().any(|step| last.is_some_and(|last| step > *last)),
        _ => labelled.iter().any(cleared),
    }
}
