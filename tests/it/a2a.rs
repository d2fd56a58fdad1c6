//! Peers behind the proxy: their card leads through it, their messages are steps that pass byte for byte, plans reach them.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    replay::{Cassette, Replayed},
    trajectory::RunId,
};

use crate::{
    lab::{Lab, Reply, Setup, request},
    scripted::{Act, Scripted, chunk, http, last_chunk},
};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"How is it?"}]}}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"sunny"}]}}}"#;

/// A proxy before a peer `weather` that follows this script, and before a model that nobody asks.
async fn lab(script: Vec<Vec<Act>>, setup: Setup) -> (Lab, Scripted) {
    let peer = Scripted::start(script).await;
    let model = Scripted::always(vec![http("500 No", "text/plain", "nobody asks")]).await;
    let lab = Lab::before(model.address, Setup { a2a: vec![("weather", peer.address)], ..setup }).await;
    (lab, peer)
}

#[tokio::test]
async fn the_card_leads_through_the_proxy_and_messages_are_steps() {
    let script = vec![vec![http("200 OK", "application/json", ANSWER)]];
    let (mut lab, peer) = lab(script, Setup::default()).await;
    let reply = lab.post("/r/r0/a/planner/a2a/weather/rpc", ASK.as_bytes()).await;
    assert_eq!(reply.text(), ANSWER);
    assert!(peer.heads()[0].starts_with("POST /rpc HTTP/1.1"), "{:?}", peer.heads());
    assert_eq!(peer.bodies(), [ASK.as_bytes()]);
    let recording = lab.sealed("r0").await;
    let step = &recording.trajectory.steps[0];
    assert_eq!((step.surface.as_str(), step.attribution.agent.as_str()), ("a2a", "a2a/weather"));
    assert_eq!(
        recording.exchanges[0].relates.called_by.as_ref().map(aegis::trajectory::AgentName::as_str),
        Some("planner")
    );
    assert!(step.last_attempt().is_some_and(aegis::trajectory::Attempt::is_answered));
    let callers = aegis::recording::tool_callers(&recording.trajectory.steps, &recording.exchanges);
    assert_eq!(callers[&0].agent().map(aegis::trajectory::AgentName::as_str), Some("planner"));
}

#[tokio::test]
async fn addresses_of_the_card_are_ours() {
    // A card names the address under which the peer knows itself.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("an address");
    let card = format!(
        r#"{{"name":"w","url":"http://localhost:{0}/","supportedInterfaces":[{{"url":"http://127.0.0.1:{0}/rpc","protocolBinding":"JSONRPC"}}]}}"#,
        address.port()
    );
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: \"1\"\r\n";
        let _ = write!(stream, "{head}content-length: {}\r\n\r\n{card}", card.len());
    });
    let model = Scripted::always(vec![http("500 No", "text/plain", "nobody asks")]).await;
    let lab = Lab::before(model.address, Setup { a2a: vec![("weather", address)], ..Setup::default() }).await;
    let path = "/r/r0/a2a/weather/.well-known/agent-card.json";
    let reply = Reply::parse(&lab.raw(&request("GET", path, b"", "connection: close\r\n")).await);
    // As the client named the host.
    let ours = "http://127.0.0.1/r/r0/a2a/weather";
    let expected = serde_json::json!({"name": "w", "url": format!("{ours}/"),
        "supportedInterfaces": [{"url": format!("{ours}/rpc"), "protocolBinding": "JSONRPC"}]});
    assert_eq!((reply.json(), reply.header("etag")), (expected, None));

    // The run that asked keeps it, and what replays that run gives it again, under its own address.
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a record"));
    let cards = cassette.cards();
    let replayed: Arc<dyn Upstream> = Arc::new(Replayed::new(cassette));
    let again = Lab::over(replayed.clone(), Setup { a2a: vec![("weather", address)], ..Setup::default() }).await;
    let run = RunId::parse("r1").expect("an id");
    let setup = RunSetup { upstream: Some(replayed), cards, ..RunSetup::default() };
    again.proxy.runs.open(&run, setup).await.expect("a run");
    let asked = request("GET", &path.replace("r0", "r1"), b"", "connection: close\r\n");
    let reply = Reply::parse(&again.raw(&asked).await);
    assert_eq!(reply.json()["supportedInterfaces"][0]["url"], "http://127.0.0.1/r/r1/a2a/weather/rpc");
    let other = request("GET", "/r/r1/a2a/weather/.well-known/agent.json", b"", "connection: close\r\n");
    assert_eq!(Reply::parse(&again.raw(&other).await).status, 405, "nobody asked for that one");
    crate::contract::files_have(&again.logs, &["files/cards"]); // A replay of the replay has it, too.
}

#[tokio::test]
async fn plans_edit_what_a_peer_is_asked_and_answers() {
    let plan = r#"
        [[injection]]
        peer = "weather"
        when.call = 0
        manipulator.replace_text = { find = "sunny", with = "rainy" }

        [[injection]]
        peer = "weather"
        side = "request"
        when.call = 1
        manipulator.replace_text = { find = "How is it", with = "How was it" }
    "#;
    let update = r#"{"jsonrpc":"2.0","id":2,"result":{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"sunny"}]}}}}"#;
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let stream = vec![Act::Say(head.to_vec()), chunk(format!("data: {update}\n\n")), last_chunk()];
    let script = vec![vec![http("200 OK", "application/json", ANSWER)], stream];
    let (mut lab, peer) = lab(script, Setup::planned(plan)).await;
    assert_eq!(lab.post("/r/r0/a2a/weather", ASK.as_bytes()).await.text(), ANSWER.replace("sunny", "rainy"));
    let streamed = lab.post("/r/r0/a2a/weather", ASK.replace("\"id\":1", "\"id\":2").as_bytes()).await;
    assert_eq!(streamed.text(), format!("data: {update}\n\n"));
    assert!(String::from_utf8_lossy(&peer.bodies()[1]).contains("How was it?"));
    let recording = lab.sealed("r0").await;
    let planted: Vec<_> = recording.trajectory.steps.iter().flat_map(|step| &step.injected).collect();
    assert!(planted.len() == 2 && planted.iter().all(|error| error.delivered && !error.is_of_agent()), "{planted:?}");
    assert!(recording.trajectory.steps[1].last_attempt().is_some_and(aegis::trajectory::Attempt::is_answered));
}
