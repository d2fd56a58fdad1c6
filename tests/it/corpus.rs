//! A directory of runs as a data set: what was recorded there is proven, checked, counted and exported.

use std::{fs, path::Path};

use serde_json::Value;

use crate::program::aegis;

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");

async fn output_of(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
    )
}

/// Records one run of the example, with these options.
async fn record(dir: &Path, run: &str, options: &[&str]) {
    let head = ["run", "--upstream", "simulator", "--config", CONFIG, "--run", run];
    let tail = ["--", env!("CARGO_BIN_EXE_aegis"), "example", "pipeline", "--task", TASK];
    let (code, text) = output_of(dir, &[&head[..], options, &tail].concat()).await;
    assert!(matches!(code, Some(0 | 1)), "{text}");
}

/// Two failures by one plan that are one as data, a clean run, a failure of its own, and a run that nobody judged.
async fn recorded(dir: &Path) {
    let plan = ["--plan", "corrupt-number", "--check", "grep -q 'ANSWER: 84'"];
    record(dir, "bad-1", &plan).await;
    record(dir, "bad-2", &plan).await;
    record(dir, "good", &["--check", "grep -q 'ANSWER: 84'"]).await;
    record(dir, "natural", &["--check", "grep -q 'ANSWER: 85'"]).await;
    record(dir, "unjudged", &[]).await;
}

