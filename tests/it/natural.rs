//! `[natural]` in a campaign file: clean runs that failed are traced by the tasks' own checkers, and become rows.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

use crate::{
    attribute::{ScriptedJudge, rows},
    program::{AEGIS, aegis},
};

const TASKS: &str = r#"{"id":"pencils","question":"Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?","answer":"84"}
{"id":"orchard","question":"A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?","answer":"76"}
"#;

/// A model whose solver errs once, in the first run of the task with the pencils.
async fn model() -> ScriptedJudge {
    let solved = AtomicUsize::new(0);
    ScriptedJudge::start(move |body| {
        // Neutral changes may alter case.
        let text = body["messages"].to_string().to_lowercase();
        let right = if text.contains("pencil") { "84" } else { "76" };
        let said = if text.contains("you are the planner") {
            "1. Multiply.\n2. Subtract.".to_owned()
        } else if text.contains("you are the solver") {
            let errs = right == "84" && solved.fetch_add(1, Ordering::SeqCst) == 0;
            format!("It is done.\nANSWER: {}", if errs { "83" } else { right })
        } else {
            // It agrees with whatever it is shown.
            format!("APPROVE\nANSWER: {}", if text.contains(right) { right } else { "83" })
        };
        (200, said)
    })
    .await
}

async fn say(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Writes a campaign on the pipeline, with this table of natural failures and these plans.
fn write(dir: &Path, upstream: &str, rest: &str) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    fs::write(dir.join("tasks.jsonl"), TASKS).expect("written");
    let campaign = format!(
        "seed = 7\nupstream = \"{upstream}\"\nverify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\n\
         tasks.file = \"tasks.jsonl\"\nclean.repeats = 2\nproof.repeatable = true\n{rest}\n\
         [[system]]\nname = \"pipeline\"\ncommand = [\"{AEGIS}\", \"example\", \"pipeline\", \"--task\", \"{{question}}\"]\n\
         config = \"{config}\"\n"
    );
    fs::write(dir.join("campaign.toml"), campaign).expect("written");
}

const BOTH: &str = "natural = { corrections = \"redraw\" }\n[[plan]]\nfile = \"corrupt-number\"\n";

