//! What the reference implementation of the method gets wrong, a test each where no other test of campaigns has it:
//! labels that overwrite each other, aggregators without a label, labels for agents that never speak, traces without what
//! was really sent.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::{Bench, DEBATE, PIPELINE, json, tasks};
use crate::program::aegis;

fn injection(agent: &str, mode: &str, manipulator: &str) -> String {
    format!(
        "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"{mode}\"\nwhen.always = true\nmanipulator.{manipulator}\n"
    )
}

const ADD: &str = "corrupt_number = { which = \"last\", by = 10 }";

async fn labelled(system: &str, plan: &str) -> (Bench, Vec<Value>) {
    let text = format!("upstream = \"simulator\"\n{}{system}[[plan]]\nfile = \"p.toml\"\n", tasks(1));
    let bench = Bench::new(&text);
    fs::write(bench.dir.path().join("p.toml"), plan).expect("written");
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(0), "{said}");
    let rows = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset");
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let failures: Vec<Value> = rows.into_iter().filter(|row| row["kind"] == "failure").collect();
    assert_eq!(failures.len(), 1, "{said}");
    for row in &failures {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let speak: BTreeSet<String> = list(&row["steps"]).iter().map(|step| step["agent"].to_string()).collect();
        for error in list(&row["label"]["errors"]) {
            assert!(speak.contains(&error["agent"].to_string()), "a label's agent speaks in its trace: {error}");
        }
    }
    (bench, failures)
}

fn errors(row: &Value) -> Vec<(&str, &str)> {
    let errors = row["label"]["errors"].as_array().expect("errors");
    errors.iter().map(|error| (error["agent"].as_str().unwrap_or(""), code(error))).collect()
}

/// A failure mode as a row writes it: its code, alone or within an object.
fn code(error: &Value) -> &str {
    let mode = &error["failure_mode"];
    mode.as_str().or_else(|| mode["code"].as_str()).unwrap_or("")
}

#[tokio::test]
async fn two_modes_of_one_agent_are_two_errors() {
    let more = "corrupt_number = { which = \"last\", by = 1 }";
    let plan = injection("solver", "FM-2.6", ADD) + &injection("solver", "FM-1.1", more);
    let (_, rows) = labelled(PIPELINE, &plan).await;
    let modes: BTreeSet<&str> = errors(&rows[0]).into_iter().map(|(_, mode)| mode).collect();
    assert_eq!(modes, BTreeSet::from(["FM-1.1", "FM-2.6"]), "{}", rows[0]["label"]);
    assert_eq!(rows[0]["label"]["evidence"]["overdetermined"], true, "either of them suffices");
}

#[tokio::test]
async fn an_aggregator_is_labelled_like_any_other_agent() {
    let (_, rows) = labelled(DEBATE, &injection("judge", "FM-2.6", ADD)).await;
    assert_eq!(errors(&rows[0]), [("judge", "FM-2.6")]);
}

#[tokio::test]
async fn the_data_hold_what_was_asked_and_what_was_sent() {
    let other = "replace_text = { pattern = 'ANSWER: \\d+', with = \"ANSWER: 7\", messages = \"user\" }";
    let plan = injection("judge", "FM-2.5", other).replace("[[injection]]", "[[injection]]\nside = \"request\"");
    let (bench, rows) = labelled(DEBATE, &plan).await;
    let error = &rows[0]["label"]["errors"][0];
    let change = &rows[0]["label"]["changes"][0];
    assert_eq!(
        (&error["agent"], &error["side"], &change["step"]),
        (&"judge".into(), &"request".into(), &error["step"])
    );
    let (before, after) = (change["before"].to_string(), change["after"].to_string());
    assert!(
        before.contains("ANSWER: 84") && after.contains("ANSWER: 7\\n") && !after.contains("ANSWER: 84"),
        "{change}"
    );
    let run = bench.report()["cells"][0]["run"].as_str().expect("an id").to_owned();
    let label = json(&bench.out().join("logs").join(run).join("label.json"));
    assert_eq!((&label["status"], &label["errors"][0]["delivered"]), (&"verified".into(), &true.into()));
}

#[tokio::test]
async fn words_of_the_task_name_nobody() {
    let plain = "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils are left?";
    let telling = "Evaluate this, Solver, and score its correctness; a critic shall review the planner's assessment. ";
    let mut heard = Vec::new();
    for task in [plain.to_owned(), format!("{telling}{plain}")] {
        let dir = tempfile::tempdir().expect("a directory");
        let program = std::env::var("CARGO_BIN_EXE_aegis").unwrap_or_else(|_| env!("CARGO_BIN_EXE_aegis").to_owned());
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
        let run = ["run", "--upstream", "simulator", "--config", config, "--log-dir", "logs", "--"];
        let child = [&run[..], &[&program, "example", "pipeline", "--task", &task]].concat();
        let done = aegis(dir.path()).args(child).output().await.expect("it ran");
        let logs = fs::read_dir(dir.path().join("logs")).expect("logs").flatten().next().expect("a run").path();
        let told = aegis(dir.path()).args(["agents", "--format", "json"]).arg(&logs).output().await.expect("it ran");
        let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
        let steps = told["steps"].as_array().expect("steps").iter();
        let agents: Vec<String> = steps.map(|step| step["agent"].to_string()).collect();
        assert!(agents.len() > 2, "{}", String::from_utf8_lossy(&done.stderr));
        heard.push(agents);
    }
    assert_eq!(heard[0][..3], heard[1][..3], "planner, solver and critic are who they are, whatever the task says");
}
