//! `aegis certify`: judges are measured on executed labels, and what is certified follows from data and answers.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    attribute::{ScriptedJudge, rows},
    program::{AEGIS, aegis},
};

const TASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tasks.jsonl");

async fn say(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Failures of the solver, clean runs and decoys, drawn with a seed that the file does not hold.
async fn fresh(dir: &Path) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    fs::copy(TASKS, dir.join("tasks.jsonl")).expect("copied");
    let campaign = format!(
        "seed = 7\nupstream = \"simulator\"\nverify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\n\
         tasks = {{ file = \"tasks.jsonl\", first = 12 }}\nproof = {{ repeatable = true, decoys = 0.5 }}\n\
         [[plan]]\nfile = \"corrupt-number\"\n\
         [[system]]\nname = \"pipeline\"\ncommand = [\"{AEGIS}\", \"example\", \"pipeline\", \"--task\", \"{{question}}\"]\n\
         config = \"{config}\"\n"
    );
    fs::write(dir.join("campaign.toml"), campaign).expect("written");
    let (code, text) = say(dir, &["campaign", "campaign.toml", "--seed", "4242", "--out", "fresh"]).await;
    assert_eq!(code, Some(0), "{text}");
}

/// A judge who knows the right answers, and says what this says of a run that it finds wrong or right.
async fn judge(wrong: Value, right: Value) -> ScriptedJudge {
    let tasks = rows(Path::new(TASKS));
    ScriptedJudge::start(move |body| {
        let asked = body["messages"][0]["content"].as_str().unwrap_or_default();
        let task = tasks.iter().find(|task| asked.contains(task["question"].as_str().expect("a question")));
        let answer = task.expect("a task that is known")["answer"].as_str().expect("an answer");
        let good = asked.rsplit("ANSWER: ").next().is_some_and(|last| last.starts_with(answer));
        (200, if good { right.to_string() } else { wrong.to_string() })
    })
    .await
}

fn solver() -> Value {
    json!({"faulty_agents": [{"agent_name": "solver", "step": 1, "error_type": "FM-2.6"}]})
}

fn nobody() -> Value {
    json!({"faulty_agents": []})
}

#[tokio::test]
async fn bounds_certify_who_sees_failures_and_is_silent_elsewhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    let cases = [
        ("right", judge(solver(), nobody()).await, Some(0), "sft certified: detection ≥"),
        ("alarmed", judge(solver(), solver()).await, Some(1), "silence in clean runs: 0 of "),
        ("silent", judge(nobody(), nobody()).await, Some(1), "detection: 0 of "),
    ];
    for (name, model, exit, says) in &cases {
        let url = model.url();
        let certify = ["certify", "fresh", "--tracer", "sft", "--upstream", &url, "--model", "m", "--out", name];
        let (code, text) = say(dir, &[&certify[..], &["--least", "0.5", "--log-dir", "judged"]].concat()).await;
        assert!(code == *exit && text.contains(says), "{name}: {text}");
        let (code, text) = say(dir, &["certify", "fresh", "--check", name]).await;
        assert!(code == Some(0) && text.contains("follows from the data set and the answers"), "{name}: {text}");
    }
    crate::contract::files_have(dir, &["files/certificate"]);
    let stated: Value =
        serde_json::from_slice(&fs::read(dir.join("right/certificate.json")).expect("it")).expect("JSON");
    let runs = &stated["data"]["runs"];
    for (figure, of) in [("detection", "failure"), ("silence", "clean"), ("place", "failure"), ("mode", "failure")] {
        let share = &stated["figures"][figure];
        assert!(share["hits"] == share["of"] && share["of"] == runs[of], "{figure}: {stated}");
    }
    // Decoys are asked about, too; who always blames the solver blames it where the change was neutral.
    let planted = rows(&dir.join("fresh/decoys.jsonl")).len();
    assert!(planted > 0 && runs["decoy"] == json!(planted), "{stated}");
    let decoys = |name: &str| of_certificate(dir, name)["figures"]["silence_decoy"].clone();
    assert_eq!((&decoys("alarmed")["hits"], &decoys("alarmed")["of"]), (&json!(0), &json!(planted)));
    assert_eq!(decoys("silent")["hits"], json!(planted));
    assert!(!stated.to_string().contains("4242"), "the seed is nobody's: {stated}");
    // The same answers, as `attribute` wrote them.
    let url = cases[0].1.url();
    let attribute = ["attribute", "fresh", "--tracer", "sft", "--upstream", &url, "--model", "m", "--every-kind"];
    say(dir, &[&attribute[..], &["--out", "said.jsonl", "--log-dir", "judged"]].concat()).await;
    let (code, text) =
        say(dir, &["certify", "fresh", "--answers", "said.jsonl", "--least", "0.5", "--out", "said"]).await;
    assert_eq!(code, Some(0), "{text}");
    for part in ["figures", "certification", "data", "judge"] {
        assert_eq!(of_certificate(dir, "said")[part], stated[part]);
    }
}

