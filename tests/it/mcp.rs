//! Servers of tools behind the proxy: their messages are steps that pass byte for byte, plans reach them, replays hold them.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    recording::{Recording, tool_callers},
    replay::{AtFork, Cassette, ForkPoint, Prefixed, Replayed, reworded},
    surface::{Part, door, named},
    trajectory::{AgentName, CloseCause, RunId},
};

use crate::{
    lab::{Lab, Setup, request, until, within},
    program,
    scripted::{Act, Scripted, chunk, http, http_with, last_chunk},
};

const CALL: &str =
    r#"{"method":"tools/call","params":{"name":"add","arguments":{"a": 2,"b":3.50}},"jsonrpc":"2.0","id":7}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5},"isError":false}}"#;

const LONG: &str = r#"{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"twelve eggs"}]}}"#;

/// A proxy before a tool server `calc` that follows this script, and before a model that nobody asks.
async fn lab(script: Vec<Vec<Act>>, setup: Setup) -> (Lab, Scripted) {
    let server = Scripted::start(script).await;
    let model = Scripted::always(vec![http("500 No", "text/plain", "nobody asks")]).await;
    let lab = Lab::before(model.address, Setup { mcp: vec![("calc", server.address)], ..setup }).await;
    (lab, server)
}

fn stream(events: &[&str]) -> Vec<Act> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut acts = vec![Act::Say(head.as_bytes().to_vec())];
    acts.extend(events.iter().map(|event| chunk(format!("event: message\r\ndata: {event}\r\n\r\n"))));
    acts
}

fn texts(recording: &Recording, step: usize) -> Vec<String> {
    let step = &recording.trajectory.steps[step];
    let attempt = step.last_attempt().expect("an attempt");
    let surface = named(&step.surface).expect("a surface");
    let reply = door::reply(surface, attempt.delivered(), attempt.streamed).expect("a reply");
    reply.answers[0].message.parts.iter().filter_map(Part::as_text).map(str::to_owned).collect()
}

#[tokio::test]
async fn messages_of_tool_servers_are_steps_and_pass_byte_for_byte() {
    let list = r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#;
    let tools = r#"{"jsonrpc":"2.0","id":6,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}"#;
    let notice = r#"{"method":"notifications/cancelled","params":{"requestId":7},"jsonrpc":"2.0"}"#;
    let script = vec![
        vec![http("200 OK", "application/json", tools)],
        vec![http("200 OK", "application/json", RESULT)],
        vec![http_with("202 Accepted", "", b"")],
        vec![http("405 Method Not Allowed", "text/plain", "no stream")],
    ];
    let (mut lab, server) = lab(script, Setup::default()).await;
    let headers = "mcp-method: tools/call\r\nmcp-name: add\r\nauthorization: Bearer own-token-of-client\r\n";
    let reply = lab.post("/r/r0/mcp/calc", list.as_bytes()).await;
    assert_eq!(reply.text(), tools);
    let reply = lab.post_with("/r/r0/a/planner/mcp/calc", CALL.as_bytes(), headers).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, RESULT));
    let reply = lab.post("/mcp/calc", notice.as_bytes()).await;
    assert_eq!((reply.status, reply.text().as_str()), (202, ""));
    let reply =
        lab.raw(&request("GET", "/r/r0/mcp/calc", b"", "accept: text/event-stream\r\nconnection: close\r\n")).await;
    assert!(String::from_utf8_lossy(&reply).starts_with("HTTP/1.1 405"), "the stream passes");

    let heads = server.heads();
    assert!(heads[0].starts_with("POST /mcp HTTP/1.1") && heads[3].starts_with("GET /mcp HTTP/1.1"), "{heads:?}");
    let head = heads[1].to_ascii_lowercase();
    assert!(head.contains("mcp-name: add") && head.contains("bearer own-token-of-client"), "{head}");
    assert_eq!(server.bodies()[..3], [list, CALL, notice].map(|body| body.as_bytes().to_vec()));

    let recording = lab.sealed("r0").await;
    let steps = &recording.trajectory.steps;
    let names: Vec<_> = steps.iter().map(|step| (step.surface.as_str(), step.attribution.agent.as_str())).collect();
    assert_eq!(names, [("mcp_tools", "mcp/calc"), ("mcp_tools", "mcp/calc/add"), ("mcp_tools", "mcp/calc")]);
    assert_eq!(
        (&steps[1].request[..], &steps[1].last_attempt().expect("one").reply[..]),
        (CALL.as_bytes(), RESULT.as_bytes())
    );
    assert!(steps.iter().all(|step| step.last_attempt().is_some_and(aegis::trajectory::Attempt::is_answered)));
    let called_by: Vec<_> = recording.exchanges.iter().map(|detail| detail.relates.called_by.as_ref()).collect();
    assert_eq!(
        called_by.iter().map(|agent| agent.map(AgentName::as_str)).collect::<Vec<_>>(),
        [None, Some("planner"), None]
    );
    assert_eq!(texts(&recording, 1), ["5"]);
}

