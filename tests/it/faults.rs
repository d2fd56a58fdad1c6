//! Faults as a client's socket sees them, with their attempts.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use aegis::{
    ruling::{NoLabel, Ruling},
    trajectory::CloseCause,
};

use crate::{
    lab::{Lab, Reply, Setup, chat, request},
    scripted::{Act, Scripted, chat_reply, chat_stream, delta, http},
};

fn plan(fault: &str) -> String {
    format!("format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.{fault}\n")
}

const REPLY: &str = "It is 12.";

fn forms() -> [(bool, Vec<Act>); 2] {
    [(false, vec![http("200 OK", "application/json", &chat_reply(REPLY))]), (true, chat_stream(&["It ", "is ", "12."]))]
}

/// What a client sees of one call: the reply, how its connection ended, how long it took.
async fn seen(lab: &Lab, agent: &str, text: &str) -> (Reply, Option<ErrorKind>, Duration) {
    let start = Instant::now();
    let mut client = lab.client().await;
    let path = format!("/a/{agent}/v1/chat/completions");
    client.send(&request("POST", &path, &chat(text), "Connection: close\r\n")).await;
    let end = client.rest().await;
    (Reply::parse(&client.seen), end, start.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_meets_the_attempts_that_it_names() {
    for (attempts, met) in [
        ("", [true, true, true]),
        (", attempts = \"all\"", [true; 3]),
        (", attempts = \"first\"", [true, false, false]),
        (", attempts = 2", [true, true, false]),
    ] {
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply(REPLY))]).await;
        let fault = format!("status = {{ code = 429, retry_after_s = 1, sdk_retry = \"suppress\"{attempts} }}");
        let mut lab = Lab::before(upstream.address, Setup::planned(&plan(&fault))).await;
        for (attempt, met) in met.into_iter().enumerate() {
            let (reply, _, _) = seen(&lab, "solver", "the same words").await;
            assert_eq!(reply.status, if met { 429 } else { 200 }, "{attempts} {attempt}");
            if met {
                assert_eq!(reply.header("retry-after").as_deref(), Some("1"));
                assert_eq!(reply.header("x-should-retry").as_deref(), Some("false"));
                // Nothing tells it from the provider's own.
                assert!(!reply.head.to_lowercase().contains("aegis") && !reply.text().to_lowercase().contains("aegis"));
                assert!(reply.json()["error"]["type"].is_string(), "{}", reply.text());
            }
        }
        assert_eq!(upstream.count(), met.iter().filter(|met| !**met).count(), "{attempts}");
        let recording = lab.sealed("r0").await;
        let steps = &recording.trajectory.steps;
        let expected = if attempts.contains("first") { 2 } else { 1 };
        assert_eq!(
            (steps.len(), recording.label.is_some()),
            (expected, false),
            "{attempts}: a fault alone is no label"
        );
        assert_eq!(steps[0].attempts[0].status, Some(429), "{attempts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn latency_delays_and_changes_nothing() {
    for (_, acts) in forms() {
        let upstream = Scripted::always(acts).await;
        let lab = Lab::before(upstream.address, Setup::planned(&plan("latency = { ms = 300 }"))).await;
        let (slow, _, took) = seen(&lab, "solver", "x").await;
        let (quick, _, _) = seen(&lab, "critic", "x").await;
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert_eq!((slow.text(), slow.head), (quick.text(), quick.head));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_comes_where_the_plan_wants_it() {
    for (streamed, acts) in forms() {
        let upstream = Scripted::always(acts).await;
        let whole = match &upstream {
            _ if streamed => format!("{}{}{}", delta("It "), delta("is "), delta("12.")),
            _ => chat_reply(REPLY),
        };
        for (at, expected) in [
            ("\"before_request\"", None),
            ("\"before_body\"", Some(String::new())),
            ("{ after_bytes = 20 }", Some(whole[..20].to_owned())),
            ("{ after_frames = 2 }", streamed.then(|| format!("{}{}", delta("It "), delta("is ")))),
        ] {
            if expected.is_none() && !streamed && at.contains("frames") {
                continue;
            }
            let before = upstream.count();
            let lab = Lab::before(upstream.address, Setup::planned(&plan(&format!("reset = {{ at = {at} }}")))).await;
            let (reply, end, _) = seen(&lab, "solver", "x").await;
            assert_eq!(end, Some(ErrorKind::ConnectionReset), "{at} {streamed}: {}", reply.text());
            match expected {
                None => assert_eq!((reply.status, upstream.count()), (0, before), "{at}: nobody is asked"),
                Some(text) => assert_eq!((reply.text(), reply.whole), (text, false), "{at} {streamed}"),
            }
            assert_eq!(lab.causes("r0"), [Some(CloseCause::Injected)], "{at} {streamed}");
            assert_eq!(seen(&lab, "critic", "x").await.0.status, 200, "others are served");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_is_clean_only_where_the_plan_says_so() {
    for (streamed, acts) in forms() {
        let upstream = Scripted::always(acts).await;
        for (fault, clean, done) in [
            ("{ at = { after_bytes = 30 } }", false, false),
            ("{ at = { after_bytes = 30 }, clean = true }", true, false),
            ("{ at = { after_bytes = 30 }, clean = true, done = true }", true, true),
            ("{ at = \"before_end\", clean = true }", true, false),
            ("{ at = \"before_end\" }", false, false),
        ] {
            let lab = Lab::before(upstream.address, Setup::planned(&plan(&format!("cut = {fault}")))).await;
            let (reply, end, _) = seen(&lab, "solver", "x").await;
            let (clean_reply, _, _) = seen(&lab, "critic", "x").await;
            let full = clean_reply.text();
            assert_eq!(end, None, "{fault} {streamed}: no reset");
            assert_eq!(reply.status, 200, "{fault} {streamed}");
            assert_eq!(reply.whole, clean, "{fault} {streamed}: {} {}", reply.head, reply.text());
            let text = reply.text();
            assert_eq!(text.ends_with("data: [DONE]\n\n"), streamed && done, "{fault} {streamed}: {text}");
            let text = text.strip_suffix("data: [DONE]\n\n").unwrap_or(&text);
            let rest = text.trim_end_matches('\n');
            assert!(full.starts_with(rest) && rest.len() < full.trim_end().len(), "{fault} {streamed}: {text}");
            if fault.contains("after_bytes") {
                assert_eq!(text.len().min(30), 30, "{fault} {streamed}: {text}");
            }
            assert_eq!(lab.causes("r0")[0], Some(CloseCause::Injected), "{fault} {streamed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_says_nothing_for_its_time_and_then_resets() {
    for (streamed, acts) in forms() {
        let upstream = Scripted::always(acts).await;
        for at in ["\"before_request\"", "\"before_body\"", "{ after_bytes = 20 }"] {
            let fault = format!("hang = {{ at = {at}, at_most_s = 0.3 }}");
            let lab = Lab::before(upstream.address, Setup::planned(&plan(&fault))).await;
            let (reply, end, took) = seen(&lab, "solver", "x").await;
            assert!(took >= Duration::from_millis(300), "{at} {streamed}: {took:?}");
            assert_eq!(
                (end, reply.whole && reply.status == 200),
                (Some(ErrorKind::ConnectionReset), false),
                "{at} {streamed}"
            );
            let length = if at.contains("20") { 20 } else { 0 };
            assert_eq!(reply.body.len(), length, "{at} {streamed}");
            assert_eq!(lab.causes("r0"), [Some(CloseCause::Injected)], "{at} {streamed}");
        }
        // A client that gives up in the meantime has left by itself.
        let lab = Lab::before(upstream.address, Setup::planned(&plan("hang = { at = \"before_body\" }"))).await;
        let mut client = lab.client().await;
        client.post("/a/solver/v1/chat/completions", &chat("x")).await;
        assert!(client.read_until(b"\r\n\r\n").await, "the head comes");
        drop(client);
        crate::lab::until("the exchange ends", || lab.causes("r0").iter().all(Option::is_some)).await;
    }
}

/// Who ended a step decides why there is no label: the plan's own fault is not the upstream's failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_a_fault_ended_is_not_put_down_to_the_upstream() {
    let edit = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\" }\n";
    let fault = |fault: &str| format!("{edit}[[injection]]\nagent = \"critic\"\nwhen.call = 0\nfault.{fault}\n");
    let fine = vec![http("200 OK", "application/json", &chat_reply(REPLY))];
    let broken = vec![http("503 Service Unavailable", "application/json", "{}")];
    for (plan, second, reason) in [
        (fault("status = { code = 503 }"), &fine, Some(NoLabel::FaultEnded)),
        (fault("status = { code = 429 }"), &fine, Some(NoLabel::FaultEnded)),
        (fault("status = { code = 400 }"), &fine, Some(NoLabel::FaultEnded)),
        (fault("reset = { at = \"before_body\" }"), &fine, Some(NoLabel::FaultEnded)),
        (fault("spoil_answer = { how = \"empty\" }"), &fine, Some(NoLabel::FaultEnded)),
        (fault("latency = { ms = 1 }"), &fine, None),
        (edit.to_owned(), &broken, Some(NoLabel::InfraError)),
    ] {
        let upstream = Scripted::start(vec![fine.clone(), second.clone()]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
        assert_ne!(seen(&lab, "solver", "x").await.0.text(), chat_reply(REPLY), "the edit is delivered");
        seen(&lab, "critic", "y").await;
        let recording = lab.sealed("r0").await;
        let derived = Ruling::new(&recording).label();
        assert_eq!((derived.err(), recording.label.is_none()), (reason, reason.is_some()), "{plan}");
    }
    // Healed by a retry, it has ended nothing.
    let upstream = Scripted::always(fine).await;
    let plan = fault("status = { code = 503, attempts = \"first\" }");
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
    for agent in ["solver", "critic", "critic"] {
        seen(&lab, agent, "x").await;
    }
    assert!(lab.sealed("r0").await.label.is_some());
}

/// An agent whose edited request the upstream refuses has said nothing that could be its error.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_refused_as_edited_makes_no_label() {
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nmanipulator.append_instruction = { text = \"Add one to each number.\" }\n";
    let refused = http("400 Bad Request", "application/json", r#"{"error":{"message":"no such field"}}"#);
    let fine = http("200 OK", "application/json", &chat_reply(REPLY));
    for (answer, reason) in [(refused, Some(NoLabel::EditRefused)), (fine, None)] {
        let upstream = Scripted::always(vec![answer]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(plan)).await;
        seen(&lab, "solver", "x").await;
        let recording = lab.sealed("r0").await;
        let derived = Ruling::new(&recording).label();
        assert_eq!((derived.err(), recording.label.is_none()), (reason, reason.is_some()));
    }
}

/// An injection that finds nothing to edit at its step leaves the label to what was delivered; alone it makes none.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_with_nothing_to_edit_leaves_the_label_to_the_others() {
    let edit = |agent: &str, find: &str| {
        format!(
            "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"response\"\nmanipulator.replace_text = {{ find = \"{find}\", with = \"7\" }}\n"
        )
    };
    let there = edit("solver", "12");
    for (plan, named) in [
        (format!("{there}{}", edit("critic", "13")), Some(vec!["solver"])),
        (format!("{there}{}", edit("critic", "12")), Some(vec!["solver", "critic"])),
        (edit("critic", "13"), None),
    ] {
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply(REPLY))]).await;
        let plan = format!("format = 1\nseed = 7\n{plan}");
        let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
        for agent in ["solver", "critic"] {
            seen(&lab, agent, "x").await;
        }
        let recording = lab.sealed("r0").await;
        let label = Ruling::new(&recording).label();
        let seen =
            label.map(|label| label.errors.iter().map(|entry| entry.error.agent.to_string()).collect::<Vec<_>>());
        match named {
            Some(named) => assert_eq!(seen, Ok(named.into_iter().map(str::to_owned).collect()), "{plan}"),
            None => assert_eq!(seen, Err(NoLabel::ManipulatorFailed), "{plan}"),
        }
    }
}
