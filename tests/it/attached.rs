//! Servers of tools that speak over standard input and output: attached to the proxy, their messages are steps as any others are.

use std::{path::Path, process::Stdio, sync::Arc};

use aegis::{
    proxy::{AttachClient, AttachError, AttachedMessages, Gate, HandedReply, RunSetup, upstream::Upstream},
    recording,
    replay::{Cassette, Replayed},
    trajectory::{CloseCause, RunId},
};
use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    sync::mpsc,
};

use crate::{
    lab::{Lab, Reply, Setup, request, until, within},
    program::{self, Served},
    scripted::{Scripted, http},
    tokens,
};

const CALL: &str =
    r#"{"method":"tools/call","params":{"name":"add","arguments":{"a": 2,"b":3.50}},"jsonrpc":"2.0","id":7}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"5"}],"isError":false}}"#;
const NOTICE: &str = r#"{"method":"notifications/cancelled","params":{"requestId":7},"jsonrpc":"2.0"}"#;
const PROGRESS: &str =
    r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1},"jsonrpc":"2.0"}"#;

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

    async fn reply(&self, number: u64, reply: HandedReply) -> Result<(), AttachError> {
        within(self.shim.reply("calc", &self.messages.id, number, reply)).await
    }

    /// Posts a message and answers it so; what the server got, and what the client got.
    async fn exchange(&mut self, lab: &Lab, message: &str, reply: HandedReply) -> (String, Reply) {
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

fn whole(message: &str) -> HandedReply {
    HandedReply::Message(Bytes::from(message.to_owned()))
}

#[tokio::test]
async fn messages_to_an_attached_server_are_steps_and_pass_byte_for_byte() {
    let (mut lab, model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let (message, reply) = calc.exchange(&lab, CALL, whole(RESULT)).await;
    assert_eq!((message.as_str(), reply.status, reply.text().as_str()), (CALL, 200, RESULT));
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json"));
    let (message, reply) = calc.exchange(&lab, NOTICE, HandedReply::Nothing).await;
    assert_eq!((message.as_str(), reply.status, reply.text().as_str()), (NOTICE, 202, ""));
    let (sender, events) = mpsc::channel(2);
    let stream = [PROGRESS, RESULT].map(|message| format!("event: message\ndata: {message}\n\n"));
    for event in &stream {
        sender.try_send(Bytes::from(event.clone())).expect("room");
    }
    drop(sender);
    let (_, reply) = calc.exchange(&lab, &CALL.replace(":7}", ":8}"), HandedReply::Events(events)).await;
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
    let (message, _) = calc.exchange(&lab, NOTICE, HandedReply::Nothing).await;
    assert_eq!(message, NOTICE, "the call before did not come");
    let recording = lab.sealed("r0").await;
    let injected = recording.trajectory.steps.iter().flat_map(|step| &step.injected);
    assert_eq!(
        injected.map(|error| (error.agent.as_str(), error.delivered)).collect::<Vec<_>>(),
        [("mcp/calc/add", true); 3]
    );
}

#[tokio::test]
async fn a_client_that_leaves_leaves_nobody_to_answer() {
    let (mut lab, _model) = lab(Setup::default()).await;
    let mut calc = AttachedCalc::attach(&lab).await;
    let mut client = lab.client().await;
    client.send(&request("POST", "/r/r0/mcp/calc", CALL.as_bytes(), &calc.header())).await;
    let (number, _) = calc.message().await;
    let (message, _) = calc.exchange(&lab, NOTICE, HandedReply::Nothing).await;
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
    recorded.sealed("r0").await;
    let cassette = Arc::new(Cassette::open(&recorded.logs.join("r0")).expect("a record"));
    let replayed: Arc<dyn Upstream> = Arc::new(Replayed::new(cassette));
    let again = Lab::over(replayed.clone(), Setup::default()).await;
    let run = RunId::parse("r1").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream: Some(replayed), ..RunSetup::default() }).await.expect("a run");
    let calc = AttachedCalc::attach(&again).await;
    let reply = again.post_with("/r/r1/mcp/calc", CALL.replace(":7}", ":41}").as_bytes(), &calc.header()).await;
    assert_eq!(reply.text(), RESULT.replace("\"id\":7", "\"id\":41"));
    let other = again.post_with("/r/r1/mcp/calc", CALL.replace("3.50", "4").as_bytes(), &calc.header()).await;
    assert_eq!((other.status, other.header("x-aegis-error").as_deref()), (409, Some("not_recorded")));
}

