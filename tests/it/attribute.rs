//! `aegis attribute`: over the wire, with judges whose answers are written down.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::program::aegis;

/// A judge that is of no use: its name, what it answers, what else is said on the command line, why the method abstains, and the
/// exit code.
type FailingJudge = (&'static str, Box<Answers>, &'static [&'static str], &'static str, i32);

/// What a judge answers to a request, by its body; a status above 299 is an error, 0 no answer at all.
type Answers = dyn Fn(&Value) -> (u16, String) + Send + Sync;

/// A judge behind HTTP that notes what it was asked.
pub(crate) struct ScriptedJudge {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedJudge {
    pub(crate) async fn start(answers: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (noted, answers): (_, Arc<Answers>) = (Arc::clone(&asked), Arc::new(answers));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answers) = (Arc::clone(&noted), Arc::clone(&answers));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (noted, answers) = (Arc::clone(&noted), Arc::clone(&answers));
                    async move {
                        let body = request.into_body().collect().await.expect("a body").to_bytes();
                        let body: Value = serde_json::from_slice(&body).expect("JSON");
                        let (status, words) = answers(&body);
                        noted.lock().expect("unpoisoned").push(body);
                        if status == 0 {
                            std::future::pending::<()>().await;
                        }
                        let reply = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "judge-2",
                            "choices": [{"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
                            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}});
                        let reply = if status < 300 { reply } else { json!({"error": {"message": words}}) };
                        let mut response = Response::new(Full::new(bytes::Bytes::from(reply.to_string())));
                        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                        let json = hyper::header::HeaderValue::from_static("application/json");
                        response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                        Ok::<_, std::convert::Infallible>(response)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

async fn say(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub(crate) fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("rows");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn user(body: &Value) -> &str {
    body["messages"][1]["content"].as_str().unwrap_or_default()
}

/// Files in both layouts of Who&When, with what is odd in the public ones: remarks, a hyphen, an empty entry, no ASCII.
pub(crate) fn whowhen(dir: &Path) {
    let entry = |name: &str, content: &str| json!({"content": content, "role": "user", "name": name});
    let crafted = |role: &str, content: &str| json!({"content": content, "role": role});
    let generated = |history: Value, agent: &str, step: &str| {
        json!({"is_correct": false, "question": "Which film, “Été 96” or another?", "question_ID": "q1", "level": "1",
            "ground_truth": "canary-96", "history": history, "mistake_agent": agent, "mistake_step": step,
            "mistake_reason": "r", "system_prompt": {}})
    };
    let files = [
        (
            "1.json",
            generated(
                json!([
                    entry("Planner", "Find it\nin the list."),
                    entry("Blu-Ray_Expert", "It is Été."),
                    entry("Computer_terminal", ""),
                    entry("Planner", "So be it: 12 of 13.")
                ]),
                "Blu-Ray_Expert",
                "1",
            ),
        ),
        (
            "2.json",
            generated(
                json!([entry("Planner", "One"), entry("Checker", "Two {idx}"), entry("Planner", "Three")]),
                "Checker",
                "1",
            ),
        ),
    ];
    fs::create_dir_all(dir.join("ag")).expect("a directory");
    fs::create_dir_all(dir.join("hc")).expect("a directory");
    for (name, value) in files {
        fs::write(dir.join("ag").join(name), value.to_string()).expect("written");
    }
    let history = json!([
        crafted("human", "Which one?"),
        crafted("Orchestrator (thought)", "Updated ledger"),
        crafted("Orchestrator (-> WebSurfer)", "Look it up"),
        crafted("WebSurfer", "It is 7."),
        crafted("Orchestrator (termination condition)", "Done: 7")
    ]);
    let value = json!({"is_corrected": false, "question": "Which one?", "question_ID": "q2", "ground_truth": "canary-96",
        "history": history, "mistake_agent": "WebSurfer", "mistake_step": "3", "mistake_reason": "r"});
    fs::write(dir.join("hc/7.json"), value.to_string()).expect("written");
}

/// What the public script's judge was made to answer, by its prompt, when the fixture was made.
fn public_answer(body: &Value) -> (u16, String) {
    let user = user(body);
    let system = body["messages"][0]["content"].as_str().unwrap_or_default();
    let words = if system.contains("step-by-step") {
        if user.contains("The most recent step (1) was by 'Blu-Ray_Expert'")
            || user.contains("The most recent step (2) was by 'Orchestrator (-> WebSurfer)'")
        {
            "1. Yes.\n2. Reason: that is wrong"
        } else if user.contains("Checker") {
            "Yes, it is"
        } else {
            "1. No.\n2. Reason: fine"
        }
    } else if system.contains("localizing") {
        if user.contains("from step 0 to step 3:") || user.contains("from step 0 to step 4:") {
            "Lower half."
        } else {
            "It is the upper half, not the lower half"
        }
    } else if user.contains("Checker") {
        "**Agent Name:** Checker\n**Step Number:** 1"
    } else if user.contains("Blu-Ray") {
        "agent name: Blu-Ray_Expert\n, step number: 1.0\nReason for Mistake: x"
    } else {
        "Agent Name: WebSurfer\n Step Number: 13\n Reason for Mistake: it says Prediction for nothing"
    };
    (200, words.to_owned())
}

/// The prompts and predictions of the public script on these files and answers, as it gave them.
#[tokio::test]
async fn compat_asks_and_reads_as_the_public_script_does() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/whowhen-public.json")).expect("JSON");
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    for layout in ["ag", "hc"] {
        for method in ["all-at-once", "step-by-step", "binary-search"] {
            let judge = ScriptedJudge::start(public_answer).await;
            let arguments = [
                "attribute",
                layout,
                "--method",
                method,
                "--compat",
                "whowhen",
                "--show-answer",
                "on",
                "--upstream",
                &judge.url(),
                "--model",
                "m",
                "--jobs",
                "1",
                "--out",
                "p.jsonl",
                "--overwrite",
            ];
            let (_, _, said) = say(dir.path(), &arguments).await;
            let expected = &fixture[layout][method];
            let messages: Vec<Value> = judge.asked().iter().map(|body| body["messages"].clone()).collect();
            assert_eq!(json!(messages), expected["messages"], "{layout} {method}: {said}");
            let found: Vec<Value> = rows(&dir.path().join("p.jsonl"))
                .iter()
                .map(|row| {
                    let first = &row["predictions"][0];
                    json!([row["id"], first["agent"], first["step"]])
                })
                .collect();
            assert_eq!(json!(found), expected["predictions"], "{layout} {method}");
        }
    }
}

pub(crate) fn culprit(agent: &str, step: u32) -> String {
    json!({"reason": "it misread", "agent": agent, "step": step, "quote": "It is Été.", "fix": "Look again.", "failure_mode": "FM-2.6"}).to_string()
}

#[tokio::test]
async fn the_second_time_nobody_is_asked_and_every_byte_is_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let judge = ScriptedJudge::start(|_| (200, culprit("Planner", 0))).await;
    let arguments = |out: &'static str, upstream: String| {
        [
            "attribute",
            "ag",
            "--method",
            "all-at-once,panel,rules",
            "--votes",
            "3",
            "--model",
            "m",
            "--cassette",
            "tape",
            "--out",
            out,
            "--upstream",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([upstream])
        .collect::<Vec<_>>()
    };
    let path = dir.path().to_owned();
    let run = |arguments: Vec<String>| {
        let path = path.clone();
        async move {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            say(&path, &arguments).await
        }
    };
    let (code, table, said) = run(arguments("first.jsonl", judge.url())).await;
    assert_eq!(code, Some(0), "{said}");
    let live = judge.asked().len();
    assert_eq!(live, 2 * 3 * (1 + 5), "two runs, three votes, one question and five: {said}");
    let seeds: std::collections::BTreeSet<i64> =
        judge.asked().iter().filter_map(|body| body["seed"].as_i64()).collect();
    assert_eq!(seeds.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    // Nobody listens there.
    let (code, again, said) = run(arguments("second.jsonl", "http://127.0.0.1:9/v1".to_owned())).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("answers replayed {live} of {live}")), "{said}");
    let bytes = |name: &str| fs::read(dir.path().join(name)).expect("rows");
    assert!(bytes("first.jsonl") == bytes("second.jsonl"));
    assert_eq!((table.clone(), judge.asked().len()), (again, live));
    assert_eq!(fs::read_dir(dir.path().join("tape")).expect("a cassette").count(), 1, "one recorded run");
    for row in rows(&dir.path().join("first.jsonl")) {
        let text = row.to_string();
        assert!(!text.contains("canary-96") && row["gold"] == false, "{text}");
    }
    let told = judge.asked().iter().any(|body| user(body).contains("canary-96") || user(body).contains("whowhen-ag"));
    assert!(!told, "neither the gold answer nor an id is in a question");
    // The rows are what `score` reads.
    let (code, _, said) = say(dir.path(), &["import", "--from", "whowhen", "ag", "--out", "data"]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = say(dir.path(), &["score", "first.jsonl", "--gold", "data"]).await;
    assert!(code == Some(2) && said.contains("rows of all-at-once, combined, panel, rules"), "{said}");
    let (code, _, said) = say(dir.path(), &["score", "first.jsonl", "--gold", "data", "--method", "panel"]).await;
    assert!(code == Some(0) && said.contains("2 of 2 runs answered"), "{said}");
}

#[tokio::test]
async fn judges_that_fail_are_counted_by_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let cases: [FailingJudge; 4] = [
        ("rambles", Box::new(|_| (200, "Well, who knows.".into())), &[], "unreadable", 1),
        ("refuses", Box::new(|_| (403, "not for you".into())), &[], "unanswered", 3),
        ("is not paid", Box::new(|_| (200, culprit("Planner", 0))), &["--budget", "calls=0"], "budget", 4),
        ("has no time", Box::new(|_| (0, String::new())), &["--timeout", "0.2"], "timed_out", 3),
    ];
    for (name, answers, more, why, expected) in cases {
        let judge = ScriptedJudge::start(answers).await;
        let url = judge.url();
        let line = format!("attribute hc --method a2p --model m --out p.jsonl --overwrite --upstream {url}");
        let head: Vec<&str> = line.split(' ').collect();
        let (code, out, said) = say(dir.path(), &[&head[..], more].concat()).await;
        let row = &rows(&dir.path().join("p.jsonl"))[0];
        assert_eq!((code, row["abstained"]["why"].as_str()), (Some(expected), Some(why)), "{name}: {out}{said}");
        assert_eq!(row["predictions"], json!([]), "{name}");
    }
}

/// An upstream that knows no schemas is asked in words, from its first refusal on.
#[tokio::test]
async fn an_upstream_that_refuses_schemas_is_asked_in_words() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let judge = ScriptedJudge::start(|body| match body.get("response_format") {
        Some(_) => (400, "response_format is not supported".into()),
        None => (200, culprit("WebSurfer", 3)),
    })
    .await;
    let arguments =
        ["attribute", "hc", "--method", "all-at-once", "--model", "m", "--upstream", &judge.url(), "--cassette", "t"];
    let (code, out, said) = say(dir.path(), &arguments).await;
    assert_eq!((code, judge.asked().len()), (Some(0), 2), "{said}");
    assert!(out.contains("WebSurfer at step 3"), "{out}");
    let (code, _, said) = say(dir.path(), &arguments).await;
    assert_eq!((code, judge.asked().len()), (Some(0), 2), "the cassette knows both forms: {said}");
}

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const CHECK: &str = "grep -q 'ANSWER: 84'";

