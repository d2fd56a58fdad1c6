//! How much of a step was read is one account, in the same words wherever it is stated. Recordings and captures are read whole, but
//! for what a list explains.

mod captured;
mod imported;

use std::path::Path;

use aegis::{dataset::Sample, recording, surface::account};
use serde_json::{Value, json};

use crate::{
    lab::{Client, chat, request},
    program::{Served, verb},
    scripted::{Scripted, chat_reply, http},
    viewer::{View, json_of},
};

/// A reply with a text in a member that no reader knows.
fn aside() -> String {
    json!({"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "It is 42.", "aside": "Or it is 43."}}]})
    .to_string()
}

/// What every place is to say of the piece.
const PLACE: &str = "choices[0].message.aside";
const PIECE: &str = "`choices[0].message.aside` is an unknown member: Or it is 43.";

/// An upstream that answers three calls: one reply is read, one partly read, and the third call is one that no surface reads.
async fn upstream() -> (Scripted, String) {
    let say = |body: &str| vec![http("200 OK", "application/json", body)];
    let upstream = Scripted::start(vec![say(&chat_reply("Hello.")), say(&aside()), say("{\"candidates\":[]}")]).await;
    let url = format!("http://{}", upstream.address);
    (upstream, url)
}

/// A run of three steps: one is read, one partly read, one unread. Gives what `aegis run` said.
async fn recorded(dir: &Path) -> String {
    let (_upstream, url) = upstream().await;
    let calls = "import os, urllib.request as u\n\
        v = os.environ['OPENAI_BASE_URL']\n\
        chat = b'{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"How many?\"}]}'\n\
        u.urlopen(u.Request(v + '/chat/completions', chat)).read()\n\
        u.urlopen(u.Request(v + '/chat/completions', chat.replace(b'many', b'much'))).read()\n\
        u.urlopen(u.Request(v.removesuffix('/v1') + '/v1beta/models/g:embedContent', b'{}')).read()";
    let options = ["run", "--upstream", &url, "--run", "r", "--", "python3", "-c", calls];
    let (code, out, said) = verb(dir, &options).await;
    assert_eq!(code, Some(0), "{out}{said}");
    out + &said
}

#[tokio::test(flavor = "multi_thread")]
async fn every_place_states_the_account_of_a_step_in_the_same_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = recorded(dir.path()).await;
    let recording = recording::read(&dir.path().join("logs/r")).expect("a recording");
    let accounts: Vec<_> = recording.trajectory.steps.iter().map(account::of_step).collect();
    let words: Vec<_> = accounts.iter().map(account::StepAccount::words).collect();
    assert_eq!(words, ["read", "partly read", "unread"]);
    assert_eq!(accounts[1].lines(), [format!("reply partly read: {PIECE}")]);
    let counts = json!({"read": 1, "partly_read": 1, "unread": 1});

    // `run` and its RESULT.
    assert!(said.contains("3 steps  1 partly read  1 unread  "), "{said}");
    assert!(said.contains(&format!("warning: step 1: reply partly read: {PIECE}")), "{said}");

    // `show`.
    let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(shown.contains("account  of 3 steps 1 partly read, 1 unread"), "{shown}");
    let rows: Vec<&str> = shown.lines().filter(|line| line.trim_end().ends_with("read")).collect();
    assert!(rows.len() == 2 && rows[0].ends_with("  partly read") && rows[1].ends_with("  unread"), "{shown}");
    let (_, step, _) = verb(dir.path(), &["show", "logs/r", "--step", "1"]).await;
    assert!(step.contains(&format!("reply partly read: {PIECE}")), "{step}");
    let (_, step, _) = verb(dir.path(), &["show", "logs/r", "--step", "2"]).await;
    assert!(step.contains("step unread: no surface reads this call"), "{step}");
    let data = json_of(dir.path(), &["show", "logs/r"]).await;
    assert_eq!(data["account"], counts);
    let piece = json!({"place": PLACE, "what": "an unknown member", "quote": "Or it is 43."});
    let stated = json!({"request": {"state": "read"}, "reply": {"state": "partly read", "unplaced": [piece]}});
    assert_eq!(data["steps"][1]["account"], stated);

    // `runs`.
    let (_, runs, _) = verb(dir.path(), &["runs"]).await;
    assert!(runs.contains("1 partly read, 1 unread"), "{runs}");
    assert_eq!(json_of(dir.path(), &["runs"]).await["runs"][0]["account"], counts);

    // The page: the list, the run, the step.
    let view = View::of(dir.path(), &["logs"]).await;
    assert_eq!(view.get("/api/tree").await["runs"][0]["account"], counts);
    let page = view.get("/api/run/r").await;
    assert_eq!(page["head"]["account"], counts);
    let marks = page["columns"].as_array().and_then(|names| names.iter().position(|name| name == "marks"));
    let of_row = |row: usize| page["rows"][row][marks.expect("marks")].clone();
    assert_eq!([of_row(0), of_row(1), of_row(2)], [json!([]), json!(["partly read"]), json!(["unread"])]);
    assert_eq!(view.get("/api/run/r/step/1").await["account"], stated);

    // Rows and manifests.
    let sample = Sample::alone(&recording).expect("a sample");
    let rows: Vec<_> = sample.steps.iter().map(|step| step.account.as_deref()).collect();
    assert_eq!(rows, [None, Some("partly read"), Some("unread")]);
    let (code, _, said) = verb(dir.path(), &["export", "logs/r", "--to", "atif", "--out", "r.json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let manifest = std::fs::read(dir.path().join("r.json.manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["account"], counts);
}

#[tokio::test]
async fn the_counts_of_a_server_state_the_account_of_its_calls() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_upstream, url) = upstream().await;
    let environment = [("AEGIS_CONTROL_TOKEN", "open-sesame".to_owned())];
    let served = Served::start_with(dir.path(), &["--upstream", &url, "--control", "127.0.0.1:0"], &environment).await;
    for path in ["/r/one/v1/chat/completions", "/r/one/v1/chat/completions", "/r/one/v1/moderations"] {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, &chat("How many?"), "Connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 200, "{path}");
    }
    // Asked twice, each call counts once.
    for _ in 0..2 {
        let mut scraper = Client::connect(served.control.expect("a control listener")).await;
        let headers = "Authorization: Bearer open-sesame\r\nConnection: close\r\n";
        scraper.send(&request("GET", "/metrics", b"", headers)).await;
        let told = scraper.reply().await;
        for account in ["read", "partly read", "unread"] {
            let line = format!("aegis_calls_by_account_total{{account=\"{account}\"}} 1\n");
            assert!(told.text().contains(&line), "{line}{}", told.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_places_are_silent_where_all_was_read() {
    let dir = tempfile::tempdir().expect("a directory");
    crate::viewer::recorded(dir.path()).await;
    let (_, shown, _) = verb(dir.path(), &["show", "logs/first"]).await;
    assert!(!shown.contains("account") && !shown.contains("unread"), "{shown}");
    let data = json_of(dir.path(), &["show", "logs/first"]).await;
    let all = data["steps"].as_array().map(Vec::len);
    assert_eq!(data["account"], json!({"read": all, "partly_read": 0, "unread": 0}));
    let whole = |step: &Value| step["account"] == json!({"request": {"state": "read"}, "reply": {"state": "read"}});
    assert!(data["steps"].as_array().is_some_and(|steps| steps.iter().all(whole)), "{data}");
}