/// A server that answers each call with its number of lines, says so before, and ends with 3.
const SERVER: &str = r#"
n=0
while read -r line; do
  n=$((n+1))
  case $line in
    *'"id"'*)
      id=${line##*'"id":'}; id=${id%\}}
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"'$n'"}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$n'"}]}}' ;;
  esac
done
exit 3
"#;

/// The shim as a client of MCP starts it.
struct Shim {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Shim {
    fn start(dir: &Path, options: &[&str]) -> Self {
        let mut command = program::aegis(dir);
        command.args(["mcp", "calc"]).args(options).args(["--", "sh", "-c", SERVER]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, input, output }
    }

    async fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        within(input.write_all(format!("{line}\n").as_bytes())).await.expect("written");
    }

    async fn line(&mut self) -> String {
        within(self.output.next_line()).await.expect("read").expect("a line")
    }

    /// Ends the input; the exit code and standard error.
    async fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let ended = within(self.child.wait_with_output()).await.expect("ended");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_shim_sees_the_server_and_what_is_planted() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = r#"
        format = 1

        [[injection]]
        tool = "calc/add"
        when.call = 1
        fault.status = { code = 503 }

        [[injection]]
        tool = "calc/add"
        when.call = 2
        fault.refuse_connection = {}

        [[injection]]
        tool = "calc/add"
        when.call = 3
        manipulator.corrupt_number = { by = 40 }
    "#;
    std::fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs", "--plan", "plan.toml"];
    let served = Served::start(dir.path(), &arguments).await;
    let mut shim = Shim::start(dir.path(), &["--url", &format!("http://{}/r/first", served.address)]);
    let answer = |id: u32, text: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let notice = |n: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{n}"}}}}"#);
    let call = |id: u32| CALL.replace(":7}", &format!(":{id}}}"));
    shim.say(&call(7)).await;
    assert_eq!([shim.line().await, shim.line().await], [notice(1), answer(7, 1)]);
    shim.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let mut refused = Vec::new();
    for id in [8, 9] {
        shim.say(&call(id)).await;
        refused.push(serde_json::from_str::<serde_json::Value>(&shim.line().await).expect("JSON"));
    }
    let error = &refused[0]["error"];
    assert_eq!(
        (refused[0]["id"].as_u64(), error["code"].as_i64(), error["data"]["status"].as_u64()),
        (Some(8), Some(-32000), Some(503))
    );
    assert!(error["message"].as_str().expect("words").starts_with("HTTP 503 Service Unavailable: "), "{error}");
    assert_eq!((refused[1]["id"].as_u64(), refused[1]["error"]["code"].as_i64()), (Some(9), Some(-32000)));
    shim.say(&call(10)).await;
    assert_eq!([shim.line().await, shim.line().await], [notice(3), answer(10, 43)]);
    let (code, talk) = shim.end().await;
    assert_eq!(code, Some(3), "{talk}");
    assert_eq!(served.stop_and_end(dir.path(), &["logs/first"]).await, Some(0));
    let recording = recording::read(&dir.path().join("logs/first")).expect("a run");
    let requests: Vec<_> =
        recording.trajectory.steps.iter().map(|step| String::from_utf8_lossy(&step.request).into_owned()).collect();
    assert_eq!(requests.len(), 5);
    assert_eq!((&requests[0], &requests[4]), (&call(7), &call(10)));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_proxy_the_server_runs_and_that_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut shim = Shim::start(dir.path(), &[]);
    shim.say(CALL).await;
    assert!(shim.line().await.contains("notifications/message"));
    let (code, talk) = shim.end().await;
    assert_eq!((code, talk.lines().count()), (Some(3), 1), "{talk}");
    assert!(talk.contains("not recorded"), "{talk}");
    let shim = Shim::start(dir.path(), &["--url", "http://127.0.0.1:9/r/x"]);
    let (code, talk) = shim.end().await;
    assert_eq!(code, Some(3), "{talk}");
    assert!(talk.contains("no answer from http://127.0.0.1:9/r/x"), "{talk}");
}
