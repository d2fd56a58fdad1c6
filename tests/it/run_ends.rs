//! The end of a run is said: over the control listener while it is served, by `aegis runs end` otherwise.

use std::path::Path;

use aegis::{recording, trajectory::Verdict};
use serde_json::{Value, json};

use crate::{
    lab::{Client, chat, request, until},
    program::{Served, verb},
    restarts::{call, holds_file},
    scripted::{Act, Scripted, chat_reply, chunk, delta, finish, http, last_chunk, stream_head},
};

const TOKEN: &str = "control-token-of-a-test";

/// Asks the control listener.
pub async fn control(served: &Served, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut client = Client::connect(served.control.expect("a control listener")).await;
    let headers = format!("authorization: Bearer {TOKEN}\r\nconnection: close\r\n");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(&request(method, path, body.as_bytes(), &headers)).await;
    let reply = client.reply().await;
    crate::contract::check_answer(method, path, reply.status, &reply.json());
    (reply.status, reply.json())
}

/// What it counts.
pub async fn metrics(served: &Served) -> String {
    let mut client = Client::connect(served.control.expect("a control listener")).await;
    let headers = format!("authorization: Bearer {TOKEN}\r\nconnection: close\r\n");
    client.send(&request("GET", "/metrics", b"", &headers)).await;
    client.reply().await.text()
}

pub async fn serve(dir: &Path, arguments: &[&str]) -> Served {
    let environment = [("AEGIS_CONTROL_TOKEN", TOKEN.to_owned())];
    Served::start_with(dir, &[arguments, &["--log-dir", "logs", "--control", "127.0.0.1:0"]].concat(), &environment)
        .await
}

fn assert_refused(answer: &(u16, Value), status: u16, code: &str) {
    let error = &answer.1["error"];
    assert_eq!((answer.0, error["code"].as_str()), (status, Some(code)), "{error}");
    assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
}

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
    side = \"response\"\nmanipulator.replace_text = { find = \"Five\", with = \"Six\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_listed_read_ended_and_judged_afterwards() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Five."))]).await;
    let url = format!("http://{}", upstream.address);
    let served = serve(dir.path(), &["--upstream", &url, "--plan", "plan.toml"]).await;
    for run in ["one", "two"] {
        assert_eq!(call(&served, &format!("/r/{run}/a/solver/v1/chat/completions"), "How many?").await.status, 200);
    }
    let (status, listed) = control(&served, "GET", "/aegis/v1/runs", &Value::Null).await;
    assert_eq!((status, listed["runs"].as_array().map(Vec::len), &listed["left_out"]), (200, Some(2), &json!(0)));
    let (status, told) = control(&served, "GET", "/aegis/v1/runs/one", &Value::Null).await;
    assert_eq!((status, &told["state"], &told["steps"]), (200, &json!("open"), &json!(1)), "{told}");

    let body = json!({"verdict": "failure", "evidence": "Six"});
    assert_eq!(control(&served, "POST", "/aegis/v1/runs/one/outcome", &body).await.0, 200);
    for _ in 0..2 {
        let (status, ended) = control(&served, "POST", "/aegis/v1/runs/one/end", &Value::Null).await;
        assert_eq!((status, &ended["state"], &ended["steps"]), (200, &json!("ended"), &json!(1)), "{ended}");
        assert_eq!(ended["label"]["status"], "delivered", "{ended}");
        assert_eq!(ended["outcome"]["verdict"], "failure", "{ended}");
    }
    call(&served, "/r/one/a/solver/v1/chat/completions", "More?").await.assert_own_error(409, "run_sealed");
    assert_eq!(call(&served, "/r/two/a/solver/v1/chat/completions", "More?").await.status, 200, "the other goes on");

    // What becomes known after the end is a fact beside the recording.
    let seal = std::fs::read(dir.path().join("logs/one/seal.json")).expect("a seal");
    for (path, body) in [
        ("/r/one/outcome", json!({"verdict": "success", "by": "ada"})),
        ("/aegis/v1/runs/one/task", json!({"task": "Count."})),
    ] {
        let answer = control(&served, "POST", path, &body).await;
        assert_eq!(answer.0, 200, "{path}: {}", answer.1);
    }
    let recording = recording::read(&dir.path().join("logs/one")).expect("a recording");
    assert!(recording.sealed && recording.facts.len() == 2);
    assert_eq!(recording.trajectory.outcome.verdict, Verdict::Success);
    assert_eq!(std::fs::read(dir.path().join("logs/one/seal.json")).expect("a seal"), seal);

    let nothing = Value::Null;
    assert_refused(&control(&served, "POST", "/aegis/v1/runs/three/end", &nothing).await, 404, "no_such_run");
    assert_refused(&control(&served, "GET", "/aegis/v1/runs/three", &nothing).await, 404, "no_such_run");
    assert_refused(&control(&served, "GET", "/aegis/v1/runs/..", &nothing).await, 400, "invalid_id");
    assert_refused(&control(&served, "POST", "/aegis/v1/runs/two/begin", &nothing).await, 404, "no_such_path");
    assert_refused(&control(&served, "POST", "/aegis/v1/runs/two/outcome", &json!({})).await, 400, "invalid_body");
    let task = json!({"task": "Count."});
    assert_refused(&control(&served, "POST", "/aegis/v1/runs/two/task", &task).await, 409, "run_open");
    assert!(!dir.path().join("logs/three").exists(), "asking makes no run");
    assert_eq!(served.stop().await, Some(0));
}

