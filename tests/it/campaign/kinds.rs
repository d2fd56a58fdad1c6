//! Kinds of tasks: what the project carries, and how much of it the simulator solves.

use std::{collections::BTreeMap, fs, path::Path};

use aegis::{
    simulator,
    surface::{Conversation, Message, Role},
    trajectory::Verdict,
    verify::{Case, Check, Surroundings},
};
use serde_json::{Value, json};

use super::{Bench, PIPELINE, plans};

/// Whether the unit tests of code tasks can be run.
fn python() -> bool {
    std::process::Command::new("python3").arg("--version").output().is_ok()
}

#[tokio::test]
async fn the_simulator_solves_fifty_tasks_of_three_kinds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut solved: BTreeMap<&str, usize> = BTreeMap::new();
    for file in ["tasks.jsonl", "tasks/choice.jsonl", "tasks/code.jsonl"] {
        for line in fs::read_to_string(root.join(file)).expect("a task set").lines() {
            let task: Value = serde_json::from_str(line).expect("a task");
            let said = |key: &str| task[key].as_str().unwrap_or_default();
            let mut check = task.get("check").cloned().unwrap_or(json!({ "numeric": {} }));
            if let Some(command) = check.get_mut("command") {
                // A machine that is busy with other tests is no reason to fail.
                command["timeout_s"] = json!(120.0);
            }
            let check: Check = serde_json::from_value(check).expect("a check");
            if check.name() == "command" && !python() {
                continue;
            }
            let messages = vec![Message::text_of(Role::User, said("question"))];
            let asked = Conversation { messages, choices: 1, ..Conversation::default() };
            let output = simulator::answer(&asked, 7).answers[0].message.text();
            let case = Case { question: said("question"), expected: said("answer"), output: &output };
            let verdict = check.check(&case, &Surroundings::default()).await;
            *solved.entry(file).or_default() += usize::from(verdict.verdict == Verdict::Success);
        }
    }
    let mut expected = BTreeMap::from([("tasks.jsonl", 28), ("tasks/choice.jsonl", 10)]);
    if python() {
        expected.insert("tasks/code.jsonl", 12);
    }
    assert_eq!(solved, expected, "what its documentation says");
}

#[tokio::test]
async fn a_campaign_takes_tasks_of_several_files() {
    let bench = Bench::new(&format!(
        "upstream = \"simulator\"\n[tasks]\nfile = [\"ROOT/examples/tasks.jsonl\", \"ROOT/examples/tasks/choice.jsonl\"]\n\
         ids = [\"pencils\", \"choice-tram\", \"choice-boil\"]\n{PIPELINE}{}",
        plans(&["corrupt-plan"], "\"pipeline\"")
    ));
    let (code, _, said) = bench.run(&["--jobs", "2"]).await;
    assert_eq!(code, Some(0), "{said}");
    let report = bench.report();
    assert_eq!((&report["clean"]["tasks"], &report["clean"]["kept"]), (&json!(3), &json!(2)), "{said}");
    assert_eq!(report["tasks"][0]["task"], "choice-boil", "what the simulator cannot solve is named");
}

#[tokio::test]
async fn tasks_of_two_files_have_ids_of_their_own() {
    let bench = Bench::new(&format!(
        "[tasks]\nfile = [\"ROOT/examples/tasks.jsonl\", \"ROOT/examples/tasks.jsonl\"]\n{PIPELINE}{}",
        plans(&["corrupt-plan"], "\"pipeline\"")
    ));
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("task id `pencils`") && said.contains("stands in an earlier file, too"), "{said}");
}
