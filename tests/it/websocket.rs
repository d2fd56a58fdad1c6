//! A WebSocket through the proxy, with a real client and a real server: tunnelled, counted, marked uninspected.

use std::{net::SocketAddr, time::Duration};

use aegis::{
    proxy::Limits,
    ruling::{NoLabel, Ruling},
    trajectory::CloseCause,
};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_async, client_async,
    tungstenite::{Error, Message},
};

use crate::{
    lab::{Lab, Setup, request, until, within},
    scripted::{Act, Scripted, http},
};

const PATH: &str = "/r/run/a/solver/v1/realtime";
const H: &str = "Host: 127.0.0.1\r\n";
const HANDSHAKE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A server that says again what it is told; at `drop` it vanishes.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(stream).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    if message.to_text().is_ok_and(|text| text == "drop") {
                        return socket.get_ref().set_zero_linger().expect("linger");
                    }
                    if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

async fn connect(lab: &Lab) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(lab.address).await.expect("connect");
    let url = format!("ws://{}{PATH}", lab.address);
    within(client_async(url, stream)).await.map(|(socket, _)| socket)
}

async fn say(socket: &mut WebSocketStream<TcpStream>, message: Message) {
    within(socket.send(message.clone())).await.expect("sent");
    assert_eq!(within(socket.next()).await.expect("an answer").expect("a message"), message);
}

async fn leave(mut socket: WebSocketStream<TcpStream>) {
    within(socket.close(None)).await.expect("closed");
    while let Some(Ok(_)) = within(socket.next()).await {}
}

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_is_tunnelled_counted_and_marked_uninspected() {
    let mut lab = Lab::before(echo().await, Setup::planned(PLAN)).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    say(&mut socket, Message::text("It is 12.")).await;
    say(&mut socket, Message::binary(vec![7; 300_000])).await;
    // Bytes that would be no HTTP, and bytes that would be: both are the tunnel's own business.
    say(&mut socket, Message::text("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")).await;
    leave(socket).await;
    until("the record is closed", || lab.causes("run").iter().all(Option::is_some)).await;
    let recording = lab.sealed("run").await;
    let step = &recording.trajectory.steps[0];
    let attempt = &step.attempts[0];
    assert_eq!((step.surface.as_str(), step.attribution.agent.as_str()), ("websocket", "solver"));
    assert_eq!((attempt.status, attempt.cause), (Some(101), Some(CloseCause::Complete)));
    let bytes = attempt.uninspected.expect("counts");
    // Each message has a head of 2 to 10 bytes, and from a client a mask of 4.
    assert!((300_050..300_200).contains(&bytes.from_client), "{bytes:?}");
    assert!((300_040..bytes.from_client).contains(&bytes.from_upstream), "{bytes:?}");
    assert!(attempt.reply.is_empty() && step.request.is_empty(), "nothing of it is stored");
    // What the plan wanted of it is said to be undeliverable.
    assert!(recording.notes.iter().any(|note| note.contains("cannot be edited: the step is a WebSocket")));
    assert_eq!(recording.manipulator_failures.len(), 1);
    assert_eq!(Ruling::new(&recording).label().err(), Some(NoLabel::ManipulatorFailed));
}

/// Neither the offer of a switch nor a refusal of it opens the gate.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_upstreams_101_opens_a_tunnel() {
    for status in ["200 OK", "426 Upgrade Required", "404 Not Found"] {
        let upstream = Scripted::always(vec![http(status, "application/json", "{}")]).await;
        let lab = Lab::before(upstream.address, Setup::default()).await;
        let mut client = lab.client().await;
        client.send(format!("GET {PATH} HTTP/1.1\r\n{H}{HANDSHAKE}").as_bytes()).await;
        assert!(client.read_until(b"{}").await, "{status}");
        assert!(upstream.heads()[0].to_lowercase().contains("upgrade: websocket\r\n"), "{}", upstream.heads()[0]);
        client.send(format!("GET /x HTTP/1.1\r\n{H}{H}\r\nGET /smuggled HTTP/1.1\r\n{H}\r\n").as_bytes()).await;
        client.rest().await;
        assert_eq!(upstream.count(), 1, "{status}: {:?}", upstream.heads());
        let step = &lab.recorded("run").trajectory.steps[0];
        assert_eq!((step.attempts[0].cause, step.attempts[0].uninspected), (Some(CloseCause::Complete), None));
    }
}

