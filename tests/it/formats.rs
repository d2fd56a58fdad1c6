//! `aegis import` and `aegis export` as a user types them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    program::aegis,
    score::{failure, write_lines},
};

async fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[tokio::test]
async fn one_recorded_run_goes_out_where_nothing_is_claimed() {
    let dir = tempfile::tempdir().expect("a directory");
    let task = "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
    let program = ["--", crate::program::AEGIS, "example", "pipeline", "--task", task];
    let (code, _, talk) =
        run(dir.path(), &[&["run", "--upstream", "simulator", "--run", "one"][..], &program].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let before = fs::read(dir.path().join("logs/one/run.json")).expect("a manifest");
    for format in ["har", "otlp", "inspect", "atif"] {
        let (code, _, talk) = run(dir.path(), &["export", "logs/one", "--to", format, "--out", format]).await;
        assert_eq!(code, Some(0), "{format}: {talk}");
        let path = dir.path().join(format);
        let file = if path.is_dir() {
            fs::read_dir(&path).expect("lists").next().expect("one").expect("an entry").path()
        } else {
            path
        };
        assert!(fs::read_to_string(file).expect("readable").contains("12 boxes"), "{format}");
    }
    for (format, out, words) in [
        ("sft", "x.jsonl", "one recorded run goes out as inspect, atif, otlp, har"),
        ("har", "logs/one/run.json", "would be lost"),
        ("har", "logs/one/new.json", "would be lost"),
    ] {
        let (code, _, talk) = run(dir.path(), &["export", "logs/one", "--to", format, "--out", out]).await;
        assert!(code == Some(2) && talk.contains(words), "{talk}");
    }
    assert_eq!(fs::read(dir.path().join("logs/one/run.json")).expect("there"), before);
}

/// Two layouts of a benchmark, with a defect in each.
fn benchmark(dir: &Path) {
    let entry = |name: &str, text: &str| json!({"content": text, "role": "user", "name": name});
    let generated = json!({"is_correct": false, "question": "q", "question_ID": "same", "level": "1", "ground_truth": "4",
        "history": [entry("Expert", "go"), entry("Computer_terminal", "")], "mistake_agent": "Expert", "mistake_step": "1",
        "mistake_reason": "r", "system_prompt": {}});
    let crafted = json!({"is_corrected": false, "question": "q", "question_ID": "same", "ground_truth": "4",
        "history": [{"content": "go", "role": "human"}, {"content": "look", "role": "WebSurfer"}],
        "mistake_agent": "Websurfer", "mistake_step": "1", "mistake_reason": "r"});
    for (folder, file) in [("Generated", generated), ("Crafted", crafted)] {
        fs::create_dir_all(dir.join(folder)).expect("made");
        fs::write(dir.join(folder).join("2.json"), file.to_string()).expect("written");
    }
}

#[tokio::test]
async fn a_benchmark_comes_in_with_its_defects_and_goes_out_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    benchmark(&dir.path().join("bench"));
    let (code, out, talk) = run(dir.path(), &["import", "--from", "whowhen", "bench", "--out", "in"]).await;
    assert_eq!(code, Some(0), "{talk}");
    for words in [
        "agent-case (1)",
        "empty-content (1)",
        "other-speaker (1)",
        "shared-task (1)",
        "Generated/2.json: label `Expert`",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(talk.contains("RESULT  ok 2 samples from 2 files, 4 defects"), "{talk}");
    crate::contract::files_have(dir.path(), &["files/import"]);
    let report: Value =
        serde_json::from_slice(&fs::read(dir.path().join("in/import.json")).expect("a report")).expect("JSON");
    assert_eq!(report["rules"]["agent-case"], json!(1));

    let (code, _, talk) = run(dir.path(), &["import", "--from", "whowhen", "bench/Generated", "--out", "one"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let (code, _, talk) = run(dir.path(), &["export", "one", "--to", "whowhen", "--out", "back"]).await;
    assert_eq!(code, Some(0), "what was imported is not refused: {talk}");
    let read =
        |path: &str| serde_json::from_slice::<Value>(&fs::read(dir.path().join(path)).expect("a file")).expect("JSON");
    assert_eq!(read("back/2.json"), read("bench/Generated/2.json"));
    crate::contract::files_have(dir.path(), &["files/export"]);
    assert_eq!(
        read("back.manifest.json")["files"]["2.json"]["bytes"],
        fs::metadata(dir.path().join("back/2.json")).expect("a file").len()
    );
}

#[tokio::test]
async fn what_cannot_be_written_or_read_is_said_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    write_lines(&dir.path().join("own.jsonl"), &[failure("r1", "solver", 1, "FM-2.6")]);
    fs::write(dir.path().join("cut.json"), "{\"history\": [").expect("written");
    fs::write(dir.path().join("bad.txt"), "{questoin}\n{conversation}").expect("written");
    let export = ["export", "own.jsonl", "--out", "out"];
    for (more, code, words) in [
        (&["--to", "sft"] as &[&str], 1, "lint refuses the dataset"),
        (&["--to", "grppo"], 2, "did you mean `grpo`?"),
        (&["--to", "sft", "--allow", "unprovn"], 2, "did you mean `unproven`?"),
        (&["--to", "sft", "--template", "bad.txt"], 2, "bad.txt: line 1: `{questoin}` is no place"),
        (&["--to", "sft", "--max-prompt", "5"], 2, "256"),
    ] {
        let (found, _, talk) = run(dir.path(), &[&export, more].concat()).await;
        assert_eq!(found, Some(code), "{more:?}: {talk}");
        assert!(talk.contains(words) && !dir.path().join("out").exists(), "{more:?}: {talk}");
    }
    let (code, _, talk) = run(dir.path(), &["import", "--from", "mast", "cut.json", "--out", "in"]).await;
    assert_eq!(code, Some(2), "{talk}");
    assert!(talk.contains("cut.json") && talk.contains("not-json"), "{talk}");
    let (code, out, _) = run(dir.path(), &["export", "--list"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 18), "{out}");
}

#[tokio::test]
async fn nothing_is_lost_without_a_word() {
    let dir = tempfile::tempdir().expect("a directory");
    benchmark(&dir.path().join("bench"));
    let import = ["import", "--from", "whowhen", "bench/Generated", "--out"];
    let (code, _, talk) = run(dir.path(), &[&import[..], &["set"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    fs::create_dir_all(dir.path().join("campaign/cells")).expect("made");
    let kept = fs::read(dir.path().join("set/dataset.jsonl")).expect("there");
    for (out, words) in [("set", "holds a dataset"), ("campaign", "holds a campaign")] {
        let (code, _, talk) = run(dir.path(), &[&import[..], &[out]].concat()).await;
        assert_eq!(code, Some(2), "{talk}");
        assert!(talk.contains(words) && talk.contains("--overwrite"), "{talk}");
    }
    assert!(!dir.path().join("campaign/dataset.jsonl").exists());
    let (code, _, talk) = run(dir.path(), &[&import[..], &["set", "--overwrite"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");

    fs::write(dir.path().join("set/report.json"), "{}").expect("written");
    for (to, out) in [
        ("sft", "set/dataset.jsonl"),
        ("sft", "set/dataset.json"),
        ("sft", "set/report.json"),
        ("sft", "bench/../set/dataset.jsonl"),
        ("whowhen", "set"),
        ("whowhen", "."),
    ] {
        let (code, _, talk) = run(dir.path(), &["export", "set", "--one-file", "--to", to, "--out", out]).await;
        assert_eq!(code, Some(2), "{to} {out}: {talk}");
        assert!(talk.contains("lies with the dataset that is read"), "{to} {out}: {talk}");
    }
    assert_eq!(fs::read(dir.path().join("set/dataset.jsonl")).expect("there"), kept);
    for _ in 0..2 {
        let (code, _, talk) = run(dir.path(), &["export", "set", "--to", "sft", "--out", "set/sft.jsonl"]).await;
        assert_eq!(code, Some(0), "a file of its own, and again: {talk}");
        assert!(dir.path().join("set/sft-unsplit.jsonl").is_file());
    }
    let (_, out, _) = run(dir.path(), &["export", "set", "--to", "sft", "--out", "set/sft.jsonl"]).await;
    let wrote: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("wrote: ")?.split("  ").next()).collect();
    assert!(wrote.len() > 1 && wrote.contains(&"set/sft.jsonl.manifest.json"), "{out}");
    assert!(wrote.iter().all(|path| dir.path().join(path).is_file()), "{out}");
    assert!(out.contains("replaced: the earlier export at set/sft.jsonl"), "{out}");
    fs::write(dir.path().join("notes.jsonl"), "mine").expect("written");
    let (code, _, talk) = run(dir.path(), &["export", "set", "--to", "whowhen", "--out", "notes.jsonl"]).await;
    assert!(code == Some(2) && talk.contains("`notes.jsonl` exists and is not an earlier export"), "{talk}");
    assert_eq!(fs::read_to_string(dir.path().join("notes.jsonl")).expect("there"), "mine");
    fs::write(dir.path().join("set/mine-unsplit.jsonl"), "{}").expect("written");
    let (code, _, talk) = run(dir.path(), &["export", "set", "--to", "sft", "--out", "set/mine.jsonl"]).await;
    assert!(code == Some(2) && talk.contains("set/mine-unsplit.jsonl"), "a part's file is spared, too: {talk}");
}
