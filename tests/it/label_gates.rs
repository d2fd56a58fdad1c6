//! One scenario, one answer: whichever verb executes a program, and whichever looks at the run afterwards, they say the same of
//! its label.

mod bench;
mod column;
pub mod team;

use std::fs;

use aegis::ruling::NoLabel;
use serde_json::{Value, json};

use self::{
    bench::{Bench, MadeRun, words},
    column::{Column, VERBS},
};
use crate::{program::verb, viewer::View};

/// What differs in a column from its one answer, by verb and by who looks.
async fn mismatches(column: Column) -> Vec<String> {
    let bench = Bench::new(column).await;
    let mut found = Vec::new();
    for by in VERBS.into_iter().filter(|by| bench.column.impossible(*by).is_none()) {
        let run = bench.execute(by).await;
        for what in looked_at(&bench, &run).await {
            found.push(format!("{} by {by:?}: {what}", bench.column.name));
        }
    }
    found
}

/// What the verb says of the run's label, and each of those that look at a run, where it is not the column's answer.
async fn looked_at(bench: &Bench, run: &MadeRun) -> Vec<String> {
    let (answer, path) = (bench.column.answer, run.dir.to_str().expect("text"));
    let sentence = answer.map(|why| why.to_string());
    let mut found = Vec::new();
    let mut differs = |is_right: bool, what: String| found.extend((!is_right).then_some(what));
    let said = match (&run.said, &sentence) {
        (Some(Err(said)), Some(why)) => said.contains("no label: ") && said.contains(why.as_str()),
        (Some(said), why) => said.is_ok() == why.is_none(),
        (None, _) => true,
    };
    differs(said, format!("it says {:?}", run.said));
    // A label that was written before its step was seen otherwise stays in its file, and is said not to hold.
    let stands = answer.is_none() || bench.column.late && run.planned;
    differs(run.dir.join("label.json").exists() == stands, "label.json".to_owned());
    if stands && answer.is_none() {
        differs(bench.is_true(run), format!("what the label says: {:?}", label_of(run)));
    }
    let refusal = answer.map(|why| words(why, run.planned));
    let view = View::of(bench.dir.path(), &[path]).await;
    let shown = bench.json(&["show", path, "--format", "json"]).await;
    differs(shown["label"].is_null() != stands, format!("show: label {}", shown["label"]));
    differs(shown["no_label"].as_str() == refusal.as_deref(), format!("show: no_label {}", shown["no_label"]));
    let standing_refusal = refusal.as_deref().filter(|_| stands);
    let listed = bench.json(&["runs", path, "--format", "json"]).await;
    let own = |rows: &Value| {
        let row = rows["runs"].as_array().and_then(|rows| rows.iter().find(|row| row["trial_of"].is_null())).cloned();
        row.unwrap_or_else(|| panic!("{rows:#}"))
    };
    for (who, row) in [("runs", own(&listed)), ("view: the list", own(&view.get("/api/tree").await))] {
        differs(row["label"].is_null() != stands, format!("{who}: label {}", row["label"]));
        differs(row["label"]["refused"].as_str() == standing_refusal, format!("{who}: refused {}", row["label"]));
    }
    let text = verb(bench.dir.path(), &["show", path]).await.1;
    let line = refusal.as_ref().is_none_or(|why| text.contains(&format!(": {why}")));
    differs(line && text.contains("label    none: ") != stands, format!("show: {text}"));
    let step = bench.step(&run.dir).await;
    let about_step = answer.filter(|why| why.is_about_identity());
    let about_step = about_step.or(bench.column.of_step);
    let about_step = about_step.map(|why| json!(why)).unwrap_or_default();
    differs(step["labels"] == about_step.is_null() && step["no_label"] == about_step, format!("agents: {step}"));
    let linted = bench.linted(&run.dir).await;
    differs(lint_says(&linted, answer, run.planned), format!("lint: {:#}", linted["findings"]));
    let key = own(&listed)["key"].as_str().expect("a key").to_owned();
    let head = view.get(&format!("/api/run/{key}")).await["head"].clone();
    differs(head["label"].is_null() != stands, format!("view: label {}", head["label"]));
    differs(head["no_label"].as_str() == refusal.as_deref(), format!("view: no_label {}", head["no_label"]));
    found
}

/// The label's file.
fn label_of(run: &MadeRun) -> String {
    fs::read_to_string(run.dir.join("label.json")).unwrap_or_default()
}

/// Whether lint says of a row whose label names the step what the gates say; rows mark steps whose agent is in doubt.
fn lint_says(linted: &Value, answer: Option<NoLabel>, planned: bool) -> bool {
    let findings = linted["findings"].as_array().cloned().unwrap_or_default();
    let about = |rule: &str, what: &str| {
        findings.iter().any(|one| one["rule"] == rule && one["what"].as_str().is_some_and(|said| said.contains(what)))
    };
    let refusal = "no label may name what was done there";
    match answer {
        // A row of a run that nothing was planted in is no row of a planted error.
        None => !about("recording-differs", refusal),
        Some(why) if why.is_about_identity() => {
            about("ambiguous-step", "may belong to another") || about("recording-differs", &why.to_string())
        }
        Some(why) => about("recording-differs", refusal) && (!planned || about("recording-differs", &why.to_string())),
    }
}

async fn assert_one_answer(columns: Vec<Column>) {
    let all = columns.into_iter().map(|column| tokio::spawn(mismatches(column)));
    let mut found = Vec::new();
    for one in all.collect::<Vec<_>>() {
        found.extend(one.await.expect("it came to an end"));
    }
    assert!(found.is_empty(), "{} answers differ:\n{}", found.len(), found.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_speaks_against_a_step_has_one_answer_whoever_executes_and_whoever_looks() {
    assert_one_answer(column::of_steps()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_speaks_against_a_run_has_one_answer_whoever_executes_and_whoever_looks() {
    assert_one_answer(column::of_runs()).await;
}
