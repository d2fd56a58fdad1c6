//! The ledger over requests as they may arrive.

use super::*;
use crate::surface::OpenaiChat;

/// One call a letter of the answer: `?x` asks `x` without a count, `0x`, `1x`, … with one; `!n` fails the call with number `n`,
/// `.n` answers it, `_n` answers it with nothing; `+n` lets `n` times 50 ms pass. → each asking as its call and attempt, `f`irst,
/// `a`gain, `c`ounted, by `r`eference, by `e`qual words, or `?` where it cannot be told.
fn ledger(events: &str, reference: Option<&str>) -> String {
    let body = |name: u8| -> Bytes {
        let text = match name {
            // Only a clock apart.
            b'0'..=b'9' => format!("What is it now? It is 10:00:0{}.", char::from(name)),
            name => format!("Question {}", char::from(name)),
        };
        serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]})
            .to_string()
            .into_bytes()
            .into()
    };
    let mut ledger = CallLedger::default();
    if let Some(reference) = reference {
        let bodies: Vec<Bytes> = reference.bytes().map(body).collect();
        let mut calls = ReferenceCalls::default();
        for bytes in &bodies {
            let body = twox_hash::XxHash3_128::oneshot(bytes);
            calls.count(&LedgerRequest {
                bytes: Some(bytes),
                surface: Some(&OpenaiChat),
                ..LedgerRequest::from_hash(body)
            });
        }
        ledger.count_by(Rules::default(), Some(Arc::new(calls)));
    }
    let (mut now, mut told, mut asked) = (0, Vec::new(), Vec::new());
    for event in events.split(' ') {
        now += 10;
        let (kind, name) = (event.as_bytes()[0], event.as_bytes()[1]);
        let number = || usize::from(name - b'0');
        let end = match kind {
            b'+' => {
                now += 50_000 * u64::from(name - b'0');
                continue;
            }
            b'!' => AttemptEnd::Failed,
            b'_' => AttemptEnd::Empty,
            b'.' => AttemptEnd::Answered,
            count => {
                let bytes = body(name);
                let request = LedgerRequest {
                    bytes: Some(&bytes),
                    surface: Some(&OpenaiChat),
                    count: char::from(count).to_digit(10),
                    at_us: now,
                    ..LedgerRequest::from_hash(twox_hash::XxHash3_128::oneshot(&bytes))
                };
                let LedgerPlace { number, relation, .. } = ledger.ask(0, &request, None);
                if usize::try_from(number).expect("few") == asked.len() {
                    asked.push(request.body);
                }
                told.push(match relation {
                    CallRelation::First => format!("{number}f"),
                    CallRelation::Again => format!("{number}a"),
                    CallRelation::Undecided { of } => format!("{number}?{of}"),
                    CallRelation::Retry { of, attempt, evidence } => {
                        let why = match evidence {
                            RetryEvidence::Counted => 'c',
                            RetryEvidence::Reference => 'r',
                            RetryEvidence::Equal => 'e',
                        };
                        format!("{of}{why}{attempt}")
                    }
                });
                continue;
            }
        };
        ledger.end(0, asked[number()], LedgerNumber::from(name - b'0'), end, now);
    }
    told.join(" ")
}