#[tokio::test]
async fn a_seed_is_told_on_request_and_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    let certify = ["certify", "fresh", "--method", "rules", "--reveal", "--out", "told"];
    let (code, text) = say(dir, &certify).await;
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(of_certificate(dir, "told")["data"]["revealed_seed"], 4242);
    let (code, text) = say(dir, &["certify", "fresh", "--check", "told"]).await;
    assert_eq!(code, Some(0), "{text}");
    let path = dir.join("told/certificate.json");
    let text = fs::read_to_string(&path).expect("it").replace("4242", "4243");
    fs::write(&path, text).expect("written");
    let (code, text) = say(dir, &["certify", "fresh", "--check", "told"]).await;
    assert!(code == Some(1) && text.contains("/data/revealed_seed"), "{text}");
}

fn of_certificate(dir: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(name).join("certificate.json")).expect("it")).expect("JSON")
}

#[tokio::test]
async fn methods_are_measured_by_whom_they_blame_in_clean_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    // Asked who erred, these always say somebody.
    let script =
        ScriptedJudge::start(|_| (200, "Agent Name: solver\nStep Number: 1\nReason for Mistake: r".to_owned())).await;
    let fields = json!({"reason": "r", "agent": "solver", "step": 1, "quote": "", "fix": "", "failure_mode": ""});
    let method = ScriptedJudge::start(move |_| (200, fields.to_string())).await;
    let (script, method) = (script.url(), method.url());
    for (options, says) in [
        (&["--tracer", "whowhen", "--upstream", &script][..], "silence in clean runs: 0 of"),
        (&["--method", "all-at-once", "--upstream", &method], "silence in clean runs: 0 of"),
        (&["--method", "rules"], "rules not certified: detection ≥"),
    ] {
        let out = options[1];
        let line = ["certify", "fresh", "--model", "m", "--out", out, "--log-dir", "judged"];
        let (code, text) = say(dir, &[&line[..], options].concat()).await;
        assert!(code == Some(1) && text.contains(says), "{options:?}: {text}");
        let (code, text) = say(dir, &["certify", "fresh", "--check", out]).await;
        assert_eq!(code, Some(0), "{text}");
    }
    for name in ["whowhen", "all-at-once"] {
        let figures = of_certificate(dir, name)["figures"].clone();
        let detection = &figures["detection"];
        assert!(detection["hits"] == detection["of"] && figures["abstained"]["hits"] == 0, "{name}: {figures}");
    }
    // A method that sees no error in a clean run says that nobody erred.
    let silence = of_certificate(dir, "rules")["figures"]["silence"].clone();
    assert!(silence["share"].as_f64().is_some_and(|share| share > 0.5), "{silence}");
    assert!(
        of_certificate(dir, "rules")["figures"]["calibration"].is_null(),
        "a score that orders steps is no confidence"
    );
}

