//! `aegis prove`: a label that a run has is shown by executing its injection again, or it is not.

use std::{fs, path::Path, process::Stdio};

use serde_json::Value;

use crate::{
    campaign::{Bench, PIPELINE},
    program::aegis,
};

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const CHECK: &str = "grep -q 'ANSWER: 84'";

async fn say(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A run with a plan, recorded and labelled.
async fn labelled(dir: &Path, plan: &str, check: &str) {
    fs::write(dir.join("p.toml"), plan).expect("written");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let program = env!("CARGO_BIN_EXE_aegis");
    let head = ["run", "--upstream", "simulator", "--config", config, "--run", "r", "--plan", "p.toml"];
    let tail = ["--check", check, "--", program, "example", "pipeline", "--task", TASK];
    let (code, said) = say(dir, &[&head[..], &tail].concat()).await;
    assert_eq!(code, Some(1), "the injection makes it fail: {said}");
}

fn corrupt(agent: &str, which: &str) -> String {
    format!(
        "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = {{ which = \"{which}\", by = 10 }}\n"
    )
}

fn label(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("logs/r/label.json")).expect("a label")).expect("JSON")
}

#[tokio::test]
async fn a_delivered_label_is_verified_by_the_recorded_command_again() {
    let dir = tempfile::tempdir().expect("a directory");
    labelled(dir.path(), &corrupt("solver", "last"), CHECK).await;
    assert_eq!(label(dir.path())["status"], "delivered");
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", CHECK, "--again"]).await;
    assert_eq!(code, Some(0), "{said}");
    let proven = label(dir.path());
    assert_eq!(
        (&proven["status"], &proven["evidence"]["executed"]["pairs"]),
        (&"verified".into(), &6.into()),
        "{proven}"
    );
    assert!(said.contains("RESULT  ok label verified: e 1792 of 1000 in 6 pairs"), "{said}");
    // Its executions lie beneath the run, and are not made twice.
    let trials = || fs::read_dir(dir.path().join("logs/r/proof")).expect("trials").count();
    assert_eq!((trials(), fs::read_dir(dir.path().join("logs")).expect("logs").count()), (12, 1));
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", CHECK, "--again"]).await;
    assert_eq!((code, trials()), (Some(0), 12), "{said}");
    assert!(said.contains("0 executions made"), "{said}");
    // Elsewhere, beneath the run's name, where that is said.
    crate::contract::files_have(dir.path(), &["files/proof"]);
    fs::remove_file(dir.path().join("logs/r/proof.json")).expect("removed");
    let elsewhere = ["prove", "logs/r", "--check", CHECK, "--again", "--log-dir", "else"];
    let (code, said) = say(dir.path(), &elsewhere).await;
    assert_eq!((code, trials()), (Some(0), 12), "{said}");
    assert_eq!(fs::read_dir(dir.path().join("else/r/proof")).expect("trials").count(), 12, "{said}");
}

/// Evidence is of the check, the program and the upstream that were executed.
#[tokio::test]
async fn what_was_executed_with_something_else_proves_nothing_here() {
    let dir = tempfile::tempdir().expect("a directory");
    labelled(dir.path(), &corrupt("solver", "last"), CHECK).await;
    let typo = "grep -q 'ANSWER:84'";
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", typo, "--pairs", "3", "--again"]).await;
    assert_eq!((code, &label(dir.path())["status"]), (Some(1), &"unproven".into()), "{said}");
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", CHECK, "--again"]).await;
    assert_eq!((code, &label(dir.path())["status"]), (Some(0), &"verified".into()), "{said}");
    assert!(said.contains("was with another check: it does not count here") && said.contains("12 executions made"));
    for (arguments, differs) in [
        (&["--check", "true", "--again"][..], "check"),
        (&["--check", CHECK, "--", "true"], "command"),
        (&["--check", CHECK, "--upstream", "http://127.0.0.1:9/v1", "--again"], "upstream"),
    ] {
        let (code, said) = say(dir.path(), &[&["prove", "logs/r", "--pairs", "2"], arguments].concat()).await;
        let told = format!("with another {differs}: it does not count here");
        assert!(code != Some(0) && said.contains(&told) && !said.contains(" 0 executions"), "{arguments:?}: {said}");
    }
    // What was executed with these counts as before.
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", CHECK, "--again"]).await;
    assert!(code == Some(0) && said.contains("0 executions made"), "{said}");
}

