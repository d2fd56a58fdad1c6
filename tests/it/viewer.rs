//! `aegis view` over the wire: who may ask, what is answered, a run while it is written; and `runs`, colour, the page as
//! a file.

use std::{io::Read, os::unix::fs::symlink, path::Path, process::Stdio};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use crate::{
    lab::{Client, Reply, request, within},
    program::{Served, aegis, verb},
};

const QUESTION: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";

/// Two runs: one as it is, one with a planted error and its label.
pub(crate) async fn recorded(dir: &Path) {
    for name in ["examples", "plans"] {
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), dir.join(name)).expect("a link");
    }
    let plan = &["--plan", "plans/corrupt-number.toml", "--check", "grep -q 'ANSWER: 84'"];
    for (run, more) in [("first", &[][..]), ("second", plan)] {
        let common = ["run", "--upstream", "simulator", "--config", "examples/pipeline/aegis.toml", "--run", run];
        let program = ["--", crate::program::AEGIS, "example", "pipeline", "--task", QUESTION];
        let (_, _, said) = verb(dir, &[&common[..], more, &program].concat()).await;
        assert!(dir.join("logs").join(run).join("seal.json").is_file(), "{said}");
    }
}

/// `aegis view` on a free port.
pub(crate) struct View {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) token: String,
    _child: Child,
}

impl View {
    pub(crate) async fn of(dir: &Path, what: &[&str]) -> Self {
        let mut command = aegis(dir);
        let mut child =
            command.arg("view").args(what).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let url = within(lines.next_line()).await.expect("readable").expect("an address");
        let (address, token) = url.strip_prefix("http://").and_then(|url| url.split_once("/#t=")).expect("a token");
        Self { address: address.parse().expect("an address"), token: token.to_owned(), _child: child }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str, headers: &str) -> Reply {
        let mut client = Client::connect(self.address).await;
        let headers = format!("{headers}Connection: close\r\n");
        client.send(&request(method, path, body.as_bytes(), &headers)).await;
        client.reply().await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "", &format!("x-aegis-token: {}\r\n", self.token)).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }
}

pub(crate) async fn json_of(dir: &Path, arguments: &[&str]) -> Value {
    let (_, out, talk) = verb(dir, &[arguments, &["--format", "json"]].concat()).await;
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {talk}"))
}

#[tokio::test]
async fn nobody_reads_without_the_token() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let view = View::of(dir.path(), &["logs"]).await;
    let token = format!("x-aegis-token: {}\r\n", view.token);
    let paths = [
        "tree",
        "run/second",
        "run/second/step/1",
        "run/second/texts/1",
        "run/second/raw/1/request",
        "run/second/file/1/reply/0",
        "diff/first/second",
        "live/second",
    ];
    for path in paths {
        let path = format!("/api/{path}");
        for (headers, status) in [
            (String::new(), 401),
            ("x-aegis-token: wrong\r\n".to_owned(), 401),
            (format!("Cookie: aegis-view-{}=wrong\r\n", view.address.port()), 401),
            (format!("Cookie: aegis-view-{}={}\r\n", view.address.port(), view.token), 401),
            (format!("{token}Origin: http://evil.example\r\n"), 403),
            (format!("{token}Origin: http://127.0.0.1:1\r\n"), 403),
            (format!("{token}Sec-Fetch-Site: cross-site\r\n"), 403),
            (format!("{token}Sec-Fetch-Site: same-site\r\n"), 403),
        ] {
            assert_eq!(view.ask("GET", &path, "", &headers).await.status, status, "{path} {headers}");
        }
        let mut client = Client::connect(view.address).await;
        let rebound = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n{token}Connection: close\r\n\r\n");
        client.send(rebound.as_bytes()).await;
        assert_eq!(client.reply().await.status, 421, "{path}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(view.ask(method, "/api/tree", "", &token).await.status, 405, "{method}");
    }
}

