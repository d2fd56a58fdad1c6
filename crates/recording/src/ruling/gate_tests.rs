//! Tests of [`super`]: which runs get a label, which do not and why, and what a label says.

use super::*;
use crate::trajectory::{
    Attribution, CloseCause, ErrorOrigin, InjectedError, ModeClaim, Outcome, RunId, Verdict,
    sample::{DONE, edited_request, fault, planted, step},
};

fn run(steps: Vec<Step>) -> Trajectory {
    let outcome = Outcome { verdict: Verdict::Failure, ..Outcome::default() };
    Trajectory { run: RunId::parse("r").expect("an id"), seed: Some(7), outcome, steps }
}

fn before_gates(trajectory: &Trajectory) -> Ruling<'_> {
    Ruling {
        trajectory,
        recording: None,
        late: &[],
        origin: None,
        edits_failed: false,
        reference: &[],
        calls: OnceLock::new(),
        contested: OnceLock::new(),
        contested_upstream: OnceLock::new(),
    }
}

fn ruled(trajectory: &Trajectory) -> Result<Label, NoLabel> {
    before_gates(trajectory).label()
}

#[test]
fn a_label_says_what_was_delivered_and_nothing_of_what_it_caused() {
    let trajectory = run(vec![step(&[], &[(DONE, 200)]), step(&[planted(), fault(0)], &[(DONE, 200)])]);
    let label = ruled(&trajectory).expect("a label");
    let entry = LabelEntry {
        error: planted(),
        origin: ErrorOrigin::Planted,
        taxonomy: TAXONOMY.into(),
        proposed_mode: None,
        mode_claim: Some(ModeClaim::looked_at(Some("later-call"))),
    };
    assert_eq!(
        label,
        Label::ruled(LabelContent {
            format: 1,
            status: LabelStatus::Delivered,
            definition: "injected".into(),
            seed: 7,
            outcome: Verdict::Failure,
            errors: vec![entry],
            others: vec![],
            not_shown: vec![],
            evidence: None,
            names_later: None,
            missed_catch: Vec::new(),
        })
    );
    let unseeded = Trajectory { seed: None, ..trajectory.clone() };
    assert_eq!(ruled(&unseeded).map(|label| label.seed), Ok(0));
    let failed = Ruling { edits_failed: true, ..before_gates(&trajectory) };
    assert_eq!(failed.label(), Err(NoLabel::ManipulatorFailed), "whatever else was delivered");
    let perturbed = Ruling { origin: Some(RunOrigin::Proof), ..failed };
    assert_eq!(perturbed.label(), Err(NoLabel::Perturbed));
    let noted = Ruling { origin: Some(RunOrigin::Feedback), ..perturbed };
    assert_eq!(noted.label(), Err(NoLabel::Note), "and before all else");
}

#[test]
fn only_altered_bytes_that_arrived_and_plant_a_mode_are_errors() {
    for (error, expected) in [
        (planted(), Ok(1)),
        (InjectedError { delivered: false, ..planted() }, Err(NoLabel::NotInjected)),
        (InjectedError { after: "was".into(), ..planted() }, Err(NoLabel::NotInjected)),
        (InjectedError { failure_mode: None, ..planted() }, Err(NoLabel::OnlyFaults)),
    ] {
        let derived = ruled(&run(vec![step(std::slice::from_ref(&error), &[(DONE, 200)])]));
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
        (vec![overlapping(hit())], Err(NoLabel::Overlapping)),
        (vec![learned(clean()), overlapping(clean()), hit()], Ok(1)),
    ] {
        assert_eq!(ruled(&run(steps)).map(|label| label.errors.len()), expected);
    }
}

