//! `aegis mcp`: the shim between a client of MCP and a server that it starts.

use std::{path::Path, process::Stdio};

use aegis::recording;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use crate::{
    attached::CALL,
    lab::within,
    program::{self, Served},
};

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