#[tokio::test]
async fn whatever_is_changed_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    let model = judge(solver(), nobody()).await;
    let url = model.url();
    let certify = ["certify", "fresh", "--tracer", "sft", "--upstream", &url, "--model", "m", "--out", "stated"];
    say(dir, &[&certify[..], &["--least", "0.5", "--log-dir", "judged"]].concat()).await;
    let (code, text) = say(dir, &certify).await;
    assert!(code == Some(2) && text.contains("`stated` holds a certificate"), "{text}");
    let files = [
        "stated/certificate.json",
        "stated/certificate.md",
        "stated/answers.jsonl",
        "fresh/dataset.jsonl",
        "fresh/decoys.jsonl",
    ];
    let texts = files.map(|file| fs::read_to_string(dir.join(file)).expect("text"));
    let mut changes: Vec<(usize, String)> = Vec::new();
    let stated: Value = serde_json::from_str(&texts[0]).expect("JSON");
    let mut leaves = Vec::new();
    leaves_of(&stated, String::new(), &mut leaves);
    for leaf in leaves {
        let mut changed = stated.clone();
        let value = changed.pointer_mut(&leaf).expect("a leaf");
        *value = if value.is_number() { json!(99) } else { json!("else") };
        changes.push((0, serde_json::to_string_pretty(&changed).expect("JSON")));
    }
    changes.push((1, texts[1].replace("100.0 %", "99.0 %")));
    changes.push((2, texts[2].replacen("\"solver\"", "\"critic\"", 1)));
    changes.push((2, texts[2].split_inclusive('\n').skip(1).collect()));
    changes.push((3, texts[3].replacen("FM-2.6", "FM-2.5", 1)));
    changes.push((4, texts[4].split_inclusive('\n').skip(1).collect()));
    for (file, text) in &changes {
        fs::write(dir.join(files[*file]), text).expect("written");
        let (code, said) = say(dir, &["certify", "fresh", "--check", "stated"]).await;
        assert!(code == Some(1) && said.contains("does not follow"), "{}: {said}\n{text}", files[*file]);
        fs::write(dir.join(files[*file]), &texts[*file]).expect("written");
    }
    let (code, said) = say(dir, &["certify", "fresh", "--check", "stated"]).await;
    assert_eq!(code, Some(0), "{said}");
}

fn leaves_of(value: &Value, at: String, leaves: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves_of(value, format!("{at}/{name}"), leaves));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at_item, value)| leaves_of(value, format!("{at}/{at_item}"), leaves));
        }
        _ => leaves.push(at),
    }
}

