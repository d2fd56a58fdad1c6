//! Servers of tools that speak over standard input and output: attached to the proxy, their messages are steps as any others are.

use std::sync::Arc;

use aegis::{
    proxy::{AttachClient, AttachError, AttachedMessages, Gate, ReturnedReply, RunSetup, upstream::Upstream},
    replay::{Cassette, Replayed},
    trajectory::{CloseCause, RunId},
};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{
    lab::{Lab, Reply, Setup, request, until, within},
    scripted::{Scripted, http},
    tokens,
};

pub const CALL: &str =
    r#"{"method":"tools/call","params":{"name":"add","arguments":{"a": 2,"b":3.50}},"jsonrpc":"2.0","id":7}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"5"}],"isError":false}}"#;
const NOTICE: &str = r#"{"method":"notifications/cancelled","params":{"requestId":7},"jsonrpc":"2.0"}"#;
const PROGRESS: &str =
    r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1},"jsonrpc":"2.0"}"#;
const QUESTION: &str = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Sure?"}}"#;

/// A proxy before a model that nobody asks.
async fn lab(setup: Setup) -> (Lab, Scripted) {
    let model = Scripted::always(vec![http("500 No", "text/plain", "nobody asks")]).await;
    (Lab::before(model.address, setup).await, model)
}

/// A server of tools as `aegis mcp` attaches it, in a test's hands.
struct AttachedCalc {
    shim: AttachClient,
    messages: AttachedMessages,
}

impl AttachedCalc {
    async fn attach(lab: &Lab) -> Self {
        let shim = AttachClient::new(&format!("http://{}/r/r0", lab.address), None).expect("an address");
        let messages = within(shim.attach("calc")).await.expect("attached");
        Self { shim, messages }
    }

    fn header(&self) -> String {
        format!("x-aegis-attachment: {}\r\n", self.messages.id)
    }

    /// The next message, and its number.
    async fn message(&mut self) -> (u64, String) {
        let message = within(self.messages.next()).await.expect("read").expect("a message");
        (message.number, message.message)
    }

    async fn reply(&self, number: u64, reply: ReturnedReply) -> Result<(), AttachError> {
        within(self.shim.reply("calc", &self.messages.id, number, reply)).await
    }

    /// Posts a message and answers it so; what the server got, and what the client got.
    async fn exchange(&mut self, lab: &Lab, message: &str, reply: ReturnedReply) -> (String, Reply) {
        let header = self.header();
        let posted = lab.post_with("/r/r0/mcp/calc", message.as_bytes(), &header);
        let handed = async {
            let (number, message) = self.message().await;
            self.reply(number, reply).await.expect("somebody waits");
            message
        };
        let (reply, message) = tokio::join!(posted, handed);
        (message, reply)
    }
}

fn whole(message: &str) -> ReturnedReply {
    ReturnedReply::Message(Bytes::from(message.to_owned()))
}

