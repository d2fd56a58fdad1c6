//! Sockets of the Responses API through the proxy: each message that asks is a step, and both sides get the bytes of the other.

use std::time::Duration;

use aegis::{proxy::Limits, trajectory::CloseCause};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::{
    Error, Message,
    protocol::{
        CloseFrame,
        frame::{
            Frame,
            coding::{CloseCode, Data, OpCode},
        },
    },
};

use crate::{
    lab::{Lab, Setup, until, within},
    scripted::{Scripted, http},
    socket_peer::{Does, Peer, Socket, ask, create, deltas, events, kind, leave, open, response, says, text},
};

const PATH: &str = "/r/run/a/solver/v1/responses";

/// The close frame that a socket ends with.
async fn goodbye(socket: &mut Socket) -> Option<CloseFrame> {
    let mut last = None;
    while let Some(Ok(message)) = within(socket.next()).await {
        if let Message::Close(frame) = message {
            last = frame;
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn each_asking_message_is_a_step_and_no_byte_changes() {
    let peer = Peer::start(|number, _| says(events(&format!("resp_{number}"), "It is 12.", None))).await;
    let mut lab = Lab::before(peer.address, Setup::default()).await;
    let mut socket = open(&lab, &format!("{PATH}?api-version=1")).await.expect("a socket");
    let first = create("What is 7 + 5?", "");
    let second = create("And \\u00e9?\\n", ",\n\t\"previous_response_id\":\"resp_0\",\r\n\"event_id\":\"e\"");
    for (number, message) in [&first, &second].into_iter().enumerate() {
        assert_eq!(ask(&mut socket, message).await, events(&format!("resp_{number}"), "It is 12.", None));
    }
    assert_eq!(lab.causes("run"), [Some(CloseCause::Complete); 2], "recorded before their ends were seen");
    leave(socket).await;
    assert_eq!(peer.texts(), [first.clone(), second.clone()]);
    let head = &peer.heads()[0];
    assert!(head.starts_with("/v1/responses?api-version=1 ") && head.contains("Bearer sk-test"), "{head}");
    assert!(!head.contains("sec-websocket-extensions") && !head.contains("x-aegis"), "{head}");
    let recording = lab.sealed("run").await;
    let steps = &recording.trajectory.steps;
    assert_eq!(steps.len(), 2, "the handshake is none");
    for (number, (step, asked)) in steps.iter().zip([&first, &second]).enumerate() {
        assert_eq!((step.surface.as_str(), step.attribution.agent.as_str()), ("openai_responses", "solver"));
        assert_eq!((step.method.as_str(), step.path.as_str()), ("POST", "/v1/responses?api-version=1"));
        assert_eq!((step.call as usize, &step.request[..]), (number, asked.as_bytes()));
        let attempt = &step.attempts[0];
        assert_eq!((attempt.status, attempt.streamed, attempt.uninspected), (Some(200), true, None));
        assert_eq!(attempt.usage.map(|usage| (usage.input, usage.output)), Some((7, 5)));
        let told = String::from_utf8_lossy(&attempt.reply).into_owned();
        assert!(told.starts_with("event: response.created\ndata: {\"type\" : \"response.created\""), "{told}");
    }
    assert_eq!(recording.notes, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_of_a_run_are_told_by_their_paths() {
    let peer = Peer::start(|number, _| says(events(&format!("resp_{number}"), "Yes, it is.", None))).await;
    let lab = Lab::before(peer.address, Setup::default()).await;
    let mut planner = open(&lab, "/r/run/a/planner/v1/responses").await.expect("a socket");
    let mut critic = open(&lab, "/r/run/a/critic/v1/responses").await.expect("a socket");
    for agent in ["planner", "critic", "planner again"] {
        let socket = if agent == "critic" { &mut critic } else { &mut planner };
        assert_eq!(deltas(&ask(socket, &create(agent, "")).await), "Yes, it is.");
    }
    let steps = lab.recorded("run").trajectory.steps;
    let who: Vec<_> = steps.iter().map(|step| (step.attribution.agent.as_str(), step.call)).collect();
    assert_eq!(who, [("planner", 0), ("critic", 0), ("planner", 1)]);
}

/// Requests of several streams are under way at once, those of one stream one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_socket_are_told_apart() {
    let peer = Peer::start(|number, _| {
        let (a, b) = (events("resp_a", "Five of them.", Some("a")), events("resp_b", "Six of them.", Some("b")));
        match number {
            0 => Vec::new(),
            1 => says(a.into_iter().zip(b).flat_map(|(a, b)| [b, a])),
            _ => says(events("resp_c", "Seven of them.", Some("a"))),
        }
    })
    .await;
    let lab = Lab::before(peer.address, Setup::default()).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    for (text, stream) in [("A?", "a"), ("B?", "b"), ("C?", "a")] {
        let message = create(text, &format!(",\"stream_id\":\"{stream}\""));
        within(socket.send(Message::text(message))).await.expect("sent");
        until("it is asked", || !peer.texts().is_empty()).await;
    }
    let mut said = Vec::new();
    while said.iter().filter(|text: &&String| kind(text) == "response.completed").count() < 3 {
        said.push(text(&mut socket).await.expect("a text"));
    }
    for (stream, expected) in [("a", "Five of them.Seven of them."), ("b", "Six of them.")] {
        let own: Vec<String> =
            said.iter().filter(|text| text.contains(&format!("\"stream_id\":\"{stream}\""))).cloned().collect();
        assert_eq!(deltas(&own), expected);
    }
    let steps = lab.recorded("run").trajectory.steps;
    let reply = |at: usize| String::from_utf8_lossy(&steps[at].attempts[0].reply).into_owned();
    for (at, own, other) in [(0, "resp_a", "resp_b"), (1, "resp_b", "resp_a"), (2, "resp_c", "resp_a")] {
        assert!(reply(at).contains(own) && !reply(at).contains(other), "{}", reply(at));
    }
    assert!(steps[1].overlapping);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_no_response_passes_and_is_counted() {
    let steer = r#"{"type":"response.steer", "previous_response_id":"resp_0","input":"Hurry"}"#;
    let odd = ["{\"type\":\"response.cre", "", "[1]", "plain words"];
    let peer = Peer::start(move |number, _| match number {
        0 => {
            let mut texts = events("resp_0", "It is 12.", None);
            texts.insert(3, r#"{"type":"response.steer.accepted","sequence_number":1}"#.to_owned());
            texts.push(r#"{"type":"response.steer.pending"}"#.to_owned());
            says(texts)
        }
        1 => vec![Does::Frame(Message::binary(vec![7; 3])), Does::Frame(Message::Ping(vec![1].into()))],
        _ => Vec::new(),
    })
    .await;
    let lab = Lab::before(peer.address, Setup::default()).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let texts = ask(&mut socket, &create("What is 7 + 5?", "")).await;
    assert!(texts.iter().any(|text| kind(text) == "response.steer.accepted"));
    assert_eq!(kind(&text(&mut socket).await.expect("a text")), "response.steer.pending");
    within(socket.send(Message::text(steer))).await.expect("sent");
    assert_eq!(within(socket.next()).await.expect("open").expect("a message"), Message::binary(vec![7; 3]));
    assert_eq!(within(socket.next()).await.expect("open").expect("a message"), Message::Ping(vec![1].into()));
    for message in odd {
        within(socket.send(Message::text(message))).await.expect("sent");
    }
    within(socket.send(Message::binary(vec![9]))).await.expect("sent");
    within(socket.send(Message::Ping(vec![2].into()))).await.expect("sent");
    until("all of it is there", || peer.received().contains(&Message::Ping(vec![2].into()))).await;
    leave(socket).await;
    assert_eq!(peer.texts()[1..], [&[steer][..], &odd[..]].concat());
    assert!(
        peer.received().contains(&Message::Pong(vec![1].into())) && peer.received().contains(&Message::binary(vec![9]))
    );
    until("it is noted", || !lab.recorded("run").notes.is_empty()).await;
    let recording = lab.recorded("run");
    assert_eq!(recording.trajectory.steps.len(), 1);
    let note = &recording.notes[0];
    for counted in [
        "1 × response.steer of the client",
        "4 ×  of the client",
        "2 × binary",
        "1 × response.steer.accepted of the upstream",
    ] {
        assert!(note.contains(counted) || counted == "2 × binary", "{note}");
    }
    assert!(!String::from_utf8_lossy(&recording.trajectory.steps[0].attempts[0].reply).contains("steer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_has_the_status_of_a_refused_request() {
    let refusal = r#"{"type":"error","status":429,"error":{"type":"rate_limit","code":"rate_limit","message":"Slow down"},"headers":{"retry-after":"3"}}"#;
    let peer = Peer::start(move |number, _| match number {
        0 => says([refusal.to_owned()]),
        _ => says(events("resp_1", "It is 12.", None)),
    })
    .await;
    let lab = Lab::before(peer.address, Setup::default()).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let message = create("What is 7 + 5?", "");
    assert_eq!(ask(&mut socket, &message).await, [refusal]);
    assert_eq!(deltas(&ask(&mut socket, &message).await), "It is 12.");
    let steps = lab.recorded("run").trajectory.steps;
    assert_eq!(steps.len(), 1, "the second is an attempt of the first");
    let statuses: Vec<_> = steps[0].attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(429), Some(200)]);
    assert_eq!(steps[0].attempts[0].reply, refusal.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_or_breaks_is_named_in_the_record() {
    let started = || says(events("resp_0", "It is 12.", None).into_iter().take(4));
    let peer = Peer::start(move |_, _| started()).await;
    let lab = Lab::before(peer.address, Setup::default()).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    within(socket.send(Message::text(create("Hm?", "")))).await.expect("sent");
    for _ in 0..4 {
        text(&mut socket).await.expect("a text");
    }
    leave(socket).await;
    until("the record is closed", || lab.causes("run") == [Some(CloseCause::ClientGone)]).await;
    until("the upstream is told", || peer.received().iter().any(Message::is_close)).await;

    let restart = || Does::Frame(Message::Close(Some(CloseFrame { code: CloseCode::Restart, reason: "bye".into() })));
    let endings: [(fn() -> Does, CloseCause); 3] = [
        (|| Does::Drop, CloseCause::UpstreamReset),
        (restart, CloseCause::UpstreamTruncated),
        (|| Does::Raw(vec![0xff; 20]), CloseCause::UpstreamReset),
    ];
    for (last, cause) in endings {
        let peer = Peer::start(move |number, _| if number == 0 { started() } else { vec![last()] }).await;
        let lab = Lab::before(peer.address, Setup::default()).await;
        let mut socket = open(&lab, PATH).await.expect("a socket");
        within(socket.send(Message::text(create("Hm?", "")))).await.expect("sent");
        for _ in 0..4 {
            text(&mut socket).await.expect("what was said passes");
        }
        within(socket.send(Message::text("now"))).await.expect("sent");
        let frame = goodbye(&mut socket).await;
        assert_eq!(lab.causes("run"), [Some(cause)], "recorded before the client sees it");
        let told = frame.map(|frame| (frame.code, frame.reason.as_str().to_owned()));
        assert_eq!(told, (cause == CloseCause::UpstreamTruncated).then(|| (CloseCode::Restart, "bye".to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_frames_end_their_own_socket_only() {
    let peer = Peer::start(|number, text| match kind(text).as_str() {
        "response.create" => says(events(&format!("resp_{number}"), "It is 12.", None)),
        _ => Vec::new(),
    })
    .await;
    let limits = Limits { max_body_bytes: 64 << 10, ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut bystander = open(&lab, PATH).await.expect("a socket");
    let text_frame = |bytes: Vec<u8>, last| Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), last));
    for (message, code) in [
        (Message::text("a".repeat(65 << 10)), CloseCode::Size),
        (text_frame(vec![b'{', 0xc3, b'}'], true), CloseCode::Invalid),
        (Message::Frame(Frame::message(vec![1], OpCode::Data(Data::Continue), true)), CloseCode::Protocol),
        (Message::Frame(Frame::message(vec![1], OpCode::Data(Data::Reserved(3)), true)), CloseCode::Protocol),
    ] {
        let mut socket = open(&lab, PATH).await.expect("a socket");
        let _ = within(socket.send(message)).await;
        assert_eq!(goodbye(&mut socket).await.map(|frame| frame.code), Some(code));
    }
    // A message in thousands of pieces, with control frames between them.
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let message = create(&"x".repeat(4000), "");
    let bytes = message.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let kind = if at == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(vec![*byte], OpCode::Data(kind), at + 1 == bytes.len());
        within(socket.feed(Message::Frame(frame))).await.expect("sent");
        if at % 1000 == 0 {
            within(socket.feed(Message::Ping(vec![0].into()))).await.expect("sent");
        }
    }
    within(socket.flush()).await.expect("sent");
    assert_eq!(deltas(&response(&mut socket).await), "It is 12.");
    assert_eq!(peer.texts(), [message]);
    // Thousands of messages that say nothing.
    for _ in 0..5000 {
        within(socket.feed(Message::text("{}"))).await.expect("sent");
    }
    within(socket.flush()).await.expect("sent");
    assert_eq!(deltas(&ask(&mut socket, &create("Still there?", "")).await), "It is 12.");
    assert_eq!(deltas(&ask(&mut bystander, &create("Still here?", "")).await), "It is 12.");
    assert_eq!(lab.recorded("run").trajectory.steps.len(), 3);
}

/// A client that asks without end and reads nothing stalls itself alone, and what waits for it is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_stalls_alone() {
    let long = "word ".repeat(20_000);
    let peer = Peer::start(move |_, _| says(events("resp_0", &long, None))).await;
    let limits = Limits { write_timeout: Duration::from_millis(500), ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut greedy = open(&lab, PATH).await.expect("a socket");
    for number in 0..1000 {
        if tokio::time::timeout(Duration::from_millis(200), greedy.send(Message::text(create(&number.to_string(), ""))))
            .await
            .is_err()
        {
            break;
        }
    }
    let mut other = open(&lab, PATH).await.expect("a socket");
    assert!(deltas(&ask(&mut other, &create("Hm?", "")).await).starts_with("word "));
    until("it is given up", || lab.causes("run").contains(&Some(CloseCause::ClientStalled))).await;
    assert!(lab.causes("run").len() < 600, "what it asked is not all taken in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_handshake_passes_and_limits_hold() {
    let upstream = Scripted::always(vec![http("426 Upgrade Required", "application/json", "{\"use\":\"http\"}")]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let refused = open(&lab, PATH).await.expect_err("no socket");
    assert!(matches!(&refused, Error::Http(response) if response.status() == 426), "{refused}");

    let peer = Peer::start(|number, _| says(events(&format!("resp_{number}"), "It is 12.", None))).await;
    let limits = Limits { max_tunnels: 1, tunnel_idle: Duration::from_millis(300), ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let refused = open(&lab, PATH).await.expect_err("no place");
    assert!(matches!(&refused, Error::Http(response) if response.status() == 503), "{refused}");
    ask(&mut socket, &create("Hm?", "")).await;
    assert_eq!(goodbye(&mut socket).await.map(|frame| frame.code), Some(CloseCode::Away), "nobody says anything");

    let limits = Limits { max_tunnels: 0, ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let refused = open(&lab, PATH).await.expect_err("no sockets");
    assert!(matches!(&refused, Error::Http(response) if response.status() == 426), "{refused}");
}

/// An upstream that is silent within a response, and a server that stops.
#[tokio::test(flavor = "multi_thread")]
async fn silence_and_the_servers_end_are_recorded() {
    let peer = Peer::start(|number, _| {
        says(events("resp_0", "It is 12.", None).into_iter().take(if number == 0 { 0 } else { 3 }))
    })
    .await;
    let limits = Limits { silence_timeout: Duration::from_millis(300), ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut socket = open(&lab, PATH).await.expect("a socket");
    let said = ask(&mut socket, &create("Hm?", "")).await;
    assert!(said[0].contains("\"status\":504") && said[0].contains("upstream_timeout"), "{said:?}");
    within(socket.send(Message::text(create("Again?", "")))).await.expect("sent");
    assert_eq!(goodbye(&mut socket).await, None, "the connection tells");
    assert_eq!(lab.causes("run"), [Some(CloseCause::UpstreamTimeout); 2]);

    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let mut lab = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut idle = open(&lab, PATH).await.expect("a socket");
    let mut socket = open(&lab, PATH).await.expect("a socket");
    within(socket.send(Message::text(create("Hm?", "")))).await.expect("sent");
    text(&mut socket).await.expect("it begins");
    let (cut, frame) = tokio::join!(lab.drain(), goodbye(&mut idle));
    assert_eq!((cut, frame.map(|frame| frame.code)), (1, Some(CloseCode::Away)), "what is idle ends at once");
    assert_eq!(lab.causes("run"), [Some(CloseCause::Stopped)]);
}