#[tokio::test]
async fn a_token_is_exchanged_for_a_cookie_and_names_are_looked_up_in_the_list() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let view = View::of(dir.path(), &["logs"]).await;
    for wrong in ["", "wrong", &view.token[1..]] {
        assert_eq!(view.ask("POST", "/session", wrong, "").await.status, 401, "{wrong}");
    }
    let page = view.ask("GET", "/", "", "").await;
    assert!(page.status == 200 && page.head.contains("trusted-types 'none'") && !page.text().contains(&view.token));
    let own = format!("Origin: http://127.0.0.1\r\n{}", "Sec-Fetch-Site: same-origin\r\n");
    let opened = view.ask("POST", "/session", &view.token, &own).await;
    assert_eq!(opened.status, 204, "{}", opened.head);
    let cookie = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(&view.token), "{cookie}");
    let cookie = format!("Cookie: other=1; {}\r\n", cookie.split(';').next().expect("a pair"));
    assert_eq!(view.ask("GET", "/api/tree", "", &cookie).await.status, 200);
    for path in [
        "run/third",
        "run/..",
        "run/../first",
        "run/%2e%2e",
        "run/first/step/99",
        "run/first/step/-1",
        "run/first/step/+1",
        "run/first/step/",
        "run/first/raw/0/sent",
        "run/first/raw/0/reply/7",
        "run/first/raw/0/../../run.json",
        "run/first/trace",
        "run//etc/passwd",
        "run/logs%2Ffirst",
        "campaign/logs",
        "dataset/logs",
        "sample/logs/0",
        "diff/first",
        "diff/first/third",
        "live/third",
        "",
        "run",
        "tree/more",
    ] {
        let reply = view.ask("GET", &format!("/api/{path}"), "", &cookie).await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
    for path in ["/page/../server.rs", "/page/index.html", "/page/", "/api", "/etc/passwd"] {
        assert_eq!(view.ask("GET", path, "", &cookie).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_page_is_told_what_the_verbs_tell() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let view = View::of(dir.path(), &["logs"]).await;
    let shown = json_of(dir.path(), &["show", "logs/second", "--before-after"]).await;
    let run = view.get("/api/run/second").await;
    let mut head = shown.clone();
    let steps = head.as_object_mut().expect("an object").shift_remove("steps").expect("steps");
    assert_eq!(run["head"], head);
    for (number, step) in steps.as_array().expect("steps").iter().enumerate() {
        assert_eq!(&view.get(&format!("/api/run/second/step/{number}")).await, step);
        let row = &run["rows"][number];
        assert_eq!((&row[0], &row[7]), (&step["step"], &step["status"]));
        assert_eq!(run["agents"][usize::try_from(row[1].as_u64().expect("a number")).expect("small")], step["agent"]);
    }
    let told = view.get("/api/run/second/texts/1").await;
    assert_eq!(told["changes"][0]["side"], "response");
    assert_eq!(told["quoted"]["steps"][0]["step"], 2, "{}", told["quoted"]);
    let (_, compared, _) = verb(dir.path(), &["diff", "logs/first", "logs/second", "--format", "json"]).await;
    assert_eq!(view.get("/api/diff/first/second").await, serde_json::from_str::<Value>(&compared).expect("JSON"));
    let mut listed = json_of(dir.path(), &["runs", "logs"]).await;
    assert_eq!(view.get("/api/tree").await["runs"], listed["runs"].take());
    assert_eq!(listed["result"], "ok 2 runs: 1 failure, 1 unknown");
}

#[tokio::test]
async fn an_edit_of_a_parameter_is_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = "format = 1\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\n\
                side = \"request\"\nmanipulator.set_parameter = { temperature = 1.5 }\n";
    std::fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let run = ["run", "--upstream", "simulator", "--config", config, "--plan", "plan.toml", "--run", "warm", "--"];
    let program = [crate::program::AEGIS, "example", "pipeline", "--task", QUESTION];
    let (code, _, talk) = verb(dir.path(), &[&run[..], &program].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let (_, shown, _) = verb(dir.path(), &["show", "logs/warm", "--before-after"]).await;
    assert!(shown.contains("temperature") && shown.contains("1.5"), "{shown}");
}

#[tokio::test]
async fn a_run_is_followed_while_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start(dir.path(), &["--upstream", "simulator", "--run", "live"]).await;
    let body = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": "What is 6 times 7?"}]});
    let call = async || {
        let mut client = Client::connect(served.address).await;
        let path = "/a/solver/v1/chat/completions";
        client.send(&request("POST", path, body.to_string().as_bytes(), "Connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 200);
    };
    call().await;
    let view = View::of(dir.path(), &["logs"]).await;
    let follow = |last: &str| {
        format!("GET /api/live/live HTTP/1.1\r\nHost: 127.0.0.1\r\nx-aegis-token: {}\r\n{last}\r\n", view.token)
    };
    let mut events = Client::connect(view.address).await;
    events.send(follow("").as_bytes()).await;
    assert!(events.read_until(b"\"solver\"").await && events.read_until(b"id: ").await);
    let position = view.get("/api/run/live").await["position"].clone();
    call().await;
    // The second event has the second step's row.
    assert!(events.read_until(b"\"rows\":[[1,").await);
    let mut again = Client::connect(view.address).await;
    again.send(follow(&format!("Last-Event-ID: {position}\r\n")).as_bytes()).await;
    assert!(again.read_until(b"\"rows\":[[1,").await, "from there on");
    assert_eq!(served.stop_and_end(dir.path(), &["logs/live"]).await, Some(0));
    assert!(events.read_until(b"\"sealed\":true").await);
}

/// A page in one file, and behind it what is packed in it.
pub(crate) fn unpacked(html: &str) -> String {
    let mut all = html.to_owned();
    for block in html.split("<script type=\"text/plain\"").skip(1) {
        let packed = block.split_once('>').and_then(|(_, rest)| rest.split_once('<')).expect("a block").0;
        let packed = STANDARD.decode(packed).expect("base64");
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_string(&mut all).expect("zlib");
    }
    all
}

#[tokio::test]
async fn one_file_holds_it_all_and_nothing_that_could_run() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let (code, _, said) = verb(dir.path(), &["view", "logs", "--bundle", "out.html"]).await;
    assert_eq!(code, Some(0), "{said}");
    let html = std::fs::read_to_string(dir.path().join("out.html")).expect("a file");
    // Names of namespaces are no addresses: nothing is asked there.
    let elsewhere = html.replace("http://www.w3.org/", "").contains("http://");
    assert!(html.contains("script-src 'sha256-") && !html.contains("src=\"/page") && !elsewhere);
    assert_eq!(html.matches("<script>").count(), 1);
    let all = unpacked(&html);
    assert!(all.contains("ANSWER: 94"), "what the agents said is in it");
    for place in [dir.path().display().to_string(), crate::program::AEGIS.to_owned()] {
        assert!(!all.contains(&place), "no place of this machine: {place}");
    }
    std::fs::create_dir(dir.path().join("bare")).expect("a directory");
    let (code, _, said) = verb(dir.path(), &["view", "bare", "--bundle", "out.html", "--overwrite"]).await;
    assert!(code == Some(2) && said.contains("no run"), "{said}");
}

/// What the page of the docs has to be typed runs as it stands; what listens is tested above.
#[tokio::test]
async fn the_commands_of_the_docs_run() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    std::fs::create_dir(dir.path().join("logs/annotations")).expect("a directory");
    let said = serde_json::json!({"format": 1, "run": "second", "annotator": "ada", "at": "2026-01-01T00:00:00Z",
        "error": {"agent": "solver", "step": 1, "why": "a wrong number"}, "sure": true, "blind": true});
    std::fs::write(dir.path().join("logs/annotations/ada.jsonl"), format!("{said}\n")).expect("written");
    let commands: Vec<String> = crate::readme::blocks(include_str!("../../docs/view.md"))
        .iter()
        .flat_map(|block| block.lines().map(|line| line.split('#').next().unwrap_or_default().trim().to_owned()))
        .filter(|line| !line.starts_with("aegis view") || line.contains("--bundle"))
        .collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let (code, _, said) = verb(dir.path(), &words).await;
        assert_eq!(code, Some(0), "{command}: {said}");
    }
}

