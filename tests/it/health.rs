//! `/healthz` and `/readyz`: for whoever keeps a server running.

use nix::sys::signal::Signal;

use crate::{
    lab::{Client, DEADLINE, Reply, chat, request, within},
    program::Served,
    scripted::{Act, Scripted, chunk, delta, finish, last_chunk, stream_head},
};

async fn get(served: &Served, path: &str) -> Option<Reply> {
    let stream = tokio::net::TcpStream::connect(served.address).await.ok()?;
    let mut client = Client { stream, seen: Vec::new() };
    client.send(&request("GET", path, b"", "Connection: close\r\n")).await;
    client.rest().await;
    let reply = Reply::parse(&client.seen);
    (reply.status > 0).then_some(reply)
}

async fn status(served: &Served, path: &str) -> u16 {
    get(served, path).await.expect("an answer").status
}

/// Asks until the answer is this one.
async fn until_ready(served: &Served, expected: u16, code: Option<&str>) {
    let asked = async {
        loop {
            let reply = get(served, "/readyz").await;
            if reply.is_some_and(|reply| {
                let said = reply.header("x-aegis-error");
                reply.status == expected && said.as_deref() == code
            }) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, asked).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_the_log_says_whose_request_it_is_about() {
    let dir = tempfile::tempdir().expect("a directory");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let url = format!("http://{gone}");
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--token", "open-sesame", "--format", "json"];
    let served = Served::start(dir.path(), &arguments).await;
    let mut client = Client::connect(served.address).await;
    let from = client.stream.local_addr().expect("an address");
    let path = "/t/open-sesame/r/demo/v1/chat/completions";
    client.send(&request("POST", path, &chat("Who answers?"), "Connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 502);
    let mut stranger = Client::connect(served.address).await;
    let path = "/t/open-sesam/r/other/v1/chat/completions";
    stranger.send(&request("POST", path, &chat("Who answers?"), "Connection: close\r\n")).await;
    assert_eq!(stranger.reply().await.status, 401);
    crate::tokens::reload(&served, "reloaded  plan and certificates").await;
    let said = served.said();
    let read = |line| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    let lines: Vec<serde_json::Value> = said.lines().map(read).collect();
    assert!(lines.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()), "{said}");
    let refused = lines.iter().filter(|line| line["message"] == "answered by the proxy").collect::<Vec<_>>();
    let [line, at_door] = &refused[..] else { panic!("two lines: {said}") };
    assert_eq!(at_door["span"]["path"], "/t/<token>/r/other/v1/chat/completions");
    assert!(at_door["span"]["run"] == "other" && at_door["span"]["client"].is_string(), "{at_door}");
    assert_eq!(line["span"]["client"], from.to_string(), "{line}");
    assert_eq!(
        (&line["span"]["path"], &line["span"]["run"]),
        (&"/v1/chat/completions".into(), &"demo".into()),
        "{line}"
    );
    assert!(line["error"].as_str().is_some_and(|error| !error.is_empty()), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_without_a_token_whether_it_lives_and_can_record() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut script = vec![stream_head(), chunk(delta("first")), Act::Gate];
    script.extend([chunk(finish("stop")), chunk("data: [DONE]\n\n"), last_chunk()]);
    let upstream = Scripted::always(script).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--token", "open-sesame"];
    // A limit on the size of files, which can be raised: a disk that is full, and then is not.
    let mut served = Served::start_after("trap '' XFSZ; ulimit -S -f 60", dir.path(), &arguments).await;
    let limit = async |limit: &str| {
        let mut prlimit = tokio::process::Command::new("prlimit");
        prlimit.args(["--pid", &served.id().to_string(), &format!("--fsize={limit}:unlimited")]);
        assert!(within(prlimit.status()).await.expect("prlimit is there").success());
    };
    assert_eq!((status(&served, "/healthz").await, status(&served, "/readyz").await), (200, 503));
    let refused = get(&served, "/readyz").await.expect("an answer");
    assert_eq!(refused.json()["error"]["code"], "recording_failed");
    assert!(!refused.text().contains("logs"), "{}", refused.text());
    limit("unlimited").await;
    until_ready(&served, 200, None).await;
    limit("30000").await;
    until_ready(&served, 503, Some("recording_failed")).await;
    limit("unlimited").await;
    until_ready(&served, 200, None).await;
    // All else asks for the token.
    assert_eq!((status(&served, "/healthz/x").await, status(&served, "/v1/models").await), (401, 401));
    assert_eq!(upstream.count(), 0);
    // Nobody is sent to a server that stops, and nobody kills it for that.
    let mut client = Client::connect(served.address).await;
    client.post("/t/open-sesame/r/r/v1/chat/completions", &chat("Go on.")).await;
    assert!(client.read_until(b"first").await);
    served.signal(Signal::SIGTERM);
    until_ready(&served, 503, Some("stopping")).await;
    assert_eq!(status(&served, "/healthz").await, 200);
    upstream.open_gate();
    assert!(client.read_until(b"data: [DONE]\n\n").await);
    assert_eq!(served.ended().await.code(), Some(0), "{}", served.said());
    let left: Vec<_> = std::fs::read_dir(dir.path().join("logs")).expect("runs").flatten().collect();
    assert_eq!(left.len(), 1, "nothing but the run is left: {left:?}");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_so_in_the_form_of_its_log() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, words) in [
        (&["--upstream", "simulator", "--listen", "nowhere"][..], "no address to listen on"),
        (&["--upstream", "simulator", "--config", "none.toml"], "none.toml"),
        (&["--bogus"], "--bogus"),
    ] {
        let (code, out, talk) =
            crate::program::verb(dir.path(), &[&["serve", "--format", "json"], arguments].concat()).await;
        assert_eq!(code, Some(2), "{talk}");
        assert!(out.contains("\"error\""), "{out}");
        let read = |line| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        let lines: Vec<serde_json::Value> = talk.lines().map(read).collect();
        let last = lines.last().unwrap_or_else(|| panic!("nothing is said of {arguments:?}"));
        assert!(last["level"] == "ERROR" && last["timestamp"].is_string(), "{talk}");
        assert!(last["message"].as_str().is_some_and(|message| message.contains(words)), "{talk}");
    }
}
