//! A recording that somebody took the seal from.

use std::fs;

use crate::{
    lab::{Client, chat, request},
    program::{Served, verb},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_there_is_never_written_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs"];
    let ask = async |served: &Served, text: &str| {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", "/r/r/v1/chat/completions", &chat(text), "Connection: close\r\n")).await;
        client.reply().await
    };
    let served = Served::start(dir.path(), &arguments).await;
    // A small log stays plain, and goes on like one that was never sealed.
    for number in 0..3 {
        assert_eq!(ask(&served, &format!("{number} {}", "long ".repeat(1000))).await.status, 200);
    }
    assert_eq!(served.stop_and_end(dir.path(), &["logs/r"]).await, Some(0));
    let packed = dir.path().join("logs/r/log.jsonl.zst");
    let before = fs::read(&packed).expect("sealed");
    fs::remove_file(dir.path().join("logs/r/seal.json")).expect("removed");
    let (code, out, talk) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(code == Some(5) && talk.contains("has lost its `seal.json`"), "{code:?} {out} {talk}");
    let served = Served::start(dir.path(), &arguments).await;
    ask(&served, "d").await.assert_own_error(503, "recording_failed");
    assert_eq!(served.stop().await, Some(0));
    let (code, _, talk) = verb(dir.path(), &["run", "--upstream", "simulator", "--run", "r", "--", "true"]).await;
    assert_eq!(code, Some(5), "{talk}");
    assert!(fs::read(&packed).expect("there") == before && !dir.path().join("logs/r/log.jsonl").exists());
    let (code, out, talk) = verb(dir.path(), &["repair", "logs/r", "--salvage"]).await;
    assert!(code == Some(0) && out.contains("3 steps"), "{out} {talk}");
}
