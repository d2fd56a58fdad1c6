//! `aegis runs prune`: what nobody needs goes, once that is asked for.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use crate::{
    lab::until,
    program::{Served, verb},
    restarts::call,
};

/// Prunes, and gives what became of each run.
async fn prune(dir: &Path, arguments: &[&str]) -> BTreeMap<String, (String, String)> {
    let (code, out, talk) = verb(dir, &[&["runs", "prune", "logs", "--format", "json"], arguments].concat()).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    let said: Value = serde_json::from_str(out.trim()).expect("JSON");
    let text = |row: &Value, key: &str| row[key].as_str().expect(key).to_owned();
    let rows = said["runs"].as_array().expect("runs").iter();
    rows.map(|row| (text(row, "run"), (text(row, "state"), text(row, "why")))).collect()
}

const RUNS: [&str; 8] = ["plain", "open", "judged", "annotated", "in-data", "elsewhere", "labelled", "traced"];

/// A run for each reason to stay, and a plain one.
async fn record(dir: &Path) {
    let served = Served::start(dir, &["--upstream", "simulator", "--log-dir", "logs"]).await;
    for run in RUNS {
        assert_eq!(call(&served, &format!("/r/{run}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }
    let ended: Vec<String> = RUNS.iter().filter(|run| **run != "open").map(|run| format!("logs/{run}")).collect();
    let ended: Vec<&str> = ended.iter().map(String::as_str).collect();
    assert_eq!(served.stop_and_end(dir, &ended).await, Some(0));
    let (code, _, talk) = verb(dir, &["amend", "logs/judged", "--outcome", "failure"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let write = |name: &str, value: &Value| {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, format!("{value}\n")).expect("written");
    };
    write("logs/annotations/ada.jsonl", &json!({"format": 1, "run": "annotated"}));
    write("dataset.jsonl", &json!({"id": "x", "text": "plain text of a plain run", "run": "in-data"}));
    write("far/away.jsonl", &json!({"trace": "elsewhere"}));
    write("logs/labelled/label.json", &json!({}));
    write("logs/traced/trace.json", &json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_runs_go_that_nobody_needs_and_only_when_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    record(dir).await;
    let expected = |state: &str| {
        let mut fates = BTreeMap::from(
            [
                ("open", "it has not ended"),
                ("judged", "facts were added to it"),
                ("labelled", "it has a label"),
                ("traced", "executions were made for it"),
            ]
            .map(|(run, why)| (run.to_owned(), ("kept".to_owned(), why.to_owned()))),
        );
        fates.insert("plain".to_owned(), (state.to_owned(), "older than --keep".to_owned()));
        fates
    };
    let is_said = |said: &BTreeMap<String, (String, String)>, state: &str| {
        for (run, fate) in expected(state) {
            assert_eq!(said[&run], fate, "{run}");
        }
        for (run, file) in [("annotated", "ada.jsonl"), ("in-data", "dataset.jsonl"), ("elsewhere", "away.jsonl")] {
            assert!(said[run].0 == "kept" && said[run].1.ends_with(&format!("{file} names it")), "{run}: {said:?}");
        }
    };
    // Nothing is old enough, then everything is; and nothing goes unasked.
    assert!(prune(dir, &["--keep", "30d,1GB"]).await.values().all(|(state, _)| state == "kept"));
    is_said(&prune(dir, &["--keep", "0d", "--needed-by", "far"]).await, "would go");
    assert_eq!(prune(dir, &["--keep", "0kB", "--needed-by", "far"]).await["plain"].1, "more than --keep");
    assert!(RUNS.iter().all(|run| dir.join("logs").join(run).is_dir()));
    let (_, out, talk) = verb(dir, &["runs", "prune", "logs", "--keep", "0d"]).await;
    assert!(out.contains("would go  logs/plain") && out.contains("kept      logs/open"), "{out}");
    assert!(talk.contains("2 runs would go") && talk.contains("--yes removes them"), "{talk}");

    is_said(&prune(dir, &["--keep", "0d", "--needed-by", "far", "--yes"]).await, "pruned");
    let left: Vec<_> = fs::read_dir(dir.join("logs")).expect("runs").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), RUNS.len(), "all but one, and the annotations: {left:?}");
    assert!(!dir.join("logs/plain").exists());
    assert!(aegis::recording::read(&dir.join("logs/in-data")).is_ok_and(|recording| recording.sealed));
    for (arguments, said) in [
        (&["runs", "prune", "logs", "--keep", "soon"][..], "expected an age, a size or both"),
        (&["runs", "prune", "nowhere", "--keep", "1d"], "there is no directory `nowhere`"),
        (&["runs", "prune", "logs", "--keep", "1d", "--needed-by", "nothing"], "`nothing`"),
    ] {
        let (code, _, talk) = verb(dir, arguments).await;
        assert!(code == Some(2) && talk.contains(said), "{talk}");
    }
}

/// A server removes what it need not keep, and counts it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_room_for_new_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let simulator = ["--upstream", "simulator", "--log-dir", "logs"];
    let served = Served::start(dir, &simulator).await;
    for run in ["old", "judged", "open"] {
        assert_eq!(call(&served, &format!("/r/{run}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }
    assert_eq!(served.stop_and_end(dir, &["logs/old", "logs/judged"]).await, Some(0));
    assert_eq!(verb(dir, &["amend", "logs/judged", "--outcome", "failure"]).await.0, Some(0));
    let served = crate::run_ends::serve(dir, &["--upstream", "simulator", "--keep", "0d"]).await;
    until("the run that nobody needs is gone", || !dir.join("logs/old").exists()).await;
    assert_eq!(call(&served, "/r/open/v1/chat/completions", "And 3 + 4?").await.status, 200);
    let counted = async {
        while !crate::run_ends::metrics(&served).await.contains("aegis_runs_pruned_total 1") {
            tokio::task::yield_now().await;
        }
    };
    crate::lab::within(counted).await;
    assert_eq!(served.stop().await, Some(0));
    assert!(dir.join("logs/judged/seal.json").exists() && dir.join("logs/open/log.jsonl").exists());
}

/// A run that is kept stays until that is taken back, whoever prunes and whether or not it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let served = crate::run_ends::serve(dir, &["--upstream", "simulator"]).await;
    for run in ["told", "asked", "plain"] {
        assert_eq!(call(&served, &format!("/r/{run}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }
    let post = async |run: &str, what: &str| {
        crate::run_ends::control(&served, "POST", &format!("/aegis/v1/runs/{run}/{what}"), &Value::Null).await
    };
    let (status, told) = post("asked", "keep").await;
    assert_eq!((status, &told["kept"], &told["state"]), (200, &json!(true), &json!("open")), "{told}");
    assert_eq!(post("none", "keep").await.0, 404);
    for run in ["told", "asked", "plain"] {
        assert_eq!(post(run, "end").await.0, 200);
    }
    let (code, out, talk) = verb(dir, &["runs", "keep", "logs/told", "--by", "ada"]).await;
    assert!(code == Some(0) && out == "kept logs/told\n" && talk.contains("1 run kept"), "{out}{talk}");
    assert!(fs::read_to_string(dir.join("logs/told/kept.json")).expect("a file").contains("\"by\": \"ada\""));
    assert_eq!(verb(dir, &["runs", "keep", "logs/none"]).await.0, Some(2));
    let kept = ("kept".to_owned(), "`runs keep` keeps it".to_owned());
    let said = prune(dir, &["--keep", "0d"]).await;
    assert_eq!((&said["told"], &said["asked"], said["plain"].0.as_str()), (&kept, &kept, "would go"));
    let (_, _, talk) = verb(dir, &["runs", "prune", "logs", "--keep", "0d"]).await;
    assert!(talk.contains("2 kept, 2 of them needed (2 by `runs keep`)"), "{talk}");
    assert_eq!(served.stop().await, Some(0));
    // A server prunes as the verb does.
    let served = Served::start(dir, &["--upstream", "simulator", "--log-dir", "logs", "--keep", "0d"]).await;
    until("the run that nobody keeps is gone", || !dir.join("logs/plain").exists()).await;
    assert_eq!(served.stop().await, Some(0));
    assert!(dir.join("logs/told/seal.json").exists() && dir.join("logs/asked/seal.json").exists());
    assert!(verb(dir, &["runs"]).await.1.lines().skip(1).all(|line| line.contains("kept")));
    let (_, shown, _) = verb(dir, &["show", "logs/asked"]).await;
    assert!(shown.lines().any(|line| line.starts_with("kept") && line.contains("by operator")), "{shown}");
    crate::contract::files_have(dir, &["files/kept"]);
    let (code, out, _) = verb(dir, &["runs", "release", "logs/asked", "--format", "json"]).await;
    assert!(code == Some(0) && out.contains("\"kept\":false"), "{out}");
    assert_eq!(prune(dir, &["--keep", "0d", "--yes"]).await["asked"].0, "pruned");
    crate::contract::check_files(dir);
}

/// The runs of a user go as others do; what stands beside the log directory keeps them, too. The list names them with their user.
#[tokio::test(flavor = "multi_thread")]
async fn runs_of_users_are_pruned_and_listed_with_their_user() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let served = Served::start(dir, &["--upstream", "simulator", "--log-dir", "logs/@bob"]).await;
    for run in ["plain", "in-data"] {
        assert_eq!(call(&served, &format!("/r/{run}/v1/chat/completions"), "What is 2 + 3?").await.status, 200);
    }
    assert_eq!(served.stop_and_end(dir, &["logs/@bob/plain", "logs/@bob/in-data"]).await, Some(0));
    fs::write(dir.join("dataset.jsonl"), format!("{}\n", json!({"run": "in-data"}))).expect("written");
    let (_, listed, _) = verb(dir, &["runs", "logs"]).await;
    assert!(listed.contains("@bob/plain") && listed.contains("@bob/in-data"), "{listed}");
    let fates = prune(dir, &["--keep", "0d", "--yes"]).await;
    assert_eq!((fates["plain"].0.as_str(), fates["in-data"].0.as_str()), ("pruned", "kept"), "{fates:?}");
    assert!(!dir.join("logs/@bob/plain").exists() && dir.join("logs/@bob/in-data").exists());
}
