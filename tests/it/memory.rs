//! F9, F13: what clients and upstreams send does not decide how much memory the program takes.

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