/// An upstream that switches although nobody asked gets no tunnel.
#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_nobody_asked_for_is_refused() {
    let switched = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\u{1}\u{2}";
    let upstream = Scripted::always(vec![Act::Say(switched.into())]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for path in ["/v1/chat/completions", "/v1/models"] {
        let reply = lab.post(path, &crate::lab::chat("x")).await;
        reply.assert_own_error(502, "upstream_switched");
    }
    let offer =
        format!("GET /v1/models HTTP/1.1\r\n{H}Connection: upgrade\r\nUpgrade: h2c\r\nConnection: close\r\n\r\n");
    let reply = crate::lab::Reply::parse(&lab.raw(offer.as_bytes()).await);
    reply.assert_own_error(502, "upstream_switched");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_tunnel_is_drained_when_the_server_stops() {
    let mut lab = Lab::before(echo().await, Setup::default()).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    say(&mut socket, Message::text("before")).await;
    let (cut, ()) = tokio::join!(lab.drain(), async move {
        say(&mut socket, Message::text("while it stops")).await;
        leave(socket).await;
    });
    assert_eq!(cut, 0);
    assert_eq!(lab.causes("run"), [Some(CloseCause::Complete)]);

    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let mut lab = Lab::before(echo().await, Setup { limits, ..Setup::default() }).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    say(&mut socket, Message::text("never ends")).await;
    assert_eq!(lab.drain().await, 1);
    assert_eq!(lab.causes("run"), [Some(CloseCause::Stopped)]);
    let counts = lab.recorded("run").trajectory.steps[0].attempts[0].uninspected.expect("counts");
    assert!(counts.from_client > counts.from_upstream && counts.from_upstream > 10, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_breaks_says_who_broke_it() {
    let lab = Lab::before(echo().await, Setup::default()).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    within(socket.send(Message::text("drop"))).await.expect("sent");
    assert!(!matches!(within(socket.next()).await, Some(Ok(_))), "the client is told by its connection");
    until("the record is closed", || lab.causes("run") == [Some(CloseCause::UpstreamReset)]).await;

    let lab = Lab::before(echo().await, Setup::default()).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    say(&mut socket, Message::text("x")).await;
    socket.get_ref().set_zero_linger().expect("linger");
    drop(socket);
    until("the record is closed", || lab.causes("run") == [Some(CloseCause::ClientGone)]).await;
}

/// Faults that need no reply meet the handshake; the others are said not to have acted.
#[tokio::test(flavor = "multi_thread")]
async fn faults_meet_the_handshake_or_say_that_they_cannot() {
    let plan = |fault: &str| {
        format!("format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.always = true\nfault.{fault}\n")
    };
    let lab = Lab::before(echo().await, Setup::planned(&plan("status = { code = 429 }"))).await;
    let refused = connect(&lab).await.expect_err("no tunnel");
    assert!(matches!(&refused, Error::Http(response) if response.status() == 429), "{refused}");
    let lab = Lab::before(echo().await, Setup::planned(&plan("cut = { at = { after_bytes = 3 } }"))).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    say(&mut socket, Message::text("It is 12.")).await;
    leave(socket).await;
    let notes = lab.recorded("run").notes;
    assert!(notes.iter().any(|note| note.contains("`cut` could not act: the step is a WebSocket")), "{notes:?}");
}

/// A tunnel in which nobody says anything is closed, one in which somebody does is not; both are recorded as such.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_tunnel_is_closed() {
    let limits = Limits { tunnel_idle: Duration::from_millis(300), ..Limits::default() };
    let lab = Lab::before(echo().await, Setup { limits, ..Setup::default() }).await;
    let mut socket = connect(&lab).await.expect("a tunnel");
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_millis(700) {
        say(&mut socket, Message::text("still here")).await;
    }
    assert_eq!(lab.causes("run"), [None], "open as long as somebody speaks");
    assert!(!matches!(within(socket.next()).await, Some(Ok(_))), "the client is told by its connection");
    assert_eq!(lab.causes("run"), [Some(CloseCause::Idle)], "recorded before the client sees it");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_tunnels_than_allowed_are_refused() {
    let limits = Limits { max_tunnels: 1, ..Limits::default() };
    let lab = Lab::before(echo().await, Setup { limits, ..Setup::default() }).await;
    let mut first = connect(&lab).await.expect("a tunnel");
    say(&mut first, Message::text("x")).await;
    let refused = connect(&lab).await.expect_err("no tunnel");
    assert!(matches!(&refused, Error::Http(response) if response.status() == 503), "{refused}");
    assert_eq!(lab.causes("run").len(), 1, "what is refused is no step");
    leave(first).await;
    until("the place is free", || lab.causes("run") == [Some(CloseCause::Complete)]).await;
    let start = std::time::Instant::now();
    let mut second = loop {
        match connect(&lab).await {
            Ok(socket) => break socket,
            Err(error) => assert!(start.elapsed() < crate::lab::DEADLINE, "{error}"),
        }
    };
    say(&mut second, Message::text("y")).await;
}

/// Other offers to switch are taken off; they are no tunnels, and take no tunnel's place.
#[tokio::test(flavor = "multi_thread")]
async fn another_offer_to_switch_is_an_ordinary_call_where_tunnels_are_forbidden() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", "{}")]).await;
    let limits = Limits { max_tunnels: 0, ..Limits::default() };
    let lab = Lab::before(upstream.address, Setup { limits, ..Setup::default() }).await;
    let body = crate::lab::chat("x");
    let offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
    let mut client = lab.client().await;
    client.send(&request("POST", "/v1/chat/completions", &body, offer)).await;
    assert!(client.read_until(b"{}").await, "it is answered");
    assert!(!upstream.heads()[0].to_lowercase().contains("upgrade"), "{}", upstream.heads()[0]);
    let refused = connect(&lab).await.expect_err("a WebSocket is refused");
    // By this status clients know that HTTP will do.
    assert!(matches!(&refused, Error::Http(response) if response.status() == 426), "{refused}");
}

/// `aegis run` says how much of a run it could not look into.
#[tokio::test(flavor = "multi_thread")]
async fn the_result_counts_what_passed_uninspected() {
    const CLIENT: &str = r#"
        address=${OPENAI_BASE_URL#http://}; host=${address%%/*}; path=/${address#*/}
        exec 3<>"/dev/tcp/${host%:*}/${host#*:}"
        printf 'GET %s/realtime HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n' "$path" "$host" >&3
        read -r status <&3; echo "$status"
    "#;
    let upstream = format!("http://{}", echo().await);
    let dir = tempfile::tempdir().expect("a directory");
    let ran = tokio::process::Command::new(env!("CARGO_BIN_EXE_aegis"))
        .args(["run", "--upstream", &upstream, "--", "bash", "-c", CLIENT])
        .current_dir(dir.path())
        .output();
    let ran = within(ran).await.expect("the program runs");
    let (out, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(out.contains("101 Switching Protocols"), "{out}{said}");
    let result = said.lines().last().expect("a last line");
    assert!(result.starts_with("RESULT") && result.contains("1 steps  1 uninspected"), "{said}");
    assert!(said.contains("1 of the steps are WebSockets"), "{said}");
}
