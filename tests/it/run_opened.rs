//! A run is opened over the control listener before its first call, and annotated there.

use serde_json::{Value, json};

use crate::{
    program::verb,
    restarts::call,
    run_ends::{control, serve},
    tokens::{ask, token},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_opened_with_its_task_and_annotated() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let served = serve(dir, &["--upstream", "simulator", "--idle", "1"]).await;
    let open = async |body: Value| control(&served, "POST", "/aegis/v1/runs", &body).await;
    let (status, opened) = open(json!({"run": "one", "task": "Count the apples."})).await;
    assert_eq!((status, &opened["state"], &opened["steps"]), (200, &json!("open"), &json!(0)), "{opened}");
    assert_eq!((&opened["task"], &opened["base_path"]), (&json!("Count the apples."), &json!("/r/one")));
    for (body, status, code) in [
        (json!({"run": "one"}), 409, "run_exists"),
        (json!({"run": "a/b"}), 400, "invalid_body"),
        (json!({"name": "b"}), 400, "invalid_body"),
        (json!({"run": format!("sk-proj-{}", "Ab1".repeat(12))}), 400, "invalid_id"),
    ] {
        let refused = open(body).await;
        assert_eq!((refused.0, refused.1["error"]["code"].as_str()), (status, Some(code)), "{}", refused.1);
    }
    // A run without a name gets one, and idleness ends neither.
    let (_, made) = open(json!({})).await;
    let made = made["base_path"].as_str().expect("a path").to_owned();
    assert!(made.starts_with("/r/run-"), "{made}");
    let note = |run: &str| format!("/aegis/v1/runs/{run}");
    let idle = async {
        while control(&served, "GET", &note("one"), &Value::Null).await.1["state"] != "idle" {
            tokio::task::yield_now().await;
        }
    };
    crate::lab::within(idle).await;
    for path in ["/r/one", &made] {
        assert_eq!(call(&served, &format!("{path}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }

    let say = async |run: &str, body: Value| control(&served, "POST", &(note(run) + "/annotations"), &body).await;
    let (status, said) = say("one", json!({"step": 0, "why": "it is wrong", "sure": false})).await;
    assert_eq!((status, &said["annotator"], &said["sure"]), (200, &json!("operator"), &json!(false)), "{said}");
    assert!(said["error"]["agent"].is_string(), "{said}");
    assert_eq!(say("one", json!({"by": "ada"})).await.1["error"], Value::Null);
    for (run, body, status) in [
        ("one", json!({"step": 7, "why": "it is wrong"}), 400),
        ("one", json!({"step": 0}), 400),
        ("one", json!({"by": "../ada"}), 400),
        ("none", json!({}), 404),
    ] {
        assert_eq!(say(run, body.clone()).await.0, status, "{body}");
    }
    assert_eq!(control(&served, "POST", &(note("one") + "/end"), &Value::Null).await.0, 200);
    assert_eq!(served.stop().await, Some(0));
    let (_, listed, _) = verb(dir, &["annotations", "--format", "json"]).await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["runs"][0]["said"].as_array().map(Vec::len), Some(2), "{listed}");
    let (_, shown, _) = verb(dir, &["show", "logs/one"]).await;
    assert!(shown.contains("Count the apples."), "{shown}");
    crate::contract::check_files(dir);
}

/// What a user opens and says is of that user's runs, and in nobody else's files.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_opens_and_annotates_runs_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let [alice, bob] = [token(dir, "alice").await, token(dir, "bob").await];
    let served = serve(dir, &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    let post = async |token: &str, path: &str, body: Value| crate::audit::control(&served, token, path, &body).await;
    for token in [&alice, &bob] {
        assert_eq!(post(token, "/aegis/v1/runs", json!({"run": "one"})).await.0, 200, "names of users do not meet");
        assert_eq!(ask(&served, token, "/r/one/a/solver", "Hi?").await.status, 200);
    }
    assert_eq!(post(&alice, "/aegis/v1/runs", json!({"run": "two"})).await.0, 200);
    assert_eq!(post(&bob, "/aegis/v1/runs/two/annotations", json!({})).await.0, 404);
    assert_eq!(post(&bob, "/aegis/v1/runs/two/keep", Value::Null).await.0, 404);
    let said = post(&alice, "/aegis/v1/runs/one/annotations", json!({"step": 0, "why": "no"})).await.1;
    assert_eq!((&said["annotator"], &said["error"]["agent"]), (&json!("alice"), &json!("solver")), "{said}");
    let audit = std::fs::read_to_string(dir.join("logs/audit.jsonl")).expect("a file");
    assert!(audit.contains("\"what\":\"open\"") && audit.contains("\"what\":\"annotate\""), "{audit}");
    assert_eq!(served.stop().await, Some(0));
    assert!(dir.join("logs/@alice/annotations/alice.jsonl").is_file() && !dir.join("logs/annotations").exists());
}