#[test]
fn a_retry_is_bound_to_what_failed() {
    for (events, expected) in [
        // One after the other: the second is a call of its own, unless the first failed.
        ("?x .0 ?x", "0f 1a"),
        ("?x !0 ?x", "0f 0e1"),
        ("?x !0 ?x !0 ?x .0 ?x", "0f 0e1 0e2 1a"),
        // An overlap is never a retry of what it overlaps.
        ("?x ?x", "0f 1a"),
        ("?x ?x !0 .1 +2 ?x", "0f 1a 0e1"),
        ("?x ?x !1 .0 +2 ?x", "0f 1a 1e1"),
        // Who asks the same twice may do so a third time, unless somebody waited.
        ("?x ?x !0 .1 ?x", "0f 1a 2?0"),
        ("?x .0 ?x !1 ?x", "0f 1a 2?1"),
        ("?x .0 ?x !1 +2 ?x", "0f 1a 1e1"),
        // A client that counts is believed.
        ("0x !0 1x !0 2x .0 0x", "0f 0c1 0c2 1a"),
        ("0x 0x !0 1x .1", "0f 1a 0c1"),
        ("0x 0x !0 !1 1x 1x", "0f 1a 0c1 1c1"),
        ("0x 0x !0 1x !0 !1 1x 2x", "0f 1a 0c1 1c1 0c2"),
        // Its first try is no retry; whether the program tries by itself, once its client has given up, cannot be told.
        ("0x !0 0x", "0f 1?0"),
        ("0x !0 1x .0 0x !1 0x", "0f 0c1 1a 2a"),
        ("0x !0 1x !0 0x", "0f 0c1 1?0"),
        // It gave up before its connection was seen to end; a first try that never arrived.
        ("0x 1x !0 !0 2x", "0f 0c1 0c2"),
        ("1x", "0f"),
        // It tries again what was answered: nothing else can be meant.
        ("0x .0 1x", "0f 0c1"),
        // Another clock: a candidate, and no more, unless the client counts.
        ("?1 !0 ?2", "0f 1?0"),
        ("?1 .0 ?2", "0f 1f"),
        ("0x !0 0y", "0f 1f"),
        ("01 !0 12", "0f 0c1"),
    ] {
        assert_eq!(ledger(events, None), expected, "{events}");
    }
}

#[test]
fn a_run_without_faults_tells_how_often_a_program_asks() {
    for (reference, events, expected) in [
        // It asks once: what is equal and follows a failure tries again, however soon, whatever the client counts.
        ("x", "?x !0 ?x !0 ?x", "0f 0r1 0r2"),
        ("x", "0x !0 0x", "0f 0r1"),
        ("x", "0x !0 1x .0", "0f 0c1"),
        // It asks twice.
        ("xx", "?x !0 ?x .1", "0f 1a"),
        ("xx", "?x !0 ?x !1 ?x ?x", "0f 1a 0r1 1r1"),
        ("xx", "?x .0 ?x", "0f 1a"),
        // More than ever without a failure: another way, and no retry.
        ("x", "?x .0 ?x", "0f 1a"),
        // With another clock each time.
        ("1", "?2 !0 ?3 !0 ?4", "0f 0r1 0r2"),
        ("12", "?3 !0 ?4", "0f 1f"),
        // What it never asked is told as without it.
        ("y", "?x !0 ?x", "0f 0e1"),
    ] {
        assert_eq!(ledger(events, Some(reference)), expected, "{reference}: {events}");
    }
}

#[test]
fn who_gets_nothing_and_asks_again_is_who_asked() {
    let mut ledger = CallLedger::default();
    let request = LedgerRequest::from_hash(7);
    let first = ledger.ask(0, &request, None);
    ledger.made_by(0, 7, first.number, 3);
    ledger.end(0, 7, first.number, AttemptEnd::Empty, 0);
    let second = ledger.ask(0, &request, None);
    assert_eq!((second.relation, second.instance), (CallRelation::Again, Some(3)));
}

#[test]
fn what_was_answered_is_not_kept() {
    let mut ledger = CallLedger::default();
    for _ in 0..1000 {
        let place = ledger.ask(0, &LedgerRequest::from_hash(1), None);
        ledger.end(0, 1, place.number, AttemptEnd::Answered, 0);
    }
    assert!(ledger.calls.get(&(0, 1)).is_some_and(|equal| equal.calls.len() <= 2));
}

#[test]
fn bodies_of_failed_calls_are_bounded() {
    let mut ledger = CallLedger::default();
    for number in 0..1000_u32 {
        let bytes = Bytes::from(format!("{number}"));
        let request = LedgerRequest {
            bytes: Some(&bytes),
            surface: Some(&OpenaiChat),
            ..LedgerRequest::from_hash(u128::from(number))
        };
        let place = ledger.ask(number % 100, &request, None);
        ledger.end(number % 100, u128::from(number), place.number, AttemptEnd::Failed, 0);
    }
    let bodies = (0..1000_u32).filter_map(|number| ledger.calls.get(&(number % 100, u128::from(number))));
    assert!(bodies.flat_map(|equal| &equal.calls).all(|call| call.bytes.is_none()));
    assert!(ledger.failed.len() <= FAILED_MAX);
}
