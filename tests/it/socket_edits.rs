//! Sockets of the Responses API with a plan, from a record, before the simulator, and after their token is gone.

use std::{fs, sync::Arc, time::Duration};

use aegis::{
    proxy::{HttpUpstream, RunSetup, UpstreamOrigin, upstream::Upstream},
    recording::Recording,
    replay::{AtFork, Cassette, ForkPoint, Prefixed, Replayed},
    ruling::Ruling,
    simulator::Simulator,
    trajectory::{CloseCause, RunId},
};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::{Error, Message, error::ProtocolError, protocol::frame::coding::CloseCode};

use crate::{
    lab::{Lab, Setup, until, within},
    replay::Tripwire,
    socket_peer::{Peer, Socket, ask, create, deltas, events, kind, leave, open, open_at, says},
    tokens,
};

const PATH: &str = "/r/run/a/solver/v1/responses";

async fn peer() -> Peer {
    Peer::start(|number, _| says(events(&format!("resp_{number}"), "It is 12 apples.", None))).await
}

fn plan(what: &str) -> String {
    format!("format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\n{what}\n")
}

/// How many injections were delivered.
fn injected(recording: &Recording) -> usize {
    recording.trajectory.steps.iter().flat_map(|step| &step.injected).filter(|error| error.delivered).count()
}