/// A run with a call under way is not ended under it; one that is idle, or was left by an earlier server, is.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_when_its_calls_are_over_and_whether_or_not_it_is_open() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut script = vec![stream_head(), chunk(delta("first")), Act::Gate];
    script.extend([chunk(finish("stop")), chunk("data: [DONE]\n\n"), last_chunk()]);
    let upstream = Scripted::always(script).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--idle", "0"];
    let served = serve(dir.path(), &arguments).await;
    let mut client = Client::connect(served.address).await;
    client.post("/r/long/v1/chat/completions", &chat("Go on.")).await;
    assert!(client.read_until(b"first").await);
    let nothing = Value::Null;
    assert_refused(&control(&served, "POST", "/aegis/v1/runs/long/end", &nothing).await, 409, "run_busy");
    upstream.open_gate();
    assert!(client.read_until(b"data: [DONE]\n\n").await);
    until("the run is idle", || !holds_file(&served, "logs/long/log.jsonl")).await;
    assert_eq!(control(&served, "GET", "/aegis/v1/runs/long", &nothing).await.1["state"], "idle");
    // An outcome of an idle run is no fact of the past: a later one takes its place.
    for verdict in ["failure", "success"] {
        let body = json!({"verdict": verdict});
        assert_eq!(control(&served, "POST", "/aegis/v1/runs/long/outcome", &body).await.0, 200);
    }
    assert_eq!(control(&served, "POST", "/aegis/v1/runs/long/end", &nothing).await.1["state"], "ended");
    assert!(call(&served, "/r/left/v1/chat/completions", "And?").await.text().contains("[DONE]"));
    assert_eq!(served.stop().await, Some(0));
    let long = recording::read(&dir.path().join("logs/long")).expect("a recording");
    assert!(long.sealed && long.facts.is_empty() && long.trajectory.outcome.verdict == Verdict::Success);

    let served = serve(dir.path(), &arguments).await;
    let (status, ended) = control(&served, "POST", "/aegis/v1/runs/left/end", &nothing).await;
    assert_eq!((status, &ended["state"], &ended["steps"]), (200, &json!("ended"), &json!(1)), "{ended}");
    assert_eq!(call(&served, "/r/held/v1/chat/completions", "And?").await.status, 200);
    // The verb leaves a run to whoever serves it.
    let held = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--run", "third"]).await;
    let (code, _, talk) = verb(dir.path(), &["runs", "end", "logs/third"]).await;
    assert!(code == Some(2) && talk.contains("POST /aegis/v1/runs/third/end"), "{talk}");
    let (code, _, talk) = verb(dir.path(), &["runs", "end", "logs/nothing"]).await;
    assert!(code == Some(2) && talk.contains("not a recorded run"), "{talk}");
    assert_eq!((held.stop().await, served.stop().await), (Some(0), Some(0)));
}
