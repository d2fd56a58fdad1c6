//! Replies that are made in the background: no plan edits them, and the record holds what was fetched of them.

use std::time::Duration;

use aegis::{
    proxy::RunSetup,
    recording::Recording,
    ruling::Ruling,
    surface::{OpenaiResponses, Surface},
    trajectory::{CloseCause, RunId},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Reply, Setup, request},
    scripted::{Act, Scripted, http, http_with},
    stored_state::{get, notes, respond, simulated},
};

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const SPOILT: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.spoil_answer = { how = \"truncated\" }\n";
/// What is said of each edit that is due to such a reply.
const REFUSED: &str = "the reply is made in the background, and such replies are not edited";

fn question() -> Value {
    json!({"model": "m", "input": "What is 12 + 30?", "background": true})
}

fn path_of(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().expect("an id"))
}

fn status(response: &Value) -> &str {
    response["status"].as_str().expect("a status")
}

/// Looks until the reply is made; says what it was on the way.
async fn polled(lab: &Lab, prefix: &str, mut seen: Value) -> (Vec<String>, Value) {
    let (path, mut statuses) = (path_of(&seen), Vec::new());
    while matches!(status(&seen), "queued" | "in_progress") {
        statuses.push(status(&seen).to_owned());
        assert_eq!(seen["output"], json!([]), "nothing is said yet");
        seen = get(lab, &format!("{prefix}{path}")).await.json();
    }
    (statuses, seen)
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().expect("a text")
}

fn reply_of(recording: &Recording, step: usize) -> (Value, Option<CloseCause>) {
    let attempt = recording.trajectory.steps[step].last_attempt().expect("an attempt");
    (serde_json::from_slice(attempt.delivered()).expect("JSON"), attempt.cause)
}

/// A response as an upstream keeps it.
fn stored_reply(status: &str) -> String {
    let said = json!([{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "It is 42.", "annotations": []}]}]);
    let output = if status == "completed" { said } else { json!([]) };
    json!({"id": "resp_1", "object": "response", "status": status, "model": "m", "output": output}).to_string()
}

fn answer(status: &str) -> Vec<Act> {
    vec![http("200 OK", "application/json", &stored_reply(status))]
}

/// What comes of a stream from an event on.
fn streamed(from: usize, to: usize) -> (Vec<Act>, String) {
    let reply = OpenaiResponses.read_reply(stored_reply("completed").as_bytes()).expect("a reply");
    let frames = OpenaiResponses.compose_stream(&reply, 1, true);
    let events: Vec<u8> = frames[from..to.min(frames.len())].concat();
    let said = String::from_utf8(events.clone()).expect("UTF-8");
    (vec![http_with("200 OK", "content-type: text/event-stream\r\n", &events)], said)
}

/// How a program meets a reply that is made in the background: what it asks for after the first call, what the upstream
/// answers, and what the step's record holds in the end.
struct Case {
    name: &'static str,
    asks: Vec<(&'static str, &'static str, Vec<Act>)>,
    recorded: String,
}

fn cases() -> Vec<Case> {
    let path = "/v1/responses/resp_1";
    let case = |name, asks: &[(&'static str, &'static str, Vec<Act>)], recorded: String| Case {
        name,
        asks: asks.to_vec(),
        recorded,
    };
    let (all, whole) = streamed(0, 99);
    vec![
        case("never fetched", &[], stored_reply("queued")),
        case("never made", &[("GET", path, answer("in_progress"))], stored_reply("queued")),
        case(
            "fetched",
            &[("GET", path, answer("in_progress")), ("GET", path, answer("completed"))],
            stored_reply("completed"),
        ),
        case(
            "fetched twice",
            &[("GET", path, answer("completed")), ("GET", path, answer("completed"))],
            stored_reply("completed"),
        ),
        case("streamed", &[("GET", "/v1/responses/resp_1?stream=true", all.clone())], whole.clone()),
        case(
            "streamed in pieces",
            &[
                ("GET", "/v1/responses/resp_1?stream=true", streamed(0, 3).0),
                ("GET", "/v1/responses/resp_1?stream=true&starting_after=2", streamed(3, 99).0),
                ("GET", "/v1/responses/resp_1?stream=true", all),
            ],
            whole,
        ),
        case("failed", &[("GET", path, answer("failed"))], stored_reply("failed")),
        case("cancelled", &[("POST", "/v1/responses/resp_1/cancel", answer("cancelled"))], stored_reply("cancelled")),
        case(
            "deleted",
            &[("DELETE", path, vec![http("200 OK", "application/json", "{\"deleted\":true}")])],
            stored_reply("queued"),
        ),
    ]
}

