//! What labels say, and what becomes of one when more is known. Labels are made here and in [`super::gate`], nowhere else.

use crate::trajectory::{
    Evidence, InjectedError, Label, LabelContent, LabelEntry, LabelStatus, ModeClaim, Standing, Verdict,
};

/// The definition of labels that say what was planted.
pub const PLANTED: &str = "injected";

/// The label of an error that nobody planted, by the rule that found it (`earliest_flip`, `commitment`, `flip`, `coupled`).
pub fn natural(definition: &str, errors: Vec<LabelEntry>, evidence: Evidence) -> Label {
    Label::ruled(LabelContent {
        format: 1,
        status: LabelStatus::Verified,
        definition: definition.to_owned(),
        seed: 0,
        outcome: Verdict::Failure,
        errors,
        others: Vec::new(),
        not_shown: Vec::new(),
        evidence: Some(evidence),
        names_later: None,
        missed_catch: Vec::new(),
    })
}

/// A label of what was planted with what was executed for it: what the failure is shown not to need is no error of it, and that of
/// which nothing is shown stands apart. Without a standing nothing is claimed of what it caused.
#[must_use]
pub fn proven(label: Label, standing: Option<Standing>, evidence: Evidence) -> Label {
    let status = standing.map_or(LabelStatus::Delivered, LabelStatus::from);
    Label::ruled(LabelContent { status, ..label.into_content().resting_on(evidence) })
}

/// A label of what was planted that keeps what a former one knows of the same errors' modes: the run that tells what would have come
/// after an error is not always at hand, and who looked at a change did so once.
pub(super) fn with_modes_of(label: Label, former: Option<&Label>) -> Label {
    let Some(former) = former else { return label };
    let mut content = label.into_content();
    for entry in content.planted_mut() {
        let is_it = |known: &&LabelEntry| known.error == entry.error;
        let known = former.planted().find(is_it).and_then(|known| known.mode_claim.clone());
        let state = |claim: &Option<ModeClaim>| claim.as_ref().map(|claim| claim.state);
        if state(&known) > state(&entry.mode_claim) {
            entry.mode_claim = known;
        }
    }
    Label::ruled(content)
}

/// Whether a label says of a run what was planted, as `delivered` does, and what was executed for that besides.
pub(super) fn is_proof_of(label: &Label, delivered: &Label) -> bool {
    let planted = |label: &Label| {
        let mut errors: Vec<InjectedError> = label.planted().map(|entry| entry.error.clone()).collect();
        errors.sort_by_key(|error| (error.step, error.injection));
        errors
    };
    label.definition == delivered.definition
        && label.evidence.is_some()
        && label.status != LabelStatus::Withdrawn
        && planted(label) == planted(delivered)
}

/// A label that does not hold any more.
pub(super) fn withdrawn(label: Label) -> Label {
    Label::ruled(LabelContent { status: LabelStatus::Withdrawn, ..label.into_content() })
}

/// What becomes of a run's label.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelChange {
    /// There was none, and there is none.
    None,
    /// It stays, for this reason.
    Unchanged(&'static str),
    /// It is written; there was none.
    Written(Label),
    /// It takes the place of one that it contradicts or improves.
    Replaced(Label),
    /// The finding contradicts it, and has none to put in its place.
    Withdrawn(Label),
}

/// What becomes of a run's label when executions have found one that nobody planted, or contradict the one that is there. A run
/// has one label. What was planted is known, so a finding never takes its place. Of two findings the later one takes the
/// place of a former one that it contradicts, that was withdrawn or was made by an older rule of proof, or where it says
/// more: a `flip` claims nothing of other steps, so it neither contradicts nor improves a rule that names one step of all.
pub fn after_finding(former: Option<&Label>, found: Option<Label>, contradicted: bool) -> LabelChange {
    let Some(former) = former else {
        return found.map_or(LabelChange::None, LabelChange::Written);
    };
    if former.definition == PLANTED {
        return LabelChange::Unchanged(
            "it says what was planted; what a trace finds is another kind of claim, and is kept in trace.json",
        );
    }
    if former.status == LabelStatus::Withdrawn {
        return found.map_or(LabelChange::Unchanged("it is withdrawn"), LabelChange::Replaced);
    }
    match found {
        Some(found) if contradicted || says_more(&found, former) => LabelChange::Replaced(found),
        None if contradicted => LabelChange::Withdrawn(withdrawn(former.clone())),
        _ => LabelChange::Unchanged("nothing contradicts it"),
    }
}

/// Whether a label says more than a former one: it was made by the rule that holds, or it names its step for more.
fn says_more(found: &Label, former: &Label) -> bool {
    let of_former_rule = former.evidence.as_ref().is_none_or(Evidence::is_of_former_rule);
    of_former_rule || found.definition != "flip"
}
