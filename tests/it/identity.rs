//! Which run, which agent: by path, header, key, metadata, user, model alias and roster; never by chance.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use aegis::trajectory::{RunId, Source, Step};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    echo::Echo,
    lab::{Lab, Setup, chat},
    scripted::{Scripted, chat_reply, http},
};

/// Hints under names of the user's choice.
const HINTS: &str = r#"
[hints]
run_header = "x-mas-run"
agent_header = "x-mas-agent"
key = "sk-(?<run>run-[a-z]+)\\.(?<agent>[a-z]+)"
metadata_run = "run"
metadata_agent = "agent"
user_is_agent = true
model = ".+:(?<agent>[a-z]+)"
"#;

/// One way to say who calls: path prefix, header lines, fields of the body.
type Way = fn(&str, &str) -> (String, String, serde_json::Value);

/// Every kind of hint, and what the record says of it.
const WAYS: &[(&str, Source, Way)] = &[
    ("header", Source::Header, |run, agent| {
        (String::new(), format!("X-MAS-Run: {run}\r\nx-mas-agent: {agent}\r\n"), json!({}))
    }),
    ("path", Source::Path, |run, agent| (format!("/r/{run}/a/{agent}"), String::new(), json!({}))),
    ("user", Source::Metadata, |run, agent| (String::new(), format!("x-mas-run: {run}\r\n"), json!({"user": agent}))),
    ("metadata", Source::Metadata, |run, agent| {
        (String::new(), String::new(), json!({"metadata": {"agent": agent, "run": run}}))
    }),
    ("key", Source::Key, |run, agent| {
        (String::new(), format!("Authorization: Bearer sk-{run}.{agent}\r\n"), json!({}))
    }),
    ("model", Source::Model, |run, agent| {
        (String::new(), format!("x-mas-run: {run}\r\n"), json!({"model": format!("gpt-4o-mini:{agent}")}))
    }),
];

/// Calls that differ in nothing but the hint: two agents, two runs, one after the other in turn.
#[tokio::test(flavor = "multi_thread")]
async fn explicit_hints_are_right_every_time() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Understood."))]).await;
    let setup = Setup { config: HINTS, default_run: None, key: Some("own-key"), ..Setup::default() };
    let mut lab = Lab::before(upstream.address, setup).await;
    for agent in ["planner", "critic"] {
        for (_, _, way) in WAYS {
            for run in ["run-alpha", "run-beta"] {
                let (prefix, headers, fields) = way(run, agent);
                let mut body = json!({"model": "gpt-4o-mini", "messages": [
                    {"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": run}]});
                body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
                let path = format!("{prefix}/v1/chat/completions");
                let reply = lab.post_with(&path, body.to_string().as_bytes(), &headers).await;
                assert_eq!(reply.status, 200, "{}", reply.text());
            }
        }
    }
    for head in upstream.heads() {
        assert!(!head.to_lowercase().contains("x-mas"), "a hint reaches the upstream: {head}");
        assert!(!head.contains("sk-run"), "a key that is a hint reaches the upstream: {head}");
        assert!(head.starts_with("POST /v1/chat/completions "), "a prefix reaches the upstream: {head}");
    }
    lab.drain().await;
    for run in ["run-alpha", "run-beta"] {
        let recording = lab.sealed(run).await;
        let steps = &recording.trajectory.steps;
        assert_eq!(steps.len(), 12);
        for (number, step) in (0_usize..).zip(steps) {
            let (name, source, _) = &WAYS[number % 6];
            let agent = if number < 6 { "planner" } else { "critic" };
            let told =
                (step.attribution.agent.as_str(), step.attribution.source, step.call as usize, step.attempts.len());
            assert_eq!(told, (agent, *source, number % 6, 1), "{run} {name}");
            assert!(String::from_utf8_lossy(&step.request).contains(run), "a foreign call in {run}");
        }
    }
}

