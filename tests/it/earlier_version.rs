//! What an earlier version wrote is read as that version read it. The recordings, labels and data sets of
//! `fixtures/version-f51b50a` were made by that version; `printed` holds what it said of them.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::program::verb;

/// A file that the earlier version wrote or printed.
fn earlier(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/version-f51b50a").join(name)
}

fn json_of(name: &str) -> Value {
    serde_json::from_slice(&fs::read(earlier(name)).expect("a fixture")).expect("JSON")
}

/// Where what is said now lacks something that was said before, or says it otherwise; members may come to be.
fn lost(before: &Value, now: &Value, place: &str, found: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (name, member) in before {
                lost(member, now.get(name).unwrap_or(&Value::Null), &format!("{place}.{name}"), found);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (index, (before, now)) in before.iter().zip(now).enumerate() {
                lost(before, now, &format!("{place}[{index}]"), found);
            }
        }
        (before, now) if before != now => found.push(format!("{place}: {before} before, {now} now")),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_and_its_label_say_what_they_said() {
    let dir = tempfile::tempdir().expect("a directory");
    for (run, status, definition) in
        [("delivered", "delivered", "injected"), ("proven", "verified", "injected"), ("natural", "verified", "flip")]
    {
        let path = earlier(run).display().to_string();
        let (code, out, talk) = verb(dir.path(), &["show", &path, "--format", "json"]).await;
        assert_eq!(code, Some(0), "{run}: {talk}");
        let mut shown: Value = serde_json::from_str(&out).expect("JSON");
        // The one thing that is new: that version wrote no hashes, and this one says so.
        let notes = shown["notes"].as_array_mut().expect("notes");
        let own_hash = notes.iter().position(|note| note.as_str().is_some_and(|note| note.contains("without a hash")));
        notes.remove(own_hash.expect("a note"));
        assert_eq!((&shown["label"]["status"], &shown["label"]["definition"]), (&json!(status), &json!(definition)));
        assert_eq!((shown["sealed"].as_bool(), &shown["no_label"]), (Some(true), &Value::Null), "{run}");
        assert_eq!(shown["label"], json_of(&format!("{run}/label.json")), "{run}: nothing of it is lost");
        let mut found = Vec::new();
        lost(&json_of(&format!("printed/{run}.json")), &shown, run, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_set_goes_out_as_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    for set in ["campaign", "traced"] {
        let path = earlier(set).display().to_string();
        let (code, _, talk) = verb(dir.path(), &["lint", &path]).await;
        assert!(code == Some(0) && talk.contains("nothing found"), "{set}: {talk}");
        for format in ["sft", "prm"] {
            let file = format!("{set}-{format}.jsonl");
            // All was proven without neutral changes then, and nobody looked whether its mode can be there: it goes out
            // where that is asked for.
            let export = ["export", &path, "--to", format, "--out", &file, "--one-file"];
            let (code, out, talk) = verb(dir.path(), &export).await;
            assert_eq!((code, out.contains("of a former rule")), (Some(1), true), "{set}: {talk}");
            let taken = [&export[..], &["--former", "--declared-modes"]].concat();
            let (code, _, talk) = verb(dir.path(), &taken).await;
            assert_eq!(code, Some(0), "{set}: {talk}");
            let (before, now) =
                (fs::read_to_string(earlier(&format!("printed/{file}"))), fs::read_to_string(dir.path().join(&file)));
            assert_eq!(now.expect("written"), before.expect("a fixture"), "{file}");
        }
    }
}