#[tokio::test]
async fn who_cannot_be_measured_is_told_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    let export = ["export", "fresh", "--to", "sft", "--one-file", "--out", "train.jsonl"];
    let (code, text) = say(dir, &export).await;
    assert_eq!(code, Some(0), "{text}");
    fs::write(dir.join("mine.toml"), "prompt = \"train.jsonl\"\nupstream = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n")
        .expect("written");
    // Parts have files of their own, and one manifest.
    let (code, text) = say(dir, &["export", "fresh", "--to", "sft", "--out", "parted.jsonl"]).await;
    assert_eq!(code, Some(0), "{text}");
    let id = rows(&dir.join("fresh/dataset.jsonl"))[0]["id"].clone();
    let said = |method: &str| json!({"id": id, "method": method, "agent": "solver", "step": 1}).to_string() + "\n";
    fs::write(dir.join("two.jsonl"), said("a") + &said("b")).expect("written");
    fs::write(dir.join("twice.jsonl"), said("a") + &said("a")).expect("written");
    let row =
        |kind: &str| rows(&dir.join("fresh/dataset.jsonl")).into_iter().filter(|row| row["kind"] == kind).collect();
    let only = |name: &str, rows: Vec<Value>| {
        fs::create_dir(dir.join(name)).expect("made");
        let text = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        fs::write(dir.join(name).join("dataset.jsonl"), text).expect("written");
    };
    only("failures", row("failure"));
    only("clean", row("clean"));
    let mut unproven: Vec<Value> = row("failure");
    unproven[0]["label"]["status"] = "delivered".into();
    only("unproven", unproven);
    fs::write(dir.join("foreign.jsonl"), "{\"id\": \"x\", \"agent\": \"solver\", \"step\": 1}\n").expect("written");
    for (options, why) in [
        (&["fresh"][..], "a certificate is of one judge"),
        (&["fresh", "--tracer", "parted.jsonl.manifest.json"], "runs of the data set: a judge that learnt"),
        (&["fresh", "--tracer", "parted-train.jsonl"], "runs of the data set: a judge that learnt"),
        (&["fresh", "--answers", "two.jsonl"], "the answers are of a, b, and a certificate is of one judge"),
        (&["fresh", "--answers", "twice.jsonl"], "two are about the run"),
        (&["fresh", "--method", "learned"], "no file of it is named"),
        (&["fresh", "--tracer", "mine.toml"], "runs of the data set: a judge that learnt"),
        (&["fresh", "--answers", "foreign.jsonl"], "none of them is about a run of the data set"),
        (&["failures", "--tracer", "sft"], "holds no clean run"),
        (&["clean", "--tracer", "sft"], "holds no proven failure"),
        (&["unproven", "--tracer", "sft"], "1 failure whose label is not proven"),
        (&["fresh", "--tracer", "sft", "--least", "2"], "above 0 and below 1"),
        (&["fresh", "--check", "none"], "certify DATASET --tracer NAME --out DIR"),
    ] {
        let (code, text) = say(dir, &[&["certify"][..], options].concat()).await;
        assert!(code == Some(2) && text.contains(why), "{options:?}: {text}");
    }
}

/// Nothing is known of a judge then, and nothing is written.
#[tokio::test]
async fn a_budget_that_ends_and_a_judge_who_is_not_there_certify_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fresh(dir).await;
    let url = judge(solver(), nobody()).await.url();
    let certify = ["certify", "fresh", "--tracer", "sft", "--model", "m", "--log-dir", "judged", "--upstream"];
    for (more, exit, why) in [
        (&[url.as_str(), "--budget", "calls=2", "--jobs", "1"][..], 4, "the budget ended before"),
        (&["http://127.0.0.1:1/v1"], 3, "the judge answered nothing"),
    ] {
        let (code, text) = say(dir, &[&certify[..], more].concat()).await;
        assert!(code == Some(exit) && text.contains(why), "{text}");
        assert!(!dir.join("certificate").exists());
    }
    // Rows under whatever name are bound, and rows of verl name their runs in their own place.
    let (_, text) = say(dir, &["export", "fresh", "--to", "verl", "--out", "verl.parquet"]).await;
    let (code, refused) = say(dir, &["certify", "fresh", "--tracer", "verl.parquet.manifest.json"]).await;
    assert!(code == Some(2) && refused.contains("runs of the data set: a judge that learnt"), "{text}{refused}");
    fs::copy(dir.join("fresh/dataset.jsonl"), dir.join("rows.jsonl")).expect("copied");
    let answers: Vec<String> = rows(&dir.join("rows.jsonl"))
        .iter()
        .map(|row| json!({"id": row["id"], "method": "x", "predictions": [], "set": true}).to_string())
        .collect();
    fs::write(dir.join("said.jsonl"), answers.join("\n")).expect("written");
    say(dir, &["certify", "rows.jsonl", "--answers", "said.jsonl", "--out", "stated"]).await;
    let text = fs::read_to_string(dir.join("rows.jsonl")).expect("rows");
    fs::write(dir.join("rows.jsonl"), text.replacen("\"question\":\"", "\"question\":\"Now: ", 1)).expect("written");
    let (code, text) = say(dir, &["certify", "rows.jsonl", "--check", "stated"]).await;
    assert!(code == Some(1) && text.contains("/data/files/rows.jsonl"), "{text}");
}