/// More than one hint: the more trusted one decides.
#[tokio::test(flavor = "multi_thread")]
async fn the_more_trusted_hint_decides() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let config = concat!(
        "[hints]\nmetadata_run = \"run\"\nmetadata_agent = \"agent\"\n",
        "[[agent]]\nname = \"by-roster\"\nsystem_contains = \"You plan\"\n"
    );
    let mut lab = Lab::before(upstream.address, Setup { config, ..Setup::default() }).await;
    let body = json!({"metadata": {"agent": "by-metadata", "run": "run-m"}, "messages": [{"role": "system", "content": "You plan."}]});
    let bare = json!({"messages": [{"role": "system", "content": "You plan."}]});
    let nobody = json!({"messages": [{"role": "system", "content": "Something else."}]});
    let headers = "x-aegis-run: run-h\r\nx-aegis-agent: by-header\r\n";
    for (path, headers, body, run, agent) in [
        ("/r/run-p/a/by-path/v1/chat/completions", headers, &body, "run-p", "by-path"),
        ("/r/run-p/v1/chat/completions", headers, &body, "run-p", "by-header"),
        ("/v1/chat/completions", headers, &body, "run-h", "by-header"),
        ("/v1/chat/completions", "", &body, "run-m", "by-metadata"),
        ("/v1/chat/completions", "", &bare, "r0", "by-roster"),
        ("/a/Senior%20R%C3%A9searcher/v1/chat/completions", "", &bare, "r0", "Senior Résearcher"),
        ("/v1/chat/completions", "x-aegis-agent: Müller\r\n", &bare, "r0", "Müller"),
    ] {
        assert_eq!(lab.post_with(path, body.to_string().as_bytes(), headers).await.status, 200, "{path}");
        let recording = lab.recorded(run);
        assert_eq!(recording.trajectory.steps.last().expect("a step").attribution.agent.as_str(), agent, "{path}");
    }
    // What nothing names gets a stable name that is no guess.
    for _ in 0..2 {
        lab.post("/r/nobody/v1/chat/completions", nobody.to_string().as_bytes()).await;
    }
    let steps = lab.sealed("nobody").await.trajectory.steps;
    let names: BTreeSet<&str> = steps.iter().map(|step| step.attribution.agent.as_str()).collect();
    assert_eq!((steps.len(), names.len()), (2, 1));
    assert!(names.iter().all(|name| name.starts_with("agent-") && name.len() == 14), "{names:?}");
    assert_eq!(steps[0].attribution.source, Source::Fingerprint);
    assert!(!steps[0].attribution.is_certain(), "learned looks are no ground for a label");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_interleaved_runs_hold_no_foreign_exchange() {
    let config = "[hints]\nmetadata_run = \"run\"\n";
    let mut lab = Lab::over(Arc::new(Echo), Setup { config, default_run: None, ..Setup::default() }).await;
    let mut programs = JoinSet::new();
    for run in 0..16 {
        let address = lab.address;
        programs.spawn(async move {
            for call in 0..12 {
                let (agent, nonce) = (call % 3, format!("nonce-{run}-{call}."));
                let body = json!({"metadata": {"run": format!("run-{run}")}, "messages": [{"role": "user", "content": nonce}]});
                let path = match run % 3 {
                    0 => format!("/r/run-{run}/a/agent{agent}/v1/chat/completions"),
                    _ => format!("/a/agent{agent}/v1/chat/completions"),
                };
                let header = if run % 3 == 1 { format!("x-aegis-run: run-{run}\r\n") } else { String::new() };
                let mut client = crate::lab::Client::connect(address).await;
                let bytes = crate::lab::request("POST", &path, body.to_string().as_bytes(), &format!("{header}Connection: close\r\n"));
                client.send(&bytes).await;
                assert!(client.reply().await.text().contains(&format!("echo: {nonce}")), "run {run} call {call}");
            }
        });
    }
    while let Some(program) = programs.join_next().await {
        program.expect("the program ran");
    }
    lab.drain().await;
    for run in 0..16 {
        let steps = lab.sealed(&format!("run-{run}")).await.trajectory.steps;
        assert_eq!(steps.len(), 12);
        for (call, step) in steps.iter().enumerate() {
            let nonce = format!("nonce-{run}-{call}.");
            let reply = String::from_utf8_lossy(&step.attempts[0].reply).into_owned();
            assert!(
                String::from_utf8_lossy(&step.request).contains(&nonce) && reply.contains(&nonce),
                "run {run}: {reply}"
            );
            assert_eq!((step.step as usize, step.call as usize), (call, call / 3), "run {run}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_are_attempts_of_one_step() {
    let failed = http("500 Internal Server Error", "application/json", "{}");
    let ok = http("200 OK", "application/json", &chat_reply("ok"));
    let script = [&failed, &failed, &ok, &ok, &ok, &failed, &ok, &ok].map(|act| vec![act.clone()]);
    let upstream = Scripted::start(script.to_vec()).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let call = async |agent: &str, body: &str, headers: &str| {
        lab.post_with(&format!("/r/run/a/{agent}/v1/chat/completions"), &chat(body), headers).await.status
    };
    // A new SDK counts its retries.
    for (count, status) in [(0, 500), (1, 500), (2, 200)] {
        assert_eq!(call("a", "one", &format!("x-stainless-retry-count: {count}\r\n")).await, status);
    }
    // The same words again after a success are a new step.
    assert_eq!(call("a", "one", "x-stainless-retry-count: 0\r\n").await, 200);
    assert_eq!(call("a", "two", "").await, 200);
    // An old SDK does not count; another agent with the same words is another agent.
    assert_eq!(call("a", "three", "").await, 500);
    assert_eq!(call("b", "three", "").await, 200);
    assert_eq!(call("a", "three", "").await, 200);
    let steps = lab.sealed("run").await.trajectory.steps;
    let seen: Vec<_> =
        steps.iter().map(|step| (step.attribution.agent.as_str(), step.call, step.attempts.len())).collect();
    assert_eq!(seen, [("a", 0, 3), ("a", 1, 1), ("a", 2, 1), ("a", 3, 2), ("b", 0, 1)]);
    let statuses: Vec<_> = steps[0].attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(500), Some(500), Some(200)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_calls_of_one_agent_are_marked() {
    let upstream =
        Scripted::always(vec![crate::scripted::Act::Gate, http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let mut clients = Vec::new();
    for (number, agent) in ["a", "b", "a"].into_iter().enumerate() {
        let mut client = lab.client().await;
        client.post(&format!("/a/{agent}/v1/chat/completions"), &chat(&format!("call {number}"))).await;
        crate::lab::until("the call arrives", || upstream.count() == number + 1).await;
        clients.push(client);
    }
    upstream.open_gate();
    for client in &mut clients {
        assert!(client.read_until(b"usage").await);
    }
    lab.post("/a/a/v1/chat/completions", &chat("afterwards")).await;
    drop(clients);
    let steps = lab.sealed("r0").await.trajectory.steps;
    let marks: Vec<_> = steps.iter().map(|step: &Step| step.overlapping).collect();
    assert_eq!(marks, [true, false, true, false], "also the one that came first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_run_takes_nothing_more() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    assert_eq!(lab.post("/r/done/v1/chat/completions", &chat("x")).await.status, 200);
    let run = lab.proxy.runs.retire_run(&RunId::parse("done").expect("an id")).expect("under way");
    lab.post("/r/done/v1/chat/completions", &chat("between")).await.assert_own_error(409, "run_sealed");
    lab.proxy.runs.seal(&run).expect("sealed");
    let reply = lab.post("/r/done/v1/chat/completions", &chat("late")).await;
    reply.assert_own_error(409, "run_sealed");
    let ended: Vec<_> = lab.proxy.runs.take_ended().into_iter().map(|run| (run.id.to_string(), run.steps)).collect();
    assert_eq!(ended, [("done".to_owned(), 1)]);
    assert_eq!(reply.header("x-should-retry").as_deref(), Some("false"), "an SDK would try again");
    assert!(reply.text().contains("done"), "{}", reply.text());
    assert_eq!(upstream.count(), 1);
    assert_eq!(lab.post("/r/next/v1/chat/completions", &chat("x")).await.status, 200);
}

/// Everything under a directory, sorted.
fn listing(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            found.push(entry.path().display().to_string());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// S7, S8.
#[tokio::test(flavor = "multi_thread")]
async fn bad_ids_are_refused_and_leave_nothing_on_disk() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let config = "[hints]\nmetadata_run = \"run\"\n";
    let lab = Lab::before(upstream.address, Setup { config, ..Setup::default() }).await;
    let chats = "/v1/chat/completions";
    let long = "x".repeat(65);
    let mut cases: Vec<(String, String, String)> = Vec::new();
    let runs = [
        "..",
        ".",
        "%2e%2e",
        "..%2f..",
        "a%2fb",
        "a%5cb",
        "%00",
        ".hidden",
        "-r",
        "_r",
        "a:b",
        "CON:",
        "a%20b",
        "a;b",
        "a~",
        long.as_str(),
        "",
    ];
    cases.extend(runs.iter().map(|run| (format!("/r/{run}{chats}"), String::new(), String::new())));
    let unread = ["/v1/models", "/v1/files", "/v1/embeddings"];
    cases.extend(unread.iter().map(|path| (format!("/r/..{path}"), String::new(), String::new())));
    let headers = ["../../etc", "/etc/passwd", "a b", "..", "a\\b", "r\u{e9}sum\u{e9}", "a\tb", long.as_str()];
    cases.extend(headers.iter().map(|run| (chats.to_owned(), format!("x-aegis-run: {run}\r\n"), String::new())));
    let names = ["%1b%5b31m", "%00", "%e2%80%ae", "%0d%0aX:%20y", "%7f", "%ff%fe", &"n".repeat(129)];
    cases.extend(names.iter().map(|agent| (format!("/a/{agent}{chats}"), String::new(), String::new())));
    cases.push((chats.to_owned(), "x-aegis-agent: \u{202e}reversed\r\n".to_owned(), String::new()));
    cases.extend(
        ["../x", "a/b", ""]
            .map(|run| (chats.to_owned(), String::new(), format!("\"metadata\":{{\"run\":\"{run}\"}},"))),
    );
    for (path, headers, fields) in cases {
        let body = format!("{{{fields}\"messages\":[]}}");
        let reply = lab.post_with(&path, body.as_bytes(), &headers).await;
        assert_eq!(reply.status, 400, "{path} {headers} {fields}: {}", reply.text());
        reply.assert_own_error(400, "invalid_id");
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(listing(lab.dir.path()), Vec::<String>::new(), "nothing was written");
}

/// A link in the place of a run's directory is not followed.
#[tokio::test(flavor = "multi_thread")]
async fn a_linked_run_directory_is_refused() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let outside = tempfile::tempdir().expect("a directory");
    fs::create_dir(&lab.logs).expect("made");
    std::os::unix::fs::symlink(outside.path(), lab.logs.join("linked")).expect("linked");
    lab.post("/r/linked/v1/chat/completions", &chat("x")).await.assert_own_error(503, "recording_failed");
    assert_eq!(listing(outside.path()), Vec::<String>::new());
    assert_eq!(upstream.count(), 0, "what is not recorded is not forwarded");
}
