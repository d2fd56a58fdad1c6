//! One scenario, one answer: whichever verb executes a program, and whichever looks at the run afterwards, they say the same of
//! its label.

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::{
    program::{Served, aegis, verb},
    scripted::chat_reply,
};

/// The program: an adder, and a critic that hears what it said. What else it does is its first argument; the answer is the
/// adder's. Names are declared by a header, but where two agents go by one name that stands in their prompts.
const TEAM: &str = r#"
import http.client, json, os, re, signal, sys, threading, time
kind = sys.argv[1]
host, path = re.match(r"http://([^/]+)(/.*)", os.environ["OPENAI_BASE_URL"]).groups()
def ask(agent, text, prompt=None):
    messages = [{"role": "user", "content": text}]
    if prompt: messages.insert(0, {"role": "system", "content": prompt + '\n\nYou are an agent. Your internal name is "adder".'})
    headers = {"content-type": "application/json"}
    if not prompt: headers["x-aegis-agent"] = agent
    call = http.client.HTTPConnection(host)
    call.request("POST", path + "/chat/completions", json.dumps({"model": "m", "messages": messages}), headers)
    said = json.loads(call.getresponse().read())
    return said["choices"][0]["message"]["content"] if "choices" in said else "nothing"
said = {}
if kind == "contested":
    said[0] = ask("adder", "5 and 7", "You add numbers, step by step.")
    ask("adder", "Write one.", "You write short poems about the sea.")
elif kind == "overlap":
    def late(): said[0] = ask("adder", "slowly 5 and 7")
    ask("adder", "warm up")
    first = threading.Thread(target=lambda: ask("adder", "slowly 1 and 2"))
    second = threading.Thread(target=late)
    first.start(); time.sleep(0.1); second.start(); first.join(); second.join()
else:
    said[0] = ask("adder", "5 and 7")
ask("critic", "Look at this: " + said[0])
print("ANSWER:", (re.findall(r"\d+", said[0]) or ["none"])[-1], flush=True)
if kind == "killed": os.kill(os.getpid(), signal.SIGKILL)
"#;

/// The model. It refuses what says so, takes its time over what is slow, and adds.
async fn model() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                let body =
                    request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                let text = String::from_utf8_lossy(&body);
                if text.contains("slowly") {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                }
                let refused = json!({"error": {"message": "too long", "type": "invalid_request_error"}}).to_string();
                let said = if text.contains("1 and 2") { "The sum is 3." } else { "The sum is 12." };
                let (status, body) = if text.contains("REFUSE") { (400, refused) } else { (200, chat_reply(said)) };
                let reply = Response::builder().status(status).header("content-type", "application/json");
                Ok::<_, Infallible>(reply.body(Full::new(Bytes::from(body))).expect("a reply"))
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

const CHECK: &str = "grep -q 'ANSWER: 12'";

/// What is done to a run, and what every verb must say of its label.
struct Column {
    name: &'static str,
    /// What the program does besides.
    kind: &'static str,
    plan: String,
    /// Why there is no label, as `no_label` says it; `None` where there is one.
    expected: Option<&'static str>,
    /// The class of the injected run in a campaign.
    class: &'static str,
    /// The same of a fork and of a campaign, which begin like a recorded run.
    forked: Option<&'static str>,
}

fn edit(agent: &str, call: u32, edit: &str) -> String {
    format!("[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.call = {call}\n{edit}\n")
}

const CORRUPT: &str = "manipulator.corrupt_number = { which = \"last\", by = 10 }";

fn columns() -> Vec<Column> {
    let column = |name, kind, edits: &[String], expected: Option<&'static str>, class| Column {
        name,
        kind,
        plan: format!("format = 1\nseed = 7\n{}", edits.concat()),
        expected,
        class,
        forked: expected,
    };
    let corrupt = edit("adder", 0, CORRUPT);
    let fault = "[[injection]]\nagent = \"critic\"\nwhen.call = 0\nfault.status = { code = 503 }\n".to_owned();
    let refuse = "side = \"request\"\nmanipulator.append_instruction = { text = \"REFUSE\" }";
    vec![
        column("labelled", "plain", std::slice::from_ref(&corrupt), None, "verified"),
        column(
            "contested name",
            "contested",
            std::slice::from_ref(&corrupt),
            Some("contested_name"),
            "ambiguous_agent",
        ),
        Column {
            // A record answers at once: in what begins like it, only the record tells of the overlap.
            forked: Some("overlapping_in_reference"),
            ..column("overlap", "overlap", &[edit("adder", 2, CORRUPT)], Some("overlapping"), "ambiguous_agent")
        },
        column(
            "failed edit",
            "plain",
            &[edit("adder", 0, "manipulator.negate_verdict = {}")],
            Some("manipulator_failed"),
            "manipulator_failed",
        ),
        column("refused as edited", "plain", &[edit("adder", 0, refuse)], Some("edit_refused"), "edit_refused"),
        column("fault planted", "plain", &[corrupt.clone(), fault], Some("fault_ended"), "fault"),
        column("child killed", "killed", &[corrupt], None, "crashed"),
    ]
}