/// A reply of a model that calls `add` with these numbers.
fn calling(id: &str, arguments: &str) -> String {
    let arguments = arguments.replace('"', "\\\"");
    format!(
        r#"{{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"calc_add","arguments":"{arguments}"}}}}]}}}}]}}"#
    )
}

#[tokio::test]
async fn a_call_of_a_tool_is_joined_to_the_agent_whose_reply_asks_for_it() {
    let numbers = r#"{"a":2,"b":3.5}"#;
    let server = Scripted::always(vec![http("200 OK", "application/json", RESULT)]).await;
    let script = [calling("c1", numbers), calling("c2", numbers), calling("c3", r#"{"a":1}"#)];
    let model =
        Scripted::start(script.iter().map(|reply| vec![http("200 OK", "application/json", reply)]).collect()).await;
    let mut lab = Lab::before(model.address, Setup { mcp: vec![("calc", server.address)], ..Setup::default() }).await;
    let ask = br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let shown = br#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"5"}]}"#;
    lab.post("/a/planner/v1/chat/completions", ask).await;
    // The planner's, though another one asks for the same later.
    lab.post("/mcp/calc", CALL.as_bytes()).await;
    lab.post("/a/solver/v1/chat/completions", ask).await;
    lab.post("/mcp/calc", CALL.as_bytes()).await;
    lab.post("/a/planner/v1/chat/completions", shown).await;
    // Nobody asked for this one.
    lab.post("/mcp/calc", CALL.replace("3.50", "4").as_bytes()).await;
    let recording = lab.sealed("r0").await;
    let callers = tool_callers(&recording.trajectory.steps, &recording.exchanges);
    let agents: Vec<_> = callers.values().map(|caller| caller.agent().map(AgentName::as_str)).collect();
    assert_eq!(agents, [Some("planner"), Some("solver"), None]);
}

#[tokio::test]
async fn a_client_that_leaves_with_its_answer_has_it() {
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1},"jsonrpc":"2.0"}"#;
    let mut acts = stream(&[progress, RESULT]);
    acts.extend([Act::Gate, last_chunk()]);
    let (mut lab, server) = lab(vec![acts], Setup::default()).await;
    let mut client = lab.client().await;
    client.post("/r/r0/mcp/calc", CALL.as_bytes()).await;
    assert!(within(client.read_until(b"structuredContent")).await);
    drop(client);
    // The answer is the end, though its stream is not over.
    until("the step is closed", || lab.causes("r0") == [Some(CloseCause::Complete)]).await;
    server.open_gate();
    let recording = lab.sealed("r0").await;
    assert_eq!(texts(&recording, 0), ["5"]);
    assert!(recording.trajectory.steps[0].last_attempt().expect("one").is_answered());
}

