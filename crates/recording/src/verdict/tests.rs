//! The rules, over calls as they may be recorded.

use std::time::Duration;

use super::{ClientVerdict, Judgement, Met, RULES, TroubledCall, Try, Weight, junit, report};
use crate::trajectory::{AgentName, Outcome, ProgramEnd, Verdict};

const fn refusal(status: u16, wait_ms: Option<u64>) -> Met {
    Met::Refusal { status, wait_ms, retryable: matches!(status, 408 | 409 | 429 | 500..) }
}

const LIMITED: Met = refusal(429, None);
const BROKEN: Met = refusal(500, None);
const TOLD: Met = refusal(429, Some(2000));
const DENIED: Met = refusal(401, None);

/// A call: what each try met, after how long a wait in ms, taking 10 ms each.
fn call(tries: &[(u64, Met)]) -> TroubledCall {
    let mut now = 0;
    let tried = |(number, (wait, met)): (usize, &(u64, Met))| {
        let began = now + wait;
        now = began + 10;
        Try {
            step: 3,
            attempt: u32::try_from(number).expect("few"),
            retry: None,
            other_key: false,
            faults: vec![0],
            met: *met,
            began: Duration::from_millis(began),
            ended: Duration::from_millis(now),
        }
    };
    TroubledCall {
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        step: 3,
        call: 1,
        tries: tries.iter().enumerate().map(tried).collect(),
        quoted_at: None,
        asked_on: Some(Duration::from_secs(900)),
        may_go_on_at: None,
        repeated: false,
        program_ended: None,
        program: Some(ProgramEnd::Exited(0)),
        outcome: Outcome::default(),
    }
}

/// The rules that hold.
fn held(call: &TroubledCall) -> Vec<&'static str> {
    RULES.iter().filter(|rule| (rule.judge)(call).is_some()).map(|rule| rule.name).collect()
}

#[test]
fn tries() {
    let many = |count: usize, wait: u64| vec![(wait, LIMITED); count];
    for (what, tries, expected) in [
        ("a retry that heals", vec![(0, LIMITED), (500, Met::Reply)], vec!["healed"]),
        ("as the SDKs retry", vec![(0, BROKEN), (400, BROKEN), (800, BROKEN)], vec!["retried", "gave_up"]),
        ("as it was told", vec![(0, TOLD), (2000, Met::Reply)], vec!["healed"]),
        ("a clock's breadth early", vec![(0, TOLD), (1960, Met::Reply)], vec!["healed"]),
        ("too early", vec![(0, TOLD), (1900, Met::Reply)], vec!["healed", "ignored_retry_after"]),
        ("too early once", vec![(0, TOLD), (2000, TOLD), (500, Met::Reply)], vec!["healed", "ignored_retry_after"]),
        ("what cannot help", vec![(0, DENIED), (900, DENIED)], vec!["retried", "retried_non_retryable", "gave_up"]),
        ("not tried again", vec![(0, DENIED)], vec!["gave_up"]),
        ("at once", vec![(0, LIMITED), (20, Met::Reply)], vec!["healed", "no_backoff"]),
        ("a lost connection once", vec![(0, Met::NoReply), (2, Met::Reply)], vec!["healed"]),
        (
            "a lost connection at once and again",
            vec![(0, Met::NoReply), (2, Met::NoReply), (2, Met::Reply)],
            vec!["healed", "no_backoff"],
        ),
        ("eleven tries", many(11, 500), vec!["retried", "gave_up"]),
        ("a twelfth", many(12, 500), vec!["retried", "retry_storm", "gave_up"]),
        ("six within a second", many(6, 150), vec!["retried", "retry_storm", "gave_up"]),
        ("its own time limit", vec![(0, Met::HungUp), (400, Met::Reply)], vec!["healed", "hung_up"]),
        ("a slow reply", vec![(0, Met::Slow)], vec![]),
        ("another reply", vec![(0, Met::Altered)], vec!["took_altered"]),
        ("an unreadable reply, again", vec![(0, Met::Unreadable), (1, Met::Reply)], vec!["healed"]),
    ] {
        assert_eq!(held(&call(&tries)), expected, "{what}");
    }
    let told_not_to = Met::Refusal { status: 500, wait_ms: None, retryable: false };
    assert_eq!(held(&call(&[(0, told_not_to), (500, Met::Reply)])), ["healed", "retried_non_retryable"]);
}

