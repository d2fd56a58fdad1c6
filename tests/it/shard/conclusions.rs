//! What a part concluded is believed as far as its runs and its campaign are those that it concluded of, and no further.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{DATA, ShardBench, copy, names};

/// A bench with what one machine makes, and the same as one part.
async fn made(tasks: usize) -> ShardBench {
    let bench = ShardBench::new(tasks).await;
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    assert_eq!(bench.campaign("out", &["-q", "--shard", "0/1"]).await.code, Some(0));
    bench
}

/// The recordings below a directory hold nothing that could be read; their seals are as they were.
fn spoil_logs(dir: &Path) {
    for run in fs::read_dir(dir.join("logs")).expect("logs").flatten() {
        for name in ["log.jsonl", "log.jsonl.zst"] {
            let path = run.path().join(name);
            if path.is_file() {
                fs::remove_file(&path).expect("removed");
                fs::write(&path, "nothing of this can be read").expect("written");
            }
        }
    }
}

fn chain_files(dir: &Path) -> Vec<PathBuf> {
    names(&dir.join("chains")).into_iter().map(|name| dir.join("chains").join(name)).collect()
}

/// The head of a conclusion's file, and what follows.
fn taken_apart(path: &Path) -> (Value, Vec<u8>) {
    let bytes = fs::read(path).expect("read");
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a head");
    (serde_json::from_slice(&bytes[..end]).expect("JSON"), bytes[end + 1..].to_vec())
}

fn put_together(path: &Path, head: &Value, body: &[u8]) {
    let mut bytes = serde_json::to_vec(head).expect("JSON");
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    fs::remove_file(path).expect("removed");
    fs::write(path, bytes).expect("written");
}

fn labels(dir: &Path) -> Vec<PathBuf> {
    let label = |run: String| dir.join("logs").join(run).join("label.json");
    names(&dir.join("logs")).into_iter().map(label).filter(|path| path.is_file()).collect()
}

