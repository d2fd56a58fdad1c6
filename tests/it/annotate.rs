//! `aegis view --annotate` and `aegis annotations`: what annotators see, where their words go, and how they are compared.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::verb,
    viewer::{View, json_of, recorded},
};

/// The bytes of a recording's files.
fn bytes(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(run).expect("readable").flatten().filter(|entry| entry.path().is_file());
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("readable")))
        .collect()
}

fn says(step: Option<u32>, why: &str) -> String {
    json!({"step": step, "why": why, "sure": true}).to_string()
}

impl View {
    async fn say(&self, run: &str, said: &str) -> u16 {
        let token = format!("x-aegis-token: {}\r\n", self.token);
        self.ask("POST", &format!("/api/annotation/{run}"), said, &token).await.status
    }
}

#[tokio::test]
async fn annotators_see_what_happened_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let trace = json!({"earliest_flip": {"step": 1, "agent": "solver"}});
    std::fs::write(dir.path().join("logs/second/trace.json"), trace.to_string()).expect("written");
    let rows = json!({"id": "second", "method": "rules", "predictions": [{"agent": "solver", "step": 1}]});
    std::fs::write(dir.path().join("logs/second/attribution.jsonl"), rows.to_string()).expect("written");
    let open = View::of(dir.path(), &["logs"]).await;
    let blind = View::of(dir.path(), &["logs", "--annotate", "ada"]).await;
    let paths = ["tree", "run/second", "run/second/texts/1", "run/second/step/1", "run/second/texts/2"];
    for path in paths {
        let told = blind.get(&format!("/api/{path}")).await.to_string();
        for known in [
            "corrupt",
            "FM-2.6",
            "earliest",
            "labelled\"",
            "\"injected\":[{",
            "verified",
            "\"label\":{",
            "(rules)",
            "like\":\"",
        ] {
            assert!(!told.contains(known), "{path} tells {known}: {told}");
        }
    }
    // The test can fail: all of it is told to others.
    let all =
        [open.get("/api/tree").await, open.get("/api/run/second").await, open.get("/api/run/second/texts/1").await];
    let all: String = all.iter().map(Value::to_string).collect();
    for known in ["corrupt", "FM-2.6", "earliest", "labelled\"", "\"injected\":[{", "(rules)", "like\":\""] {
        assert!(all.contains(known), "{known}");
    }
    let told = blind.get("/api/run/second/texts/1").await;
    let (reply, changes) = (told["attempts"][0]["reply"].to_string(), &told["changes"]);
    assert!(reply.contains("94") && changes == &json!([]), "the words that the agent got: {told}");
    let raw = blind.get("/api/run/second/raw/1/reply/0").await;
    assert!(raw["text"].as_str().is_some_and(|text| text.contains("94") && !text.contains("ANSWER: 84")), "{raw}");
    let token = format!("x-aegis-token: {}\r\n", blind.token);
    let known = ["run/second/trace", "run/second/attribution", "diff/first/second", "campaign/logs", "sample/x/0"];
    for path in known.into_iter().chain(["run/second/raw/1/delivered/0"]) {
        assert_eq!(blind.ask("GET", &format!("/api/{path}"), "", &token).await.status, 404, "{path}");
    }
    let mut live = Client::connect(blind.address).await;
    live.send(&request("GET", "/api/live/second", b"", &token)).await;
    assert!(live.read_until(b"\"label\":null").await && live.read_until(b"\n\n").await);
}

