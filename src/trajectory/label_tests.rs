//! Tests of [`super`]: which runs get a label, which do not and why, and what a label says.

use super::*;
use crate::trajectory::{Attribution, Outcome, RunId, Source, TAXONOMY};
use bytes::Bytes;

/// A planted error that was delivered with a reply.
fn planted() -> InjectedError {
    InjectedError {
        injection: 0,
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        failure_mode: Some(FailureMode::PrematureTermination),
        side: Side::Response,
        operator: "end_early".into(),
        step: 0,
        call: 0,
        attempt: 0,
        before: "was".into(),
        after: "is".into(),
        delivered: true,
    }
}

fn fault(attempt: u32) -> InjectedError {
    InjectedError { failure_mode: None, operator: "status".into(), attempt, ..planted() }
}

fn asked() -> InjectedError {
    InjectedError { side: Side::Request, operator: "drop_history".into(), ..planted() }
}

fn attempt(number: u32, cause: Option<CloseCause>, status: Option<u16>) -> Attempt {
    Attempt {
        attempt: number,
        at: "2026-01-01T00:00:00Z".into(),
        status,
        cause,
        reply: Bytes::from_static(b"said"),
        reply_delivered: None,
        reply_fuller: None,
        streamed: false,
        first_byte_us: None,
        last_byte_us: None,
        usage: None,
        uninspected: None,
        exact: true,
    }
}

/// A step that the user's own words name, with these errors and these attempts, each with cause and status.
pub(in crate::trajectory) fn step(injected: &[InjectedError], attempts: &[(Option<CloseCause>, u16)]) -> Step {
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
    }
}

fn run(steps: Vec<Step>) -> Trajectory {
    let outcome = Outcome { verdict: Verdict::Failure, ..Outcome::default() };
    Trajectory { run: RunId::parse("r").expect("an id"), seed: Some(7), outcome, steps }
}

const DONE: Option<CloseCause> = Some(CloseCause::Complete);

#[test]
fn a_label_says_what_was_delivered_and_nothing_of_what_it_caused() {
    let trajectory = run(vec![step(&[], &[(DONE, 200)]), step(&[planted(), fault(0)], &[(DONE, 200)])]);
    let label = derive(&trajectory, false).expect("a label");
    let entry = LabelEntry { error: planted(), taxonomy: TAXONOMY.into(), proposed_mode: None };
    assert_eq!(
        label,
        Label {
            format: 1,
            status: LabelStatus::Delivered,
            definition: "injected".into(),
            seed: 7,
            outcome: Verdict::Failure,
            errors: vec![entry],
            others: vec![],
            evidence: None,
        }
    );
    let unseeded = Trajectory { seed: None, ..trajectory.clone() };
    assert_eq!(derive(&unseeded, false).map(|label| label.seed), Ok(0));
    assert_eq!(derive(&trajectory, true), Err(NoLabel::ManipulatorFailed), "whatever else was delivered");
}

#[test]
fn only_altered_bytes_that_arrived_and_plant_a_mode_are_errors() {
    for (error, expected) in [
        (planted(), Ok(1)),
        (InjectedError { delivered: false, ..planted() }, Err(NoLabel::NotInjected)),
        (InjectedError { after: "was".into(), ..planted() }, Err(NoLabel::NotInjected)),
        (InjectedError { failure_mode: None, ..planted() }, Err(NoLabel::NotInjected)),
    ] {
        let derived = derive(&run(vec![step(std::slice::from_ref(&error), &[(DONE, 200)])]), false);
        assert_eq!(derived.map(|label| label.errors.len()), expected, "{error:?}");
    }
}

