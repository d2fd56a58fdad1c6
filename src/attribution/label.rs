//! From a finding to the run's label.

use super::{Decisive, Finding, LabelRule, Share};
use crate::trajectory::{Evidence, InjectedError, Label, LabelEntry, LabelStatus, Side, TAXONOMY, Tally, Verdict};

/// The label of the failed run; `None` when no step was found. Its failure mode is not known: a trace tells who and
/// when, not what kind. What an analyzer takes it for stands beside it, as a proposal.
pub fn label_of(finding: &Finding, rule: LabelRule) -> Option<Label> {
    let decisive = match rule {
        LabelRule::EarliestFlip => finding.earliest_flip.as_ref()?,
        LabelRule::Commitment => finding.commitment.as_ref()?,
    };
    let Decisive { step, agent, call, recorded, corrected, instance, proposed_mode, .. } = decisive;
    let error = InjectedError {
        injection: 0,
        agent: agent.clone(),
        instance: *instance,
        failure_mode: None,
        side: Side::Response,
        operator: "counterfactual".to_owned(),
        step: *step,
        call: *call,
        attempt: 0,
        before: corrected.clone(),
        after: recorded.clone(),
        delivered: true,
    };
    let tally = |share: Share| Some(Tally::of(share.successes, share.samples));
    let (null, treated) = (tally(decisive.null), tally(decisive.treated));
    let evidence = Evidence { fork_step: Some(*step), null, treated, ..Evidence::default() };
    Some(Label {
        evidence: Some(evidence),
        format: 1,
        status: LabelStatus::Verified,
        definition: rule.name().to_owned(),
        seed: 0,
        outcome: Verdict::Failure,
        errors: vec![LabelEntry { error, taxonomy: TAXONOMY.to_owned(), proposed_mode: *proposed_mode }],
    })
}
