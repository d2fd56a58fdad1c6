//! `aegis score` as a user types it.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::program::aegis;

/// A failure of three steps as a line of a dataset.
pub fn failure(id: &str, agent: &str, step: u32, mode: &str) -> Value {
    let names = ["planner", "solver", "critic"];
    let steps: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            json!({"step": number, "agent": name, "input": null,
                "output": {"role": "assistant", "text": format!("{name} says {number}")}})
        })
        .collect();
    json!({
        "format": 1, "id": id, "kind": "failure", "system": "pipeline", "backend": "simulator",
        "task": {"id": format!("task-{id}"), "question": format!("what is {id}"), "answer": "4"},
        "outcome": "failure", "final_answer": "5", "steps": steps,
        "label": {"status": "verified", "definition": "injected", "outcome": "failure", "errors": [{
            "agent": agent, "step": step, "side": "response", "operator": "corrupt_number",
            "failure_mode": {"code": mode, "name": "x", "taxonomy": "MAST-2503.13657v2"}}],
            "evidence": {"clean": {"passed": 2, "of": 2}, "executed": {"perturbed": true, "null": {"passed": 6, "failed": 0},
                "treated": {"passed": 0, "failed": 6}, "pairs": 6, "e": 1792.0, "target": 1000.0}}},
        "clean_twin": null,
    })
}

pub fn write_lines(path: &Path, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").expect("written");
}

async fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[tokio::test]
async fn predictions_are_scored_beside_rules_without_a_model() {
    let dir = tempfile::tempdir().expect("a directory");
    let rows = [
        failure("r1", "solver", 1, "FM-2.6"),
        failure("r2", "planner", 0, "FM-1.1"),
        failure("r3", "critic", 2, "FM-3.3"),
    ];
    write_lines(&dir.path().join("gold.jsonl"), &rows);
    let said = [
        json!({"id": "r1", "agent": "Solver", "step": 1, "failure_mode": "FM-2.6"}),
        json!({"id": "r2", "response": "I would say\n```json\n{\"agent\": \"planner\", \"step\": 2}\n```"}),
        json!({"id": "r3", "response": "no idea"}),
    ];
    write_lines(&dir.path().join("said.jsonl"), &said);

    let (code, out, talk) = run(dir.path(), &["score", "said.jsonl", "--gold", "gold.jsonl", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let strict = &report["strict"];
    assert_eq!((&strict["accuracy"]["agent"]["hits"], &strict["accuracy"]["step"]["hits"]), (&json!(2), &json!(1)));
    assert_eq!((&strict["coverage"]["unparsed"], &strict["coverage"]["answered"]["hits"]), (&json!(1), &json!(2)));
    assert_eq!(strict["baselines"][0]["agent"], json!(1.0 / 3.0));
    assert!(talk.contains("RESULT  ok agent 66.7 %"), "{talk}");
    // One of three agents and one of fourteen modes are drawn for each of three runs with one label each.
    let drawn = strict["baselines"][0]["pair_f1"]["micro"].as_f64().expect("a figure");
    assert!((drawn - 1.0 / 42.0).abs() < 1e-12, "{drawn}");

    let table = ["score", "said.jsonl", "--gold", "gold.jsonl", "--table"];
    let (_, markdown, _) = run(dir.path(), &[&table[..], &["markdown"]].concat()).await;
    for line in [
        "| % | pair µF1 | pair MF1 | agent µF1 | agent MF1 | mode µF1 | mode MF1 | agent acc. | step acc. |",
        "| said | 50.0 | 33.3 | 80.0 | 66.7 | 50.0 | 33.3 | 66.7 | 33.3 |",
        "| random speaker, random step, random mode | 2.4 | ",
    ] {
        assert!(markdown.contains(line), "`{line}`: {markdown}");
    }
    let (_, latex, _) = run(dir.path(), &[&table[..], &["latex"]].concat()).await;
    assert!(latex.contains("\\begin{tabular}{lrrrrrrrr}") && latex.contains("\nsaid & 50.0 & 33.3 & "), "{latex}");

    let (code, out, _) = run(dir.path(), &["score", "said.jsonl", "--gold", "gold.jsonl", "--profile", "aegis"]).await;
    assert_eq!(code, Some(0));
    for words in [
        "Aegis evaluation/evaluate.py",
        "What to know about it:",
        "rules without a model",
        "by mode",
        "step ±5",
        "over 2 answers",
        "2/3",
        "100.0 [",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    // Each rate of a table says what it is of, and its interval.
    let table = out.lines().skip_while(|line| !line.starts_with("  by steps")).nth(1).expect("a line");
    assert!(table.matches("] ").count() >= 3 && table.matches("/3").count() >= 3, "{table}");
    let (_, out, talk) = run(dir.path(), &["score", "said.jsonl", "--gold", "gold.jsonl", "--reward", "aegis"]).await;
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(talk.contains("over 3 of 3 rows"), "{talk}");
}

#[tokio::test]
async fn a_table_has_a_row_for_each_method_and_columns_for_each_set_of_labels() {
    let dir = tempfile::tempdir().expect("a directory");
    write_lines(&dir.path().join("gold.jsonl"), &[failure("r1", "solver", 1, "FM-2.6")]);
    // The second set is whatever was not trained on.
    let row = |id: &str, method: &str, agent: &str, shown: bool| json!({"id": id, "method": method, "model": "m", "gold": shown, "predictions": [{"agent": agent, "step": 1}], "set": true});
    let mut clean = failure("w2", "planner", 0, "FM-1.1");
    (clean["kind"], clean["outcome"], clean["label"]) = ("clean".into(), "success".into(), Value::Null);
    write_lines(&dir.path().join("other.jsonl"), &[failure("w1", "planner", 0, "FM-1.1"), clean]);
    let rows =
        [row("r1", "sft", "solver", false), row("w1", "sft", "solver", false), row("w2", "sft", "solver", false)];
    write_lines(&dir.path().join("sft.jsonl"), &rows);
    write_lines(&dir.path().join("a2p.jsonl"), &[row("r1", "a2p", "planner", true)]);
    let files = ["score", "sft.jsonl", "a2p.jsonl", "--gold", "gold.jsonl", "--gold", "other.jsonl"];
    let (code, _, talk) = run(dir.path(), &files).await;
    assert!(code == Some(2) && talk.contains("--table markdown"), "{talk}");
    let (code, markdown, talk) = run(dir.path(), &[&files[..], &["--table", "markdown"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    for words in
        ["| gold: pair µF1 |", "| other: agent acc. | other: step acc. | other: clean blamed |", "\n| a2p + answer |"]
    {
        assert!(markdown.contains(words), "`{words}`: {markdown}");
    }
    let sft = markdown.lines().find(|line| line.starts_with("| sft |")).expect("a row");
    assert!(sft.ends_with("| 0.0 | 0.0 | 100.0 |"), "{sft}");
    let a2p = markdown.lines().find(|line| line.starts_with("| a2p + answer |")).expect("a row");
    assert!(a2p.ends_with("| - | - | - |"), "no prediction about the second set: {a2p}");
    // A file for each data set is one row of its method; two about one data set are two, called after their files.
    write_lines(&dir.path().join("one.jsonl"), &rows[..1]);
    write_lines(&dir.path().join("two.jsonl"), &rows[1..]);
    for (second, count) in [("two.jsonl", 1), ("sft.jsonl", 2)] {
        let files =
            ["score", "one.jsonl", second, "--gold", "gold.jsonl", "--gold", "other.jsonl", "--table", "markdown"];
        let (code, markdown, talk) = run(dir.path(), &files).await;
        assert_eq!(code, Some(0), "{talk}");
        let own: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| sft ")).collect();
        assert_eq!(own.len(), count, "{markdown}");
        assert!(count == 2 || own == [sft], "as of one file: {own:?}, not {sft}");
        assert!(count == 1 || own[0].starts_with("| sft (one) |") && own[1].starts_with("| sft (sft) |"), "{own:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_scored_is_said_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    write_lines(&dir.path().join("gold.jsonl"), &[failure("r1", "solver", 1, "FM-2.6")]);
    let mut several = failure("r1", "solver", 1, "FM-2.6");
    let error = several["label"]["errors"][0].clone();
    several["label"]["errors"].as_array_mut().expect("errors").push(error);
    write_lines(&dir.path().join("several.jsonl"), &[several]);
    fs::write(dir.path().join("said.jsonl"), "{\"id\":\"r1\",\"agent\":\"solver\"}\n{\"id\":\n").expect("written");
    fs::write(dir.path().join("other.jsonl"), "{\"id\":\"r2\",\"agent\":\"solver\"}\n").expect("written");
    for (arguments, code, words) in [
        (&["score", "said.jsonl", "--gold", "gold.jsonl"] as &[&str], 2, "said.jsonl: line 2, column 6"),
        (&["score", "other.jsonl", "--gold", "gold.jsonl"], 2, "did you mean `r1`?"),
        (&["score", "other.jsonl"], 2, "name them with `--gold DATASET`"),
        (&["score", "absent.jsonl", "--gold", "gold.jsonl"], 2, "cannot read `absent.jsonl`"),
        (&["score", "other.jsonl", "--gold", "absent"], 2, "`absent` is no dataset"),
        (&["score", "other.jsonl", "--gold", "said.jsonl"], 5, "said.jsonl:1"),
        (&["score", "other.jsonl", "--gold", "gold.jsonl", "--profile", "strikt"], 2, "did you mean `strict`?"),
        (
            &["score", "other.jsonl", "--gold", "several.jsonl", "--profile", "whowhen"],
            2,
            "`r1` was not imported from one",
        ),
    ] {
        let (found, _, talk) = run(dir.path(), arguments).await;
        assert_eq!(found, Some(code), "{arguments:?}: {talk}");
        assert!(talk.contains(words), "{arguments:?}: {talk}");
    }
}