#[tokio::test]
async fn it_listens_on_this_machine_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("logs")).expect("a directory");
    let (code, _, said) = verb(dir.path(), &["view", "logs", "--listen", "0.0.0.0:0"]).await;
    assert!(code == Some(2) && said.contains("ssh -L"), "{said}");
    let (code, _, said) = verb(dir.path(), &["view", "nowhere"]).await;
    assert!(code == Some(2) && said.contains("nothing at `nowhere`"), "{said}");
}

#[tokio::test]
async fn colour_is_what_was_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    for (arguments, colour) in [
        (&["show", "logs/second", "--color", "always"][..], true),
        (&["show", "logs/second", "--color=never"], false),
        (&["show", "logs/second"], false),
        (&["runs", "logs", "--color", "always"], true),
        (&["runs", "logs"], false),
        (&["runs", "logs", "-q", "--color", "always"], true),
        (&["show", "logs/none", "--color", "always"], true),
        (&["show", "logs/none"], false),
        (&["doctor", "--upstream", "simulator", "--color", "always"], true),
        (&["show", "--help", "--color", "always"], true),
        (&["show", "--help", "--color", "never"], false),
        (&["show", "--color=always", "--no-such-option"], true),
    ] {
        let (_, out, talk) = verb(dir.path(), arguments).await;
        assert_eq!((out + &talk).contains('\u{1b}'), colour, "{arguments:?}");
    }
}
