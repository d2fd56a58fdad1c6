//! Sockets of the Responses API: responses that the server starts by itself, models with routes, and the memory of messages.

use aegis::{
    proxy::{BodyMemory, Limits},
    recording::Recording,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{CloseCode, Data, OpCode},
    },
};

use crate::{
    lab::{Lab, Setup, request, until, within},
    scripted::{Scripted, http_with},
    socket_peer::{Peer, Socket, ask, create, deltas, events, kind, leave, open, response, says, text},
};

const STEER: &str = r#"{"type":"response.steer", "previous_response_id":"resp_0","input":"In pears, please"}"#;
const ACCEPTED: &str = r#"{"type":"response.steer.accepted","sequence_number":1,"steer":{"id":"steer_1","previous_response_id":"resp_0"}}"#;

/// A response that goes on from another, where that is named.
fn continuing(id: &str, text: &str, from: Option<&str>) -> Vec<String> {
    let named = from.map(|from| format!("\"object\":\"response\",\"previous_response_id\":\"{from}\""));
    let events = events(id, text, None).into_iter();
    events
        .map(|event| named.as_ref().map_or(event.clone(), |named| event.replace("\"object\":\"response\"", named)))
        .collect()
}

/// Answers the first request; then goes on from what it is told, and at last from nothing.
async fn steered() -> Peer {
    Peer::start(|number, _| match number {
        0 => says(events("resp_0", "It is 12 apples.", None)),
        1 => says([vec![ACCEPTED.to_owned()], continuing("resp_1", "It is 12 pears.", Some("resp_0"))].concat()),
        _ => says(continuing("resp_2", "And 12 plums.", None)),
    })
    .await
}

/// What a client of that is told after its first response: all of the second, and of the third.
async fn steer(socket: &mut Socket) -> [Vec<String>; 2] {
    within(socket.send(Message::text(STEER))).await.expect("sent");
    let second = response(socket).await;
    within(socket.send(Message::text("go on"))).await.expect("sent");
    [second, response(socket).await]
}

