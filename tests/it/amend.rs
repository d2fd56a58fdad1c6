//! `aegis amend` and the control listener: what becomes known of a run after it has ended, and how every reader sees it.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::{AEGIS, Served, verb},
    scripted::{Scripted, chat_reply, http},
};

const ROSTER: &str = r#"
[[agent]]
name = "intake"
system_contains = "You read orders"

[[agent]]
name = "pricer"
system_contains = "You price"
"#;

async fn ask(served: &Served, path: &str, prompt: &str, text: &str) {
    let body = json!({"model": "m", "messages": [
        {"role": "system", "content": prompt}, {"role": "user", "content": text}]});
    let mut client = Client::connect(served.address).await;
    client.send(&request("POST", path, body.to_string().as_bytes(), "connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
}

/// Two runs that `serve` recorded: nobody named their agents, nobody said what they achieved.
async fn recorded(dir: &Path) {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("TOTAL: 381"))]).await;
    let url = format!("http://{}/v1", upstream.address);
    let served = Served::start(dir, &["--upstream", &url]).await;
    for run in ["bad", "good"] {
        let path = format!("/r/{run}/v1/chat/completions");
        ask(&served, &path, "You read orders. Say what is ordered, an item a line.", "2 clocks, 3 chairs").await;
        ask(&served, &path, "You price what is ordered. End with TOTAL.", "ITEMS: 2 clock; 3 chair").await;
    }
    served.stop_and_end(dir, &["logs/bad", "logs/good"]).await;
    fs::write(dir.join("roster.toml"), ROSTER).expect("written");
}

