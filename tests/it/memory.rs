//! F9, F13: what clients and upstreams send does not decide how much memory the program takes.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use crate::{
    lab::{Client, chat, request, until},
    program::Served,
    scripted::{Act, Scripted, chat_reply, delta, http, http_with, stream_head},
};

const PLAN: &str = "format = 1\nseed = 1\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\nmanipulator.corrupt_number = { by = 10 }\n";

async fn call(served: &Served, path: &str, text: &str) -> crate::lab::Reply {
    let mut client = Client::connect(served.address).await;
    client.send(&request("POST", path, &chat(text), "Connection: close\r\n")).await;
    client.reply().await
}

/// F9: 50 clients that read nothing of endless streams.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_take_little_memory() {
    const SLOW: usize = 50;
    let dir = tempfile::tempdir().expect("a directory");
    let frame = delta(&"x".repeat(16 << 10));
    let chunk = format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes();
    let mut script = vec![vec![stream_head(), Act::Flood(chunk, u64::MAX)]; SLOW];
    script.push(vec![http("200 OK", "application/json", &chat_reply("ok"))]);
    let upstream = Scripted::start(script).await;
    std::fs::write(dir.path().join("aegis.toml"), "[limits]\nwrite_timeout_s = 2.0\n").expect("written");
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--run", "r"]).await;
    let before = served.kilobytes("VmHWM");
    let mut slow = JoinSet::new();
    for number in 0..SLOW {
        let address = served.address;
        slow.spawn(async move {
            let mut client = Client::connect(address).await;
            client.post("/v1/chat/completions", &chat(&format!("slow {number}"))).await;
            assert!(client.read_until(b"\r\n\r\n").await);
            client
        });
    }
    let slow = slow.join_all().await;
    for number in 0..50 {
        assert_eq!(call(&served, "/v1/chat/completions", &format!("quick {number}")).await.status, 200);
    }
    let live = || upstream.live.load(std::sync::atomic::Ordering::SeqCst);
    until("those who do not read are cut off", || live() <= 1).await;
    drop(slow);
    let grown = served.kilobytes("VmHWM") - before;
    assert!(grown <= 128 << 10, "{grown} kB more than before");
    assert_eq!(served.stop().await, Some(0));
}

/// F13: small replies that unpack to 256 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn bombs_take_little_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(0), 256 << 20), 1).expect("in memory");
    let upstream = Scripted::always(vec![http_with(
        "200 OK",
        "content-type: application/json\r\ncontent-encoding: zstd\r\n",
        &bomb,
    )])
    .await;
    std::fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--run", "r", "--plan", "plan.toml"];
    let served = Served::start(dir.path(), &arguments).await;
    let before = served.kilobytes("VmHWM");
    for number in 0..4 {
        let reply = call(&served, "/a/solver/v1/chat/completions", &format!("call {number}")).await;
        assert!(reply.status == 200 && reply.body == bomb, "it passes packed");
    }
    let grown = served.kilobytes("VmHWM") - before;
    assert!(grown <= 48 << 10, "{grown} kB more than before");
    assert_eq!(served.stop().await, Some(0));
}

/// Clients that together hold back the ends of four times the memory that bodies may take: who finds none waits or is told to come
/// again, the program stays small, and what it acknowledged is in the log.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_held_back_share_their_memory() {
    const CLIENTS: usize = 100;
    const BODY: usize = 1 << 20;
    const LIMIT: usize = CLIENTS * BODY / 4;
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    std::fs::write(dir.path().join("aegis.toml"), format!("[limits]\nmemory = {LIMIT}\n")).expect("written");
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--run", "r"]).await;
    let before = served.kilobytes("VmHWM");
    let whole = request("POST", "/v1/chat/completions", &chat(&"x".repeat(BODY)), "Connection: close\r\n");
    let whole: Arc<[u8]> = whole.into();
    let mut held = JoinSet::new();
    for _ in 0..CLIENTS {
        let (address, whole) = (served.address, Arc::clone(&whole));
        held.spawn(async move {
            let mut client = Client::connect(address).await;
            let (most, last) = whole.split_at(whole.len() - 1);
            client.send(most).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            client.send(last).await;
            client.reply().await
        });
    }
    let replies = held.join_all().await;
    let acknowledged = replies.iter().filter(|reply| reply.status == 200).count();
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        refused.assert_own_error(503, "busy");
        assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    }
    let grown = served.kilobytes("VmHWM") - before;
    println!("{acknowledged} of {CLIENTS} answered, {grown} kB more than before");
    assert!(acknowledged >= CLIENTS / 4, "{acknowledged} were answered");
    // A body is recorded, too: it is there twice for a while, and what was freed is not all given back.
    assert!(grown <= 4 * (LIMIT as u64 >> 10), "{grown} kB more than before");
    assert_eq!(call(&served, "/v1/chat/completions", "after it").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    let recording = aegis::recording::read(&dir.path().join("logs/r")).expect("a recording");
    let steps = &recording.trajectory.steps;
    let whole = steps.iter().filter(|step| step.attempts.iter().any(|attempt| attempt.status == Some(200)));
    assert_eq!(whole.count(), acknowledged + 1);
}