fn agents(recording: &Recording) -> Vec<String> {
    recording.trajectory.steps.iter().map(|step| step.attribution.agent.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_the_server_starts_is_a_step_of_whose_it_goes_on_from() {
    for path in ["/r/run/a/solver/v1/responses", "/r/run/v1/responses", "/v1/responses"] {
        let peer = steered().await;
        let mut lab = Lab::before(peer.address, Setup { default_run: Some("run"), ..Setup::default() }).await;
        let mut socket = open(&lab, path).await.expect("a socket");
        let asked = create("How many?", ",\"instructions\":\"You count fruit.\"");
        assert_eq!(ask(&mut socket, &asked).await, events("resp_0", "It is 12 apples.", None));
        let [second, third] = steer(&mut socket).await;
        let told = [vec![ACCEPTED.to_owned()], continuing("resp_1", "It is 12 pears.", Some("resp_0"))].concat();
        assert_eq!(
            second.iter().filter(|text| *text != ACCEPTED).collect::<Vec<_>>(),
            told[1..].iter().collect::<Vec<_>>()
        );
        assert!(second.contains(&ACCEPTED.to_owned()));
        assert_eq!(third, continuing("resp_2", "And 12 plums.", None));
        leave(socket).await;
        assert_eq!(peer.texts(), [&asked, STEER, "go on"]);
        let recording = lab.sealed("run").await;
        let steps = &recording.trajectory.steps;
        assert_eq!(steps.len(), 3, "{path}");
        assert!(agents(&recording).iter().all(|agent| *agent == steps[0].attribution.agent.to_string()), "{path}");
        assert_eq!(steps.iter().map(|step| step.call).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(steps.iter().all(|step| aegis::surface::account::of_step(step).is_whole()), "{path}");
        assert_eq!(steps[1].request, STEER.as_bytes(), "what the client has said stands for its request");
        assert_eq!(steps[2].request, &br#"{"type":"response.create","input":[]}"#[..]);
        for (step, id) in steps.iter().zip(["resp_0", "resp_1", "resp_2"]) {
            let attempt = &step.attempts[0];
            assert_eq!((attempt.status, attempt.usage.map(|usage| usage.output)), (Some(200), Some(5)));
            assert!(String::from_utf8_lossy(&attempt.reply).contains(id) && !step.overlapping);
        }
        let notes = recording.notes.join("\n");
        assert!(notes.contains("step 1 is a response that the server started by itself"), "{notes}");
        assert!(notes.contains("1 ×  of the client"), "{notes}");
        assert!(!notes.contains("response.steer of the client"), "{notes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_edits_what_a_server_starts_and_not_what_nobody_asked() {
    let edit = |side: &str, find: &str| {
        format!(
            "[[injection]]\nagent = \"solver\"\nwhen.call = 1\nfailure_mode = \"FM-2.6\"\nside = \"{side}\"\nmanipulator.replace_text = {{ find = \"{find}\", with = \"13\" }}\n"
        )
    };
    let plan = format!("format = 1\nseed = 7\n{}{}", edit("response", "12"), edit("request", "pears"));
    let peer = steered().await;
    let mut lab = Lab::before(peer.address, Setup::planned(&plan)).await;
    let mut socket = open(&lab, "/r/run/a/solver/v1/responses").await.expect("a socket");
    ask(&mut socket, &create("How many?", "")).await;
    let [second, third] = steer(&mut socket).await;
    assert_eq!((deltas(&second), deltas(&third)), ("It is 13 pears.".to_owned(), "And 12 plums.".to_owned()));
    leave(socket).await;
    assert_eq!(peer.texts()[1], STEER);
    let recording = lab.sealed("run").await;
    let step = &recording.trajectory.steps[1];
    assert_eq!(step.injected.iter().filter(|error| error.delivered).count(), 1);
    assert_eq!(step.request_sent, None);
    let reply = |delivered: bool| {
        let attempt = &step.attempts[0];
        let bytes = if delivered { attempt.delivered() } else { &attempt.reply };
        String::from_utf8_lossy(bytes).into_owned()
    };
    assert!(reply(false).contains("12 pears") && reply(true).contains("13 pears"));
}

/// The first message of a socket tells where it leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_leads_to_the_route_of_its_first_model() {
    let answers = |text: &'static str| Peer::start(move |_, _| says(events("resp_0", text, None)));
    let (default, routed) = (answers("By default.").await, answers("By route.").await);
    let routes = vec![("^big-.*$", routed.address, Some("route-key"))];
    let lab = Lab::before(default.address, Setup { routes, ..Setup::default() }).await;
    let big = create("Who?", "").replace("\"m\"", "\"big-one\"");
    let mut socket = open(&lab, "/r/run/a/solver/v1/responses").await.expect("a socket");
    assert!(default.heads().is_empty() && routed.heads().is_empty(), "nobody is asked yet");
    assert_eq!(deltas(&ask(&mut socket, &big).await), "By route.");
    let refused = ask(&mut socket, &create("Who?", "")).await;
    let said: Value = serde_json::from_str(&refused[0]).expect("JSON");
    assert_eq!((said["type"].as_str(), said["status"].as_u64()), (Some("error"), Some(502)));
    assert!(
        said["error"]["message"].as_str().is_some_and(|words| words.contains("open a WebSocket for each route")),
        "{said}"
    );
    assert_eq!(deltas(&ask(&mut socket, &big.replace("Who", "Why")).await), "By route.", "the socket goes on");
    let head = &routed.heads()[0];
    assert!(head.contains("route-key") && !head.contains("sk-test"), "{head}");
    let mut other = open(&lab, "/r/run/a/other/v1/responses").await.expect("a socket");
    assert_eq!(deltas(&ask(&mut other, &create("Who?", "")).await), "By default.");
    assert_eq!((default.texts().len(), routed.texts().len()), (1, 2));
    assert!(default.heads()[0].contains("sk-test"));
}

/// The message that led to a route which refuses sockets gets the words of that upstream.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_route_answers_to_its_handshake_comes_as_an_error_of_its_status() {
    let wrong_key = r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#;
    for (status, reason, body, words) in [
        (401, "Unauthorized", wrong_key, "Incorrect API key"),
        (403, "Forbidden", "<html>no</html>", "the upstream answers 403 Forbidden to a WebSocket"),
    ] {
        let head = format!("{status} {reason}");
        let routed = Scripted::always(vec![http_with(&head, "x-request-id: 7\r\n", body.as_bytes())]).await;
        let default = Peer::start(|_, _| says(events("resp_0", "It is 12 apples.", None))).await;
        let routes = vec![("^big-.*$", routed.address, Some("route-key"))];
        let mut lab = Lab::before(default.address, Setup { routes, ..Setup::default() }).await;
        let mut socket = open(&lab, "/r/run/a/solver/v1/responses").await.expect("a socket");
        let big = create("Who?", "").replace("\"m\"", "\"big-one\"");
        for _ in 0..2 {
            let refused = ask(&mut socket, &big).await;
            let refused: Value = serde_json::from_str(&refused[0]).expect("JSON");
            assert_eq!((refused["type"].as_str(), refused["status"].as_u64()), (Some("error"), Some(status)));
            assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains(words)), "{refused}");
            assert_eq!(refused["headers"]["x-request-id"], "7", "{refused}");
        }
        // The next message may lead elsewhere.
        assert_eq!(deltas(&ask(&mut socket, &create("Who?", "")).await), "It is 12 apples.");
        leave(socket).await;
        let recording = lab.sealed("run").await;
        let statuses: Vec<_> = recording.trajectory.steps.iter().map(|step| step.attempts[0].status).collect();
        assert_eq!(*statuses.last().expect("a step"), Some(200), "{statuses:?}");
        assert!(statuses[0].map(u64::from) == Some(status), "{statuses:?}");
    }
}

/// A message takes its memory while it comes, and has it until its call has ended.
#[tokio::test(flavor = "multi_thread")]
async fn messages_take_their_memory_from_that_of_all_bodies() {
    let peer = Peer::start(|_, _| says(events("resp_0", "It is 12.", None))).await;
    let limits = || Limits { memory: BodyMemory::with_bytes(512 << 10), ..Limits::default() };
    let lab = Lab::before(peer.address, Setup { limits: limits(), ..Setup::default() }).await;
    let path = "/r/run/a/solver/v1/responses";
    let mut bystander = open(&lab, path).await.expect("a socket");
    let piece = |text: &str, first: bool, last: bool| {
        let kind = if first { Data::Text } else { Data::Continue };
        Message::Frame(Frame::message(text.as_bytes().to_vec(), OpCode::Data(kind), last))
    };
    // More than there is, in one frame and in many, with pings between them.
    for pieces in [1, 40] {
        let mut socket = open(&lab, path).await.expect("a socket");
        let long = create(&"x".repeat(600 << 10), "");
        let (length, mut at) = (long.len().div_ceil(pieces), 0);
        while at < long.len() {
            let end = (at + length).min(long.len());
            let sent = socket.send(piece(&long[at..end], at == 0, end == long.len())).await;
            let pinged = socket.send(Message::Ping(vec![1; 100].into())).await;
            if sent.is_err() || pinged.is_err() {
                break;
            }
            at = end;
        }
        let mut refused = String::new();
        let code = loop {
            match within(socket.next()).await {
                Some(Ok(Message::Text(text))) => refused = text.as_str().to_owned(),
                Some(Ok(Message::Close(frame))) => break frame.map(|frame| frame.code),
                Some(Ok(_)) => {}
                ended => panic!("{pieces}: {ended:?} after {refused}"),
            }
        };
        assert_eq!((kind(&refused).as_str(), code), ("error", Some(CloseCode::Again)), "{pieces}: {refused}");
        assert!(refused.contains("\"status\":503") && refused.contains("limits.memory"), "{refused}");
    }
    assert!(peer.texts().is_empty());
    assert_eq!(deltas(&ask(&mut bystander, &create("Still here?", "")).await), "It is 12.");
    // What is half there keeps others waiting until it is given up.
    let mut half = open(&lab, path).await.expect("a socket");
    within(half.send(piece(&"x".repeat(400 << 10), true, false))).await.expect("sent");
    within(half.send(Message::Ping(vec![2].into()))).await.expect("sent");
    assert!(matches!(within(half.next()).await, Some(Ok(Message::Pong(_)))), "it is taken in");
    let long = create(&"x".repeat(300 << 10), "");
    within(bystander.send(Message::text(long.clone()))).await.expect("sent");
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(300), text(&mut bystander)).await.is_err(),
        "it waits"
    );
    drop(half);
    assert_eq!(deltas(&response(&mut bystander).await), "It is 12.");
    assert_eq!(peer.texts().last(), Some(&long));
    // Nobody has memory for long for what never comes.
    let limits = Limits { body_timeout: std::time::Duration::from_millis(300), ..limits() };
    let slow = Lab::before(peer.address, Setup { limits, ..Setup::default() }).await;
    let mut half = open(&slow, path).await.expect("a socket");
    within(half.send(piece(&"x".repeat(100 << 10), true, false))).await.expect("sent");
    let refused = text(&mut half).await.expect("a text");
    assert!(refused.contains("\"status\":408") && refused.contains("did not arrive within"), "{refused}");
    // And so with requests.
    let mut client = lab.client().await;
    client.send(&request("POST", path, create(&"x".repeat(600 << 10), "").as_bytes(), "")).await;
    client.reply().await.assert_own_error(503, "busy");
    until("all of it is recorded", || lab.causes("run").len() == 2).await;
}
