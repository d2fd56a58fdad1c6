//! `aegis tasks import` as a user types it, and what a campaign makes of the task file.

use std::fs;

use serde_json::{Value, json};

use crate::program::verb;

const CAMPAIGN: &str = "upstream = \"simulator\"\ntasks.file = [\"gsm8k.tasks.jsonl\", \"humaneval.tasks.jsonl\"]\n\
    verify.checks = [{ exact = {} }]\n[[system]]\nname = \"s\"\ncommand = [\"{aegis}\", \"example\", \"pipeline\", \"--task\", \"{question}\"]\n\
    exit_codes = [0, 1]\n[[plan]]\nfile = \"plan.toml\"\n";
const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
    manipulator.corrupt_number = { which = \"last\", by = 10 }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_public_set_becomes_the_tasks_of_a_campaign() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    let question =
        "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
    write(
        "gsm8k.jsonl",
        &format!("{}\n{}\n", json!({"question": question, "answer": "12*8-12\n#### 84"}), json!({"question": "?"})),
    );
    let function = json!({"task_id": "HumanEval/0", "prompt": "def one():\n    \"\"\" One. \"\"\"\n", "entry_point": "one",
        "canonical_solution": "    return 1\n", "test": "def check(candidate):\n    assert candidate() == 1\n"});
    write("humaneval.jsonl", &format!("{function}\n"));
    for (set, told) in
        [("gsm8k", "left out: 1 × no text in `answer` (first: gsm8k.jsonl:2)"), ("humaneval", "commands: 1 tasks")]
    {
        let (from, out) = (format!("{set}.jsonl"), format!("{set}.tasks.jsonl"));
        let (code, said, talk) = verb(dir.path(), &["tasks", "import", "--from", set, &from, "--out", &out]).await;
        assert_eq!(code, Some(0), "{talk}");
        assert!(
            said.contains(told) && said.contains("source: ") && talk.contains("RESULT  ok 1 tasks of "),
            "{said}{talk}"
        );
    }
    write("campaign.toml", CAMPAIGN);
    write("plan.toml", PLAN);
    let (code, said, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--dry-run"]).await;
    assert!(code == Some(0) && said.contains("1 tasks bring one; refused without"), "{said}{talk}");
    for (only, found) in [("humaneval-*", true), ("s/gsm8k-*", true), ("s/math-*", false), ("other/gsm8k-*", false)] {
        let (code, _, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--dry-run", "--only", only]).await;
        let told = talk.contains(&format!("`--only {only}` names no task of `campaign.toml`"));
        assert!(if found { code == Some(0) } else { code == Some(2) && told }, "{only}: {talk}");
    }
    let manifest = fs::read(dir.path().join("gsm8k.tasks.jsonl.manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!((&manifest["licence"], &manifest["rows"]), (&json!("MIT"), &json!(2)));

    let again = ["tasks", "import", "--from", "gsm8k", "gsm8k.jsonl", "--out", "gsm8k.tasks.jsonl"];
    let (code, _, talk) = verb(dir.path(), &again).await;
    assert!(code == Some(2) && talk.contains("exists") && talk.contains("--overwrite"), "{talk}");
    let (code, _, talk) = verb(dir.path(), &["tasks", "import", "--from", "gsm9k", "gsm8k.jsonl", "--out", "x"]).await;
    assert!(code == Some(2) && talk.contains("gsm8k") && !dir.path().join("x").exists(), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_under_any_names() {
    let dir = tempfile::tempdir().expect("a directory");
    let rows = "prompt,gold,a,b\n\"Which is odd, I ask?\",B,2,3\nWhich is even?,x,2,3\n";
    fs::write(dir.path().join("rows.csv"), rows).expect("written");
    let generic = ["tasks", "import", "--from", "generic", "rows.csv", "--out", "tasks.jsonl"];
    let with = |more: &[&'static str]| [generic.as_slice(), more].concat();
    let maps = ["--map", "question=prompt", "--map", "answer=gold", "--map", "choices=a,b"];
    let (code, said, talk) = verb(dir.path(), &with(&maps)).await;
    assert!(code == Some(0) && talk.contains("1 tasks of 2 rows"), "{talk}");
    assert!(said.contains("left out: 1 × the answer is none of the choices (first: rows.csv:3)"), "{said}");
    let task = fs::read_to_string(dir.path().join("tasks.jsonl")).expect("tasks");
    let task: Value = serde_json::from_str(task.trim()).expect("JSON");
    assert_eq!((&task["question"], &task["answer"]), (&json!("Which is odd, I ask?\nA) 2\nB) 3"), &json!("B")));
    for (more, words) in [
        (
            &["--overwrite", "--map", "question=text"][..],
            "no field `text`; the first row has the fields `prompt`, `gold`, `a`, `b`",
        ),
        (&["--map", "anwser=gold"], "FIELD one of question, answer, choices, id"),
        (&["--from", "math", "--map", "question=prompt"], "`--map` is for `--from generic`"),
    ] {
        let arguments = if more[0] == "--from" {
            [&["tasks", "import", "rows.csv", "--out", "x.jsonl"], more].concat()
        } else {
            with(more)
        };
        let (code, _, talk) = verb(dir.path(), &arguments).await;
        assert!(code == Some(2) && talk.contains(words), "{talk}");
    }
}