/// All that a socket still says, and how it ends.
async fn rest(socket: &mut Socket) -> (Vec<Message>, Option<Error>) {
    let mut messages = Vec::new();
    loop {
        match within(socket.next()).await {
            Some(Ok(message)) => messages.push(message),
            Some(Err(error)) => return (messages, Some(error)),
            None => return (messages, None),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_reply_is_told_in_messages_and_labelled() {
    let edit = "failure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"response\"\nmanipulator.replace_text = { find = \"12\", with = \"13\" }";
    let peer = peer().await;
    let mut lab = Lab::before(peer.address, Setup::planned(&plan(edit))).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let told = ask(&mut socket, &create("How many?", "")).await;
    let kinds = |texts: &[String]| texts.iter().map(|text| kind(text)).collect::<Vec<_>>();
    let said = events("resp_0", "It is 12 apples.", None);
    assert_eq!(deltas(&told), "It is 13 apples.");
    assert_eq!(kinds(&told), kinds(&said));
    for (told, said) in told.iter().zip(&said) {
        assert_eq!(told.replace("13", "12"), *said, "nothing else changes");
    }
    // It goes on from what the upstream keeps otherwise than it was told.
    let next = create("Sure?", ",\"previous_response_id\":\"resp_0\"");
    assert_eq!(ask(&mut socket, &next).await, events("resp_1", "It is 12 apples.", None), "no edit is due");
    leave(socket).await;
    assert_eq!(peer.texts(), [create("How many?", ""), next]);
    let recording = lab.sealed("run").await;
    let label = Ruling::new(&recording).label().expect("a label");
    let error = &label.errors[0].error;
    assert_eq!((error.agent.as_str(), error.step), ("solver", 0));
    let attempt = &recording.trajectory.steps[0].attempts[0];
    assert!(String::from_utf8_lossy(&attempt.reply).contains("12 apples"));
    assert!(String::from_utf8_lossy(attempt.reply_delivered.as_ref().expect("an edit")).contains("13 apples"));
    assert!(recording.notes.iter().any(|note| note.contains("resp_0")), "{:?}", recording.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_request_keeps_every_other_byte() {
    let edit = "failure_mode = \"FM-2.4\"\nwhen.call = 0\nside = \"request\"\nmanipulator.replace_text = { find = \"apples\", with = \"pears\" }";
    let peer = peer().await;
    let lab = Lab::before(peer.address, Setup::planned(&plan(edit))).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let message = create("How many apples?", ",\n\t\"stream_id\" : \"s\", \"event_id\":\"e\"");
    ask(&mut socket, &message).await;
    assert_eq!(peer.texts(), [message.replace("apples", "pears")]);
    let step = &lab.recorded("run").trajectory.steps[0];
    assert_eq!(step.request, message.as_bytes());
}

/// Faults that answer instead of the upstream say what the API says on a socket.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_messages_with_a_status() {
    let peer = peer().await;
    let fault = "when.call = 0\nfault.status = { code = 429, retry_after_s = 2, attempts = \"first\" }";
    let lab = Lab::before(peer.address, Setup::planned(&plan(fault))).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let message = create("How many?", ",\"stream_id\":\"s1\"");
    let refused = ask(&mut socket, &message).await;
    let said: Value = serde_json::from_str(&refused[0]).expect("JSON");
    assert_eq!(
        (said["type"].as_str(), said["status"].as_u64(), said["stream_id"].as_str()),
        (Some("error"), Some(429), Some("s1"))
    );
    assert!(said["error"]["message"].is_string() && said["error"]["code"].is_string(), "{said}");
    assert_eq!(said["headers"]["retry-after"], "2");
    assert!(peer.texts().is_empty(), "nobody was asked");
    assert_eq!(deltas(&ask(&mut socket, &message).await), "It is 12 apples.", "the second attempt passes");
    let step = &lab.recorded("run").trajectory.steps[0];
    assert_eq!((step.attempts[0].status, &step.attempts[0].reply[..]), (Some(429), refused[0].as_bytes()));
    assert_eq!(step.attempts.len(), 2);

    let lab = Lab::before(
        peer.address,
        Setup::planned(&plan("when.always = true\nfault.rate_limit = { requests = 1, per_s = 600 }")),
    )
    .await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    assert_eq!(deltas(&ask(&mut socket, &create("One?", "")).await), "It is 12 apples.");
    let limited = ask(&mut socket, &create("Two?", "")).await;
    assert!(limited[0].contains("\"status\":429") && limited[0].contains("x-ratelimit-limit-requests"), "{limited:?}");
}

/// Faults of the connection act on the socket: what passed before has arrived.
#[tokio::test(flavor = "multi_thread")]
async fn broken_connections_break_the_socket() {
    let peer = peer().await;
    for (fault, texts, ends_in_order) in [
        ("refuse_connection = {}", 0, false),
        ("reset = { at = \"before_request\" }", 0, false),
        ("reset = { at = { after_frames = 2 } }", 2, false),
        ("cut = { at = { after_frames = 3 } }", 3, false),
        ("cut = { at = { after_frames = 3 }, clean = true }", 3, true),
        ("hang = { at = { after_frames = 1 }, at_most_s = 0.2 }", 1, false),
    ] {
        let lab = Lab::before(peer.address, Setup::planned(&plan(&format!("when.call = 0\nfault.{fault}")))).await;
        let mut socket = open(&lab, PATH).await.expect("a socket");
        within(socket.send(Message::text(create("How many?", "")))).await.expect("sent");
        let (messages, error) = rest(&mut socket).await;
        assert_eq!(messages.iter().filter(|message| message.is_text()).count(), texts, "{fault}: {messages:?}");
        assert_eq!(messages.iter().any(Message::is_close), ends_in_order, "{fault}: {messages:?} {error:?}");
        assert_eq!(error.is_none(), ends_in_order, "{fault}: {error:?}");
        assert_eq!(lab.causes("run"), [Some(CloseCause::Injected)], "{fault}");
        assert_eq!(injected(&lab.recorded("run")), 1, "{fault}");
    }
    // A message that breaks off is one that never ends.
    let lab =
        Lab::before(peer.address, Setup::planned(&plan("when.call = 0\nfault.cut = { at = { after_bytes = 60 } }")))
            .await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    within(socket.send(Message::text(create("How many?", "")))).await.expect("sent");
    let (messages, error) = rest(&mut socket).await;
    assert!(
        messages.is_empty() && matches!(error, Some(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))),
        "{messages:?} {error:?}"
    );
}

/// Faults of the reply act on its messages; those that need HTTP say that they cannot.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_replies_act_on_messages_or_say_that_they_cannot() {
    let peer = peer().await;
    let asked = async |fault: &str| {
        let lab = Lab::before(peer.address, Setup::planned(&plan(&format!("when.call = 0\nfault.{fault}")))).await;
        let mut socket = open(&lab, PATH).await.expect("a socket");
        within(socket.send(Message::text(create("How many?", "")))).await.expect("sent");
        let mut texts = Vec::new();
        let error = loop {
            match within(socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    texts.push(text.as_str().to_owned());
                    if matches!(kind(&text).as_str(), "response.completed" | "error") {
                        break None;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        (texts, error, lab.recorded("run"))
    };
    let whole = events("resp_", "It is 12 apples.", None).len();
    let (texts, error, recording) = asked("malformed_chunk = { frame = 3 }").await;
    assert_eq!((texts.len(), error.is_none()), (whole, true));
    assert!(serde_json::from_str::<Value>(&texts[3]).is_err(), "{}", texts[3]);
    assert_eq!(injected(&recording), 1);
    let (texts, error, _) = asked("bad_utf8 = { frame = 2 }").await;
    assert!(texts.len() == 2 && matches!(error, Some(Error::Utf8(_))), "{error:?}");
    let (texts, ..) = asked("drop_frames = { frame = 3, count = 1 }").await;
    assert_eq!((texts.len(), deltas(&texts)), (whole - 1, "is 12 apples.".to_owned()));
    let (texts, ..) = asked("error_event = { after_frames = 4 }").await;
    assert_eq!((texts.len(), kind(&texts[4])), (5, "error".to_owned()));
    let (texts, ..) = asked("latency = { ms = 50 }").await;
    assert_eq!(texts.len(), whole);
    for fault in ["html_page = { status = 502 }", "wrong_content_type = { content_type = \"text/html\" }"] {
        let (texts, _, recording) = asked(fault).await;
        assert_eq!(deltas(&texts), "It is 12 apples.", "{fault}");
        assert!(
            recording.notes.iter().any(|note| note.contains("could not act: a message of a WebSocket")),
            "{fault}: {:?}",
            recording.notes
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_answers_sockets_and_asks_nobody() {
    let refusal = r#"{"type":"error","status":429,"error":{"type":"rate_limit","message":"Slow down"},"headers":{"retry-after":"3"}}"#;
    let peer = Peer::start(move |number, _| match number {
        1 => says([refusal.to_owned()]),
        _ => says(events(&format!("resp_{number}"), "It is\u{a0}12 apples.", None)),
    })
    .await;
    let mut lab = Lab::before(peer.address, Setup::default()).await;
    let messages =
        [create("One?", ""), create("Two?", ""), create("Two?", ""), create("Three?", ",\"stream_id\":\"x\"")];
    let mut told = Vec::new();
    let mut socket = open(&lab, "/a/solver/v1/responses").await.expect("a socket");
    for message in &messages {
        told.push(ask(&mut socket, message).await);
    }
    leave(socket).await;
    lab.sealed("r0").await;
    let run = lab.logs.join("r0");
    let cassette = || Arc::new(Cassette::open(&run).expect("a cassette"));

    let wire = Arc::new(Tripwire::default());
    let again = Lab::over(Arc::clone(&wire) as Arc<dyn Upstream>, Setup::default()).await;
    let id = RunId::parse("r0").expect("an id");
    let replayed = Arc::new(Replayed::new(cassette()));
    let setup = RunSetup { upstream: Some(replayed.clone() as Arc<dyn Upstream>), ..RunSetup::default() };
    again.proxy.runs.open(&id, setup).await.expect("opens");
    let mut socket = open(&again, "/a/solver/v1/responses").await.expect("a socket");
    for (message, told) in messages.iter().zip(&told) {
        assert_eq!(ask(&mut socket, message).await, *told);
    }
    let missed = ask(&mut socket, &create("Four?", "")).await;
    assert!(missed[0].contains("\"status\":409") && missed[0].contains("not_recorded"), "{missed:?}");
    leave(socket).await;
    assert_eq!((wire.0.load(std::sync::atomic::Ordering::SeqCst), peer.texts().len()), (0, messages.len()));

    // A record up to a call, then the live upstream, which is opened for that call.
    let origin = UpstreamOrigin::parse(&format!("http://{}", peer.address), None).expect("an origin");
    let live = HttpUpstream::new(origin, Vec::new(), None, Duration::from_secs(20)).expect("an upstream").shared();
    let branch = Lab::over(Arc::new(Tripwire::default()), Setup::default()).await;
    let prefixed = Prefixed::new(cassette(), ForkPoint { step: 1, at: AtFork::Live }, live).expect("a step");
    let setup = RunSetup { upstream: Some(Arc::new(prefixed)), ..RunSetup::default() };
    branch.proxy.runs.open(&id, setup).await.expect("opens");
    let mut socket = open(&branch, "/a/solver/v1/responses").await.expect("a socket");
    assert_eq!(ask(&mut socket, &messages[0]).await, told[0]);
    assert_eq!(peer.texts().len(), messages.len(), "the record has answered");
    assert_eq!(deltas(&ask(&mut socket, &messages[1]).await), "It is\u{a0}12 apples.");
    assert_eq!(peer.texts().len(), messages.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_answers_messages() {
    let mut lab = Lab::over(Arc::new(Simulator::new(7)), Setup::default()).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let said = ask(&mut socket, &create("What is 12 + 30?", "")).await;
    assert!(deltas(&said).contains("42"), "{said:?}");
    let first: Value = serde_json::from_str(&said[0]).expect("JSON");
    let id = first["response"]["id"].as_str().expect("an id");
    let next = ask(&mut socket, &create("And 1 more?", &format!(",\"previous_response_id\":\"{id}\""))).await;
    assert!(kind(next.last().expect("a last")) == "response.completed", "{next:?}");
    let warm = ask(&mut socket, &create("What is 12 + 30?", ",\"generate\":false,\"store\":false")).await;
    assert_eq!(
        warm.iter().map(|text| kind(text)).collect::<Vec<_>>().last().map(String::as_str),
        Some("response.completed")
    );
    assert!(deltas(&warm).is_empty() && warm.iter().all(|text| !text.contains("42")), "{warm:?}");
    let first: Value = serde_json::from_str(&warm[0]).expect("JSON");
    let goes_on = format!(",\"store\":false,\"previous_response_id\":{}", first["response"]["id"]);
    let next = ask(&mut socket, &create("Go on.", &goes_on)).await;
    assert!(kind(next.last().expect("a last")) == "response.completed", "a socket keeps what is not stored: {next:?}");
    let refused = ask(&mut socket, r#"{"type":"response.create"}"#).await;
    assert!(refused[0].starts_with(r#"{"type":"error","status":400,"error":{"#), "{refused:?}");
    leave(socket).await;
    let steps = lab.sealed("run").await.trajectory.steps;
    let calls: Vec<_> =
        steps.iter().map(|step| (step.attribution.agent.as_str().contains("warm_up"), step.call)).collect();
    // What only prepares a question takes no number from who asks.
    assert_eq!(calls, [(false, 0), (false, 1), (true, 0), (false, 2), (false, 3)]);
}

/// A socket does not outlive its token, whether its messages are read or counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_ends_when_its_token_is_taken_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let peer = Peer::start(|_, text| {
        if text.contains("begin") { says(events("resp_0", "It is 12.", None).into_iter().take(3)) } else { Vec::new() }
    })
    .await;
    let url = format!("http://{}", peer.address);
    let (served, [alice, bob]) = tokens::serve(dir.path(), ["alice", "bob"], &["--upstream", &url]).await;
    let at = |token: &str, path: &str| format!("/t/{token}/r/one/a/solver/v1/{path}");
    let mut read = open_at(served.address, &at(&bob, "responses")).await.expect("a socket");
    let mut counted = open_at(served.address, &at(&bob, "realtime")).await.expect("a tunnel");
    let mut other = open_at(served.address, &at(&alice, "responses")).await.expect("a socket");
    within(read.send(Message::text(create("begin", "")))).await.expect("sent");
    within(other.send(Message::text(create("begin", "")))).await.expect("sent");
    for socket in [&mut read, &mut other] {
        for _ in 0..3 {
            assert!(within(socket.next()).await.is_some_and(|message| message.is_ok_and(|message| message.is_text())));
        }
    }
    let file = dir.path().join("tokens.toml");
    let both = fs::read_to_string(&file).expect("a file");
    fs::write(&file, both.split("\n\n").next().expect("an entry")).expect("written");
    tokens::reload(&served, "reloaded  plan, certificates and 1 token;").await;
    let started = std::time::Instant::now();
    let (messages, _) = rest(&mut read).await;
    let code = messages.iter().find_map(|message| {
        if let Message::Close(frame) = message { frame.as_ref().map(|frame| frame.code) } else { None }
    });
    assert_eq!(code, Some(CloseCode::Policy));
    assert!(rest(&mut counted).await.0.is_empty());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let log = dir.path().join("logs/@bob/one");
    let causes = || -> Vec<_> {
        let steps = aegis::recording::read(&log).expect("a recording").trajectory.steps;
        steps.iter().map(|step| step.last_attempt().and_then(|attempt| attempt.cause)).collect()
    };
    until("both are recorded", || causes() == [Some(CloseCause::Refused); 2]).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), other.next()).await.is_err(), "Alice's goes on");
    leave(other).await;
    assert_eq!(served.stop().await, Some(0));
}