/// A directory with the program, a plan, and a model to ask.
struct Bench {
    dir: tempfile::TempDir,
    url: String,
    column: Column,
}

impl Bench {
    async fn new(column: Column) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("team.py"), TEAM).expect("written");
        fs::write(dir.path().join("plan.toml"), &column.plan).expect("written");
        Self { dir, url: model().await, column }
    }

    fn program(&self) -> [&str; 5] {
        ["--", "python3", "-I", "team.py", self.column.kind]
    }

    async fn said(&self, arguments: &[&str]) -> Value {
        let (_, out, talk) = verb(self.dir.path(), arguments).await;
        serde_json::from_str(&out)
            .unwrap_or_else(|error| panic!("{}: {arguments:?}: {error}: {out}{talk}", self.column.name))
    }

    /// A clean run, to begin like.
    async fn clean(&self) {
        if self.dir.path().join("logs/clean").exists() {
            return;
        }
        let arguments = ["run", "--upstream", &self.url, "--log-dir", "logs", "--run", "clean", "--check", CHECK];
        let (code, out, talk) = verb(self.dir.path(), &[&arguments[..], &self.program()].concat()).await;
        assert!(code == Some(0) || self.column.kind == "killed", "{}: {out}{talk}", self.column.name);
    }

    /// Executes it by a verb: the recording.
    async fn execute(&self, by: &str) -> PathBuf {
        let dir = self.dir.path();
        match by {
            "run" => {
                let plan = ["run", "--plan", "plan.toml", "--upstream", &self.url, "--log-dir", "logs", "--run", "r"];
                verb(dir, &[&plan[..], &["--check", CHECK], &self.program()].concat()).await;
                dir.join("logs/r")
            }
            "serve" => {
                let arguments = ["--plan", "plan.toml", "--upstream", &self.url, "--log-dir", "logs"];
                let served = Served::start(dir, &arguments).await;
                let mut program = tokio::process::Command::new("python3");
                program.args(&self.program()[2..]).current_dir(dir);
                program.env("OPENAI_BASE_URL", format!("http://{}/r/s/v1", served.address));
                let done = crate::lab::within(program.output()).await.expect("it runs");
                assert!(!done.stdout.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
                served.stop().await;
                dir.join("logs/s")
            }
            "fork" => {
                self.clean().await;
                let fork = ["fork", "logs/clean", "--plan", "plan.toml", "--upstream", &self.url];
                let more = ["--log-dir", "forks", "--check", CHECK, "--format", "json"];
                let said = self.said(&[&fork[..], &more, &self.program()].concat()).await;
                dir.join(said["samples"][0]["run_dir"].as_str().unwrap_or_else(|| panic!("{said}")))
            }
            _ => self.campaign().await,
        }
    }

    async fn campaign(&self) -> PathBuf {
        let dir = self.dir.path();
        fs::write(dir.join("tasks.jsonl"), "{\"id\":\"t\",\"question\":\"5 and 7\",\"answer\":\"12\"}\n")
            .expect("written");
        // Killed runs are no clean runs: the program is killed where its answer is wrong.
        let script = "a=$(python3 -I team.py \"$1\"); echo \"$a\"; [ \"$1\" != killed ] || [ \"$a\" = 'ANSWER: 12' ] || kill -9 $$";
        let text = format!(
            "format = 1\nname = \"c\"\nseed = 7\nupstream = \"{}\"\ntasks = {{ file = \"tasks.jsonl\" }}\n\
             verify = {{ answer = 'ANSWER: (.*)', checks = [{{ numeric = {{}} }}] }}\nproof.repeatable = true\n\
             [[system]]\nname = \"team\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"sh\", \"{}\"]\n\
             [[plan]]\nfile = \"plan.toml\"\n",
            self.url, self.column.kind
        );
        fs::write(dir.join("c.toml"), text).expect("written");
        let output = aegis(dir).args(["campaign", "c.toml", "--out", "c"]).output();
        let output = tokio::time::timeout(Duration::from_mins(2), output).await.expect("in time").expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        let report: Value =
            serde_json::from_slice(&fs::read(dir.join("c/report.json")).unwrap_or_else(|_| panic!("{told}")))
                .expect("a report");
        let cells = report["cells"].as_array().expect("cells").clone();
        let injected = cells.iter().find(|cell| cell["class"].is_string() && cell["kind"]["injected"].is_object());
        let injected = injected.or(cells.iter().find(|cell| cell["class"].is_string()));
        let injected = injected.unwrap_or_else(|| panic!("{}: {told}\n{report:#}", self.column.name));
        assert_eq!(injected["class"], self.column.class, "{}: {told}", self.column.name);
        dir.join("c/logs").join(injected["run"].as_str().expect("a run"))
    }

    /// What each of those that look at a run says of its label.
    async fn assert_told_alike(&self, by: &str, run: &Path) {
        let expected = if matches!(by, "fork" | "campaign") { self.column.forked } else { self.column.expected };
        let what = format!("{} by {by}", self.column.name);
        let path = run.to_str().expect("text");
        let label = fs::read(run.join("label.json")).ok();
        assert_eq!(label.is_none(), expected.is_some(), "{what}: label.json");
        let shown = self.said(&["show", path, "--format", "json"]).await;
        assert_eq!(shown["label"].is_null(), expected.is_some(), "{what}: show");
        assert_eq!(shown["no_label"].is_string(), expected.is_some(), "{what}: show");
        let text = verb(self.dir.path(), &["show", path]).await.1;
        assert!(!text.contains("no gate refuses") && !text.contains("not written"), "{what}: {text}");
        assert_eq!(text.contains("label    none: "), expected.is_some(), "{what}: {text}");
        let agents = self.said(&["agents", path, "--format", "json"]).await;
        let step =
            agents["steps"].as_array().expect("steps").iter().find(|step| {
                step["agent"] == "adder" && step["call"] == if self.column.kind == "overlap" { 2 } else { 0 }
            });
        let step = step.unwrap_or_else(|| panic!("{what}: {agents:#}"));
        let about_step = expected.filter(|why| why.contains("overlap") || why.contains("contested"));
        assert_eq!(step["labels"].as_bool(), Some(about_step.is_none()), "{what}: {step}");
        assert_eq!(step["no_label"].as_str(), about_step, "{what}: {step}");
        if expected.is_some() {
            let arguments = ["prove", path, "--check", CHECK, "--pairs", "1", "--upstream", &self.url];
            let (code, _, talk) = verb(self.dir.path(), &[&arguments[..], &self.program()].concat()).await;
            assert!(code == Some(2) && talk.contains("no label"), "{what}: prove: {code:?} {talk}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scenario_has_one_answer_whoever_executes_it_and_whoever_looks() {
    for column in columns() {
        let bench = Bench::new(column).await;
        for by in ["run", "serve", "fork", "campaign"] {
            let run = bench.execute(by).await;
            bench.assert_told_alike(by, &run).await;
        }
    }
}

/// Recordings, labels and data sets that an earlier version wrote are read as it wrote them.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_version_wrote_is_read_as_before() {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/version-f51b50a");
    let dir = tempfile::tempdir().expect("a directory");
    for (run, status, definition) in
        [("delivered", "delivered", "injected"), ("proven", "verified", "injected"), ("natural", "verified", "flip")]
    {
        let path = written.join(run).display().to_string();
        let (code, out, talk) = verb(dir.path(), &["show", &path, "--format", "json"]).await;
        assert_eq!(code, Some(0), "{run}: {talk}");
        let shown: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!((&shown["label"]["status"], &shown["label"]["definition"]), (&json!(status), &json!(definition)));
        assert_eq!((shown["sealed"].as_bool(), &shown["no_label"]), (Some(true), &Value::Null), "{run}");
        let file: Value =
            serde_json::from_slice(&fs::read(written.join(run).join("label.json")).expect("a label")).expect("JSON");
        assert_eq!(shown["label"], file, "{run}: nothing of it is lost");
    }
    for set in ["campaign", "traced"] {
        let path = written.join(set).display().to_string();
        let (code, _, talk) = verb(dir.path(), &["lint", &path]).await;
        assert!(code == Some(0) && talk.contains("nothing found"), "{set}: {talk}");
        let (code, _, talk) = verb(dir.path(), &["export", &path, "--to", "sft", "--out", set]).await;
        assert_eq!(code, Some(0), "{set}: {talk}");
    }
}