#[tokio::test]
async fn only_who_may_annotate_does_and_nothing_else_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let run = dir.path().join("logs/second");
    let before = bytes(&run);
    let view = View::of(dir.path(), &["logs", "--annotate", "ada"]).await;
    let token = format!("x-aegis-token: {}\r\n", view.token);
    let good = says(Some(1), "it adds wrong");
    let long = says(Some(1), &"x".repeat(20_000));
    let path = "/api/annotation/second";
    for (method, path, said, headers, status) in [
        ("POST", path, good.as_str(), String::new(), 401),
        ("POST", path, &good, "x-aegis-token: wrong\r\n".to_owned(), 401),
        ("POST", path, &good, format!("{token}Origin: http://evil.example\r\n"), 403),
        ("POST", path, &good, format!("{token}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("POST", path, &good, format!("{token}Sec-Fetch-Site: same-site\r\n"), 403),
        ("POST", path, "{", token.clone(), 400),
        ("POST", path, r#"{"step":1,"why":"x","sure":true,"label":"verified"}"#, token.clone(), 400),
        ("POST", path, &says(Some(99), "x"), token.clone(), 400),
        ("POST", path, &says(Some(1), " "), token.clone(), 400),
        ("POST", path, &long, token.clone(), 413),
        ("POST", "/api/annotation/third", &good, token.clone(), 404),
        ("POST", "/api/annotation/../second", &good, token.clone(), 405),
        ("POST", "/api/run/second", &good, token.clone(), 405),
        ("PUT", path, &good, token.clone(), 405),
        ("DELETE", path, &good, token.clone(), 405),
    ] {
        assert_eq!(view.ask(method, path, said, &headers).await.status, status, "{method} {path} {said:.60} {headers}");
    }
    let mut client = Client::connect(view.address).await;
    let plain = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n{token}\r\n{good}",
        good.len()
    );
    client.send(plain.as_bytes()).await;
    assert_eq!(client.reply().await.status, 415, "what a form of another site could send");
    let reading = View::of(dir.path(), &["logs"]).await;
    assert_eq!(reading.say("second", &good).await, 405, "nobody annotates there");
    assert!(!dir.path().join("logs/annotations").exists(), "nothing was written");

    assert_eq!(view.say("second", &good).await, 200);
    assert_eq!(bytes(&run), before, "the recording is as it was");
    crate::contract::files_have(dir.path(), &["files/annotation"]);
    let line = std::fs::read_to_string(dir.path().join("logs/annotations/ada.jsonl")).expect("a file");
    let said: Value = serde_json::from_str(&line).expect("one line");
    assert_eq!(
        (&said["error"]["agent"], &said["error"]["step"], &said["blind"]),
        (&json!("solver"), &json!(1), &json!(true))
    );
    assert_eq!(view.get("/api/tree").await["annotated"], json!(["second"]));
    assert_eq!(view.get("/api/run/second").await["annotation"], said);
    let other = View::of(dir.path(), &["logs", "--annotate", "bo"]).await;
    assert_eq!(other.get("/api/run/second").await["annotation"], Value::Null, "others' words are hidden");
    assert_eq!(reading.get("/api/run/second").await["annotations"], json!([said]));
    let (code, _, talk) = verb(dir.path(), &["view", "logs", "--annotate", "../ada"]).await;
    assert!(code == Some(2) && talk.contains("no name of an annotator"), "{talk}");
}

#[tokio::test]
async fn people_are_compared_with_each_other_and_with_what_was_proven() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    for (name, said) in [
        ("ada", [("first", says(None, "")), ("second", says(Some(1), "94 is no sum of these"))]),
        ("bo", [("first", says(None, "")), ("second", says(Some(2), "it agrees"))]),
    ] {
        let view = View::of(dir.path(), &["logs", "--annotate", name]).await;
        for (run, said) in said {
            assert_eq!(view.say(run, &said).await, 200);
        }
    }
    let found = json_of(dir.path(), &["annotations", "logs"]).await;
    let who = &found["agreement"]["questions"]["who"];
    assert_eq!(
        (&who["units"], &who["pairs"]["hits"], &who["pairs"]["of"]),
        (&json!(2), &json!(1), &json!(2)),
        "{found}"
    );
    // Of 4 answers 2 are `none`: observed disagreement 2, by chance (2·2 + 1·3 + 1·3)/3.
    let expected = 1.0 - 2.0 / (10.0 / 3.0);
    assert!((who["alpha"].as_f64().expect("a figure") - expected).abs() < 1e-9, "{who}");
    assert_eq!(found["agreement"]["questions"]["when, give or take a step"]["pairs"]["hits"], 2);
    assert_eq!(found["agreement"]["against_proven_labels"], json!({}), "the label is delivered, and nothing is proven");

    let label = dir.path().join("logs/second/label.json");
    let mut proven: Value = serde_json::from_slice(&std::fs::read(&label).expect("readable")).expect("JSON");
    // A label that was edited is named, and the other runs are compared.
    proven["status"] = json!("flipped");
    std::fs::write(&label, proven.to_string()).expect("written");
    let (code, shown, talk) = verb(dir.path(), &["annotations", "logs"]).await;
    assert_eq!(code, Some(1), "{talk}");
    assert!(talk.contains("unread   second: ") && talk.contains("label.json"), "{talk}");
    assert!(shown.contains("first  ada: none  bo: none"), "{shown}");
    proven["status"] = json!("verified");
    proven.as_object_mut().expect("members").remove("blake3");
    std::fs::write(&label, proven.to_string()).expect("written");
    let (code, shown, talk) = verb(dir.path(), &["annotations", "logs"]).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(shown.contains("second  ada: solver at 1  bo: critic at 2"), "{shown}");
    let line = |name: &str| shown.lines().find(|line| line.trim().starts_with(name)).expect("a line").to_owned();
    assert!(line("ada ").contains("who 1 of 1") && line("bo ").contains("when 0 of 1"), "{shown}");
}

