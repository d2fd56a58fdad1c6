//! Tests of [`super`]: what an error and a status are written as, and who ended a step.

use super::*;
use crate::trajectory::{Attribution, Source};
use bytes::Bytes;

/// A planted error that was delivered with a reply.
pub(crate) fn planted() -> InjectedError {
    InjectedError {
        injection: 0,
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        failure_mode: Some(FailureMode::PrematureTermination),
        side: Side::Response,
        operator: "end_early".into(),
        speaker: None,
        step: 0,
        call: 0,
        attempt: 0,
        before: "was".into(),
        after: "is".into(),
        delivered: true,
    }
}

pub(crate) fn fault(attempt: u32) -> InjectedError {
    InjectedError { failure_mode: None, operator: "status".into(), attempt, ..planted() }
}

pub(crate) fn asked() -> InjectedError {
    InjectedError { side: Side::Request, operator: "drop_history".into(), ..planted() }
}

fn attempt(number: u32, cause: Option<CloseCause>, status: Option<u16>) -> Attempt {
    Attempt {
        attempt: number,
        at: "2026-01-01T00:00:00Z".into(),
        status,
        cause,
        ending: cause.map(|cause| CallEnding::of_transport(cause, status)),
        reply: Bytes::from_static(br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"said"}}]}"#),
        reply_delivered: None,
        reply_fuller: None,
        streamed: false,
        first_byte_us: None,
        last_byte_us: None,
        usage: None,
        uninspected: None,
        exact: true,
        origin: crate::trajectory::ReplyOrigin::default(),
    }
}

/// A step that the user's own words name, with these errors and these attempts, each with cause and status.
pub(crate) fn step(injected: &[InjectedError], attempts: &[(Option<CloseCause>, u16)]) -> Step {
    let attempts = (0..).zip(attempts).map(|(number, (cause, status))| attempt(number, *cause, Some(*status)));
    Step {
        step: 0,
        call: 0,
        turn: 0,
        attribution: Attribution {
            agent: AgentName::parse("solver").expect("a name"),
            instance: 0,
            source: Source::Path,
            evidence: "path".into(),
            confidence: 1.0,
            ambiguous: false,
        },
        surface: "openai_chat".into(),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        request: Bytes::new(),
        request_sent: None,
        attempts: attempts.collect(),
        injected: injected.to_vec(),
        overlapping: false,
        unplaced: crate::trajectory::StepUnplaced::default(),
    }
}

pub(crate) const DONE: Option<CloseCause> = Some(CloseCause::Complete);

#[test]
fn the_upstream_s_own_failure_is_not_the_planted_one() {
    for (injected, expected) in [(vec![], true), (vec![fault(0)], false), (vec![fault(1)], true), (vec![asked()], true)]
    {
        let step = step(&injected, &[(DONE, 503)]);
        assert_eq!(ended_by_upstream(&step), expected, "{injected:?}");
    }
    assert!(!ended_by_upstream(&step(&[], &[])) && !ended_by_upstream(&step(&[], &[(DONE, 200)])));
}

#[test]
fn a_fault_acts_on_a_reply_and_plants_no_mode() {
    for (error, expected) in [
        (planted(), false),
        (asked(), false),
        (fault(0), true),
        (InjectedError { failure_mode: None, ..asked() }, false),
    ] {
        assert_eq!(error.is_fault(), expected, "{error:?}");
    }
}

#[test]
fn a_standing_becomes_the_status_of_its_name() {
    for (standing, status) in [
        (Standing::Verified, LabelStatus::Verified),
        (Standing::Contradicted, LabelStatus::Contradicted),
        (Standing::Unproven, LabelStatus::Unproven),
        (Standing::Void, LabelStatus::Void),
    ] {
        assert_eq!(LabelStatus::from(standing), status);
        let words = |value: serde_json::Result<String>| value.expect("serialises");
        assert_eq!(words(serde_json::to_string(&status)), words(serde_json::to_string(&standing)));
    }
}

#[test]
fn an_error_is_written_without_what_is_usual_and_read_in_its_former_words() {
    let text = |error: &InjectedError| serde_json::to_value(error).expect("serialises");
    assert_eq!(text(&planted()).get("attempt"), None);
    let again = InjectedError { attempt: 2, ..planted() };
    assert_eq!(text(&again).get("attempt"), Some(&2.into()));
    for error in [planted(), again] {
        let mut former = text(&error);
        let fields = former.as_object_mut().expect("an object");
        for (name, was) in [("before_bytes", "before"), ("after_bytes", "after")] {
            let value = fields.remove(name).expect(name);
            fields.insert(was.to_owned(), value);
        }
        for value in [text(&error), former] {
            assert_eq!(serde_json::from_value::<InjectedError>(value).expect("reads"), error);
        }
    }
}
