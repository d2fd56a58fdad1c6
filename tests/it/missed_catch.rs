//! `aegis trace --missed-catch`: which agents that spoke after a proven error could have saved the run.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    attribute::{ScriptedJudge, rows},
    program::{AEGIS, ASK, aegis},
};

const TASK: &str = r#"{"id":"orchard","question":"A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?","answer":"76"}
"#;

/// A model whose critic agrees with whatever it is shown.
async fn model() -> ScriptedJudge {
    ScriptedJudge::start(|body| {
        // Neutral changes may alter case.
        let text = body["messages"].to_string().to_lowercase();
        let said = if text.contains("you are the planner") {
            "1. Multiply.\n2. Subtract.".to_owned()
        } else if text.contains("you are the solver") {
            // A critic's objection is heeded.
            "It is done.\nANSWER: 76".to_owned()
        } else {
            format!("APPROVE\nANSWER: {}", if text.contains("76") { "76" } else { "83" })
        };
        (200, said)
    })
    .await
}

async fn call(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Runs a campaign whose one failure is an error of the solver that the critic approves of; `more` is added to its file.
async fn campaign(dir: &Path, upstream: &str, more: &str) -> String {
    write(dir, upstream, more);
    let (code, text) = call(dir, &["campaign", "campaign.toml", "--out", "out", "--jobs", "1"]).await;
    assert_eq!(code, Some(0), "{text}");
    let failures = rows(&dir.join("out/dataset.jsonl")).into_iter().filter(|row| row["kind"] == "failure");
    let [row] = &failures.collect::<Vec<Value>>()[..] else { panic!("one failure: {text}") };
    assert_eq!(row["label"]["errors"][0]["agent"], "solver", "{row}");
    row["id"].as_str().expect("an id").to_owned()
}

fn write(dir: &Path, upstream: &str, more: &str) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    fs::write(dir.join("tasks.jsonl"), TASK).expect("written");
    let text = format!(
        "seed = 7\nupstream = \"{upstream}\"\nverify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\n\
         tasks.file = \"tasks.jsonl\"\nclean.repeats = 2\nproof.repeatable = true\n{more}\n[[plan]]\nfile = \"corrupt-number\"\n\
         [[system]]\nname = \"pipeline\"\ncommand = [\"{AEGIS}\", \"example\", \"pipeline\", \"--task\", \"{{question}}\"]\n\
         config = \"{config}\"\n"
    );
    fs::write(dir.join("campaign.toml"), text).expect("written");
}

/// What a campaign's row says of the critic.
fn critic(dir: &Path) -> Value {
    let failure = rows(&dir.join("out/dataset.jsonl")).into_iter().find(|row| row["kind"] == "failure");
    failure.expect("a failure")["label"]["missed_catch"].clone()
}

/// A check that minds blanks fails whatever a neutral change touches: that clears no step.
#[tokio::test]
async fn a_correction_that_passes_only_as_it_is_clears_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), ScriptedJudge::start(|_| (200, "The sum of both is 12.".to_owned())).await);
    let program = format!("{ASK}print(ask('adder', {{'role': 'user', 'content': '5 and 7'}}))\n");
    fs::write(dir.join("adder.py"), program).expect("written");
    let plan = "[[injection]]\nagent = \"adder\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
        manipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    fs::write(dir.join("plan.toml"), plan).expect("written");
    let (url, command) = (model.url(), ["--", "python3", "-I", "adder.py"]);
    for (check, ending, stands) in [
        ("grep -q 'The sum of both is 12'", "the correction passes as it is", "unsettled"),
        ("tr -s ' ' | grep -q 'The sum of both is 12'", "earliest flip adder at step 0", "shown"),
    ] {
        let run = ["run", "--upstream", &url, "--check", check, "--overwrite"];
        let (code, text) = call(dir, &[&run[..], &["--run", "good"], &command].concat()).await;
        assert_eq!(code, Some(0), "{text}");
        let (code, text) = call(dir, &[&run[..], &["--run", "bad", "--plan", "plan.toml"], &command].concat()).await;
        assert_eq!(code, Some(1), "{text}");
        let (_, text) = call(dir, &["trace", "logs/bad", "--twin", "logs/good", "--again"]).await;
        assert!(text.contains(ending), "{check}: {text}");
        let trace: Value =
            serde_json::from_slice(&fs::read(dir.join("logs/bad/trace.json")).expect("a trace")).expect("JSON");
        assert_eq!(trace["steps"][0]["stands"], stands, "{trace}");
    }
}