#[tokio::test]
async fn words_go_to_who_and_when_and_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let view = View::of(dir.path(), &["logs", "--annotate", "ada"]).await;
    assert_eq!(view.say("second", &says(Some(1), "94 is no sum of these")).await, 200);
    assert_eq!(view.say("first", &says(None, "")).await, 200);
    let (code, _, talk) = verb(dir.path(), &["annotations", "logs", "--export", "out"]).await;
    assert!(code == Some(0) && talk.contains("1 files; 1 that saw no error are left out"), "{talk}");
    let text = std::fs::read_to_string(dir.path().join("out/ada/second.json")).expect("a file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&file["mistake_agent"], &file["mistake_step"]), (&json!("solver"), &json!("1")));
    assert_eq!(file["mistake_reason"], "94 is no sum of these");
    assert_eq!(file["history"][1]["name"], "solver");
    assert!(!text.contains("FM-2.6") && !text.contains("corrupt"), "the label does not go with it: {text}");
    let (code, _, talk) = verb(dir.path(), &["import", "--from", "whowhen", "out/ada", "--out", "read"]).await;
    assert!(code == Some(0) && talk.contains("1 samples from 1 files"), "others read it: {talk}");

    let back = &["annotations", "logs", "--import", "out/ada", "--annotator", "carl"];
    let (code, _, talk) = verb(dir.path(), back).await;
    assert!(code == Some(0) && talk.contains("1 annotations of carl"), "{talk}");
    let found = json_of(dir.path(), &["annotations", "logs"]).await;
    let second = found["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["run"] == "second"));
    let said = &second.expect("annotated")["said"];
    assert_eq!((&said[0]["error"], &said[0]["blind"]), (&said[1]["error"], &json!(true)));
    assert_eq!((&said[1]["annotator"], &said[1]["blind"]), (&json!("carl"), &json!(false)));

    std::fs::write(dir.path().join("out/ada/third.json"), "{}").expect("written");
    let (code, _, talk) = verb(dir.path(), back).await;
    assert!(code == Some(2) && talk.contains("there is no run `third`") && talk.contains("hint"), "{talk}");
    std::fs::write(dir.path().join("out/ada/third.json"), "").expect("written");
    let mut wrong = file.clone();
    wrong["mistake_step"] = json!("7");
    std::fs::write(dir.path().join("wrong.json"), wrong.to_string()).expect("written");
    std::fs::rename(dir.path().join("wrong.json"), dir.path().join("second.json")).expect("renamed");
    let (code, _, talk) =
        verb(dir.path(), &["annotations", "logs", "--import", "second.json", "--annotator", "dan"]).await;
    assert!(code == Some(2) && talk.contains("`mistake_step` is `7`, and the run has 3 steps"), "{talk}");
    assert!(!dir.path().join("logs/annotations/dan.jsonl").exists());
    let (_, _, talk) = verb(dir.path(), &["view", "logs", "--bundle", "out.html"]).await;
    assert!(talk.contains("2 runs"), "{talk}");
}
