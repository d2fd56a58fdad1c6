//! The life of a label.

use super::{Decisive, StepFinding, TraceFinding, is_contradicted, label_of};
use crate::{
    attribution::LabelRule,
    proof::{SearchEnding, Stands},
    ruling::{LabelChange, after_finding},
    trajectory::{AgentName, Evidence, Executed, Executions, Label, LabelContent, LabelStatus, RunId, StepIndex, Void},
};

fn step(step: StepIndex, stands: Stands) -> StepFinding {
    StepFinding {
        step,
        agent: AgentName::unnamed(0),
        call: step,
        instance: 0,
        recorded: String::new(),
        corrected: String::new(),
        said: String::new(),
        instead: None,
        source: Some(super::CorrectionOrigin::Twin),
        reason: String::new(),
        proposed_mode: None,
        stands,
        executed: None,
        effect: None,
        interval: None,
        control_runs: Vec::new(),
        treated_runs: Vec::new(),
        note: None,
    }
}

/// A finding of steps that stand so; the first that is shown is the earliest where all before it are cleared.
fn finding(stands: &[Stands]) -> TraceFinding {
    let steps: Vec<StepFinding> = (0..).zip(stands).map(|(number, stands)| step(number, *stands)).collect();
    let flips: Vec<Decisive> = steps
        .iter()
        .filter(|step| step.stands == Stands::Shown)
        .map(|step| step.decisive(Executed { e: Some(500.0), ..Executed::default() }))
        .collect();
    let before = stands.iter().take_while(|stands| **stands != Stands::Shown);
    let cleared = before.clone().all(|stands| stands.is_cleared());
    TraceFinding {
        prior: None,
        format: 3,
        run: RunId::parse("r").expect("an id"),
        order: "scan",
        alpha: 0.01,
        claims: stands.len(),
        target: 500.0,
        effect: 0.5,
        miss: 0.05,
        sanity: Executions::default(),
        steps,
        couples: Vec::new(),
        agents: Vec::new(),
        earliest_flip: flips.first().filter(|_| cleared).cloned(),
        commitment: None,
        flips,
        coupled: Vec::new(),
        doubts: Vec::new(),
        not_found: None,
        ending: None,
        unrunnable_check: None,
        counts_as_equal: Vec::new(),
        other_tool_results: 0,
        spent: super::SearchSpent::default(),
        out_of_budget: false,
    }
}

fn label(stands: &[Stands]) -> Label {
    label_of(&finding(stands), LabelRule::EarliestFlip).expect("a label")
}

#[test]
fn a_label_says_no_more_than_was_shown() {
    use Stands::{Excluded, Open, Same, Shown, Untouched};
    for (stands, definition, at) in [
        (&[Same, Excluded, Shown][..], "earliest_flip", 2),
        (&[Untouched, Shown], "flip", 1),
        (&[Open, Shown, Shown], "flip", 1),
    ] {
        let label = label(stands);
        assert_eq!((label.definition.as_str(), label.errors[0].error.step), (definition, at));
        let evidence = label.evidence.clone().expect("evidence");
        assert_eq!((evidence.source.as_deref(), evidence.executed.is_some()), (Some("twin"), true));
    }
    assert_eq!(label_of(&finding(&[Excluded, Open]), LabelRule::EarliestFlip), None);
}

#[test]
fn what_contradicts_a_label_replaces_or_withdraws_it() {
    use Stands::{Excluded, Open, Same, Shown, Untouched};
    let at = |life: &LabelChange| match life {
        LabelChange::None | LabelChange::Unchanged(_) => ("kept", None),
        LabelChange::Written(label) => ("written", Some(label.errors[0].error.step)),
        LabelChange::Replaced(label) => ("replaced", Some(label.errors[0].error.step)),
        LabelChange::Withdrawn(label) => {
            assert_eq!(label.status, LabelStatus::Withdrawn);
            ("withdrawn", Some(label.errors[0].error.step))
        }
    };
    let after = |former: Option<&Label>, found, finding: &TraceFinding| {
        after_finding(former, found, former.is_some_and(|former| is_contradicted(former, finding)))
    };
    let late = label(&[Same, Same, Shown]);
    let former_rule = Label::ruled(LabelContent { evidence: Some(Evidence::default()), ..late.clone().into_content() });
    let planted = Label::ruled(LabelContent { definition: "injected".to_owned(), ..late.clone().into_content() });
    let withdrawn = Label::ruled(LabelContent { status: LabelStatus::Withdrawn, ..late.clone().into_content() });
    for (former, stands, expected) in [
        (None, &[Same, Shown][..], ("written", Some(1))),
        (None, &[Same, Excluded], ("kept", None)),
        // An earlier step has an effect: "the earliest" was wrong.
        (Some(&late), &[Same, Shown, Shown], ("replaced", Some(1))),
        (Some(&late), &[Untouched, Shown, Open], ("replaced", Some(1))),
        (Some(&late), &[Same, Same, Excluded], ("withdrawn", Some(2))),
        (Some(&late), &[Same, Same, Open], ("kept", None)),
        // A flip of the same step says less.
        (Some(&late), &[Untouched, Same, Shown], ("kept", None)),
        (Some(&former_rule), &[Untouched, Same, Shown], ("replaced", Some(2))),
        (Some(&planted), &[Same, Shown, Excluded], ("kept", None)),
        (Some(&withdrawn), &[Same, Shown, Same], ("replaced", Some(1))),
        (Some(&withdrawn), &[Same, Open, Same], ("kept", None)),
    ] {
        let finding = finding(stands);
        let found = label_of(&finding, LabelRule::EarliestFlip);
        assert_eq!(at(&after(former, found, &finding)), expected, "{stands:?}");
    }
    let gone = TraceFinding { ending: Some(SearchEnding::NotReproduced), ..finding(&[Open, Open, Open]) };
    assert_eq!(at(&after(Some(&late), None, &gone)), ("withdrawn", Some(2)));
    // A search most of whose executions say nothing says nothing, whatever it saw on the way.
    let void =
        TraceFinding { ending: Some(SearchEnding::Void(Void::Unanswered)), ..finding(&[Excluded, Shown, Excluded]) };
    assert_eq!(label_of(&void, LabelRule::EarliestFlip), None);
    assert_eq!(at(&after(Some(&late), None, &void)), ("kept", None));
}
