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
    let (_, blind) = say("one", json!({"by": "ada", "blind": true})).await;
    assert_eq!((&blind["error"], &blind["blind"]), (&Value::Null, &json!(true)));
    let (status, listed) = control(&served, "GET", &(note("one") + "/annotations"), &Value::Null).await;
    let names: Vec<&Value> =
        listed["annotations"].as_array().expect("a list").iter().map(|one| &one["annotator"]).collect();
    assert_eq!((status, names), (200, vec![&json!("ada"), &json!("operator")]), "{listed}");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_opened_with_its_agents() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let served = serve(dir, &["--upstream", "simulator"]).await;
    let open = async |body: Value| control(&served, "POST", "/aegis/v1/runs", &body).await;
    // Whoever opens a run says who its agents are, and of no other run.
    let solver = json!([{"name": "adder", "first_user_contains": "2 + 3"}]);
    assert_eq!(open(json!({"run": "named", "agents": solver})).await.0, 200);
    for (agents, words) in [
        (json!([{"name": "adder"}]), "number 1"),
        (json!([{"name": "a b", "bare": true}]), "number 1"),
        (json!([{"name": "adder", "model": format!("sk-proj-{}", "Ab1".repeat(12))}]), "looks like a key"),
    ] {
        let (status, refused) = open(json!({"run": "wrong", "agents": agents})).await;
        assert_eq!((status, refused["error"]["code"].as_str()), (400, Some("invalid_roster")), "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains(words)), "{refused}");
        assert!(!dir.join("logs/wrong").exists());
    }
    for run in ["named", "other"] {
        assert_eq!(call(&served, &format!("/r/{run}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }
    assert_eq!(served.stop().await, Some(0));
    // The next server knows the names, too.
    let served = serve(dir, &["--upstream", "simulator"]).await;
    assert_eq!(call(&served, "/r/named/v1/chat/completions", "What is 2 + 3?").await.status, 200);
    for (run, agents) in [("named", json!({"adder": 2})), ("other", Value::Null)] {
        let ended = control(&served, "POST", &format!("/aegis/v1/runs/{run}/end"), &Value::Null).await.1;
        assert!(ended["agents"] == agents || (agents.is_null() && ended["agents"].get("adder").is_none()), "{ended}");
    }
    assert_eq!(served.stop().await, Some(0));
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
