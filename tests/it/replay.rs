//! A recording as the upstream: strict replay, and recorded prefixes with a live rest.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use aegis::{
    plan,
    proxy::{
        RunSetup,
        upstream::{BackendAnswering, SentBody, Upstream, UpstreamError},
    },
    recording::Recording,
    replay::{AtFork, Cassette, Fit, ForkPoint, Prefixed, Replayed, Rules, Timing, ToolResults},
    simulator::Simulator,
    trajectory::RunId,
};
use hyper::Request;
use serde_json::json;

use crate::{
    echo::Echo,
    lab::{Lab, Reply, Setup, chat, request},
    scripted::{Act, Scripted, chat_reply, http, http_with},
};

const PATH: &str = "/a/solver/v1/chat/completions";

/// An upstream that must never be asked.
#[derive(Debug, Default)]
pub struct Tripwire(pub AtomicUsize);

impl Upstream for Tripwire {
    fn name(&self) -> &'static str {
        "tripwire"
    }

    fn send(&self, _: Request<SentBody>) -> BackendAnswering<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(UpstreamError::NotRecorded("the tripwire was touched".to_owned())) })
    }
}

/// A recorded run, and where it lies.
struct Taped {
    _dir: tempfile::TempDir,
    run: PathBuf,
    recording: Recording,
}

impl Taped {
    async fn of(mut lab: Lab) -> Self {
        let recording = lab.sealed("r0").await;
        let run = lab.logs.join("r0");
        Self { run, recording, _dir: lab.dir }
    }

    fn cassette(&self) -> Arc<Cassette> {
        Arc::new(Cassette::open(&self.run).expect("a cassette"))
    }
}

/// A lab whose run `r0` has an upstream of its own, before a tripwire.
async fn playing(upstream: Arc<dyn Upstream>, setup: Setup) -> (Lab, Arc<Tripwire>) {
    let wire = Arc::new(Tripwire::default());
    let plan = setup.plan.clone();
    let lab = Lab::over(Arc::clone(&wire) as Arc<dyn Upstream>, setup).await;
    let id = RunId::parse("r0").expect("an id");
    lab.proxy.runs.open(&id, RunSetup { plan, upstream: Some(upstream), ..RunSetup::default() }).await.expect("opens");
    (lab, wire)
}

async fn strict(run: &Path) -> (Lab, Arc<Replayed>, Arc<Tripwire>) {
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(run).expect("a cassette"))));
    let (lab, wire) = playing(Arc::clone(&replayed) as Arc<dyn Upstream>, Setup::default()).await;
    (lab, replayed, wire)
}