async fn pipeline(dir: &Path, name: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let head = ["run", "--upstream", "simulator", "--config", config, "--run", name, "--check", CHECK];
    let tail = ["--", crate::program::AEGIS, "example", "pipeline", "--task", TASK];
    say(dir, &[&head[..], more, &tail].concat()).await
}

const PLAN: &str = "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";

#[tokio::test]
async fn a_recorded_run_is_held_against_those_beside_it() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("p.toml"), PLAN).expect("written");
    let (code, _, said) = pipeline(dir.path(), "clean", &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = pipeline(dir.path(), "failed", &["--plan", "p.toml", "--attribute", "alignment"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("solver at step 1") && said.contains("no label was written"), "{said}");
    let label = || fs::read(dir.path().join("logs/failed/label.json")).expect("the plan's label");
    let before = label();
    let (code, out, said) =
        say(dir.path(), &["attribute", "logs/failed", "--method", "alignment,spectrum,rules"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.starts_with("failed  solver at step 1") && out.contains("next  aegis show logs/failed --step 1"),
        "{out}"
    );
    assert!(label() == before, "nothing of a label is touched");
    crate::contract::files_have(dir.path(), &["files/attribution"]);
    let kept = rows(&dir.path().join("logs/failed/attribution.jsonl"));
    let methods: Vec<&str> = kept.iter().filter_map(|row| row["method"].as_str()).collect();
    assert_eq!(methods, ["alignment", "spectrum", "rules"], "each once, and what combines them is counted anew");
    let (_, shown, _) = say(dir.path(), &["show", "logs/failed"]).await;
    assert!(shown.contains("suspect  solver at step 1 (alignment, spectrum, rules)"), "{shown}");
    let (code, _, said) = say(dir.path(), &["attribute", "logs/clean", "--method", "rules"]).await;
    assert!(code == Some(2) && said.contains("succeeded"), "{said}");
    let (code, _, said) = say(dir.path(), &["attribute", "logs/failed", "--method", "alinment"]).await;
    assert!(code == Some(2) && said.contains("did you mean `alignment`?"), "{said}");
    let (code, _, said) = say(dir.path(), &["attribute", "logs/failed", "--method", "a2p"]).await;
    assert!(code == Some(2) && said.contains("asks a model"), "{said}");
}

/// What the page of the docs has to be typed runs as it stands, before a judge of the embedded simulator.
#[tokio::test]
async fn the_commands_of_the_docs_run() {
    let page = include_str!("../../docs/attribute.md");
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("p.toml"), PLAN).expect("written");
    pipeline(dir.path(), "clean", &[]).await;
    pipeline(dir.path(), "failed", &["--plan", "p.toml"]).await;
    whowhen(dir.path());
    fs::rename(dir.path().join("ag"), dir.path().join("whowhen")).expect("renamed");
    let commands: Vec<String> = crate::readme::blocks(page)
        .iter()
        .flat_map(|block| block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned()))
        .filter(|line| !line.is_empty())
        .collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let (code, _, said) = say(dir.path(), &words).await;
        // A judge that knows nothing about logs may find nothing: that is a finding, and no defect.
        assert!(matches!(code, Some(0 | 1)), "{command}: {said}");
    }
    let quoted = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a quoted report");
    let (_, out, _) = say(dir.path(), &["attribute", "logs/failed", "--method", "alignment,spectrum,rules"]).await;
    assert_eq!(out, quoted, "what the page quotes is what comes");
    let (_, listed, _) = say(dir.path(), &["attribute", "--list"]).await;
    for line in listed.lines() {
        let name = line.split_whitespace().nth(1).expect("a name");
        assert!(page.contains(&format!("| `{name}` |")), "docs/attribute.md lacks `{name}`");
    }
}
