//! Errors in the protocol of tools: which of them take a run's label, and what faults make of the one event of an answer.

use aegis::ruling::{NoLabel, Ruling};

use crate::{
    lab::{Lab, Setup, request, until},
    scripted::{Act, Scripted, chunk, http, stream_head},
};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"5"}],"isError":false}}"#;
const SAID: &str = r#"{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It is 12."}}]}"#;
const PLAN: &str = "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
    side = \"response\"\nmanipulator.replace_text = { find = \"12\", with = \"13\" }\n";

/// A proxy before a server of tools and a model that each say one thing.
async fn lab(tools: Act, plan: &str) -> (Lab, Scripted, Scripted) {
    let server = Scripted::always(vec![tools]).await;
    let model = Scripted::always(vec![http("200 OK", "application/json", SAID)]).await;
    let lab = Lab::before(model.address, Setup { mcp: vec![("calc", server.address)], ..Setup::planned(plan) }).await;
    (lab, server, model)
}

/// JSON-RPC refuses within a status of success: a client that asks an older server what it can do, a model that calls a tool which
/// there is not, a call that was cancelled. None of them is a failure of the server's own.
#[tokio::test]
async fn what_a_server_of_tools_refuses_leaves_a_run_its_label() {
    for (code, message, refused) in [
        (-32601, "Method not found", None),
        (-32602, "Unknown tool: addd", None),
        (0, "Request cancelled", None),
        (-32002, "No such resource", None),
        (-32603, "database is locked", Some(NoLabel::InfraError)),
        (-32001, "the camera is broken", Some(NoLabel::InfraError)),
        (-32000, "out of service", Some(NoLabel::InfraError)),
    ] {
        let error = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":{code},"message":"{message}"}}}}"#);
        let (mut lab, _server, _model) = lab(http("200 OK", "application/json", &error), PLAN).await;
        assert_eq!(lab.post("/r/run/mcp/calc", CALL.as_bytes()).await.text(), error);
        let ask = br#"{"model":"m","messages":[{"role":"user","content":"5 and 7"}]}"#;
        assert!(lab.post("/r/run/a/solver/v1/chat/completions", ask).await.text().contains("13"));
        let recording = lab.sealed("run").await;
        assert_eq!(Ruling::new(&recording).label().err(), refused, "{code} {message}");
    }
}

/// The stream of an answer is often its one event: faults of frames act on it, and an error bears the id of what was asked.
#[tokio::test]
async fn faults_of_frames_act_on_the_one_event_of_an_answer() {
    let event = format!("event: message\ndata: {RESULT}\n\n");
    for (fault, expected) in [
        ("malformed_chunk = {}", None),
        ("bad_utf8 = { frame = 0 }", None),
        ("repeat_frames = { frame = 0 }", Some(format!("{event}{event}"))),
        ("drop_frames = { frame = 0 }", Some(String::new())),
    ] {
        let plan = format!("[[injection]]\ntool = \"calc/add\"\nwhen.call = 0\nfault.{fault}\n");
        let (lab, _server, _model) = lab(http("200 OK", "text/event-stream", &event), &plan).await;
        let got = lab.post("/r/run/mcp/calc", CALL.as_bytes()).await;
        let body = String::from_utf8_lossy(&got.body).into_owned();
        assert!(expected.map_or(body != event, |expected| body == expected), "{fault}: {body}");
    }
    let plan = "[[injection]]\ntool = \"calc/add\"\nwhen.call = 0\nfault.error_event = {}\n";
    for (kind, body) in [("text/event-stream", &event[..]), ("application/json", RESULT)] {
        let (lab, _server, _model) = lab(http("200 OK", kind, body), plan).await;
        let got = lab.post("/r/run/mcp/calc", CALL.as_bytes()).await.text();
        assert!(got.contains(r#""id":7"#) && got.contains(r#""error""#) && !got.contains("result"), "{kind}: {got}");
    }
}

/// A client that refuses a type of content reads the head alone.
#[tokio::test]
async fn a_wrong_content_type_is_delivered_with_the_head() {
    let server = Scripted::always(vec![stream_head(), chunk(format!("data: {RESULT}\n\n")), Act::Hang]).await;
    let plan = "[[injection]]\ntool = \"calc/add\"\nwhen.call = 0\nfault.wrong_content_type = { content_type = \"text/html\" }\n";
    let setup = Setup { mcp: vec![("calc", server.address)], ..Setup::planned(plan) };
    let mut lab = Lab::before(server.address, setup).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/r/run/mcp/calc", CALL.as_bytes(), "")).await;
    assert!(client.read_until(b"text/html").await);
    drop(client);
    until("it is recorded", || lab.causes("run").len() == 1).await;
    let recording = lab.sealed("run").await;
    assert!(recording.trajectory.steps[0].injected[0].delivered);
}
