//! Users who do not trust each other: each has runs of its own, and nothing of anybody else's is seen, touched or gone on with.

use std::{fs, path::Path};

use aegis::recording;
use serde_json::{Value, json};

use crate::{
    lab::{Client, chat, request},
    program::{Served, verb},
    restarts::open_recording,
    run_ends,
    tokens::{ask, send, serve, token},
};

/// Asks the control listener with somebody's token.
async fn control(served: &Served, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut client = Client::connect(served.control.expect("a control listener")).await;
    let headers = format!("authorization: Bearer {token}\r\nconnection: close\r\n");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(&request(method, path, body.as_bytes(), &headers)).await;
    let reply = client.reply().await;
    crate::contract::check_answer(method, path, reply.status, &reply.json());
    (reply.status, reply.json())
}

/// The names of the directories below a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// How many steps the runs of a user have, by name.
fn steps(dir: &Path, user: &str) -> Vec<usize> {
    let below = dir.join("logs").join(user);
    names(&below).iter().map(|run| recording::read(&below.join(run)).expect("read").trajectory.steps.len()).collect()
}

const SIMULATOR: [&str; 4] = ["--upstream", "simulator", "--control", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread")]
async fn two_users_have_runs_of_one_name_and_see_only_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &SIMULATOR).await;
    for (token, run, text) in
        [(&alice, "first", "Alice's question?"), (&bob, "first", "Bob's question?"), (&alice, "own", "Alice's other?")]
    {
        assert_eq!(ask(&served, token, &format!("/r/{run}/a/solver"), text).await.status, 200);
    }
    let listed = async |token: &str| {
        let (status, list) = control(&served, token, "GET", "/aegis/v1/runs", &Value::Null).await;
        assert_eq!(status, 200, "{list}");
        let mut runs: Vec<String> =
            list["runs"].as_array().expect("runs").iter().map(|row| row["run"].to_string()).collect();
        runs.sort();
        runs
    };
    assert_eq!(listed(&alice).await, ["\"first\"", "\"own\""]);
    assert_eq!(listed(&bob).await, ["\"first\""]);
    // Another's run is what no run is.
    for (method, below, body) in [
        ("GET", "", Value::Null),
        ("POST", "/end", Value::Null),
        ("POST", "/outcome", json!({"verdict": "failure"})),
        ("POST", "/task", json!({"task": "x"})),
        ("POST", "/roster", json!({"agent": [{"name": "a", "system_contains": "b"}]})),
    ] {
        let answer = async |run: &str| {
            let (status, told) = control(&served, &bob, method, &format!("/aegis/v1/runs/{run}{below}"), &body).await;
            (status, told.to_string().replace(run, "RUN"))
        };
        let (other, none) = (answer("own").await, answer("none").await);
        assert_eq!(other, none, "{method} {below}");
        assert_eq!(other.0, 404, "{method} {below}");
    }
    let (status, told) = control(&served, &bob, "POST", "/outcome", &json!({"run": "own", "verdict": "failure"})).await;
    assert_eq!((status, told["error"]["code"].as_str()), (404, Some("no_such_run")));
    // What is done to one's own is done to nobody else's of that name.
    let outcome = json!({"verdict": "failure", "evidence": "Bob says so"});
    assert_eq!(control(&served, &bob, "POST", "/aegis/v1/runs/first/outcome", &outcome).await.0, 200);
    assert_eq!(control(&served, &bob, "POST", "/aegis/v1/runs/first/end", &Value::Null).await.0, 200);
    let (_, told) = control(&served, &alice, "GET", "/aegis/v1/runs/first", &Value::Null).await;
    assert_eq!((&told["state"], &told["outcome"]["verdict"]), (&json!("open"), &json!("unknown")), "{told}");
    ask(&served, &bob, "/r/first/a/solver", "More?").await.assert_own_error(409, "run_sealed");
    assert_eq!(ask(&served, &alice, "/r/first/a/solver", "More?").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    assert_eq!((steps(dir.path(), "@alice"), steps(dir.path(), "@bob")), (vec![2, 1], vec![1]));
    let (_, out, _) = verb(dir.path(), &["runs", "logs", "--format", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["runs"].as_array().map(Vec::len), Some(3), "{out}");
    let (_, out, _) = verb(dir.path(), &["runs", "logs/@bob", "--format", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["runs"].as_array().map(Vec::len), Some(1), "{out}");
    let (code, out, _) = verb(dir.path(), &["show", "logs/@bob/first", "--step", "0"]).await;
    assert!(code == Some(0) && out.contains("Bob's question?") && !out.contains("Alice"), "{out}");
}

/// The conversation that a second request goes on with.
fn goes_on(first: &str, answer: &str) -> Vec<u8> {
    json!({"model": "m", "messages": [{"role": "user", "content": first}, {"role": "assistant", "content": answer},
        {"role": "user", "content": "And then?"}]})
    .to_string()
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_no_run_never_lands_in_anothers() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let first = ask(&served, &alice, "", "What is 6 times 7?").await;
    let answer = first.json()["choices"][0]["message"]["content"].as_str().expect("a text").to_owned();
    let more = goes_on("What is 6 times 7?", &answer);
    let on = async |served: &Served, token: &str| {
        send(served, "POST", "/v1/chat/completions", &format!("x-aegis-token: {token}\r\n"), &more).await.status
    };
    // What goes on from somebody else's conversation, to the letter; what asks the same; what no surface reads.
    assert_eq!(on(&served, &bob).await, 200);
    assert_eq!(ask(&served, &bob, "", "What is 6 times 7?").await.status, 200);
    let path = format!("/t/{bob}/v1/moderations");
    send(&served, "POST", &path, "", br#"{"input": "x"}"#).await;
    let alices = dir.path().join("logs/@alice");
    let alice_run = names(&alices);
    assert_eq!((alice_run.len(), steps(dir.path(), "@alice")), (1, vec![1]));
    assert!(steps(dir.path(), "@bob").iter().sum::<usize>() >= 2, "{:?}", names(&dir.path().join("logs/@bob")));
    assert_eq!(on(&served, &alice).await, 200);
    assert_eq!(steps(dir.path(), "@alice"), [2], "the own one goes on");
    assert_eq!(served.stop().await, Some(0));

    // Nor after a restart, by whom it was left.
    let arguments = ["--log-dir", "logs", "--tokens", "tokens.toml", "--upstream", "simulator"];
    let served = Served::start(dir.path(), &arguments).await;
    let bobs = steps(dir.path(), "@bob").iter().sum::<usize>();
    let last = json!({"model": "m", "messages": [{"role": "user", "content": "What is 6 times 7?"},
        {"role": "assistant", "content": answer}, {"role": "user", "content": "And then?"},
        {"role": "assistant", "content": "Nothing."}, {"role": "user", "content": "Really?"}]});
    let headers = format!("x-aegis-token: {bob}\r\n");
    let body = last.to_string();
    assert_eq!(send(&served, "POST", "/v1/chat/completions", &headers, body.as_bytes()).await.status, 200);
    assert_eq!((steps(dir.path(), "@alice"), steps(dir.path(), "@bob").iter().sum::<usize>()), (vec![2], bobs + 1));
    assert_eq!(on(&served, &alice).await, 200);
    assert_eq!((names(&alices), steps(dir.path(), "@alice")), (alice_run, vec![3]), "the own one goes on");
    assert_eq!(served.stop().await, Some(0));
    assert_eq!(names(&dir.path().join("logs")), ["@alice", "@bob"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_a_run_is_outlives_the_server_and_the_token() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    assert_eq!(ask(&served, &alice, "/r/mine/a/solver", "One.").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    let file = dir.path().join("tokens.toml");
    let entries = fs::read_to_string(&file).expect("a file");
    let bobs = entries.split("\n\n").nth(1).expect("an entry").to_owned();
    fs::write(&file, bobs).expect("written");
    let renewed = token(dir.path(), "alice").await;
    let arguments = [&["--log-dir", "logs", "--tokens", "tokens.toml"], &SIMULATOR[..]].concat();
    let served = Served::start(dir.path(), &arguments).await;
    ask(&served, &alice, "/r/mine/a/solver", "Two.").await.assert_own_error(401, "no_token");
    assert_eq!(ask(&served, &bob, "/r/mine/a/solver", "Two.").await.status, 200);
    assert_eq!(ask(&served, &renewed, "/r/mine/a/solver", "Two.").await.status, 200);
    assert_eq!((steps(dir.path(), "@alice"), steps(dir.path(), "@bob")), (vec![2], vec![1]));
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_every_user_and_the_counts() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = [token(dir.path(), "alice").await, token(dir.path(), "bob").await];
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    for token in &tokens {
        assert_eq!(ask(&served, token, "/r/mine/a/solver", "One.").await.status, 200);
    }
    let metrics = run_ends::metrics(&served).await;
    assert!(metrics.lines().any(|line| line.starts_with("aegis_runs_open") && line.ends_with(" 2")), "{metrics}");
    let (status, listed) = run_ends::control(&served, "GET", "/aegis/v1/runs", &Value::Null).await;
    assert_eq!((status, &listed["runs"]), (200, &json!([])), "those that are no user's");
    for user in ["alice", "bob"] {
        let path = format!("/aegis/v1/users/{user}/runs");
        let (status, listed) = run_ends::control(&served, "GET", &path, &Value::Null).await;
        assert_eq!((status, &listed["runs"][0]["run"]), (200, &json!("mine")), "{listed}");
        let (status, told) = control(&served, &tokens[0], "GET", &path, &Value::Null).await;
        assert_eq!((status, told["error"]["code"].as_str()), (404, Some("no_such_path")), "only the operator");
    }
    let none = run_ends::control(&served, "GET", "/aegis/v1/users/carol/runs", &Value::Null).await;
    assert_eq!((none.0, none.1["error"]["code"].as_str()), (404, Some("no_such_user")));
    let end = run_ends::control(&served, "POST", "/aegis/v1/users/bob/runs/mine/end", &Value::Null).await;
    assert_eq!((end.0, &end.1["state"]), (200, &json!("ended")), "{}", end.1);
    assert_eq!(ask(&served, &tokens[0], "/r/mine/a/solver", "Two.").await.status, 200);
    let (status, told) = control(&served, &tokens[0], "GET", "/metrics", &Value::Null).await;
    assert_eq!((status, told["error"]["code"].as_str()), (403, Some("operator_only")));
    assert_eq!(served.stop().await, Some(0));
}

/// Without a tokens file nothing is of a user, and runs lie where they always did.
#[tokio::test(flavor = "multi_thread")]
async fn without_users_runs_lie_in_the_log_directory_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start(dir.path(), &["--upstream", "simulator", "--log-dir", "logs"]).await;
    let reply = send(&served, "POST", "/r/mine/v1/chat/completions", "x-aegis-token: any\r\n", &chat("One.")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(served.stop().await, Some(0));
    assert_eq!(names(&dir.path().join("logs")), ["mine"]);
    open_recording(dir.path(), "mine");
}