#[test]
fn who_ended_a_step_decides_whether_the_run_is_evidence() {
    use CloseCause::{
        ClientGone, Injected, Stopped, UpstreamReset, UpstreamTimeout, UpstreamTruncated, UpstreamUnreachable,
    };
    let (reply, none) = (vec![planted()], Vec::new());
    let with = |also: InjectedError| vec![planted(), also];
    let altering_fault = || InjectedError { after: planted().after, ..fault(0) };
    let request = |error: InjectedError| vec![error];
    let (infra, ended, unanswered) = (Some(NoLabel::InfraError), Some(NoLabel::FaultEnded), Some(NoLabel::Unanswered));
    for (what, injected, attempts, expected) in [
        ("answered", &reply, &[(DONE, 200)][..], None),
        ("never answered", &reply, &[], unanswered),
        ("no end in the record", &reply, &[(None, 500)], unanswered),
        ("unreachable", &none, &[(Some(UpstreamUnreachable), 502)], infra),
        ("reset", &none, &[(Some(UpstreamReset), 200)], infra),
        ("silent", &none, &[(Some(UpstreamTimeout), 200)], infra),
        ("cut", &none, &[(Some(UpstreamTruncated), 200)], infra),
        ("the client left", &none, &[(Some(ClientGone), 200)], None),
        ("the client left what was edited", &request(edited_request()), &[(Some(ClientGone), 200)], unanswered),
        ("the client left when it read the status", &none, &[(Some(ClientGone), 500)], infra),
        ("stopped", &none, &[(Some(Stopped), 200)], None),
        ("too many requests", &none, &[(DONE, 429)], infra),
        ("an error of the server", &none, &[(DONE, 500)], infra),
        ("overloaded", &none, &[(DONE, 529)], infra),
        ("sent elsewhere", &none, &[(DONE, 307)], infra),
        ("an error of the client's", &none, &[(DONE, 400)], None),
        ("the last of them", &none, &[(DONE, 499)], None),
        ("healed by a retry", &none, &[(DONE, 503), (DONE, 200)], None),
        ("the retry fails", &none, &[(DONE, 200), (DONE, 503)], infra),
        ("broken off by a fault", &reply, &[(Some(Injected), 200)], ended),
        ("a fault that answers with an error", &with(fault(0)), &[(DONE, 503)], ended),
        ("a fault that refuses", &with(fault(0)), &[(DONE, 400)], ended),
        ("a fault that is no error", &with(fault(0)), &[(DONE, 299)], None),
        ("a fault that alters the answer", &with(altering_fault()), &[(DONE, 200)], ended),
        ("a fault that resets", &with(fault(0)), &[(Some(UpstreamReset), 200)], ended),
        ("a fault that the client fled", &with(fault(0)), &[(Some(ClientGone), 503)], ended),
        ("a fault that a retry healed", &with(fault(0)), &[(DONE, 503), (DONE, 200)], None),
        ("an altered answer that was asked for again", &with(altering_fault()), &[(DONE, 200), (DONE, 200)], None),
        ("a fault, then the upstream's own", &with(fault(0)), &[(DONE, 503), (DONE, 503)], infra),
        ("a fault, then the client's own error", &with(fault(0)), &[(DONE, 503), (DONE, 404)], unanswered),
        ("an edited request refused", &request(edited_request()), &[(DONE, 400)], Some(NoLabel::EditRefused)),
        ("an edited request answered", &request(edited_request()), &[(DONE, 299)], None),
        ("a reply edited, the request refused", &reply, &[(DONE, 404)], unanswered),
        (
            "an edit that never left",
            &request(InjectedError { delivered: false, ..edited_request() }),
            &[(DONE, 400)],
            None,
        ),
        (
            "a request mended and refused",
            &request(InjectedError { failure_mode: None, ..edited_request() }),
            &[(DONE, 400)],
            Some(NoLabel::EditRefused),
        ),
    ] {
        // Another step holds the error that a label would be of.
        let trajectory = run(vec![step(&[planted()], &[(DONE, 200)]), step(injected, attempts)]);
        assert_eq!(ruled(&trajectory).err(), expected, "{what}");
    }
}

#[test]
fn a_label_names_nothing_that_was_not_read_whole() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"said"}}]}"#;
    let partly = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"said"}}],"answer":"more"}"#;
    let replied = |reply: &'static str| {
        let mut replied = step(&[planted()], &[(DONE, 200)]);
        replied.attempts[0].reply_delivered = Some(reply.into());
        replied
    };
    // The second message holds a member that nobody reads: an edit beside the message is known, an edit within it is not.
    let request = |first: &str, second: &str| {
        let known = format!(r#"{{"role":"system","content":"{first}"}}"#);
        format!(r#"{{"messages":[{known},{{"role":"user","content":"{second}","answer":"who knows"}}]}}"#)
    };
    let requested = |first: &str, second: &str| Step {
        request: request("is", "is").into(),
        request_sent: Some(request(first, second).into()),
        ..step(&[edited_request()], &[(DONE, 200)])
    };
    let refused = Some(NoLabel::NotReadWhole);
    for (what, step, planted, found) in [
        ("all was read", replied(whole), None, None),
        ("a member that nobody reads", replied(partly), refused, refused),
        ("no JSON", replied("said"), refused, refused),
        ("an edit beside it", requested("was", "is"), None, None),
        ("an edit of the message that holds it", requested("is", "was"), refused, None),
    ] {
        let trajectory = run(vec![step]);
        assert_eq!(ruled(&trajectory).err(), planted, "{what}: planted");
        assert_eq!(before_gates(&trajectory).may_name(0).err(), found, "{what}: found by a trace");
    }
    let unknown = run(vec![Step { surface: "opaque".into(), ..replied(whole) }]);
    assert_eq!(ruled(&unknown).err(), Some(NoLabel::NotReadWhole));
    assert_eq!(before_gates(&unknown).may_name(0), Err(NoLabel::NotReadWhole));
}

#[test]
fn a_found_label_names_the_agent_that_the_log_has_at_its_step() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"said"}}]}"#;
    let mut answered = step(&[planted()], &[(DONE, 200)]);
    answered.attempts[0].reply_delivered = Some(whole.into());
    let trajectory = run(vec![answered]);
    let own = ruled(&trajectory).expect("a label").into_content();
    for (agent, expected) in [(own.errors[0].error.agent.as_str(), None), ("ada", Some(NoLabel::DiffersFromLog))] {
        let mut found = LabelContent { definition: "flip".to_owned(), ..own.clone() };
        found.errors[0].error.agent = AgentName::parse(agent).expect("a name");
        assert_eq!(before_gates(&trajectory).objects_to(&Label::ruled(found)), expected, "{agent}");
    }
}

#[test]
fn each_gate_has_a_name_a_rule_and_a_reason_of_its_own() {
    let names: BTreeSet<_> = GATES.iter().map(|gate| gate.name).collect();
    let reasons: BTreeSet<_> = GATES.iter().map(|gate| gate.refusal.to_string()).collect();
    assert_eq!((names.len(), reasons.len()), (GATES.len(), GATES.len()));
    assert!(GATES.iter().all(|gate| gate.rule.ends_with('.')));
    let page = include_str!("../../../../docs/explain/label.md");
    for gate in GATES {
        assert!(page.contains(&format!("| {} | {} |", gate.name, gate.rule)), "docs/explain/label.md: {}", gate.name);
    }
}