/// A run of a part.
fn a_run(dir: &Path) -> String {
    names(&dir.join("logs")).pop().expect("a run")
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("read");
    assert!(text.contains(from), "{from}: {text}");
    fs::remove_file(path).expect("removed");
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_a_later_start_read_no_recording_where_conclusions_fit() {
    let bench = made(2).await;
    spoil_logs(&bench.path("out/shard-0-of-1"));
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
    assert_eq!(bench.json("merged/merged.json")["reread"], serde_json::json!({}));
    assert!(!bench.path("merged/report.html").exists() && bench.path("merged/report.md").is_file());
    let asked = bench.merge(&["out"], "asked", &["--reread"]).await;
    assert_eq!(asked.code, Some(5), "a recording that was changed under its seal is found: {}", asked.err);
    // The single machine goes on in the same way.
    copy(&bench.path("whole"), &bench.path("spoilt"));
    spoil_logs(&bench.path("spoilt"));
    let calls = bench.backend.calls();
    let said = bench.campaign("spoilt", &["-q", "--resume"]).await;
    assert_eq!((said.code, bench.backend.calls()), (Some(0), calls), "{}", said.err);
    bench.assert_equal("whole", "spoilt");
    // The reports say the same, what they took aside.
    let report = |of: &str| {
        let mut report = bench.json(&format!("{of}/report.json"));
        let _ = ["seconds", "cost"].map(|name| report.as_object_mut().expect("a report").remove(name));
        report
    };
    assert_eq!(report("whole"), report("merged"));
    assert!(report("whole")["cells"].as_array().expect("rows").len() > 3);
}

/// What becomes of a copy of a part.
type Harm = fn(&Path);

#[tokio::test(flavor = "multi_thread")]
async fn a_conclusion_that_does_not_fit_is_not_believed_and_its_recordings_are_read() {
    let bench = made(1).await;
    let part = bench.path("out/shard-0-of-1");
    let all = chain_files(&part).len();
    assert_eq!(all, 2, "a file a chain");
    let harms: [(&str, Harm, &str, usize); 10] = [
        ("gone", |dir| fs::remove_dir_all(dir.join("chains")).expect("removed"), "absent", all),
        ("one gone", |dir| fs::remove_file(&chain_files(dir)[0]).expect("removed"), "absent", 1),
        ("cut", |dir| cut(&chain_files(dir)[0]), "unreadable", 1),
        ("an earlier format", |dir| headed(dir, "format", 1.into()), "unreadable", 1),
        ("of another campaign", |dir| headed(dir, "campaign", "0".repeat(32).into()), "other_campaign", 1),
        ("another's", |dir| drop(fs::copy(&chain_files(dir)[0], &chain_files(dir)[1])), "other_campaign", 1),
        (
            "a cell that says else",
            |dir| replace(&dir.join("cells").join(a_run(dir) + ".json"), "\"seconds\":", "\"seconds\":1"),
            "other_runs",
            1,
        ),
        (
            "another seal",
            |dir| {
                let seal = dir.join("logs").join(a_run(dir)).join("seal.json");
                replace(&seal, "\"ended\": \"2", "\"ended\": \"3");
                without_hash(&seal);
            },
            "other_runs",
            1,
        ),
        (
            "another label",
            |dir| labels(dir).iter().for_each(|label| replace(label, "\"seed\": ", "\"seed\": 1")),
            "other_runs",
            all,
        ),
        (
            "a label that is gone",
            |dir| labels(dir).iter().for_each(|label| fs::remove_file(label).expect("removed")),
            "other_runs",
            all,
        ),
    ];
    for (number, (name, harm, why, count)) in harms.into_iter().enumerate() {
        let (from, into) = (format!("part{number}"), format!("merged{number}"));
        copy(&part, &bench.path(&from));
        harm(&bench.path(&from));
        let said = bench.merge(&[&from], &into, &[]).await;
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        bench.assert_equal("whole", &into);
        let merged = bench.json(&format!("{into}/merged.json"));
        assert_eq!(merged["reread"], serde_json::json!({ why: count }), "{name}: {merged}");
        assert!(said.err.contains("concluded from their recordings"), "{name}: {}", said.err);
        for run in names(&bench.path("whole/logs")) {
            let label = |of: &str| fs::read(bench.path(of).join("logs").join(&run).join("label.json")).ok();
            assert_eq!(label("whole"), label(&into), "{name}: the label of {run}");
        }
    }
}

/// As an earlier version wrote it: a file that differs from its hash is believed by nobody.
fn without_hash(path: &Path) {
    let text = fs::read_to_string(path).expect("read");
    let hash = text.rfind(",\n  \"blake3\"").expect("a hash");
    fs::write(path, format!("{}\n}}\n", &text[..hash])).expect("written");
}

fn cut(path: &Path) {
    let bytes = fs::read(path).expect("read");
    fs::write(path, &bytes[..bytes.len() - 9]).expect("written");
}

/// Changes a field of the head of the first conclusion.
fn headed(dir: &Path, name: &str, value: Value) {
    let path = &chain_files(dir)[0];
    let (mut head, body) = taken_apart(path);
    head[name] = value;
    put_together(path, &head, &body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conclusion_that_was_forged_whole_is_refuted_by_its_recordings() {
    let bench = made(1).await;
    let part = bench.path("out/shard-0-of-1");
    let forged = |path: &PathBuf| {
        let (mut head, body) = taken_apart(path);
        let text = String::from_utf8(zstd::decode_all(body.as_slice()).expect("packed")).expect("text");
        let other = text.replace("FM-2.6", "FM-1.1");
        if other == text {
            return false;
        }
        let body = zstd::encode_all(other.as_bytes(), 1).expect("packed");
        head["body"] = blake3::hash(&body).to_hex().as_str()[..32].into();
        put_together(path, &head, &body);
        true
    };
    let count = chain_files(&part).iter().filter(|path| forged(path)).count();
    assert!(count > 0, "a label to forge");
    // Digests are no signatures: whoever can write all of it can forge it, as he could the recordings.
    assert_eq!(bench.merge(&["out"], "believed", &[]).await.code, Some(0));
    let read = |of: &str| DATA.map(|name| fs::read(bench.path(of).join(name)).unwrap_or_default());
    assert!(read("believed") != read("whole"));
    let said = bench.merge(&["out"], "merged", &["--reread"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
    let merged = bench.json("merged/merged.json");
    let refuted = merged["refuted"].as_array().expect("names");
    assert_eq!((refuted.len(), &merged["reread"]["unasked"]), (count, &2.into()), "{merged}");
    assert!(refuted.iter().all(|name| said.err.contains(name.as_str().expect("a name"))), "{}", said.err);
    // What was not forged is not refuted.
    assert_eq!(bench.campaign("again", &["-q", "--shard", "0/1"]).await.code, Some(0));
    assert_eq!(bench.merge(&["again"], "honest", &["--reread"]).await.code, Some(0));
    assert_eq!(bench.json("honest/merged.json")["refuted"], serde_json::json!([]));
}
