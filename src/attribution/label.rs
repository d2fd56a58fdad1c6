//! From a finding to the run's label.

use super::{Decisive, Finding};
use crate::trajectory::{InjectedError, Label, LabelEntry, LabelStatus, Side, TAXONOMY, Verdict};

/// Which of the found steps is the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelRule {
    /// The earliest step whose correction turns failure into success (`AgenTracer`'s rule, here against a null arm).
    #[default]
    EarliestFlip,
    /// The latest one: after it the failure stands.
    Commitment,
}

impl LabelRule {
    /// Both rules.
    pub const ALL: &'static [LabelRule] = &[LabelRule::EarliestFlip, LabelRule::Commitment];

    /// Its name, as a label's `definition`.
    pub fn name(self) -> &'static str {
        match self {
            LabelRule::EarliestFlip => "earliest_flip",
            LabelRule::Commitment => "commitment",
        }
    }
}

/// The label of the failed run; `None` when no step was found. Its failure mode is not known: a trace tells who and
/// when, not what kind.
pub fn label_of(finding: &Finding, rule: LabelRule) -> Option<Label> {
    let decisive = match rule {
        LabelRule::EarliestFlip => finding.earliest_flip.as_ref()?,
        LabelRule::Commitment => finding.commitment.as_ref()?,
    };
    let Decisive { step, agent, call, recorded, corrected, instance, .. } = decisive;
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
    Some(Label {
        evidence: None,
        format: 1,
        status: LabelStatus::Verified,
        definition: rule.name().to_owned(),
        seed: 0,
        outcome: Verdict::Failure,
        errors: vec![LabelEntry { error, taxonomy: TAXONOMY.to_owned() }],
    })
}