#[tokio::test]
async fn a_campaign_searches_its_verified_failures() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    let searched = "missed_catch = { corrections = \"twin\" }";
    campaign(dir, &model.url(), "").await;
    assert!(critic(dir).is_null(), "it was not asked for");
    write(dir, &model.url(), searched);
    let (code, text) = call(dir, &["campaign", "campaign.toml", "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("missed catch   at most 100\n"), "{text}");
    // What ends in the midst of it goes on.
    let paid = model.asked().len();
    let resumed = ["campaign", "campaign.toml", "--out", "out", "--resume"];
    let bound = format!("calls={paid}");
    let (code, text) = call(dir, &[&resumed[..], &["--budget", &bound]].concat()).await;
    assert!(
        code == Some(4) && text.contains("0 searched of 1 failure") && text.contains("unfinished 1"),
        "{code:?} {text}"
    );
    assert_ne!(critic(dir)[0]["state"], "missed", "{text}");
    let (code, text) = call(dir, &resumed).await;
    assert!(code == Some(0) && text.contains("later agents 1: 1 could have saved the run"), "{code:?} {text}");
    assert_eq!((&critic(dir)[0]["agent"], &critic(dir)[0]["state"]), (&"critic".into(), &"missed".into()));
    let report: Value =
        serde_json::from_slice(&fs::read(dir.join("out/report.json")).expect("a report")).expect("JSON");
    assert_eq!((&report["missed_catch"]["missed"], &report["complete"]), (&1.into(), &true.into()));
    crate::contract::files_have(dir, &["files/missed-catch"]);
    let page = fs::read_to_string(dir.join("out/report.md")).expect("a page");
    assert!(page.contains("critic at step 2 could have saved the run |"), "{page}");
    // Nothing is paid for twice, neither by the campaign nor by `trace`.
    let paid = model.asked().len();
    let (code, text) = call(dir, &resumed).await;
    assert!(code == Some(0) && text.contains("1 could have saved the run"), "{text}");
    let (code, text) = call(dir, &["trace", "out", "--missed-catch", "--again"]).await;
    assert!(code == Some(0) && text.contains("0 of 0 failures searched"), "{text}");
    assert_eq!(model.asked().len(), paid);
}

#[tokio::test]
async fn a_later_agent_that_could_have_saved_the_run_is_a_fact_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    let run = campaign(dir, &model.url(), "").await;
    let logs = format!("out/logs/{run}");
    let (code, text) = call(dir, &["trace", &logs, "--missed-catch", "--again", "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("later agents that can be tried: 1 (critic)"), "{text}");
    let (code, text) = call(dir, &["trace", "out", "--missed-catch", "--again"]).await;
    assert!(code == Some(0) && text.contains("1 of 1 failures searched for missed catches"), "{text}");
    let label: Value =
        serde_json::from_slice(&fs::read(dir.join(&logs).join("label.json")).expect("a label")).expect("JSON");
    assert_eq!(label["status"], "verified", "the label stays: {label}");
    let (_, text) = call(dir, &["show", &logs]).await;
    assert!(text.contains("by `aegis trace`: critic could have saved the run, at step 2"), "{text}");
    // What is known is not paid for again.
    let paid = model.asked().len();
    let (code, text) = call(dir, &["trace", &logs, "--missed-catch", "--again"]).await;
    assert!(code == Some(0) && text.contains("missed catch: critic at step 2"), "{text}");
    assert_eq!(model.asked().len(), paid);
    // The rows say it once the campaign writes them anew, and statistics count it.
    let (code, text) = call(dir, &["campaign", "campaign.toml", "--out", "out", "--resume"]).await;
    assert_eq!(code, Some(0), "{text}");
    let failure = rows(&dir.join("out/dataset.jsonl")).into_iter().find(|row| row["kind"] == "failure");
    let missed = &failure.expect("a failure")["label"]["missed_catch"][0];
    assert_eq!(
        (&missed["agent"], &missed["state"], &missed["source"]),
        (&"critic".into(), &"missed".into(), &"twin".into())
    );
    let executed = |arm: &str| (missed["executed"][arm]["passed"].as_u64(), missed["executed"][arm]["failed"].as_u64());
    assert!(executed("treated").0 > Some(3) && executed("null").1 > Some(3), "{missed}");
    let (_, text) = call(dir, &["stats", "out"]).await;
    assert!(text.contains("missed catch  critic 1"), "{text}");
    assert_eq!(model.asked().len(), paid);
    // Replies of another source are another question: asked once more, the critic agrees again.
    let (code, text) = call(dir, &["trace", &logs, "--missed-catch", "--redraw", "--again"]).await;
    assert!(code == Some(0) && text.contains("none of 1 later agents is shown to have missed it"), "{text}");
    assert!(model.asked().len() > paid);
    let (_, text) = call(dir, &["show", &logs]).await;
    for words in ["with the reply of twin", "critic could not have saved the run, at step 2, with the reply of redraw"]
    {
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn where_the_proof_began_with_no_clean_run_one_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let task = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
    let record = async |run: &str, options: &[&str]| {
        let head =
            ["run", "--upstream", "simulator", "--config", config, "--run", run, "--check", "grep -q 'ANSWER: 84'"];
        call(dir, &[&head[..], options, &["--", AEGIS, "example", "pipeline", "--task", task]].concat()).await
    };
    record("good", &[]).await;
    record("bad", &["--plan", "corrupt-number"]).await;
    let (code, text) = call(dir, &["trace", "logs/bad", "--missed-catch", "--again"]).await;
    assert!(code == Some(2) && text.contains("the run has no proven label"), "{text}");
    let (code, text) = call(dir, &["prove", "logs/bad", "--again"]).await;
    assert!(code == Some(0) && text.contains("verified"), "{text}");
    let (code, text) = call(dir, &["trace", "logs/bad", "--missed-catch", "--again"]).await;
    assert!(code == Some(2) && text.contains("began with no clean run") && text.contains("--twin RUN_DIR"), "{text}");
    let (code, text) = call(dir, &["trace", "logs/bad", "--missed-catch", "--twin", "logs/good", "--again"]).await;
    assert!(code == Some(0) && text.contains("missed catch: "), "{text}");
}

#[tokio::test]
async fn without_a_proven_error_nobody_is_later_than_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let command = ["--", AEGIS, "example", "pipeline", "--task", "How many eggs do 7 boxes of 6 hold?"];
    let run = ["run", "--upstream", "simulator", "--run", "bad", "--check", "exit 1"];
    let (_, text) = call(dir, &[&run[..], &command].concat()).await;
    assert!(text.contains("RESULT"), "{text}");
    let (code, text) = call(dir, &["trace", "logs/bad", "--missed-catch", "--redraw", "--again"]).await;
    assert!(code == Some(2) && text.contains("the run has no proven label") && text.contains("aegis prove"), "{text}");
}

#[tokio::test]
async fn a_refused_search_is_counted_by_whoever_concludes_without_executing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    let analyzer = "missed_catch = { corrections = \"analyzer\", analyzer = \"http://127.0.0.1:9\", model = \"m\", \
                    key_env = \"A_KEY_THAT_IS_NOT_SET\" }";
    write(dir, &model.url(), analyzer);
    let (_, text) = call(dir, &["campaign", "campaign.toml", "--out", "parts", "--shard", "0/1"]).await;
    crate::contract::files_have(dir, &["files/search-refused"]);
    for more in [&[][..], &["--reread"]] {
        let out = format!("merged{}", more.len());
        let (code, merged) = call(dir, &[&["shard", "merge", "parts", "--out", &out], more].concat()).await;
        let catches = merged.lines().find(|line| line.starts_with("catches")).unwrap_or_default();
        assert!(code == Some(0) && catches.ends_with("cannot be traced 1"), "{text}{merged}");
    }
}

#[tokio::test]
async fn where_nothing_flipped_nothing_is_said_of_catches() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), model().await);
    write(dir, &model.url(), "missed_catch = { corrections = \"twin\" }");
    let file = fs::read_to_string(dir.join("campaign.toml")).expect("written");
    fs::write(dir.join("campaign.toml"), file.replace("\"corrupt-number\"", "\"truncate-plan\"")).expect("written");
    let (code, text) = call(dir, &["campaign", "campaign.toml", "--out", "out", "--jobs", "1"]).await;
    assert!(code == Some(0) && text.contains("0 of 0 flips verified") && !text.contains("catches"), "{text}");
}