#[tokio::test]
async fn what_lies_in_a_log_directory_is_proven_and_exported() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    // Nothing is proven yet, and each run that is no row says why.
    let (code, text) = output_of(dir, &["lint", "logs"]).await;
    assert_eq!(code, Some(1), "{text}");
    for line in [
        "corpus   logs  5 runs: 1 failure, 0 benign, 1 clean",
        "1 × failed by itself: `trace` finds the step  (natural)",
        "1 × has no outcome: `run --check` gives one  (unjudged)",
        "1 × holds the same as `bad-1`  (bad-2)",
        "next     aegis prove logs --again   1 failure may be proven",
        "logs/bad-1: the label was delivered, and nothing was executed that shows it",
    ] {
        assert!(text.contains(line), "`{line}` is missing: {text}");
    }
    let (code, text) = output_of(dir, &["export", "logs", "--to", "sft", "--out", "early.jsonl"]).await;
    assert!(code == Some(1) && text.contains("left out: 1 × a label that is not proven"), "{text}");
    // Each by its own command and check.
    let (code, text) = output_of(dir, &["prove", "logs", "--again"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 1 of 1 failures verified"), "{text}");
    let (code, text) = output_of(dir, &["lint", "logs"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 2 samples, nothing found"), "{text}");
    fs::write(
        dir.join("tasks.jsonl"),
        serde_json::json!({"id": "pencils", "question": TASK, "answer": "84"}).to_string() + "\n",
    )
    .expect("written");
    let export =
        ["export", "logs", "--tasks", "tasks.jsonl", "--system", "pipeline", "--to", "whowhen", "--out", "out"];
    let (code, text) = output_of(dir, &export).await;
    assert_eq!(code, Some(0), "{text}");
    let written = fs::read_dir(dir.join("out")).expect("a directory").flatten().map(|entry| entry.path());
    let rows: Vec<Value> = written
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
        .collect();
    let row = rows.iter().find(|row| row["mistake_agent"] == "solver").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(
        (&row["question"], &row["ground_truth"], &row["mistake_step"]),
        (&TASK.into(), &"84".into(), &"1".into())
    );
    let (code, text) = output_of(dir, &["stats", "logs", "--tasks", "tasks.jsonl"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 2 samples of 1 tasks, 1 failure"), "{text}");
    // A failure of its own is traced once; that it finds nothing is an answer, too.
    let trace = ["trace", "logs", "--redraw", "--again", "--budget", "runs=30"];
    let (code, text) = output_of(dir, &trace).await;
    assert!(code == Some(1) && text.contains("RESULT  finding 0 of 1 failures labelled"), "{text}");
    let (code, text) = output_of(dir, &trace).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 0 of 0 failures labelled"), "{text}");
    // What is to be attributed needs no label.
    let (code, text) = output_of(dir, &["attribute", "logs", "--method", "rules"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 2 runs, 1 predictions, 1 abstained"), "{text}");
}

#[tokio::test]
async fn one_run_is_a_corpus_and_runs_of_a_data_set_are_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    record(dir, "good", &["--check", "grep -q 'ANSWER: 84'"]).await;
    let (code, text) = output_of(dir, &["stats", "logs/good"]).await;
    assert!(code == Some(0) && text.contains("1 run: 0 failures, 0 benign, 1 clean"), "{text}");
    let (code, text) = output_of(dir, &["stats", "logs/none"]).await;
    assert!(code == Some(2) && text.contains("is no dataset"), "{text}");
    // What a data set says of its runs is more than they say themselves.
    fs::write(dir.join("dataset.jsonl"), "").expect("written");
    let (code, text) = output_of(dir, &["stats", "logs"]).await;
    assert!(code == Some(2) && text.contains("holds the recordings of the data set"), "{text}");
}

/// What a campaign's checkers need, without the campaign.
const CHECKERS: &str =
    "tasks.file = \"tasks.jsonl\"\nverify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }\n";

#[tokio::test]
async fn runs_that_nobody_judged_are_judged_by_the_checkers_of_a_campaign() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    record(dir, "bad", &["--plan", "corrupt-number"]).await;
    record(dir, "good", &[]).await;
    let other = ["run", "--upstream", "simulator", "--config", CONFIG, "--run", "other", "--"];
    let asks = [
        env!("CARGO_BIN_EXE_aegis"),
        "example",
        "pipeline",
        "--task",
        "A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?",
    ];
    output_of(dir, &[&other[..], &asks].concat()).await;
    let task = serde_json::json!({"id": "pencils", "question": TASK, "answer": "84"}).to_string() + "\n";
    fs::write(dir.join("tasks.jsonl"), task).expect("written");
    fs::write(dir.join("checkers.toml"), CHECKERS).expect("written");
    let (code, text) = output_of(dir, &["amend", "logs", "--verify", "checkers.toml"]).await;
    assert_eq!(code, Some(0), "{text}");
    for line in [
        "logs/bad  outcome failure; label delivered",
        "logs/good  outcome success",
        "unjudged logs/other  `other` asks no task of `checkers.toml`",
        "RESULT  ok 2 facts added to 2 runs; 1 run is of no task",
    ] {
        assert!(text.contains(line), "`{line}` is missing: {text}");
    }
    // What is judged stays so.
    let (_, text) = output_of(dir, &["amend", "logs/bad", "logs/good", "--verify", "checkers.toml"]).await;
    assert!(text.contains("0 facts added to 0 runs"), "{text}");
    // The same checkers judge executions.
    let (code, text) = output_of(dir, &["prove", "logs", "--again", "--verify", "checkers.toml"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 1 of 1 failures verified"), "{text}");
    let (code, text) = output_of(dir, &["fork", "logs/bad", "--at", "2", "--again", "--verify", "checkers.toml"]).await;
    assert!(matches!(code, Some(0 | 1)) && text.contains("outcome failure"), "{text}");
    let (code, text) = output_of(dir, &["lint", "logs", "--tasks", "tasks.jsonl"]).await;
    assert!(code == Some(0) && text.contains("RESULT  ok 2 samples, nothing found"), "{text}");
    for (content, why) in [
        ("verify = { checks = [{ numeric = {} }] }\n", "it names no tasks"),
        ("tasks.file = \"tasks.jsonl\"\n", "`checks` is empty"),
        ("tasks.file = \"none.jsonl\"\nverify = { checks = [{ numeric = {} }] }\n", "none.jsonl"),
        (
            "tasks.file = \"tasks.jsonl\"\nverify = { checks = [{ model_judge = { model = \"m\" } }] }\n",
            "a model is to judge",
        ),
    ] {
        fs::write(dir.join("wrong.toml"), content).expect("written");
        let (code, text) = output_of(dir, &["amend", "logs", "--verify", "wrong.toml"]).await;
        assert!(code == Some(2) && text.contains(why), "{why}: {text}");
    }
}