#[tokio::test]
async fn plans_edit_results_and_arguments_of_tools() {
    let plan = r#"
        [[injection]]
        tool = "calc/add"
        when.call = 0
        manipulator.corrupt_number = { by = 1 }

        [[injection]]
        tool = "add"
        when.call = 2
        manipulator.truncate_output = { keep = 0.5 }

        [[injection]]
        tool = "add"
        side = "request"
        when.call = 1
        manipulator.edit_tool_call = { set = { "/b" = 31 } }
    "#;
    let again = CALL.replace("\"id\":7", "\"id\":8");
    let headers = "mcp-param-second: 3.50\r\nmcp-param-first: 2\r\n";
    let result = RESULT.replace("\"id\":7", "\"id\":8");
    let script = [RESULT, &result, LONG].map(|body| vec![http("200 OK", "application/json", body)]).to_vec();
    let (mut lab, server) = lab(script, Setup::planned(plan)).await;
    let edited = lab.post("/r/r0/mcp/calc", CALL.as_bytes()).await.text();
    assert_eq!(edited, RESULT.replace("\"text\":\"5\"", "\"text\":\"6\"").replace("\"result\":5}", "\"result\":6}"));
    assert_eq!(lab.post_with("/r/r0/mcp/calc", again.as_bytes(), headers).await.text(), result);
    let head = server.heads()[1].to_ascii_lowercase();
    assert!(head.contains("mcp-param-second: 31\r\n") && head.contains("mcp-param-first: 2\r\n"), "{head}");
    let cut = lab.post("/r/r0/mcp/calc", CALL.replace(":7}", ":9}").as_bytes()).await.text();
    assert_eq!(cut, LONG.replace("twelve eggs", "twelv"), "a tool stops for no reason of a model's");
    let bodies = server.bodies();
    assert_eq!(bodies[0], CALL.as_bytes());
    assert_eq!(String::from_utf8_lossy(&bodies[1]), again.replace("3.50", "31"));
    let recording = lab.sealed("r0").await;
    let injected = recording.trajectory.steps.iter().flat_map(|step| &step.injected);
    let planted: Vec<_> = injected.map(|error| (error.agent.as_str(), error.is_of_agent(), error.delivered)).collect();
    assert_eq!(planted, [("mcp/calc/add", false, true); 3]);
    // Words that the type of a result has no place for replace none.
    let sum = &recording.trajectory.steps[0];
    assert!(reworded(sum, "7").is_ok_and(|body| String::from_utf8_lossy(&body).contains("\"result\":7}")));
    assert!(reworded(sum, "seven").is_err());
}

#[tokio::test]
async fn a_server_that_nobody_named_is_refused_and_none_is_taken_from_traffic() {
    let (lab, server) = lab(vec![vec![http("200 OK", "application/json", RESULT)]], Setup::default()).await;
    let refused = lab.post("/r/r0/mcp/other", CALL.as_bytes()).await;
    let error = &refused.json()["error"];
    assert_eq!((refused.status, error["data"]["code"].as_str()), (404, Some("no_server")));
    assert_eq!(refused.header("x-aegis-error").as_deref(), Some("no_server"));
    assert!(refused.text().contains("`calc`"), "{}", refused.text());
    let plain = Lab::before(server.address, Setup::default()).await;
    // Without servers of tools such a path is the provider's.
    plain.post("/mcp/other", CALL.as_bytes()).await;
    assert!(server.heads()[0].starts_with("POST /mcp/other "), "{:?}", server.heads());
}

#[tokio::test]
async fn faults_of_tools_are_said_in_their_protocol_and_answer_the_request() {
    let plan = r#"
        [[injection]]
        tool = "add"
        when.call = 0
        fault.rpc_error = { message = "database is locked" }

        [[injection]]
        tool = "add"
        when.call = 1
        fault.status = { code = 503 }
    "#;
    let (mut lab, server) = lab(vec![vec![http("200 OK", "application/json", RESULT)]], Setup::planned(plan)).await;
    let refused = lab.post("/r/r0/mcp/calc", CALL.as_bytes()).await;
    let expected = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"database is locked"}}"#;
    assert_eq!((refused.status, refused.text().as_str()), (200, expected));
    let refused = lab.post("/r/r0/mcp/calc", CALL.replace(":7}", ":8}").as_bytes()).await;
    assert_eq!((refused.status, refused.json()["id"].as_u64()), (503, Some(8)));
    assert_eq!(server.count(), 0);
    let recording = lab.sealed("r0").await;
    let errors: Vec<_> = recording.trajectory.steps.iter().flat_map(|step| &step.injected).collect();
    assert!(errors.len() == 2 && errors.iter().all(|error| error.is_fault()), "{errors:?}");
}