#[tokio::test]
async fn both_halves_of_a_campaign_are_rows_of_one_data_set() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    write(dir, &model.url(), BOTH);
    let (code, text) = say(dir, &["campaign", "campaign.toml", "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("tracing        at most 400\n"), "{text}");
    let (code, text) = say(dir, &["campaign", "campaign.toml", "--out", "out", "--jobs", "1"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("natural   1 failure of clean runs   traced 1   labelled 1"), "{text}");
    assert!(text.contains("1 of them natural"), "{text}");
    let samples = rows(&dir.join("out/dataset.jsonl"));
    let failures: Vec<&Value> = samples.iter().filter(|row| row["kind"] == "failure").collect();
    let [row, planted] = failures.as_slice() else { panic!("two failures: {failures:?}") };
    assert_eq!(
        (&planted["task"]["id"], &planted["label"]["errors"][0]["operator"]),
        (&"orchard".into(), &"corrupt_number".into())
    );
    let error = &row["label"]["errors"][0];
    assert_eq!((&row["task"]["id"], &error["shown_by"]), (&"pencils".into(), &"counterfactual".into()), "{row}");
    assert_eq!((&error["agent"], &error["step"]), (&"solver".into(), &1.into()), "{row}");
    assert!(row["clean_twin"].is_string(), "a clean run of the task passed: {row}");
    let report: Value =
        serde_json::from_slice(&fs::read(dir.join("out/report.json")).expect("a report")).expect("JSON");
    let funnel = serde_json::json!({"failures": 1, "traced": 1, "labelled": 1, "refused": 0, "unfinished": 0});
    assert_eq!(report["natural"], funnel);
    let page = fs::read_to_string(dir.join("out/report.md")).expect("a page");
    assert!(page.contains("| pipeline | pencils | labelled | solver at step 1 |"), "{page}");
    // Two kinds of claim stand in it, and an export says which it takes.
    let (_, text) = say(dir, &["lint", "out"]).await;
    assert!(text.contains("1 findings of 1 rules") && text.contains("mixed-kinds"), "{text}");
    for (kind, failures) in [("injected", 1), ("earliest_flip", 1), ("all", 2)] {
        let out = format!("{kind}.jsonl");
        let (code, text) =
            say(dir, &["export", "out", "--to", "agentracer", "--kind", kind, "--one-file", "--out", &out]).await;
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(rows(&dir.join(out)).len(), failures, "{kind}: {text}");
    }
    // What is done is not done again, nor paid for.
    let paid = model.asked().len();
    let (code, text) = say(dir, &["campaign", "campaign.toml", "--out", "out", "--resume"]).await;
    assert!(code == Some(0) && text.contains("labelled 1"), "{text}");
    assert_eq!(model.asked().len(), paid);
}

/// Records one run of the pencils that fails, for the solver errs in it.
async fn failed_run(dir: &Path, upstream: &str) {
    let task: Value = serde_json::from_str(TASKS.lines().next().expect("a task")).expect("JSON");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let run = ["run", "--upstream", upstream, "--config", config, "--run", "bad", "--check", "grep -q 'ANSWER: 84'"];
    let command = ["--", AEGIS, "example", "pipeline", "--task", task["question"].as_str().expect("a question")];
    let (code, text) = say(dir, &[&run[..], &command].concat()).await;
    assert_eq!(code, Some(1), "{text}");
}

#[tokio::test]
async fn a_trace_that_its_budget_ended_goes_on_and_pays_nothing_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    failed_run(dir, &model.url()).await;
    let before = model.asked().len();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let url = model.url();
    let trace = ["trace", "logs", "--again", "--redraw", "--upstream", &url, "--config", config];
    let mut lines = Vec::new();
    for _ in 0..20 {
        let (code, text) = say(dir, &[&trace[..], &["--budget", "runs=9"]].concat()).await;
        let ended = code == Some(0);
        assert!(ended || (code == Some(4) && text.contains("0 of 1 failures labelled")), "{code:?} {text}");
        lines.push(text);
        if ended {
            break;
        }
        crate::contract::files_have(dir, &["files/trace.journal"]);
    }
    assert!(lines.len() > 1 && lines[1].contains("goes on  9 executions of an earlier start are known"), "{lines:?}");
    let last = lines.last().expect("a line");
    assert!(last.contains("earliest flip solver at step 1"), "{last}");
    assert!(!dir.join("logs/bad/trace.journal.jsonl").exists(), "it is finished");
    let in_parts = model.asked().len() - before;
    let parts = fs::read(dir.join("logs/bad/trace.json")).expect("a trace");
    let parts: Value = serde_json::from_slice(&parts).expect("JSON");
    assert_eq!(parts["spent"]["resumed"], 9 * (lines.len() - 1), "{parts}");
    // Each execution was made once, and every call of the model was one of theirs.
    let made = fs::read_dir(dir.join("logs/bad/trials")).expect("executions").count();
    assert_eq!(Some(made as u64), parts["spent"]["runs"].as_u64(), "{parts}");
    let calls = |text: &String| {
        let spent = text.lines().find(|line| line.starts_with("spent ")).expect("a line");
        let calls = spent.split(", ").find_map(|part| part.strip_suffix(" live calls"));
        calls.and_then(|calls| calls.parse::<usize>().ok()).expect("a count")
    };
    assert_eq!(lines.iter().map(calls).sum::<usize>(), in_parts, "{lines:?}");
}

#[tokio::test]
async fn a_campaign_that_its_budget_ended_goes_on_with_its_failures() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    write(dir, &model.url(), "natural = { corrections = \"redraw\" }");
    let campaign = ["campaign", "campaign.toml", "--out", "out", "--jobs", "1", "--only", "pencils"];
    let (code, text) = say(dir, &[&campaign[..], &["--budget", "calls=20"]].concat()).await;
    assert!(
        code == Some(4) && text.contains("1 failure of clean runs   traced 0   labelled 0   unfinished 1"),
        "{text}"
    );
    assert_eq!(model.asked().len(), 20, "{text}");
    let (code, text) = say(dir, &[&campaign[..], &["--resume"]].concat()).await;
    assert!(code == Some(0) && text.contains("traced 1   labelled 1"), "{text}");
    // What the first start executed counts, and all that was asked is in the bill.
    let report: Value =
        serde_json::from_slice(&fs::read(dir.join("out/report.json")).expect("a report")).expect("JSON");
    assert_eq!(report["cost"]["spent"]["calls"].to_string(), format!("{}.0", model.asked().len()), "{report}");
    let run = report["natural_runs"][0]["run"].as_str().expect("a run");
    let trace = fs::read(dir.join("out/logs").join(run).join("trace.json")).expect("a trace");
    let trace: Value = serde_json::from_slice(&trace).expect("JSON");
    assert!(trace["spent"]["resumed"].as_u64().expect("a count") > 3, "{trace}");
}