/// A proof that somebody ends goes on where it was.
#[tokio::test]
async fn a_proof_that_was_ended_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    labelled(dir.path(), &corrupt("solver", "last"), CHECK).await;
    // The third execution waits until it is ended.
    let check = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n != 2 ] || sleep 600; grep -q 'ANSWER: 84'";
    let mut command = aegis(dir.path());
    command.args(["prove", "logs/r", "--check", check, "--again"]).stderr(Stdio::piped());
    let child = command.spawn().expect("it runs");
    let third = || fs::read_to_string(dir.path().join("n")).is_ok_and(|n| n.trim() == "3");
    crate::lab::until("the third execution", third).await;
    let id = nix::unistd::Pid::from_raw(child.id().expect("it runs").cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("sent");
    let ended = child.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(130) && said.contains("RESULT  stopped interrupted;"), "{said}");
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", check, "--again"]).await;
    assert_eq!((code, &label(dir.path())["status"]), (Some(0), &"verified".into()), "{said}");
    // Another check judged the run itself, so that it is none of the executions.
    assert!(said.contains("10 executions made"), "{said}");
}

#[tokio::test]
async fn an_edit_that_does_nothing_is_not_verified() {
    let dir = tempfile::tempdir().expect("a directory");
    let harmless = corrupt("planner", "last").replace(
        "corrupt_number = { which = \"last\", by = 10 }",
        "replace_text = { pattern = '\\.\\z', with = \" .\" }\nside = \"response\"",
    );
    // The first verdict is wrong by chance; all later ones are right.
    let check = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n != 0 ] && grep -q 'ANSWER: 84'";
    labelled(dir.path(), &harmless, check).await;
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", check, "--again"]).await;
    assert_eq!((code, &label(dir.path())["status"]), (Some(1), &"contradicted".into()), "{said}");
}

#[tokio::test]
async fn of_two_errors_the_label_keeps_what_the_failure_needs() {
    let dir = tempfile::tempdir().expect("a directory");
    let second = corrupt("solver", "first").replace("FM-2.6", "FM-1.1");
    labelled(dir.path(), &(corrupt("solver", "last") + &second), CHECK).await;
    let (code, said) = say(dir.path(), &["prove", "logs/r", "--check", CHECK, "--again"]).await;
    assert_eq!(code, Some(0), "{said}");
    let proven = label(dir.path());
    let injections =
        |list: &str| proven[list].as_array().map(|all| all.iter().map(|one| one["injection"].clone()).collect());
    assert_eq!(injections("errors"), Some(vec![Value::from(0)]), "{proven}");
    assert_eq!(injections("others"), Some(vec![Value::from(1)]), "{proven}");
}

