//! F8, F9: clients that leave, and clients that do not read.

use std::{sync::atomic::Ordering, time::Duration};

use aegis::{proxy::Limits, trajectory::CloseCause};
use tokio::task::JoinSet;

use crate::{
    lab::{Client, Lab, Setup, chat, request, until, until_within},
    scripted::{Act, Scripted, chat_reply, chunk, delta, http, stream_head},
};

/// How many clients leave at once.
const CLIENTS: usize = 50;
/// How often so many leave: two hundred in all, with the sockets that any machine allows.
const WAVES: usize = 4;

/// Connects clients that read up to `seen` and returns them, still connected.
async fn waiting(lab: &Lab, seen: &'static [u8], wave: usize) -> Vec<Client> {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = lab.client().await;
        clients.spawn(async move {
            client.post("/v1/chat/completions", &chat(&format!("call {number} of wave {wave}"))).await;
            assert!(client.read_until(seen).await, "`{}` comes", String::from_utf8_lossy(seen));
            client
        });
    }
    clients.join_all().await
}

/// All clients leave at this point of the script; the upstream is rid of them within a second.
async fn leave(script: Vec<Act>, seen: &'static [u8], cause: CloseCause) {
    let upstream = Scripted::always(script).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    for wave in 1..=WAVES {
        let clients = waiting(&lab, seen, wave).await;
        until("every call reached the upstream", || upstream.count() == wave * CLIENTS).await;
        drop(clients);
        until_within(Duration::from_secs(1), "the upstream is rid of them", || {
            upstream.live.load(Ordering::SeqCst) == 0
        })
        .await;
    }
    assert_eq!(lab.drain().await, 0, "nothing is left to cut");
    assert_eq!(lab.causes("r0"), vec![Some(cause); WAVES * CLIENTS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_first_byte_cancels_the_call() {
    leave(vec![Act::Hang], b"", CloseCause::ClientGone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_within_a_stream_cancels_the_call() {
    leave(vec![stream_head(), chunk(delta("one")), Act::Hang], b"one", CloseCause::ClientGone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_within_a_whole_reply_cancels_the_call() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":".to_vec();
    leave(vec![Act::Say(half), Act::Hang], b"half", CloseCause::ClientGone).await;
}

/// SDKs close the connection at the end marker, before the last chunk: that is a whole reply.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_at_the_end_marker_got_everything() {
    let script = vec![stream_head(), chunk(delta("one")), chunk("data: [DONE]\n\n"), Act::Hang];
    leave(script, b"[DONE]\n\n", CloseCause::Complete).await;
}

/// A call that is passed on unread is cancelled too.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_an_unread_call_cancels_it() {
    let upstream = Scripted::always(vec![stream_head(), chunk("data: x\n\n"), Act::Hang]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut client = lab.client().await;
    client.send(&request("GET", "/v1/responses/r_1?stream=true", b"", "")).await;
    assert!(client.read_until(b"data: x").await);
    drop(client);
    until_within(Duration::from_secs(1), "the upstream is rid of it", || upstream.live.load(Ordering::SeqCst) == 0)
        .await;
}

/// F9. Those who do not read are cut off; in the meantime the upstream is not read for them without end, and others
/// are served.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_are_cut_off_and_others_are_served() {
    const STREAM: u64 = 64 << 20;
    const SLOW: usize = 20;
    let frame = delta(&"x".repeat(16 << 10));
    let flood = Act::Flood([format!("{:x}\r\n", frame.len()).as_bytes(), frame.as_bytes(), b"\r\n"].concat(), STREAM);
    let mut script = vec![vec![stream_head(), flood]; SLOW];
    script.push(vec![http("200 OK", "application/json", &chat_reply("ok"))]);
    let upstream = Scripted::start(script).await;
    let limits = Limits { write_timeout: Duration::from_secs(1), ..Limits::default() };
    let mut lab = Lab::before(upstream.address, Setup { limits, ..Setup::default() }).await;
    let mut stalled = Vec::new();
    for number in 0..SLOW {
        let mut client = lab.client().await;
        client.post("/r/slow/v1/chat/completions", &chat(&format!("slow {number}"))).await;
        assert!(client.read_until(b"\r\n\r\n").await);
        stalled.push(client);
    }
    for number in 0..20 {
        let reply = lab.post("/r/quick/v1/chat/completions", &chat(&format!("quick {number}"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    until("the upstream is rid of them", || upstream.live.load(Ordering::SeqCst) <= 1).await;
    // What the sockets and the proxy held for them is a small part of what was to come.
    let said = upstream.said.load(Ordering::SeqCst);
    assert!(said < STREAM * SLOW as u64 / 4, "{said} bytes were read for clients that read nothing");
    assert_eq!(lab.drain().await, 0);
    drop(stalled);
    assert_eq!(lab.causes("slow"), [Some(CloseCause::ClientStalled); SLOW]);
    assert!(lab.causes("quick").iter().all(|cause| *cause == Some(CloseCause::Complete)));
}

/// Half of a client's connection may be closed: it still wants its reply.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_client_that_reads_slowly_arrives_whole() {
    let text = "y".repeat(1 << 20);
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply(&text))]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/v1/chat/completions", &chat("x"), "Connection: close\r\n")).await;
    let mut byte = [0];
    for _ in 0..200 {
        tokio::io::AsyncReadExt::read_exact(&mut client.stream, &mut byte).await.expect("a byte");
        client.seen.push(byte[0]);
    }
    let reply = client.reply().await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], text);
    assert_eq!(lab.causes("r0"), [Some(CloseCause::Complete)]);
}