#[test]
fn stalls_are_endured_from_a_minute_on() {
    for (seconds, expected) in [(59, vec!["gave_up"]), (61, vec!["endured_stall", "gave_up"])] {
        let mut stalled = call(&[(0, Met::BrokenOff)]);
        stalled.tries[0].ended = Duration::from_secs(seconds);
        assert_eq!(held(&stalled), expected, "{seconds} s");
    }
}

#[test]
fn ends() {
    use ProgramEnd::{Exited, Interrupted, Signalled, TimedOut};
    use Verdict::{Failure, Success, Unknown};
    for (met, quoted, asked_on, program, outcome, expected) in [
        // A cut reply: quoted, ended well without a further word, noticed.
        (Met::CutShort, true, true, Exited(0), Unknown, vec!["accepted_truncated"]),
        (Met::CutShort, false, false, Exited(0), Unknown, vec!["accepted_truncated"]),
        (Met::CutShort, false, false, Exited(0), Failure, vec!["gave_up"]),
        (Met::CutShort, false, false, Exited(1), Failure, vec!["crashed"]),
        // A broken connection is an error in every SDK: only a quotation shows that it was taken.
        (Met::BrokenOff, false, true, Exited(0), Unknown, vec!["gave_up"]),
        (Met::BrokenOff, true, true, Exited(0), Unknown, vec!["accepted_truncated"]),
        (Met::Failed, true, true, Exited(0), Unknown, vec!["accepted_truncated"]),
        // The end of the program.
        (BROKEN, false, false, Exited(1), Failure, vec!["crashed"]),
        (BROKEN, false, false, Signalled(9), Failure, vec!["crashed"]),
        (BROKEN, false, true, Exited(1), Failure, vec!["gave_up"]),
        (BROKEN, false, false, Exited(1), Success, vec!["gave_up"]),
        (BROKEN, false, false, Exited(0), Unknown, vec!["gave_up"]),
        (BROKEN, false, false, TimedOut, Failure, vec!["stuck"]),
        (BROKEN, false, true, TimedOut, Failure, vec!["gave_up"]),
        (BROKEN, false, false, Interrupted, Unknown, vec!["gave_up"]),
        (Met::Altered, false, false, Exited(1), Failure, vec!["crashed"]),
        (Met::Slow, false, false, Exited(1), Failure, vec![]),
    ] {
        let mut one = call(&[(0, met)]);
        one.quoted_at = quoted.then_some(4);
        (one.asked_on, one.program) = (asked_on.then_some(Duration::from_secs(900)), Some(program));
        one.outcome.verdict = outcome;
        assert_eq!(held(&one), expected, "{met:?} {quoted} {asked_on} {program:?} {outcome:?}");
        one.program = None;
        assert!(!held(&one).contains(&"crashed"), "unknown ends prove nothing");
    }
}

#[test]
fn a_half_reply_that_may_have_been_used_is_told() {
    const DOUBT: &str = "after the first try; whether what had come of the reply was used is not seen on the wire";
    const PLAIN: &str = "after the first try";
    for (met, quoted, program, outcome, expected) in [
        (Met::BrokenOff, None, ProgramEnd::Exited(0), Verdict::Unknown, Some(DOUBT)),
        (Met::Failed, None, ProgramEnd::Exited(0), Verdict::Success, Some(DOUBT)),
        (Met::BrokenOff, Some(4), ProgramEnd::Exited(0), Verdict::Unknown, None),
        (Met::CutShort, None, ProgramEnd::Exited(0), Verdict::Unknown, None),
        // Nothing had come, or what came of the program was looked at and is wrong.
        (Met::NoReply, None, ProgramEnd::Exited(0), Verdict::Unknown, Some(PLAIN)),
        (BROKEN, None, ProgramEnd::Exited(0), Verdict::Unknown, Some(PLAIN)),
        (Met::BrokenOff, None, ProgramEnd::Exited(0), Verdict::Failure, Some(PLAIN)),
    ] {
        let mut one = call(&[(0, met)]);
        (one.quoted_at, one.program, one.outcome.verdict) = (quoted, Some(program), outcome);
        assert_eq!(super::end::gave_up(&one).as_deref(), expected, "{met:?} {quoted:?} {outcome:?}");
    }
}