#[tokio::test]
async fn what_cannot_be_shown_is_said_before_anything_is_executed() {
    let dir = tempfile::tempdir().expect("a directory");
    labelled(dir.path(), &corrupt("solver", "last"), CHECK).await;
    for (arguments, why) in [
        (&["prove", "logs/r", "--", "true"][..], "a proof needs --check"),
        (&["prove", "logs/r", "--check", CHECK], "no command was given"),
        (&["prove", "logs/none", "--check", CHECK, "--again"], "logs/none"),
        (&["prove", "logs/r", "--check", CHECK, "--alpha", "2", "--again"], "`alpha` is 2"),
    ] {
        let (code, said) = say(dir.path(), arguments).await;
        assert!(code == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
    assert!(!dir.path().join("logs/r/proof").exists());
}

/// Two failures of a system that repeats itself, as an older version wrote them: without what was executed.
fn of_the_former_rule(out: &Path) -> Vec<String> {
    let mut ids = Vec::new();
    let text = fs::read_to_string(out.join("dataset.jsonl")).expect("rows");
    let stripped = |mut label: Value| {
        label["evidence"].as_object_mut().expect("evidence").remove("executed");
        label.as_object_mut().expect("a label").remove("blake3");
        label
    };
    let rows = text.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).expect("JSON");
        if row["kind"] == "failure" {
            let id = row["id"].as_str().expect("an id").to_owned();
            let path = out.join("logs").join(&id).join("label.json");
            let label = serde_json::from_slice(&fs::read(&path).expect("a label")).expect("JSON");
            fs::write(&path, stripped(label).to_string()).expect("written");
            row["label"] = stripped(row["label"].take());
            ids.push(id);
        }
        row.to_string() + "\n"
    });
    let rows: String = rows.collect();
    fs::write(out.join("dataset.jsonl"), rows).expect("written");
    ids
}

#[tokio::test]
async fn the_failures_of_a_dataset_are_proven_one_after_another_and_the_rows_say_so() {
    let plan = "[[plan]]\nfile = \"ROOT/plans/corrupt-number.toml\"\n";
    let tasks = "upstream = \"simulator\"\ntasks = { file = \"ROOT/examples/tasks.jsonl\", first = 3 }\n";
    let proof = "clean.repeats = 1\nproof.repeatable = true\n";
    let bench = Bench::new(&[tasks, proof, PIPELINE, plan].concat());
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(0), "{said}");
    let ids = of_the_former_rule(&bench.out());
    assert_eq!(ids.len(), 2, "{said}");
    let program = env!("CARGO_BIN_EXE_aegis");
    let command = ["--", program, "example", "pipeline", "--task", "{question}"];
    let check = ["--check", "grep -q 'ANSWER: '{answer}"];
    // Nothing that could be executed, nothing changed.
    let (code, said) = say(bench.dir.path(), &[&["prove", "out"], &check[..]].concat()).await;
    assert!(code == Some(2) && said.contains("no command was given"), "{said}");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let prove = [&["prove", "out", "--upstream", "simulator", "--config", config], &check[..], &command[..]].concat();
    let (code, said) = say(bench.dir.path(), &prove).await;
    assert!(code == Some(0) && said.contains("RESULT  ok 2 of 2 failures verified"), "{said}");
    let text = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("rows");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let failures: Vec<_> = rows.iter().filter(|row| row["kind"] == "failure").collect();
    assert!(failures.iter().all(|row| row["label"]["evidence"]["executed"]["pairs"] == 6), "{text}");
    assert_eq!(failures.iter().filter_map(|row| row["id"].as_str()).collect::<Vec<_>>(), ids);
    let manifest: Value =
        serde_json::from_slice(&fs::read(bench.out().join("dataset.json")).expect("there")).expect("JSON");
    // The one that flipped nothing was begun, too.
    assert_eq!((&manifest["claims"]["begun"], &manifest["claims"]["rows"]), (&3.into(), &2.into()), "{manifest}");
    let (code, said) = say(bench.dir.path(), &["lint", "out"]).await;
    assert_eq!(code, Some(0), "{said}");
    // What is shown is not executed again; a recording that is not there is said.
    let (code, said) = say(bench.dir.path(), &prove).await;
    assert!(code == Some(0) && said.contains("0 of 0 failures verified"), "{said}");
    of_the_former_rule(&bench.out());
    fs::remove_dir_all(bench.out().join("logs").join(&ids[0])).expect("removed");
    let (code, said) = say(bench.dir.path(), &prove).await;
    assert!(code == Some(1) && said.contains("1 of 1 failures verified, 1 without a recording in logs/"), "{said}");
}
