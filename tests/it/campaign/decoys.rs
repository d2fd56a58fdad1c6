//! Neutral changes that are planted as if they were errors: they are counted, and are no failures of anybody's.

use std::fs;

use serde_json::{Value, json};

use super::{Bench, PIPELINE, backend::Backend, json as json_of, plans, tasks};
use crate::program::verb;

fn rows(bench: &Bench, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(bench.out().join(file)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// A campaign before a backend that gets one figure in so many wrong, by the bytes that it is asked.
async fn campaign(of: u8, first: usize, proof: &str) -> (Bench, Backend, String) {
    let backend = Backend::chaotic(of).await;
    let plans = plans(&["corrupt-number", "negate-verdict"], "\"pipeline\"");
    let bench = Bench::new(&format!("{}{proof}{PIPELINE}{plans}", tasks(first)));
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert!(code.is_some_and(|code| code < 2), "{said}");
    (bench, backend, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn decoys_are_planted_proven_like_errors_counted_and_no_data() {
    let (bench, backend, said) = campaign(40, 8, "proof.decoys = 0.5\n").await;
    let report = bench.report();
    let (planted, verified) = (&report["decoys"]["planted"], &report["decoys"]["verified"]);
    assert!(planted.as_u64().is_some_and(|planted| planted >= 5) && verified == 0, "{said}");
    assert!(said.contains(&format!("decoys    0 of {planted} decoys verified: at most")), "{said}");
    let page = fs::read_to_string(bench.out().join("report.md")).expect("a page");
    assert!(page.contains(&format!("0 of {planted} decoys verified")), "{page}");
    // They stand apart in every count, and beside no run that a label calls verified.
    let decoys = report["decoy_cells"].as_array().expect("decoys");
    assert_eq!(json!(decoys.len()), *planted);
    assert_eq!(report["funnel"]["attempts"], json!(report["cells"].as_array().expect("cells").len()));
    let sum: u64 = report["classes"].as_object().expect("classes").values().filter_map(Value::as_u64).sum();
    assert_eq!(report["funnel"]["attempts"], json!(sum));
    for decoy in decoys {
        assert_eq!(decoy["aims"][0]["operator"], "neutral_change", "{decoy}");
        let label = bench.out().join("logs").join(decoy["run"].as_str().expect("a run")).join("label.json");
        assert_eq!(json_of(&label)["status"], "delivered", "{decoy}");
    }
    let own = rows(&bench, "decoys.jsonl");
    assert!(own.iter().all(|row| row["kind"] == "decoy") && json!(own.len()) == *planted);
    let data = rows(&bench, "dataset.jsonl");
    assert!(!data.is_empty() && data.iter().all(|row| row["kind"] != "decoy"));
    let manifest = json_of(&bench.out().join("dataset.json"));
    assert_eq!((&manifest["decoys"]["planted"], &manifest["kinds"]["decoy"]), (planted, planted));
    let (code, linted, _) = verb(bench.dir.path(), &["lint", "out"]).await;
    assert_eq!(code, Some(0), "{linted}");
    let (code, linted, _) = verb(bench.dir.path(), &["lint", "out/decoys.jsonl"]).await;
    assert_eq!(code, Some(0), "{linted}");
    let before = rows(&bench, "decoys.jsonl");
    let (code, _, again) = bench.run(&["--resume", "--upstream", &backend.url]).await;
    assert_eq!(code, Some(0), "{again}");
    assert_eq!(rows(&bench, "decoys.jsonl"), before, "the same decoys each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_whose_decoys_are_verified_is_not_trustworthy() {
    let (bench, _, said) = campaign(40, 8, "proof.decoys = 0.5\n").await;
    let path = bench.out().join("decoys.jsonl");
    let mut all = rows(&bench, "decoys.jsonl");
    let row = all.iter_mut().find(|row| !row["label"].is_null()).expect("a label");
    row["label"]["status"] = "verified".into();
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").expect("written");
    let (code, linted, _) = verb(bench.dir.path(), &["lint", "out"]).await;
    assert_eq!(code, Some(1), "{linted}");
    assert!(linted.contains("decoys-verified") && linted.contains("manifest-differs"), "{linted}");
    let export = ["export", "out", "--to", "whowhen", "--out", "exported"];
    let (code, _, refused) = verb(bench.dir.path(), &export).await;
    assert!(code == Some(1) && refused.contains("not trustworthy: 1 of"), "{refused}\n{said}");
    let allowed = [&export[..], &["--allow", "decoys-verified", "--allow", "manifest-differs"]].concat();
    let (code, _, said) = verb(bench.dir.path(), &allowed).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_outcome_any_change_turns_is_chaotic_and_gets_no_label() {
    let (bench, _, said) = campaign(6, 5, "proof.chaotic = 0.1\n").await;
    let report = bench.report();
    let chaotic = report["clean"]["chaotic"].as_u64().expect("a count");
    assert!(chaotic > 0 && said.contains("are chaotic: neutral changes alone turn the outcome too often"), "{said}");
    let tasks = report["tasks"].as_array().expect("tasks").iter().filter(|task| task["chaotic"] == true);
    let tasks: Vec<&str> = tasks.filter_map(|task| task["task"].as_str()).collect();
    assert_eq!(tasks.len() as u64, chaotic);
    let cells = report["cells"].as_array().expect("cells").iter();
    let of_them: Vec<&Value> = cells.filter(|cell| tasks.contains(&cell["task"].as_str().unwrap_or(""))).collect();
    assert!(of_them.iter().any(|cell| cell["class"] == "void"), "{of_them:#?}");
    assert!(of_them.iter().all(|cell| cell["class"] != "verified"), "{of_them:#?}");
    let void = of_them.iter().find(|cell| cell["class"] == "void").expect("a void one");
    assert!(void["why"].as_str().is_some_and(|why| why.starts_with("chaotic: ")), "{void}");
    let label = bench.out().join("logs").join(void["run"].as_str().expect("a run")).join("label.json");
    assert_eq!(json_of(&label)["status"], "void");
    let (_, foretold, error) = verb(bench.dir.path(), &["campaign", "c.toml", "--out", "out", "--dry-run"]).await;
    assert!(foretold.contains(&format!("chaotic      {chaotic} of the tasks")), "{foretold}{error}");
}