fn planned(injection: u32, by_chance: bool) -> report::PlannedFault {
    report::PlannedFault {
        injection,
        operator: "status".to_owned(),
        agents: "solver".to_owned(),
        says: "answers with HTTP 429".to_owned(),
        by_chance,
    }
}

fn judged(faults: &[(u32, bool)], calls: &[TroubledCall]) -> ClientVerdict {
    report::verdict(faults.iter().map(|(index, chance)| planned(*index, *chance)).collect(), calls)
}

#[test]
fn a_fault_that_never_came_is_inconclusive() {
    use Judgement::{Failed, Inconclusive, Passed};
    let well = [call(&[(0, LIMITED), (500, Met::Reply)])];
    let badly = [call(&[(0, TOLD), (500, Met::Reply)])];
    for (faults, calls, expected, junit_shows) in [
        (&[(0, false)][..], &well[..], Passed, "failures=\"0\" errors=\"0\" skipped=\"0\""),
        (&[(0, false)], &badly, Failed, "failures=\"1\" errors=\"0\" skipped=\"0\""),
        (&[(0, false)], &[], Inconclusive, "failures=\"0\" errors=\"1\" skipped=\"0\""),
        (&[(0, false), (1, false)], &well, Inconclusive, "failures=\"0\" errors=\"1\" skipped=\"0\""),
        (&[(0, false), (1, true)], &well, Passed, "failures=\"0\" errors=\"0\" skipped=\"0\""),
        (&[(1, true)], &[], Inconclusive, "failures=\"0\" errors=\"1\" skipped=\"0\""),
        (&[(0, false), (1, false)], &badly, Failed, "failures=\"1\" errors=\"1\" skipped=\"0\""),
        (&[], &[], Passed, "failures=\"0\" errors=\"0\" skipped=\"0\""),
    ] {
        let verdict = judged(faults, calls);
        assert_eq!(verdict.result, expected, "{faults:?}");
        let red = verdict.result != Judgement::Passed;
        let text = junit("r<1>", &verdict, red.then_some("RESULT"));
        assert!(text.contains(junit_shows) && text.contains("<testsuite name=\"r&lt;1&gt;\""), "{text}");
    }
}

#[test]
fn the_report_names_call_agent_and_rule() {
    let verdict = judged(&[(0, false)], &[call(&[(0, TOLD), (500, Met::Reply)])]);
    assert_eq!(verdict.calls[0].way(), "429 (wait 2.0 s) → 500 ms → reply");
    assert_eq!(verdict.agents[0].rules.get("ignored_retry_after"), Some(&1));
    let (tries, delivered) = (verdict.agents[0].tries, verdict.faults[0].delivered);
    assert_eq!((tries, delivered), (2, 2));
    assert!(verdict.summary().starts_with("failed: 1 call met trouble, 1 badly"), "{}", verdict.summary());
    let text = junit("r1", &verdict, Some("RESULT"));
    let case = "classname=\"client\" name=\"ignored_retry_after\"><failure message=\"solver, call 1 (step 3): tried again after \
                500 ms, told to wait 2.0 s\">";
    assert!(text.contains(case), "{text}");
    let data = serde_json::to_value(&verdict).expect("JSON");
    assert_eq!(data["calls"][0]["tries"][0]["met"]["wait_ms"], 2000);
    assert_eq!(data["faults"][0]["operator"], "status");
}

#[test]
fn every_rule_has_a_name_a_source_and_a_case() {
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| !rule.says.is_empty() && !rule.source.is_empty()));
    assert!(RULES.iter().any(|rule| rule.weight == Weight::Trait));
}
