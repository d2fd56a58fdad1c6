//! `aegis reward` over the wire, and folders and tables as a user exports them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    contract::check_answer,
    lab::{Client, request},
    program::{Served, aegis},
    score::{failure, write_lines},
};

#[tokio::test]
async fn a_batch_is_rewarded_in_its_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start_verb("reward", dir.path()).await;
    let truth = r#"{"faulty_agents":[{"agent_name":"solver","step":1,"error_type":"FM-2.6"}]}"#;
    let row = |completion: &str, truth: Value| json!({"completion": completion, "ground_truth": truth});
    let whole: Value = serde_json::from_str(truth).expect("JSON");
    let tagged = "because </think><answer>solver|1</answer>";
    let bare = json!({"rows": [row(truth, truth.into()), row("no idea", whole.clone()), row("{\"faulty_agents\":[]}", whole.clone())]});
    let cases = [
        ("/rewards", bare, 200, json!({"rewards": [1.0, -1.0, 0.1 / 1.1]})),
        ("/rewards", json!({"reward": "agentracer", "rows": [row(tagged, whole)]}), 200, json!({"rewards": [1.0]})),
        ("/rewards", json!({"rows": []}), 200, json!({"rewards": []})),
    ];
    for (path, body, status, expected) in cases {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, body.to_string().as_bytes(), "Connection: close\r\n")).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.json()), (status, expected), "{body}");
        check_answer("POST", path, reply.status, &reply.json());
    }
    let unread = "{\"rows\": [{\"completion\": \"\", \"ground_truth\": \"none\"}]}";
    for (path, body, status, code, words) in [
        ("/elsewhere", "{}", 404, "no_such_path", "expected POST /rewards"),
        ("/rewards", unread, 400, "invalid_body", "rows[0].ground_truth is no answer"),
        ("/rewards", "{\"reward\": \"aegiss\", \"rows\": []}", 400, "invalid_body", "unknown variant `aegiss`"),
        ("/rewards", "{", 400, "invalid_body", "EOF"),
    ] {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, body.as_bytes(), "Connection: close\r\n")).await;
        let reply = client.reply().await;
        check_answer("POST", path, reply.status, &reply.json());
        let error = &reply.json()["error"];
        assert_eq!((reply.status, error["code"].as_str()), (status, Some(code)), "{body}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(words)), "{body}: {error}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("POST /rewards")), "{body}: {error}");
    }
}