/// A result comes as JSON or as an event of a stream, as the server likes: what is ready-made reaches both.
#[tokio::test]
async fn ready_made_faults_reach_a_result_in_both_its_forms() {
    let event = format!("event: message\ndata: {RESULT}\n\n");
    for (kind, body) in [("application/json", RESULT), ("text/event-stream", event.as_str())] {
        for (plan, expected, whole) in [
            ("changed-schema", Some(body.replace("\"content\"", "\"contents\"")), true),
            ("dropped-stream", None, false),
        ] {
            let text = aegis::plan::shipped_as(&format!("tools/{plan}"))[0].text;
            let (mut lab, _server) = lab(vec![vec![http("200 OK", kind, body)]], Setup::planned(text)).await;
            let reply = lab.post("/r/r0/mcp/calc", CALL.as_bytes()).await;
            assert_eq!(reply.whole, whole, "{plan}, {kind}: {}", reply.text());
            assert!(expected.is_none_or(|expected| expected == reply.text()), "{plan}, {kind}: {}", reply.text());
            let recording = lab.sealed("r0").await;
            assert!(recording.trajectory.steps[0].injected[0].delivered, "{plan}, {kind}");
        }
    }
}

#[tokio::test]
async fn a_replay_holds_what_tools_gave() {
    let (mut lab, server) = lab(vec![vec![http("200 OK", "application/json", RESULT)]], Setup::default()).await;
    lab.post("/r/r0/mcp/calc", CALL.as_bytes()).await;
    let dir = lab.sealed("r0").await;
    assert_eq!(dir.trajectory.steps.len(), 1);
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a record"));
    let replayed: Arc<dyn Upstream> = Arc::new(Replayed::new(cassette));
    let setup = Setup { mcp: vec![("calc", server.address)], ..Setup::default() };
    let again = Lab::over(replayed.clone(), setup).await;
    let run = RunId::parse("r1").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream: Some(replayed), ..RunSetup::default() }).await.expect("a run");
    // The same call under another id, as a client that counts otherwise makes it.
    let reply = again.post("/r/r1/mcp/calc", CALL.replace(":7}", ":41}").as_bytes()).await;
    assert_eq!(reply.text(), RESULT.replace("\"id\":7", "\"id\":41"));
    let other = again.post("/r/r1/mcp/calc", CALL.replace("3.50", "4").as_bytes()).await;
    assert_eq!((other.status, other.header("x-aegis-error").as_deref()), (409, Some("not_recorded")));
    let session = again.raw(&request("GET", "/r/r1/mcp/calc", b"", "connection: close\r\n")).await;
    assert!(String::from_utf8_lossy(&session).starts_with("HTTP/1.1 405"), "a record has no stream of its own");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_replay_whose_live_tools_answer_all_is_a_success() {
    let script = (0..2).map(|_| vec![http("200 OK", "application/json", RESULT)]).collect();
    let server = Scripted::start(script).await;
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let config = format!("[[mcp]]\nname = \"calc\"\nurl = \"http://{}/mcp\"\n", server.address);
    std::fs::write(dir.join("aegis.toml"), config).expect("written");
    let call = format!(
        "import os, urllib.request as u\nr = u.Request(os.environ['AEGIS_MCP_CALC'], b'{CALL}', \
         {{'content-type': 'application/json', 'accept': 'application/json, text/event-stream'}})\nprint(u.urlopen(r).read())"
    );
    let program = ["--", "python3", "-c", &call];
    let execute = async |words: &[&str]| {
        let output = program::aegis(dir).args(words).args(program).output().await.expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = execute(&["run", "--config", "aegis.toml", "--upstream", "simulator", "--run", "r0"]).await;
    assert_eq!(code, Some(0), "{text}");
    let (code, text) =
        execute(&["replay", "logs/r0", "--config", "aegis.toml", "--tools", "live", "--run", "r1"]).await;
    let last = text.lines().find(|line| line.starts_with("RESULT")).unwrap_or_default();
    assert_eq!(
        (code, last),
        (Some(0), "RESULT  ok r1  0 served  1 answered live by tools and peers  0 missed  0 of 1 steps unused"),
        "{text}"
    );
    assert_eq!(server.count(), 2);
}

/// A run that leaves its record must find the world as it was there.
#[tokio::test]
async fn what_tools_did_before_a_fork_is_done_again_and_recorded_replies_are_given() {
    let ask = br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let with_session = |session: &str, body: &str| {
        let headers = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
        vec![http_with("200 OK", &headers, body.as_bytes())]
    };
    let other = RESULT.replace("\"5\"", "\"999\"");
    let server = Scripted::start(vec![with_session("s-one", RESULT), with_session("s-two", &other)]).await;
    let model = Scripted::always(vec![http("200 OK", "application/json", &crate::scripted::chat_reply("Fine."))]).await;
    let setup = || Setup { mcp: vec![("calc", server.address)], ..Setup::default() };
    let mut lab = Lab::before(model.address, setup()).await;
    lab.post("/r/r0/mcp/calc", CALL.as_bytes()).await;
    lab.post_with("/r/r0/mcp/calc", CALL.replace(":7}", ":8}").as_bytes(), "mcp-session-id: s-one\r\n").await;
    lab.post("/r/r0/a/planner/v1/chat/completions", ask).await;
    lab.sealed("r0").await;
    assert_eq!(server.count(), 2);

    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a record"));
    let again = Lab::before(model.address, setup()).await;
    let live = Arc::clone(&again.proxy.upstream);
    let fork = ForkPoint { step: 2, at: AtFork::Live };
    let upstream: Arc<dyn Upstream> = Arc::new(Prefixed::new(cassette, fork, live).expect("a step"));
    let run = RunId::parse("r1").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await.expect("a run");
    let reply = again.post("/r/r1/mcp/calc", CALL.as_bytes()).await;
    assert_eq!(
        (reply.text().as_str(), reply.header("mcp-session-id").as_deref()),
        (RESULT, Some("s-two")),
        "recorded, but for the session"
    );
    again.post_with("/r/r1/mcp/calc", CALL.replace(":7}", ":8}").as_bytes(), "mcp-session-id: s-two\r\n").await;
    assert_eq!(server.count(), 4, "the live server has done it again");
    assert!(server.heads()[3].to_ascii_lowercase().contains("mcp-session-id: s-two"), "{}", server.heads()[3]);
}

#[tokio::test]
async fn a_run_with_an_upstream_of_its_own_listens_to_servers_and_ends_sessions() {
    let script = vec![vec![http("200 OK", "text/plain", "heard")], vec![http("202 Accepted", "text/plain", "ended")]];
    let (lab, server) = lab(script, Setup::default()).await;
    let run = RunId::parse("r1").expect("an id");
    let upstream = Some(Arc::clone(&lab.proxy.upstream));
    lab.proxy.runs.open(&run, RunSetup { upstream, ..RunSetup::default() }).await.expect("a run");
    for (method, expected) in [("GET", "HTTP/1.1 200"), ("DELETE", "HTTP/1.1 202")] {
        let reply = lab.raw(&request(method, "/r/r1/mcp/calc", b"", "connection: close\r\n")).await;
        assert!(String::from_utf8_lossy(&reply).starts_with(expected), "{method}");
    }
    assert!(server.heads()[1].starts_with("DELETE /mcp HTTP/1.1"), "{:?}", server.heads());
}