/// Whatever is asked, the program sees what the upstream keeps, the record holds it, each edit is refused with a word, and
/// there is no label.
#[tokio::test(flavor = "multi_thread")]
async fn edits_of_replies_in_the_background_are_refused() {
    for (plan, as_note) in [(PLAN, false), (SPOILT, true)] {
        for Case { name, asks, recorded } in cases() {
            let answers = asks.iter().map(|(.., acts)| acts.clone());
            let script = [answer("queued")].into_iter().chain(answers).chain([answer("completed")]).collect();
            let upstream = Scripted::start(script).await;
            let mut lab = Lab::before(upstream.address, Setup::planned(plan)).await;
            assert_eq!(status(&respond(&lab, "solver", question(), false).await), "queued", "{name}");
            for (method, path, acts) in &asks {
                let reply = Reply::parse(&lab.raw(&request(method, path, b"", "Connection: close\r\n")).await);
                let Act::Say(said) = &acts[0] else { panic!("{name}") };
                assert_eq!(reply.status, 200, "{name}");
                assert!(said.ends_with(&reply.body) && !reply.body.is_empty(), "{name}: {}", reply.text());
            }
            let is_over = !name.starts_with("never");
            respond(&lab, "solver", json!({"model": "m", "input": "What is 1 + 1?"}), false).await;
            let recording = lab.sealed("r0").await;
            let steps = &recording.trajectory.steps;
            assert_eq!((steps.len(), steps[1].overlapping), (2, !is_over), "{name}: a fetch is no call");
            let attempt = steps[0].last_attempt().expect("an attempt");
            assert_eq!(String::from_utf8_lossy(attempt.delivered()), recorded, "{name}");
            assert_eq!((attempt.cause, &attempt.reply_delivered), (Some(CloseCause::Complete), &None), "{name}");
            let failed = recording.manipulator_failures.iter().filter(|failed| failed.why == REFUSED).count();
            assert_eq!((failed, notes(&recording, REFUSED).len()), if as_note { (0, 1) } else { (1, 0) }, "{name}");
            assert!(steps[0].injected.iter().all(|error| !error.delivered), "{name}");
            assert!(Ruling::new(&recording).label().is_err(), "{name}");
        }
    }
}

/// A fault of the connection meets the reply to the request itself; the edit of the same reply is refused all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_connection_acts_at_once() {
    let plan = format!(
        "{PLAN}[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.wrong_content_type = {{ content_type = \"text/plain\" }}\n"
    );
    let mut lab = simulated(&plan).await;
    let reply = lab.post("/a/solver/v1/responses", question().to_string().as_bytes()).await;
    assert_ne!(reply.header("content-type").as_deref(), Some("application/json"));
    let recording = lab.sealed("r0").await;
    assert_eq!(status(&reply_of(&recording, 0).0), "queued");
    assert_eq!(recording.manipulator_failures.iter().filter(|failed| failed.why == REFUSED).count(), 1);
    assert!(Ruling::new(&recording).label().is_err());
}

/// The simulator gives equal questions equal ids.
#[tokio::test(flavor = "multi_thread")]
async fn runs_with_equal_ids_do_not_see_each_other() {
    let mut lab = simulated(PLAN).await;
    let other = RunId::parse("other").expect("an id");
    lab.proxy.runs.open(&other, RunSetup::default()).await.expect("opens");
    let asked = respond(&lab, "solver", question(), false).await;
    let again = lab.post("/r/other/a/solver/v1/responses", question().to_string().as_bytes()).await.json();
    assert_eq!(path_of(&again), path_of(&asked));
    let mut seen = Vec::new();
    for (run, asked) in [("r0", asked), ("other", again)] {
        let (_, made) = polled(&lab, &format!("/r/{run}"), asked).await;
        assert!(text(&made).contains("42"), "{made}");
        seen.push((run, made));
    }
    for (run, made) in seen {
        assert_eq!(reply_of(&lab.sealed(run).await, 0), (made, Some(CloseCause::Complete)), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_questions_of_one_run_are_two_steps() {
    let mut lab = simulated(PLAN).await;
    let first = respond(&lab, "critic", question(), false).await;
    assert_eq!(path_of(&respond(&lab, "writer", question(), false).await), path_of(&first));
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen = [seen, polled(&lab, "", first.clone()).await.0].concat();
    }
    assert!(seen.contains(&"in_progress".to_owned()), "{seen:?}");
    let recording = lab.sealed("r0").await;
    for step in 0..2 {
        assert_eq!(status(&reply_of(&recording, step).0), "completed", "{step}");
    }
}

/// The run of requests that name none is never given up, however long its reply takes.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_run_gives_up_what_it_awaits_unless_it_is_kept() {
    for kept in [true, false] {
        let lab = simulated(PLAN).await;
        let asked = respond(&lab, "solver", question(), false).await;
        let r0 = RunId::parse("r0").expect("an id");
        let kept_run = Some(&r0).filter(|_| kept);
        assert!(lab.proxy.runs.retire_idle(Duration::ZERO, kept_run).is_empty(), "a named run does not end so");
        assert_eq!(lab.proxy.runs.close_idle(Duration::ZERO, kept_run).is_empty(), kept);
        if kept {
            assert!(text(&polled(&lab, "", asked).await.1).contains("42"));
        }
    }
}