#[test]
fn a_step_that_may_be_another_s_is_evidence_of_nothing_where_an_error_was_planted_in_it() {
    let learned = |step: Step| {
        let attribution = Attribution { source: Source::Fingerprint, ..step.attribution.clone() };
        Step { attribution, ..step }
    };
    let overlapping = |step: Step| Step { overlapping: true, ..step };
    let (hit, clean) = (|| step(&[planted()], &[(DONE, 200)]), || step(&[], &[(DONE, 200)]));
    for (steps, expected) in [
        (vec![learned(hit())], Err(NoLabel::AmbiguousAgent)),
        (vec![overlapping(hit())], Err(NoLabel::AmbiguousAgent)),
        (vec![learned(clean()), overlapping(clean()), hit()], Ok(1)),
    ] {
        assert_eq!(derive(&run(steps), false).map(|label| label.errors.len()), expected);
    }
}

#[test]
fn who_ended_a_step_decides_whether_the_run_is_evidence() {
    use CloseCause::{
        ClientGone, Injected, Stopped, UpstreamReset, UpstreamTimeout, UpstreamTruncated, UpstreamUnreachable,
    };
    let (reply, none) = (vec![planted()], Vec::new());
    let with = |also: InjectedError| vec![planted(), also];
    let request = |error: InjectedError| vec![error];
    let (infra, ended) = (Some(NoLabel::InfraError), Some(NoLabel::FaultEnded));
    for (what, injected, attempts, expected) in [
        ("answered", &reply, &[(DONE, 200)][..], None),
        ("never answered", &reply, &[], None),
        ("no end in the record", &reply, &[(None, 500)], None),
        ("unreachable", &none, &[(Some(UpstreamUnreachable), 502)], infra),
        ("reset", &none, &[(Some(UpstreamReset), 200)], infra),
        ("silent", &none, &[(Some(UpstreamTimeout), 200)], infra),
        ("cut", &none, &[(Some(UpstreamTruncated), 200)], infra),
        ("the client left", &none, &[(Some(ClientGone), 200)], None),
        ("the client left a failing upstream", &none, &[(Some(ClientGone), 500)], None),
        ("stopped", &none, &[(Some(Stopped), 200)], None),
        ("too many requests", &none, &[(DONE, 429)], infra),
        ("an error of the server", &none, &[(DONE, 500)], infra),
        ("overloaded", &none, &[(DONE, 529)], infra),
        ("an error of the client's", &none, &[(DONE, 400)], None),
        ("the last of them", &none, &[(DONE, 499)], None),
        ("healed by a retry", &none, &[(DONE, 503), (DONE, 200)], None),
        ("the retry fails", &none, &[(DONE, 200), (DONE, 503)], infra),
        ("broken off by a fault", &reply, &[(Some(Injected), 200)], ended),
        ("a fault that answers with an error", &with(fault(0)), &[(DONE, 503)], ended),
        ("a fault that refuses", &with(fault(0)), &[(DONE, 400)], ended),
        ("a fault that is no error", &with(fault(0)), &[(DONE, 399)], None),
        ("a fault that resets", &with(fault(0)), &[(Some(UpstreamReset), 200)], ended),
        ("a fault that the client fled", &with(fault(0)), &[(Some(ClientGone), 503)], None),
        ("a fault that a retry healed", &with(fault(0)), &[(DONE, 503), (DONE, 200)], None),
        ("a fault, then the upstream's own", &with(fault(0)), &[(DONE, 503), (DONE, 503)], infra),
        ("a fault, then the client's own error", &with(fault(0)), &[(DONE, 503), (DONE, 404)], None),
        ("an edited request refused", &request(asked()), &[(DONE, 400)], Some(NoLabel::EditRefused)),
        ("an edited request answered", &request(asked()), &[(DONE, 399)], None),
        ("a reply edited, the request refused", &reply, &[(DONE, 404)], None),
        ("an edit that never left", &request(InjectedError { delivered: false, ..asked() }), &[(DONE, 400)], None),
        (
            "a request mended and refused",
            &request(InjectedError { failure_mode: None, ..asked() }),
            &[(DONE, 400)],
            Some(NoLabel::EditRefused),
        ),
    ] {
        // Another step holds the error that a label would be of.
        let trajectory = run(vec![step(&[planted()], &[(DONE, 200)]), step(injected, attempts)]);
        assert_eq!(derive(&trajectory, false).err(), expected, "{what}");
    }
}

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