async fn export(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let allowed = ["unproven", "nothing-changed", "twin-missing", "unknown-mode", "shared-steps", "duplicate-sample"];
    let allowed = allowed.iter().flat_map(|rule| ["--allow", rule]);
    let done = aegis(dir).arg("export").args(arguments).args(allowed).output().await.expect("it ran");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[tokio::test]
async fn a_folder_has_a_card_and_the_formats_that_were_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    write_lines(
        &dir.path().join("own.jsonl"),
        &[failure("r1", "solver", 1, "FM-2.6"), failure("r2", "critic", 2, "FM-3.3")],
    );
    let asked =
        ["own.jsonl", "--to", "huggingface", "--out", "hub", "--config", "sft", "--config", "verl", "--license", "mit"];
    let (code, _, talk) = export(dir.path(), &asked).await;
    assert_eq!(code, Some(0), "{talk}");
    let card = fs::read_to_string(dir.path().join("hub/README.md")).expect("a card");
    for words in
        ["license: \"mit\"", "config_name: sft", "path: data/verl/unsplit-00000-of-00001.parquet", "aegis:canary:"]
    {
        assert!(card.contains(words), "{words}: {card}");
    }
    let manifest = fs::read(dir.path().join("hub.manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let files: Vec<&String> = manifest["files"].as_object().expect("files").keys().collect();
    assert_eq!(
        files,
        ["README.md", "data/sft/unsplit-00000-of-00001.parquet", "data/verl/unsplit-00000-of-00001.parquet"]
    );

    // Again, over it, with lines: the old files are gone.
    let (code, _, talk) = export(dir.path(), &[&asked[..7], &["--lines"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(dir.path().join("hub/data/sft/unsplit-00000-of-00001.jsonl").is_file());
    assert!(!dir.path().join("hub/data/verl").exists() && !dir.path().join(".hub.old").exists());

    let (code, _, talk) =
        export(dir.path(), &["own.jsonl", "--to", "huggingface", "--out", "no", "--config", "har"]).await;
    assert!(code == Some(2) && talk.contains("`har` is no format of rows"), "{talk}");
}

#[tokio::test]
async fn a_row_without_a_column_stops_the_export_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let entry = json!({"content": "go", "role": "user", "name": "A", "step": 0, "mood": "glad"});
    let row = json!({"question_ID": "t", "question": "q", "ground_truth": "g", "mistake_agent": "A", "mistake_step": "0",
        "mistake_reason": "r", "history": [entry]});
    fs::write(dir.path().join("rows.json"), json!([row]).to_string()).expect("written");
    let done = aegis(dir.path()).args(["import", "--from", "agentracer", "rows.json", "--out", "in"]).output().await;
    assert!(done.expect("it ran").status.success());
    let (code, _, talk) = export(dir.path(), &["in", "--to", "agentracer", "--out", "rows.parquet"]).await;
    assert_eq!(code, Some(5), "{talk}");
    assert!(talk.contains("`history[0].mood` is \"glad\"") && talk.contains("JSON lines"), "{talk}");
    assert!(talk.contains("in/dataset.jsonl:1: this sample has no place in a row of `rows.parquet`"), "{talk}");
    assert!(!dir.path().join("rows.parquet").exists() && !dir.path().join(".rows.parquet.tmp").exists());
    let (code, ..) = export(dir.path(), &["in", "--to", "agentracer", "--out", "rows.jsonl"]).await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn agentracers_own_parquet_comes_in() {
    let dir = tempfile::tempdir().expect("a directory");
    write_lines(
        &dir.path().join("own.jsonl"),
        &[failure("r1", "solver", 1, "FM-2.6"), failure("r2", "critic", 2, "FM-3.3")],
    );
    let (code, _, talk) = export(dir.path(), &["own.jsonl", "--to", "agentracer", "--out", "rows.parquet"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let import = ["import", "--from", "agentracer", "rows.parquet", "--out", "in", "--format", "json"];
    let done = aegis(dir.path()).args(import).output().await.expect("it ran");
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(report["samples"], json!(2), "{report}");
    let text = fs::read_to_string(dir.path().join("in/dataset.jsonl")).expect("a dataset");
    let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&first["label"]["errors"][0]["agent"], &first["label"]["errors"][0]["step"]),
        (&json!("solver"), &json!(1))
    );
    assert_eq!(first["steps"][1]["output"]["text"], json!("solver says 1"));
    let cut = fs::read(dir.path().join("rows.parquet")).expect("bytes");
    fs::write(dir.path().join("cut.parquet"), &cut[..cut.len() / 2]).expect("written");
    let done = aegis(dir.path()).args(["import", "--from", "agentracer", "cut.parquet", "--out", "no"]).output().await;
    let done = done.expect("it ran");
    let talk = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && talk.contains("cut.parquet") && talk.contains("not-json"), "{talk}");
}

#[tokio::test]
async fn every_rows_own_answer_is_worth_one_by_the_adapters_as_their_page_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rewards");
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["aegis_reward.py", "trl_reward.py", "verl_reward.py"] {
        fs::copy(folder.join(name), dir.path().join(name)).expect("copied");
    }
    let page = fs::read_to_string(folder.join("README.md")).expect("a page");
    let block = crate::readme::blocks(&page).into_iter().next().expect("a block of commands");
    let binary = Path::new(crate::program::AEGIS).parent().expect("a directory").display().to_string();
    let path = format!("{binary}:{}", std::env::var("PATH").expect("PATH"));
    let mut shell = tokio::process::Command::new("bash");
    let ran = shell.args(["-euc", &block]).current_dir(dir.path()).env("PATH", path).output().await.expect("bash");
    let (out, talk) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{talk}");
    let numbers = |line: &str| -> Vec<f64> {
        line.trim_matches(['[', ']']).split(", ").map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
    };
    let worth: Vec<f64> = out.lines().flat_map(numbers).collect();
    assert!(worth.len() > 6 && worth.iter().all(|worth| (worth - 1.0).abs() < f64::EPSILON), "{out}");
}