fn said(reply: &Reply) -> String {
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Invariant 9.
#[tokio::test(flavor = "multi_thread")]
async fn strict_replay_owns_no_upstream_socket() {
    let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    let first = lab.post(PATH, &chat("one")).await;
    let again = lab.post(PATH, &chat("one")).await;
    let taped = Taped::of(lab).await;

    let (lab, replayed, wire) = strict(&taped.run).await;
    // Order of keys and blanks are not the request's meaning.
    let reordered = br#"{ "messages": [ {"content": "one", "role": "user"} ], "model": "m" }"#;
    assert_eq!(lab.post(PATH, &chat("one")).await.body, first.body);
    assert_eq!(lab.post(PATH, reordered).await.body, again.body);
    // Used up, never asked, and not a model call: nothing of it reaches the wire.
    let spent = lab.post(PATH, &chat("one")).await;
    spent.assert_own_error(409, "not_recorded");
    assert!(spent.text().contains("the same request is there 2 time(s), and each was used"), "{}", spent.text());
    assert_eq!(spent.header("x-should-retry").as_deref(), Some("false"));
    let other = lab.post("/a/solver/v1/chat/completions", &chat("two")).await;
    other.assert_own_error(409, "not_recorded");
    assert!(other.text().contains("`messages[0].content` was \\\"one\\\", now \\\"two\\\""), "{}", other.text());
    let named = lab.post("/a/critic/v1/chat/completions", &chat("one")).await;
    named.assert_own_error(409, "not_recorded");
    assert_eq!(wire.0.load(Ordering::SeqCst), 0);

    let report = replayed.report();
    let fits: Vec<_> = report.served.iter().map(|served| (served.recorded, served.fit)).collect();
    assert_eq!(fits, [(0, Fit::Bytes), (1, Fit::Canonical)]);
    assert_eq!((report.missed.len(), report.unused.len(), report.live.len()), (3, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_date_is_said_to_be_one() {
    let now = jiff::Timestamp::now();
    let on = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    let (day, yesterday, before) = (on(now), on(now - jiff::SignedDuration::from_hours(24)), "2026-02-01");
    for (was, is, other) in [
        (
            format!("days from 2026-01-01 to {before}?"),
            "days from 2026-01-01 to 2026-03-01?".to_owned(),
            Some(("date", false)),
        ),
        (
            "shares of 0123456789abcdef0123456789abcdef".to_owned(),
            "shares of 0123456789abcdef0123456789abcdee".to_owned(),
            Some(("hex", false)),
        ),
        ("look into /tmp/one/x".to_owned(), "look into /tmp/two/x".to_owned(), Some(("path", true))),
        // What read a clock when it was recorded reads it now; what reads another day is another question.
        (format!("Today is {yesterday}. What is 1 + 1?"), format!("Today is {day}. What is 1 + 1?"), None),
        (
            format!("Today is {day}. What is 1 + 1?"),
            "Today is 2031-05-06. What is 1 + 1?".to_owned(),
            Some(("date", false)),
        ),
        (format!("days to {before}?"), format!("days to {before}?"), None),
    ] {
        let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
        lab.post(PATH, &chat(&was)).await;
        let taped = Taped::of(lab).await;
        let (lab, replayed, _) = strict(&taped.run).await;
        assert_eq!(lab.post(PATH, &chat(&is)).await.status, 200, "{is}");
        let report = replayed.report();
        let found = report.other_values.first().map(|other| (other.rule.as_str(), other.made_anew));
        assert_eq!((found, report.missed.len()), (other, 0), "{was} → {is}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_errors_and_retries_come_back_as_they_were() {
    let events: Vec<String> =
        (0..5).map(|n| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{n}\"}}}}]}}\n\n")).collect();
    let stream = events.concat() + "data: [DONE]\n\n";
    let limited = http_with("429 Too Many Requests", "Retry-After: 0\r\n", br#"{"error":{"message":"slow down"}}"#);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let broken = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"half\":";
    let script = vec![
        vec![limited, Act::Close],
        vec![http("200 OK", "application/json", &chat_reply("whole")), Act::Close],
        vec![Act::Say([head.as_bytes(), stream.as_bytes()].concat()), Act::Close],
        vec![Act::Say(broken.to_vec()), Act::Reset],
        vec![Act::Reset],
    ];
    let upstream = Scripted::start(script).await;
    let bodies = [chat("a"), chat("a"), chat("b"), chat("c"), chat("d")];
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut then = Vec::new();
    for body in &bodies {
        then.push(lab.post(PATH, body).await);
    }
    let taped = Taped::of(lab).await;
    drop(upstream);
    assert_eq!(taped.recording.trajectory.steps.len(), 4, "the 429 and what followed are one step");

    let (mut lab, replayed, wire) = strict(&taped.run).await;
    for (body, then) in bodies.iter().zip(&then) {
        let now = lab.post(PATH, body).await;
        assert_eq!((now.status, now.whole), (then.status, then.whole));
        // What the proxy says of an upstream that it never reached is its own, and not in the record.
        assert_eq!(now.header("x-aegis-error"), then.header("x-aegis-error"));
        assert!(now.body == then.body || now.header("x-aegis-error").is_some(), "{}", now.text());
        assert_eq!(now.header("retry-after"), then.header("retry-after"));
    }
    let again = lab.sealed("r0").await;
    for (then, now) in taped.recording.trajectory.steps.iter().zip(&again.trajectory.steps) {
        let attempts = |step: &aegis::trajectory::Step| {
            step.attempts.iter().map(|a| (a.status, a.cause, a.reply.clone())).collect::<Vec<_>>()
        };
        assert_eq!(attempts(then), attempts(now));
    }
    let lengths = |recording: &Recording| {
        recording
            .exchanges
            .iter()
            .map(|e| e.frames.iter().map(|(_, length)| *length).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(&taped.recording), lengths(&again), "frame by frame");
    assert_eq!(replayed.report().unused, Vec::<u32>::new());
    assert_eq!(wire.0.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_identical_parallel_calls_get_the_same_answers() {
    let script = (0..50).map(|n| vec![http("200 OK", "application/json", &chat_reply(&format!("answer {n}")))]);
    let upstream = Scripted::start(script.collect()).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let body = chat("same");
    for _ in 0..50 {
        lab.post(PATH, &body).await;
    }
    let taped = Taped::of(lab).await;
    let (lab, replayed, _) = strict(&taped.run).await;
    let lab = Arc::new(lab);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (lab, body) = (Arc::clone(&lab), body.clone());
        calls.spawn(async move { said(&lab.post(PATH, &body).await) });
    }
    let mut now = calls.join_all().await;
    now.sort_unstable();
    let mut then: Vec<String> = (0..50).map(|n| format!("answer {n}")).collect();
    then.sort_unstable();
    assert_eq!(now, then);
    // Where steps of the run were numbered one after the other, so were the records that they got.
    let mut served = replayed.report().served;
    served.sort_unstable_by_key(|served| served.step);
    assert!(served.iter().all(|served| served.step == served.recorded), "{served:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_timing_keeps_the_pace() {
    let frame = |n: u32| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{n}\"}}}}]}}\n\n").into_bytes();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec();
    let script = vec![
        Act::Say([head, frame(0)].concat()),
        Act::Wait,
        Act::Say(frame(1)),
        Act::Say(b"data: [DONE]\n\n".to_vec()),
        Act::Close,
    ];
    let upstream = Scripted::always(script).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut client = lab.client().await;
    client.send(&request("POST", PATH, &chat("x"), "Connection: close\r\n")).await;
    assert!(client.read_until(&frame(0)[..20]).await);
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    upstream.go.notify_one();
    client.rest().await;
    let taped = Taped::of(lab).await;
    for (timing, slow) in [(Timing::Recorded, true), (Timing::Fast, false)] {
        let replayed = Replayed::new(taped.cassette()).with_timing(timing);
        let (lab, _) = playing(Arc::new(replayed), Setup::default()).await;
        let began = std::time::Instant::now();
        let reply = lab.post(PATH, &chat("x")).await;
        assert_eq!(reply.body, taped.recording.trajectory.steps[0].attempts[0].reply);
        assert_eq!(began.elapsed() >= std::time::Duration::from_millis(150), slow, "{:?}", began.elapsed());
    }
}

/// Three calls, each of which quotes the reply before it.
async fn chain(lab: &Lab) -> Vec<Reply> {
    let mut replies: Vec<Reply> = Vec::new();
    for _ in 0..3 {
        let text = replies.last().map_or_else(|| "start 12".to_owned(), |reply| format!("next {}", said(reply)));
        replies.push(lab.post(PATH, &chat(&text)).await);
        if replies.last().is_some_and(|reply| reply.status != 200) {
            break;
        }
    }
    replies
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_comes_from_the_record_and_the_rest_is_live() {
    let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    chain(&lab).await;
    let taped = Taped::of(lab).await;
    let instead = bytes::Bytes::from(chat_reply("else 99"));
    for (at, live, last) in [
        (AtFork::Recorded, vec![2], "echo: next echo: next echo: start 12"),
        (AtFork::Live, vec![1, 2], "echo: next echo: next echo: start 12"),
        (AtFork::Instead(instead), vec![2], "echo: next else 99"),
    ] {
        let fork = ForkPoint { step: 1, at };
        let prefixed = Arc::new(Prefixed::new(taped.cassette(), fork, Arc::new(Echo)).expect("a fork"));
        let (lab, wire) = playing(Arc::clone(&prefixed) as Arc<dyn Upstream>, Setup::default()).await;
        let replies = chain(&lab).await;
        assert_eq!(said(&replies[2]), last);
        let report = prefixed.report();
        assert_eq!(report.live, live);
        assert!(report.diverged.is_none() && report.unused.is_empty(), "{report:?}");
        assert_eq!(wire.0.load(Ordering::SeqCst), 0);
    }
    let none = Prefixed::new(taped.cassette(), ForkPoint { step: 3, at: AtFork::Live }, Arc::new(Echo));
    assert_eq!(none.expect_err("no step").to_string(), "step 3 is not in the record: expected 0 to 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_diverges_and_is_told_where() {
    let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    chain(&lab).await;
    let taped = Taped::of(lab).await;
    let live = Arc::new(Tripwire::default());
    let fork = ForkPoint { step: 2, at: AtFork::Recorded };
    let prefixed =
        Arc::new(Prefixed::new(taped.cassette(), fork, Arc::clone(&live) as Arc<dyn Upstream>).expect("a fork"));
    let (lab, _) = playing(Arc::clone(&prefixed) as Arc<dyn Upstream>, Setup::default()).await;
    assert_eq!(lab.post(PATH, &chat("start 12")).await.status, 200);
    let other = lab.post(PATH, &chat("next echo: start 13")).await;
    other.assert_own_error(409, "diverged");
    assert!(other.text().contains("nearest is step 1 (call 1 of `solver`)"), "{}", other.text());
    // A run that has left its prefix proves nothing: it ends there.
    lab.post(PATH, &chat("next echo: start 12")).await.assert_own_error(409, "diverged");
    assert_eq!(live.0.load(Ordering::SeqCst), 0);
    let report = prefixed.report();
    assert_eq!(
        report.diverged.expect("diverged").nearest.expect("nearest").difference.expect("differs").place,
        "messages[0].content"
    );
    assert_eq!(report.unused, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_tools_that_differ_are_flagged() {
    let with_result = |result: &str| {
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}});
        let messages = json!([
            {"role": "user", "content": "what time"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ]);
        json!({"model": "m", "messages": messages}).to_string().into_bytes()
    };
    let lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    let then = lab.post(PATH, &with_result("noon")).await;
    let taped = Taped::of(lab).await;
    let (lab, replayed, _) = strict(&taped.run).await;
    lab.post(PATH, &with_result("midnight")).await.assert_own_error(409, "not_recorded");
    assert!(replayed.report().missed[0].tool_results_only);
    let rules = Rules::default().with_tool_results(ToolResults::Any);
    let any = || Arc::new(Cassette::open(&taped.run).expect("opens").with_rules(rules.clone()));
    let replayed = Arc::new(Replayed::new(any()));
    let (lab, _) = playing(Arc::clone(&replayed) as Arc<dyn Upstream>, Setup::default()).await;
    assert_eq!(lab.post(PATH, &with_result("midnight")).await.body, then.body);
    assert_eq!(replayed.report().served[0].fit, Fit::ToolResults);
    // A fork holds it the same way: it stops there and says why, or goes on and lists the step.
    for (allowed, cassette) in [(false, taped.cassette()), (true, any())] {
        let fork = ForkPoint { step: 0, at: AtFork::Delivered };
        let prefixed = Arc::new(Prefixed::new(cassette, fork, Arc::new(Echo)).expect("a fork"));
        let (lab, _) = playing(Arc::clone(&prefixed) as Arc<dyn Upstream>, Setup::default()).await;
        let reply = lab.post(PATH, &with_result("midnight")).await;
        let report = prefixed.report();
        if allowed {
            assert!(reply.body == then.body && report.served[0].fit == Fit::ToolResults, "{report:?}");
        } else {
            reply.assert_own_error(409, "diverged");
            assert!(report.diverged.expect("diverged").tool_results_only);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_names_its_fork_point_and_acts_on_the_record() {
    let lab = Lab::over(Arc::new(Simulator::new(7)), Setup::default()).await;
    chain(&lab).await;
    let taped = Taped::of(lab).await;
    let plan = |side: &str| {
        let text = format!("[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 1\n{side}\n");
        plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"))
    };
    let run = RunId::parse("r0").expect("an id");
    let cassette = taped.cassette();
    let of = |plan: &plan::Plan| ForkPoint::of_plan(&cassette, plan, &run);
    let response = plan("manipulator.end_early = {}");
    assert_eq!(of(&response), Some(ForkPoint { step: 1, at: AtFork::Recorded }));
    let request = plan("manipulator.append_instruction = { text = \"Hurry.\" }");
    assert_eq!(of(&request), Some(ForkPoint { step: 1, at: AtFork::Live }));
    for (plan, live) in [(response, vec![2]), (request, vec![1, 2])] {
        let fork = of(&plan).expect("a fork point");
        let prefixed =
            Arc::new(Prefixed::new(Arc::clone(&cassette), fork, Arc::new(Simulator::new(7))).expect("a fork"));
        let setup = Setup { plan: Some(Arc::new(plan)), ..Setup::default() };
        let (mut lab, _) = playing(Arc::clone(&prefixed) as Arc<dyn Upstream>, setup).await;
        chain(&lab).await;
        let recording = lab.sealed("r0").await;
        let (then, now) = (&taped.recording.trajectory.steps, &recording.trajectory.steps);
        assert_eq!(then[0].attempts[0].reply, now[0].attempts[0].reply, "the prefix is the record's");
        assert!(now[1].injected.iter().any(|error| error.delivered), "{:?}", now[1].injected);
        let report = prefixed.report();
        assert_eq!(report.live, live);
        assert!(report.saved.output > 0, "what the record had paid for is counted");
    }
}
