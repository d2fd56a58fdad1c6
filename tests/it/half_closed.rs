//! A client that ends its half of the connection once it has asked: it still waits for its answer. One that is gone ends
//! its half too, and must not be waited for.

use std::sync::atomic::Ordering;

use aegis::trajectory::CloseCause;
use tokio::io::AsyncWriteExt;

use crate::{
    lab::{Client, Lab, Reply, Setup, chat, find, request, until, within},
    scripted::{Act, Scripted, chat_reply, chunk, delta, http, stream_head},
};

const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A client that has asked, and sends nothing more; it has been asked whether it is there.
async fn asked(lab: &Lab, path: &str) -> Client {
    let mut client = lab.client().await;
    client.post(path, &chat("hello")).await;
    within(client.stream.shutdown()).await.expect("one half is closed");
    assert!(client.read_until(PROBE).await, "{:?}", String::from_utf8_lossy(&client.seen));
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_its_answer() {
    let body = chat_reply("Fine.");
    let whole = vec![Act::Wait, http("200 OK", "application/json", &body)];
    let streamed = vec![
        Act::Wait,
        stream_head(),
        chunk(delta("one")),
        Act::Wait,
        chunk(delta("two")),
        chunk("data: [DONE]\n\n"),
        Act::Say(b"0\r\n\r\n".to_vec()),
    ];
    for (script, waits, says) in [(whole, 1, "Fine."), (streamed, 2, "data: [DONE]")] {
        let upstream = Scripted::always(script).await;
        let mut lab = Lab::before(upstream.address, Setup::default()).await;
        let mut client = asked(&lab, "/v1/chat/completions").await;
        upstream.go.notify_one();
        if waits > 1 {
            assert!(client.read_until(b"one").await);
            upstream.go.notify_one();
        }
        assert_eq!(client.rest().await, None, "the connection ends in order");
        let reply = Reply::parse(&client.seen[PROBE.len()..]);
        assert!(reply.status == 200 && reply.whole && reply.text().contains(says), "{reply:?}");
        assert_eq!(find(&client.seen[1..], PROBE), None, "asked once");
        lab.drain().await;
        assert_eq!(lab.causes("r0"), [Some(CloseCause::Complete)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_answers_of_our_own() {
    let upstream = Scripted::always(vec![Act::Hang]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/v1/v1/chat/completions", b"{}", "")).await;
    within(client.stream.shutdown()).await.expect("one half is closed");
    client.rest().await;
    let at = find(&client.seen, b"HTTP/1.1 404").expect("an answer");
    Reply::parse(&client.seen[at..]).assert_own_error(404, "doubled_v1");
}

/// What has answered the probe may still leave, before the reply begins and within it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_leaves_later_is_noticed() {
    for script in [vec![Act::Hang], vec![Act::Wait, stream_head(), chunk(delta("one")), chunk(delta("two")), Act::Gate]]
    {
        let upstream = Scripted::always(script).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let client = asked(&lab, "/v1/chat/completions").await;
        until("its call is under way", || upstream.count() == 1).await;
        // Closed with a reset, as the system of a program that was killed in the middle of a reply does.
        client.stream.set_zero_linger().expect("linger");
        drop(client);
        upstream.go.notify_one();
        until("the upstream is rid of it", || upstream.live.load(Ordering::SeqCst) == 0).await;
        until("the step is closed", || lab.causes("r0") == [Some(CloseCause::ClientGone)]).await;
    }
}