#[tokio::test]
async fn messages_to_an_attached_server_are_steps_and_pass_byte_for_byte() {
    let (mut lab, model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let (message, reply) = calc.exchange(&lab, CALL, whole(RESULT)).await;
    assert_eq!((message.as_str(), reply.status, reply.text().as_str()), (CALL, 200, RESULT));
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json"));
    let (message, reply) = calc.exchange(&lab, NOTICE, ReturnedReply::Nothing).await;
    assert_eq!((message.as_str(), reply.status, reply.text().as_str()), (NOTICE, 202, ""));
    let (sender, events) = mpsc::channel(2);
    let stream = [PROGRESS, RESULT].map(|message| format!("event: message\ndata: {message}\n\n"));
    for event in &stream {
        sender.try_send(Bytes::from(event.clone())).expect("room");
    }
    drop(sender);
    let (_, reply) = calc.exchange(&lab, &CALL.replace(":7}", ":8}"), ReturnedReply::Events(events)).await;
    assert_eq!((reply.status, reply.text(), reply.whole), (200, stream.concat(), true));
    assert_eq!(model.count(), 0);
    // It ends with the server, though it is attached still.
    assert_eq!(lab.drain().await, 0);
    assert!(within(calc.messages.next()).await.expect("read").is_none());

    let recording = lab.sealed("r0").await;
    let steps = &recording.trajectory.steps;
    let names: Vec<_> = steps.iter().map(|step| (step.path.as_str(), step.attribution.agent.as_str())).collect();
    let call = ("/mcp/calc", "mcp/calc/add");
    assert_eq!(names, [call, ("/mcp/calc", "mcp/calc"), call]);
    assert_eq!((&steps[0].request[..], &steps[0].attempts[0].reply[..]), (CALL.as_bytes(), RESULT.as_bytes()));
    assert!(steps.iter().all(|step| step.attempts[0].is_answered()));
    let headers = recording.exchanges.iter().flat_map(|exchange| &exchange.request_headers);
    assert!(headers.clone().count() > 0 && headers.into_iter().all(|(name, _)| !name.contains("attachment")));
}

#[tokio::test]
async fn plans_edit_and_disturb_what_passes_to_and_from_an_attached_server() {
    let plan = r#"
        [[injection]]
        tool = "calc/add"
        side = "request"
        when.call = 0
        manipulator.edit_tool_call = { set = { "/b" = 31 } }

        [[injection]]
        tool = "calc/add"
        when.call = 1
        manipulator.corrupt_number = { by = 1 }

        [[injection]]
        tool = "add"
        when.call = 2
        fault.status = { code = 503 }
    "#;
    let (mut lab, _model) = lab(Setup::planned(plan)).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let (message, reply) = calc.exchange(&lab, CALL, whole(RESULT)).await;
    assert_eq!((message, reply.text()), (CALL.replace("3.50", "31"), RESULT.to_owned()));
    let (message, reply) = calc.exchange(&lab, &CALL.replace(":7}", ":8}"), whole(RESULT)).await;
    assert_eq!((message, reply.text()), (CALL.replace(":7}", ":8}"), RESULT.replace("\"5\"", "\"6\"")));
    let refused = lab.post_with("/r/r0/mcp/calc", CALL.replace(":7}", ":9}").as_bytes(), &calc.header()).await;
    assert_eq!((refused.status, refused.json()["id"].as_u64()), (503, Some(9)));
    let (message, _) = calc.exchange(&lab, NOTICE, ReturnedReply::Nothing).await;
    assert_eq!(message, NOTICE, "the call before did not come");
    let recording = lab.sealed("r0").await;
    let injected = recording.trajectory.steps.iter().flat_map(|step| &step.injected);
    assert_eq!(
        injected.map(|error| (error.agent.as_str(), error.delivered)).collect::<Vec<_>>(),
        [("mcp/calc/add", true); 3]
    );
}

#[tokio::test]
async fn what_a_server_asks_its_client_passes_before_an_edit_of_its_reply() {
    let plan = "[[injection]]\ntool = \"calc/add\"\nwhen.call = 0\nmanipulator.corrupt_number = { by = 1 }\n";
    let (mut lab, _model) = lab(Setup::planned(plan)).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/r/r0/mcp/calc", CALL.as_bytes(), &calc.header())).await;
    let (number, _) = calc.message().await;
    let (sender, events) = mpsc::channel(3);
    let event = |message: &str| Bytes::from(format!("event: message\ndata: {message}\n\n"));
    let handed = calc.reply(number, ReturnedReply::Events(events));
    let asked = async {
        for message in [PROGRESS, QUESTION] {
            sender.try_send(event(message)).expect("room");
        }
        assert!(within(client.read_until(b"Sure?")).await, "the question waits for its answer");
        sender.try_send(event(RESULT)).expect("room");
        drop(sender);
    };
    let (handed, ()) = tokio::join!(handed, asked);
    handed.expect("somebody waits");
    assert!(within(client.read_until(b"isError")).await);
    let text = String::from_utf8_lossy(&client.seen).into_owned();
    let count = |part: &str| text.matches(part).count();
    assert_eq!((count("Sure?"), count("progressToken"), count("\"text\":\"6\"")), (1, 1, 1), "{text}");
    let recording = lab.sealed("r0").await;
    let step = &recording.trajectory.steps[0];
    assert!(step.injected[0].delivered && step.attempts[0].is_answered());
    let told = [event(PROGRESS), event(QUESTION), event(&RESULT.replace("\"5\"", "\"6\""))].concat();
    assert_eq!(step.attempts[0].delivered().to_vec(), told);
}

/// A fault that changes a stream lets pass what the server asks in it, too.
#[tokio::test]
async fn what_a_server_asks_its_client_passes_before_a_fault_in_its_reply() {
    for (fault, acts) in [("malformed_chunk = { frame = 2 }", true), ("malformed_chunk = { frame = 1 }", false)] {
        let plan = format!("[[injection]]\ntool = \"calc/add\"\nwhen.call = 0\nfault.{fault}\n");
        let (mut lab, _model) = lab(Setup::planned(&plan)).await;
        let mut calc = AttachedCalc::attach(&lab).await;
        let mut client = lab.client().await;
        client
            .send(&request(
                "POST",
                "/r/r0/mcp/calc",
                CALL.as_bytes(),
                &format!("{}Connection: close\r\n", calc.header()),
            ))
            .await;
        let (number, _) = calc.message().await;
        let (sender, events) = mpsc::channel(4);
        let event = |message: &str| Bytes::from(format!("event: message\ndata: {message}\n\n"));
        let handed = calc.reply(number, ReturnedReply::Events(events));
        let asked = async {
            for message in [PROGRESS, QUESTION] {
                sender.try_send(event(message)).expect("room");
            }
            assert!(within(client.read_until(b"Sure?")).await, "the question waits for its answer");
            for message in [PROGRESS, RESULT] {
                sender.try_send(event(message)).expect("room");
            }
            drop(sender);
        };
        let (handed, ()) = tokio::join!(handed, asked);
        handed.expect("somebody waits");
        within(client.rest()).await;
        let text = String::from_utf8_lossy(&client.seen).into_owned();
        assert_eq!((text.matches("Sure?").count(), text.matches(RESULT).count()), (1, 1), "{fault}: {text}");
        assert_eq!(text.matches(PROGRESS).count(), if acts { 1 } else { 2 }, "{fault}: {text}");
        let recording = lab.sealed("r0").await;
        let delivered = |error: &aegis::trajectory::InjectedError| error.delivered;
        assert_eq!(recording.trajectory.steps[0].injected.iter().any(delivered), acts, "{fault}");
        let said = recording.notes.join("\n");
        assert_eq!(said.contains("gone ahead of the reply"), !acts, "{fault}: {said}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_leaves_nobody_to_answer() {
    let (mut lab, _model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/r/r0/mcp/calc", CALL.as_bytes(), &calc.header())).await;
    let (number, _) = calc.message().await;
    let (message, _) = calc.exchange(&lab, NOTICE, ReturnedReply::Nothing).await;
    assert_eq!(message, NOTICE);
    drop(client);
    until("the client is gone", || lab.causes("r0")[0] == Some(CloseCause::ClientGone)).await;
    let late = calc.reply(number, whole(RESULT)).await;
    assert!(matches!(late, Err(AttachError::Refused { status, .. }) if status == 404), "{late:?}");
    lab.drain().await;
}

#[tokio::test]
async fn an_attachment_that_is_gone_answers_with_an_error() {
    let (mut lab, model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let header = calc.header();
    let under_way = async {
        calc.message().await;
        drop(calc);
    };
    let (reply, ()) = tokio::join!(lab.post_with("/r/r0/mcp/calc", CALL.as_bytes(), &header), under_way);
    let code =
        |reply: &Reply| (reply.status, reply.header("x-aegis-error"), reply.json()["error"]["message"].to_string());
    assert!(matches!(code(&reply), (502, Some(code), _) if code == "upstream_closed"), "{}", reply.text());
    let other = "x-aegis-attachment: 00000000000000000000000000000000\r\n";
    for header in [&header[..], other, "x-aegis-attachment: \r\n"] {
        let reply = lab.post_with("/r/r0/mcp/calc", CALL.as_bytes(), header).await;
        let (status, code, message) = code(&reply);
        assert_eq!((status, code.as_deref()), (502, Some("upstream_unreachable")));
        assert!(message.contains("nothing is attached as `calc`"), "{message}");
    }
    for (method, path) in [("POST", "/ab/0"), ("POST", "/ab"), ("GET", ""), ("POST", "/ab/0/1")] {
        let reply =
            lab.raw(&request(method, &format!("/r/r0/aegis/v1/mcp/calc{path}"), b"", "connection: close\r\n")).await;
        Reply::parse(&reply).assert_own_error(404, "not_attached");
    }
    assert_eq!(model.count(), 0, "nothing of it is the model's");
    // One that failed and is sent again is one call.
    let recording = lab.sealed("r0").await;
    let attempts = recording.trajectory.steps.iter().flat_map(|step| &step.attempts);
    let causes = [CloseCause::UpstreamReset, CloseCause::UpstreamUnreachable];
    assert_eq!(attempts.map(|attempt| attempt.cause).collect::<Vec<_>>(), [0, 1, 1, 1].map(|at| Some(causes[at])));
}

#[tokio::test]
async fn a_server_is_attached_under_a_name_that_no_other_has() {
    let server = Scripted::always(vec![http("200 OK", "application/json", RESULT)]).await;
    let (lab, _model) = lab(Setup { mcp: vec![("calc", server.address)], ..Setup::default() }).await;
    let shim = AttachClient::new(&format!("http://{}/r/r0", lab.address), None).expect("an address");
    let refused = within(shim.attach("calc")).await.expect_err("two of one name").to_string();
    assert!(refused.contains("two servers of the name `calc`") && refused.contains("409"), "{refused}");
    let refused = within(shim.attach("a b")).await.expect_err("no name").to_string();
    assert!(refused.contains("no address"), "{refused}");
    // Beside it, another may be.
    within(shim.attach("other")).await.expect("attached");
    let page =
        Setup { gate: Gate { token: Some(aegis::proxy::Token::new("sesame")), ..Gate::default() }, ..Setup::default() };
    let (closed, _model) = self::lab(page).await;
    for (token, is_let_in) in [(None, false), (Some("wrong"), false), (Some("sesame"), true)] {
        let shim = AttachClient::new(&format!("http://{}/r/r0", closed.address), token).expect("an address");
        assert_eq!(within(shim.attach("calc")).await.is_ok(), is_let_in, "{token:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_asks_what_another_user_has_attached() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = tokens::serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let base = format!("http://{}/r/first", served.address);
    let shim = AttachClient::new(&base, Some(&alice)).expect("an address");
    let mut messages = within(shim.attach("calc")).await.expect("attached");
    let id = messages.id.clone();
    let post = async |token: &str| {
        let headers = format!("x-aegis-token: {token}\r\nx-aegis-attachment: {id}\r\n");
        tokens::send(&served, "POST", "/r/first/mcp/calc", &headers, CALL.as_bytes()).await
    };
    let refused = post(&bob).await;
    assert_eq!((refused.status, refused.header("x-aegis-error").as_deref()), (502, Some("upstream_unreachable")));
    let thief = AttachClient::new(&base, Some(&bob)).expect("an address");
    let own = async {
        let message = within(messages.next()).await.expect("read").expect("a message");
        let stolen = thief.reply("calc", &id, message.number, whole("{}")).await;
        assert!(matches!(stolen, Err(AttachError::Refused { .. })), "{stolen:?}");
        shim.reply("calc", &id, message.number, whole(RESULT)).await.expect("answered");
        message.message
    };
    let (reply, message) = tokio::join!(post(&alice), own);
    assert_eq!((message.as_str(), reply.text().as_str()), (CALL, RESULT));
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test]
async fn a_replay_holds_what_an_attached_server_gave() {
    let (mut recorded, _model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&recorded).await;
    calc.exchange(&recorded, CALL, whole(RESULT)).await;
    let header = calc.header();
    let crash = async {
        calc.message().await;
        drop(calc);
    };
    let crashing = CALL.replace("3.50", "0");
    let (crashed, ()) = tokio::join!(recorded.post_with("/r/r0/mcp/calc", crashing.as_bytes(), &header), crash);
    assert_eq!(crashed.status, 502);
    recorded.sealed("r0").await;
    let cassette = Arc::new(Cassette::open(&recorded.logs.join("r0")).expect("a record"));
    let replayed: Arc<dyn Upstream> = Arc::new(Replayed::new(cassette));
    let again = Lab::over(replayed.clone(), Setup::default()).await;
    let run = RunId::parse("r1").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream: Some(replayed), ..RunSetup::default() }).await.expect("a run");
    let calc = AttachedCalc::attach(&again).await;
    let reply = again.post_with("/r/r1/mcp/calc", CALL.replace(":7}", ":41}").as_bytes(), &calc.header()).await;
    assert_eq!(reply.text(), RESULT.replace("\"id\":7", "\"id\":41"));
    let crashed = again.post_with("/r/r1/mcp/calc", crashing.as_bytes(), &calc.header()).await;
    assert_eq!((crashed.status, crashed.header("x-aegis-error").as_deref()), (502, Some("upstream_closed")));
    let other = again.post_with("/r/r1/mcp/calc", CALL.replace("3.50", "4").as_bytes(), &calc.header()).await;
    assert_eq!((other.status, other.header("x-aegis-error").as_deref()), (409, Some("not_recorded")));
}
