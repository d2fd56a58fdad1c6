//! Who has changed what of a run over HTTP stands in `audit.jsonl`, and what cannot stand there is not done.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::{Served, verb},
    run_ends,
    tokens::{ask, token},
};

pub async fn control(served: &Served, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut client = Client::connect(served.control.expect("a control listener")).await;
    let headers = format!("authorization: Bearer {token}\r\nconnection: close\r\n");
    client.send(&request("POST", path, body.to_string().as_bytes(), &headers)).await;
    let reply = client.reply().await;
    crate::contract::check_answer("POST", path, reply.status, &reply.json());
    (reply.status, reply.json())
}

/// The lines without their times, which are checked to be times in order.
fn lines(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("logs/audit.jsonl")).unwrap_or_default();
    let (mut shown, mut last) = (Vec::new(), String::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let time = line["time"].as_str().expect("a time").to_owned();
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time >= last, "{text}");
        last = time;
        let named =
            ["user", "run", "what", "path", "refused"].map(|name| line[name].as_str().unwrap_or("-").to_owned());
        shown.push(named.join(" "));
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_has_a_line_of_who_has_made_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let [alice, bob] = [token(dir.path(), "alice").await, token(dir.path(), "bob").await];
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    for token in [&alice, &bob] {
        assert_eq!(ask(&served, token, "/r/one/a/solver", "Hi?").await.status, 200);
    }
    let outcome = json!({"verdict": "failure", "evidence": "wrong"});
    let one = |what: &str| format!("/aegis/v1/runs/one/{what}");
    // What changes nothing has no line.
    let refused = control(&served, &alice, &one("task"), &json!({"task": "Count."})).await;
    assert_eq!((refused.0, refused.1["error"]["code"].as_str()), (409, Some("run_open")));
    assert_eq!(control(&served, &bob, "/aegis/v1/runs/none/end", &Value::Null).await.0, 404);
    assert_eq!(control(&served, "wrong", &one("end"), &Value::Null).await.0, 401);
    assert_eq!(control(&served, &alice, &one("outcome"), &json!({"verdict": "perhaps"})).await.0, 400);
    assert!(lines(dir.path()).is_empty());
    assert_eq!(control(&served, &alice, &one("outcome"), &outcome).await.0, 200);
    assert_eq!(control(&served, &alice, &one("keep"), &Value::Null).await.1["kept"], json!(true));
    assert_eq!(control(&served, &alice, &one("release"), &Value::Null).await.1["kept"], json!(false));
    assert_eq!(control(&served, &alice, &one("end"), &Value::Null).await.0, 200);
    assert_eq!(control(&served, &alice, &one("end"), &Value::Null).await.0, 200, "it has ended: nothing is changed");
    assert_eq!(control(&served, &alice, &one("task"), &json!({"task": "Count."})).await.0, 200);
    let roster = json!({"agent": [{"name": "a", "system_contains": "b"}]});
    assert_eq!(control(&served, &alice, &one("roster"), &roster).await.0, 200);
    let body = json!({"run": "one", "verdict": "success"});
    assert_eq!(control(&served, &alice, "/outcome", &body).await.0, 200);
    assert_eq!(control(&served, &bob, "/r/one/outcome", &outcome).await.0, 200);
    let end = run_ends::control(&served, "POST", "/aegis/v1/users/bob/runs/one/end", &Value::Null).await;
    assert_eq!(end.0, 200, "{}", end.1);
    assert_eq!(
        lines(dir.path()),
        [
            "alice one outcome /aegis/v1/runs/one/outcome -",
            "alice one keep /aegis/v1/runs/one/keep -",
            "alice one release /aegis/v1/runs/one/release -",
            "alice one end /aegis/v1/runs/one/end -",
            "alice one task /aegis/v1/runs/one/task -",
            "alice one roster /aegis/v1/runs/one/roster -",
            "alice one outcome /outcome -",
            "bob one outcome /r/one/outcome -",
            "operator one end /aegis/v1/users/bob/runs/one/end -",
        ]
    );
    assert_eq!(served.stop().await, Some(0));
    crate::contract::files_have(dir.path(), &["files/audit", "files/tokens", "files/facts"]);
    let text = fs::read_to_string(dir.path().join("logs/audit.jsonl")).expect("a file");
    assert!(!text.contains(&alice) && !text.contains(&bob));
    // It names runs and keeps none.
    let (code, out, talk) = verb(dir.path(), &["runs", "prune", "logs/@bob", "--keep", "1kB"]).await;
    assert!(code == Some(0) && !out.contains("audit.jsonl") && out.contains("one"), "{out}{talk}");
    let (_, out, _) = verb(dir.path(), &["runs", "logs", "--format", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["runs"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_down_is_not_done() {
    let dir = tempfile::tempdir().expect("a directory");
    let alice = token(dir.path(), "alice").await;
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    assert_eq!(ask(&served, &alice, "/r/one/a/solver", "Hi?").await.status, 200);
    let place = dir.path().join("logs/audit.jsonl");
    fs::create_dir(&place).expect("made");
    let outcome = json!({"verdict": "failure"});
    for (what, body) in [("outcome", &outcome), ("end", &Value::Null)] {
        let (status, told) = control(&served, &alice, &format!("/aegis/v1/runs/one/{what}"), body).await;
        assert_eq!((status, told["error"]["code"].as_str()), (503, Some("audit_failed")), "{told}");
        assert!(told["error"]["message"].as_str().is_some_and(|text| text.contains("audit.jsonl")), "{told}");
    }
    assert_eq!(ask(&served, &alice, "/r/one/a/solver", "More?").await.status, 200, "it goes on");
    fs::remove_dir(&place).expect("removed");
    let (status, told) = control(&served, &alice, "/aegis/v1/runs/one/end", &Value::Null).await;
    assert_eq!((status, &told["outcome"]["verdict"]), (200, &json!("unknown")), "{told}");
    assert_eq!(lines(dir.path()), ["alice one end /aegis/v1/runs/one/end -"]);
    assert_eq!(served.stop().await, Some(0));
}
