//! Cells as they end, and the class of each.

use super::*;
use crate::trajectory::{LabelContent, LabelStatus};

pub(in crate::campaign) fn ended(ending: HowEnded, verdict: Verdict, label: Result<(), NoLabel>) -> EndedCell {
    let outcome = Outcome { verdict, ..Outcome::default() };
    let status = LabelStatus::Delivered;
    let definition = "injected".to_owned();
    let errors = Vec::new();
    let others = Vec::new();
    let not_shown = Vec::new();
    let delivered = Label::ruled(LabelContent {
        format: 1,
        status,
        definition,
        seed: 0,
        outcome: verdict,
        errors,
        others,
        not_shown,
        evidence: None,
        names_later: None,
        missed_catch: Vec::new(),
    });
    EndedCell {
        format: FORMAT,
        run: RunId::parse("c-0").expect("an id"),
        system: "s".to_owned(),
        task: "t".to_owned(),
        kind: Ran::Clean { repeat: 0 },
        ending,
        in_order: ending == HowEnded::Exited(0),
        outcome,
        answer: String::new(),
        label: label.is_ok().then_some(delivered),
        no_label: label.err(),
        skipped_edits: BTreeSet::new(),
        rewriting: Rewriting::default(),
        steps: 1,
        upstream_failed: false,
        faults: false,
        diverged: None,
        spent: Cost::default(),
        prefix: Cost::default(),
        salvaged: 0,
        limited: 0,
        seconds: 0.0,
        sitting: None,
        learned: None,
    }
}

#[test]
fn each_run_is_in_one_class() {
    use NoLabel::{AmbiguousAgent, EditRefused, InfraError, ManipulatorFailed, NotInjected};
    use Verdict::{Failure, Success, Unknown};
    for (ending, verdict, label, class) in [
        (HowEnded::Exited(0), Failure, Ok(()), None),
        (HowEnded::Exited(0), Success, Ok(()), Some(Class::Benign)),
        (HowEnded::Exited(0), Unknown, Ok(()), Some(Class::Unchecked)),
        (HowEnded::Exited(1), Failure, Ok(()), Some(Class::Crashed)),
        (HowEnded::Signalled(9), Failure, Ok(()), Some(Class::Crashed)),
        (HowEnded::TimedOut, Failure, Ok(()), Some(Class::Timeout)),
        (HowEnded::TooManyCalls, Failure, Err(NotInjected), Some(Class::Timeout)),
        (HowEnded::Exited(0), Failure, Err(NotInjected), Some(Class::NotInjected)),
        (HowEnded::Exited(0), Failure, Err(ManipulatorFailed), Some(Class::ManipulatorFailed)),
        (HowEnded::Exited(0), Success, Err(AmbiguousAgent), Some(Class::AmbiguousAgent)),
        (HowEnded::TimedOut, Failure, Err(InfraError), Some(Class::InfraError)),
        (HowEnded::Exited(1), Failure, Err(EditRefused), Some(Class::EditRefused)),
        (HowEnded::Exited(0), Success, Err(EditRefused), Some(Class::EditRefused)),
    ] {
        assert_eq!(ended(ending, verdict, label).class(), class, "{ending:?} {verdict:?} {label:?}");
    }
    for (verdict, class) in [(Success, Class::Benign), (Failure, Class::Fault), (Unknown, Class::Unchecked)] {
        let mut faulted = ended(HowEnded::Exited(0), verdict, Err(NotInjected));
        faulted.faults = true;
        assert_eq!(faulted.class(), Some(class));
    }
    let mut astray = ended(HowEnded::Exited(0), Failure, Ok(()));
    astray.diverged = Some("step 0".to_owned());
    assert_eq!(astray.class(), Some(Class::Diverged));
    astray.upstream_failed = true;
    assert_eq!(astray.class(), Some(Class::Diverged));
    astray.diverged = None;
    assert_eq!(astray.class(), Some(Class::InfraError));
}