async fn ok(dir: &Path, arguments: &[&str]) -> (String, String) {
    let (code, out, talk) = verb(dir, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {out}{talk}");
    (out, talk)
}

/// What a verb says as JSON.
async fn data(dir: &Path, arguments: &[&str]) -> Value {
    let (out, _) = ok(dir, &[arguments, &["--format", "json"]].concat()).await;
    serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_outcomes_that_are_given_later_are_read_by_every_verb() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    let unnamed = data(dir, &["agents", "logs/bad"]).await;
    assert!(unnamed["steps"][0]["agent"].as_str().expect("a name").starts_with("agent-"), "{unnamed}");
    let seal = fs::read(dir.join("logs/bad/seal.json")).expect("a seal");

    let (out, talk) = ok(dir, &["amend", "logs/bad", "logs/good", "--roster", "roster.toml", "--by", "ada"]).await;
    assert!(out.contains("logs/bad  2 of 2 steps named: intake 1, pricer 1"), "{out}");
    assert!(talk.contains("RESULT  ok 2 facts added to 2 runs"), "{talk}");
    let (_, talk) = ok(dir, &["amend", "logs/bad", "--roster", "roster.toml"]).await;
    assert!(talk.contains("0 facts added to 0 runs; of 1 run all of it was known"), "{talk}");
    let outcome = ["amend", "logs/bad", "--outcome", "failure", "--evidence", "376, not 381"];
    let (out, _) = ok(dir, &outcome).await;
    assert!(out.contains("outcome failure"), "{out}");
    ok(dir, &["amend", "logs/good", "--outcome", "success"]).await;
    assert_eq!(fs::read(dir.join("logs/bad/seal.json")).expect("a seal"), seal, "the recording stays as it is");

    let agents = data(dir, &["agents", "logs/bad"]).await;
    let first = &agents["steps"][0];
    assert_eq!(
        (&first["agent"], &first["source"], &first["labels"]),
        (&json!("intake"), &json!("roster"), &json!(true))
    );
    assert!(first["evidence"].as_str().expect("text").contains("given later"), "{first}");
    let (out, _) = ok(dir, &["show", "logs/bad"]).await;
    assert!(out.contains("intake") && out.contains("pricer") && out.contains("outcome  failure"), "{out}");
    assert!(out.contains("later    names given by ada, from roster.toml"), "{out}");
    let runs = data(dir, &["runs", "logs"]).await;
    let row = runs["runs"].as_array().expect("rows").iter().find(|row| row["run"] == "bad").expect("the run");
    assert_eq!((&row["agents"], &row["outcome"]), (&json!(["intake", "pricer"]), &json!("failure")));
    ok(dir, &["export", "logs/bad", "--to", "otlp", "--out", "bad.jsonl"]).await;
    assert!(fs::read_to_string(dir.join("bad.jsonl")).expect("a trace").contains("pricer"));
    ok(dir, &["view", "logs", "--bundle", "runs.html"]).await;
    assert!(fs::read_to_string(dir.join("runs.html")).expect("a page").contains("pricer"));
    // A failure that only people know, beside a run that only people know to be right.
    let aligned = ["attribute", "logs/bad", "--method", "alignment", "--against", "logs/good"];
    let (code, out, talk) = verb(dir, &aligned).await;
    assert!(code.is_some_and(|code| code < 2), "{out}{talk}");
    assert!(!out.contains("no other run") && !talk.contains("no other run"), "{out}{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_takes_what_becomes_known_of_its_runs_after_they_have_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("TOTAL: 381"))]).await;
    let url = format!("http://{}/v1", upstream.address);
    let environment = [("AEGIS_CONTROL_TOKEN", "control-token-of-a-test".to_owned())];
    let served = Served::start_with(dir, &["--upstream", &url, "--control", "127.0.0.1:0"], &environment).await;
    ask(&served, "/r/open/v1/chat/completions", "You price.", "1 clock").await;
    let post = async |path: &str, body: Value| {
        let mut client = Client::connect(served.control.expect("a control listener")).await;
        let headers = "authorization: Bearer control-token-of-a-test\r\nconnection: close\r\n";
        client.send(&request("POST", path, body.to_string().as_bytes(), headers)).await;
        let reply = client.reply().await;
        (reply.status, reply.text())
    };
    for (path, body, expected) in [
        ("/outcome", json!({"run": "bad", "verdict": "failure", "evidence": "376", "by": "ci"}), 200),
        ("/outcome", json!({"run": "open", "verdict": "success"}), 200),
        ("/outcome", json!({"run": "nobody", "verdict": "success"}), 404),
        ("/task", json!({"run": "bad", "task": "Price the order."}), 200),
        ("/task", json!({"run": "open", "task": "Price the order."}), 409),
        ("/roster", json!({"run": "bad", "agent": [{"name": "pricer", "system_contains": "You price"}]}), 200),
        ("/roster", json!({"run": "bad", "agent": [{"name": "pricer"}]}), 400),
    ] {
        let (status, text) = post(path, body.clone()).await;
        assert_eq!(status, expected, "{path} {body}: {text}");
    }
    served.stop().await;
    let recording = aegis::recording::read(&dir.join("logs/bad")).expect("reads");
    assert_eq!(recording.manifest.task.as_deref(), Some("Price the order."));
    assert_eq!(recording.trajectory.outcome.evidence, "376");
    assert_eq!(recording.trajectory.steps[1].attribution.agent.as_str(), "pricer");
    let given: Vec<_> = recording.facts.iter().map(|fact| (fact.source.name(), fact.by.as_deref())).collect();
    assert_eq!(given, [("http", Some("ci")), ("http", None), ("http", None)]);
    let open = aegis::recording::read(&dir.join("logs/open")).expect("reads");
    assert_eq!((open.trajectory.outcome.verdict, open.facts.len()), (aegis::trajectory::Verdict::Success, 0));
}

const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";

/// A run of the example program, whose agents only its configuration tells apart by name.
async fn pipeline(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    verb(dir, &[arguments, &["--", AEGIS, "example", "pipeline", "--task", TASK]].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_given_later_count_as_declared_and_a_label_says_whose_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (roster, plan) = (root.join("examples/pipeline/aegis.toml"), root.join("plans/corrupt-number.toml"));
    fs::copy(&roster, dir.join("aegis.toml")).expect("copied");
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run"];
    let planned = ["bad", "--plan", plan.to_str().expect("text")];
    let (code, _, talk) = pipeline(dir, &[&run[..], &planned].concat()).await;
    assert_eq!(code, Some(1), "{talk}");
    fs::remove_file(dir.join("aegis.toml")).expect("removed");
    let (code, _, talk) = pipeline(dir, &[&run[..], &["clean"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let fork = ["fork", "logs/bad", "--at", "1", "--keep", "--check", CHECK, "--format", "json"];
    let (_, out, talk) = pipeline(dir, &fork).await;
    let made: Value = serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}{talk}"));
    let made = made["samples"][0]["run_dir"].as_str().expect("a directory");
    fs::rename(dir.join(made), dir.join("logs/failed")).expect("moved");

    let trace = ["trace", "logs/failed", "--twin", "logs/clean", "--check", CHECK];
    let (code, _, talk) = pipeline(dir, &trace).await;
    assert_eq!(code, Some(2), "the two runs do not call their agents by the same names: {talk}");
    assert!(!dir.join("logs/failed/label.json").exists());
    ok(dir, &["amend", "logs/failed", "logs/clean", "--roster", roster.to_str().expect("text"), "--by", "ada"]).await;
    let (code, out, talk) = pipeline(dir, &trace).await;
    assert!(code == Some(0) && talk.contains("label verified"), "{out}{talk}");
    let label: Value =
        serde_json::from_slice(&fs::read(dir.join("logs/failed/label.json")).expect("a label")).expect("JSON");
    assert_eq!(label["errors"][0]["agent"], "solver");
    assert_eq!((&label["names_later"]["by"], &label["names_later"]["source"]), (&json!("ada"), &json!("amend")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_trace_takes_the_names_of_a_roster() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    let exported = ["export", "logs/bad", "--to", "otlp", "--out", "bad.jsonl"];
    ok(dir, &exported).await;
    // The trace of a tracer that names nobody.
    let text = fs::read_to_string(dir.join("bad.jsonl")).expect("a trace").replace("gen_ai.agent", "x.agent");
    fs::write(dir.join("bad.jsonl"), text).expect("written");
    let import = ["import", "--from", "otlp", "bad.jsonl", "--config", "roster.toml", "--log-dir", "imported"];
    let (out, _) = ok(dir, &import).await;
    assert!(out.contains("intake 1, pricer 1"), "{out}");
    let run = fs::read_dir(dir.join("imported")).expect("runs").next().expect("a run").expect("an entry").path();
    let recording = aegis::recording::read(&run).expect("reads");
    let names: Vec<_> = recording.trajectory.steps.iter().map(|step| step.attribution.agent.as_str()).collect();
    assert_eq!(names, ["intake", "pricer"]);
    // A roster that lies beside says who speaks, too, where rules look at a record.
    fs::write(dir.join("aegis.toml"), ROSTER).expect("written");
    let watched = data_of(dir, &["show", "logs/good", "--watch-rules", "all"]).await;
    assert!(!watched.contains("agent-"), "{watched}");
}

/// What a verb says as JSON, whether or not it found something.
async fn data_of(dir: &Path, arguments: &[&str]) -> String {
    let (_, out, _) = verb(dir, &[arguments, &["--format", "json"]].concat()).await;
    out
}
