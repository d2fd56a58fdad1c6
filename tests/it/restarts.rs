//! A server that is stopped in order, or whose runs are idle, leaves them open: programs go on where they were.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use aegis::{
    recording::{self, Recording},
    trajectory::CloseCause,
};
use nix::sys::signal::Signal;
use tokio::{net::TcpStream, sync::watch, task::JoinSet};

use crate::{
    lab::{Client, DEADLINE, Reply, chat, request, until, within},
    program::{Served, verb},
    scripted::{Act, Scripted, chat_reply, chunk, delta, finish, http, last_chunk, stream_head},
};

/// Programs that run at once.
const PROGRAMS: usize = 8;
/// Calls of each program.
const CALLS: usize = 40;
/// How often the server is stopped under them.
const RESTARTS: usize = 3;

/// One call on a connection of its own; `None` where nobody answered it.
pub async fn try_call(address: SocketAddr, path: &str, body: &[u8]) -> Option<Reply> {
    let stream = TcpStream::connect(address).await.ok()?;
    let mut client = Client { stream, seen: Vec::new() };
    client.send(&request("POST", path, body, "Connection: close\r\n")).await;
    client.rest().await;
    let reply = Reply::parse(&client.seen);
    (reply.status > 0 && reply.whole).then_some(reply)
}

/// Comes back once the server says that it is stopping.
async fn stops(served: &Served) {
    loop {
        let mut client = Client::connect(served.address).await;
        client.send(&request("GET", "/readyz", b"", "Connection: close\r\n")).await;
        if client.reply().await.header("x-aegis-error").as_deref() == Some("stopping") {
            break;
        }
    }
}

/// One call that is answered.
pub async fn call(served: &Served, path: &str, text: &str) -> Reply {
    try_call(served.address, path, &chat(text)).await.expect("an answer")
}

/// The recording of a run that may go on.
pub fn open_recording(dir: &Path, run: &str) -> Recording {
    let recording = recording::read(&dir.join("logs").join(run)).expect("a recording");
    assert!(!recording.sealed, "{run} is sealed");
    recording
}

/// One program: a call after the other in its own run. A call that meets the end of the server is tried again once the
/// next server is there. Gives how often that was.
async fn program(number: usize, mut server: watch::Receiver<SocketAddr>, answered: Arc<AtomicUsize>) -> usize {
    let mut repeated = 0;
    let path = format!("/r/program-{number}/a/solver/v1/chat/completions");
    for call in 0..CALLS {
        let text = format!("Program {number}, call {call}.");
        loop {
            let address = *server.borrow_and_update();
            let body = serde_json::json!({"model": "m", "stream": call % 2 == 0,
                "messages": [{"role": "user", "content": text}]});
            match try_call(address, &path, body.to_string().as_bytes()).await {
                Some(reply) if reply.status == 200 => break,
                Some(refused) => {
                    refused.assert_own_error(503, "stopping");
                    assert_eq!(refused.header("retry-after").as_deref(), Some("1"));
                    assert_eq!(refused.header("x-should-retry").as_deref(), Some("true"));
                }
                None => {}
            }
            repeated += 1;
            within(server.changed()).await.expect("another server");
        }
        answered.fetch_add(1, Ordering::SeqCst);
    }
    repeated
}

/// The main proof: programs that never pause go on through restarts, each with one repeated call at most a restart, and
/// nothing that they were told is missing in the record, or there twice.
#[tokio::test(flavor = "multi_thread")]
async fn programs_go_on_through_restarts_in_the_middle_of_their_calls() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs"];
    let mut served = Served::start(dir.path(), &arguments).await;
    let (tell, server) = watch::channel(served.address);
    let answered = Arc::<AtomicUsize>::default();
    let mut programs = JoinSet::new();
    for number in 0..PROGRAMS {
        programs.spawn(program(number, server.clone(), Arc::clone(&answered)));
    }
    for restart in 1..=RESTARTS {
        until("answers come", || answered.load(Ordering::SeqCst) >= restart * PROGRAMS * CALLS / 5).await;
        served.signal(Signal::SIGTERM);
        assert_eq!(served.ended().await.code(), Some(0), "{}", served.said());
        served = Served::start(dir.path(), &arguments).await;
        tell.send_replace(served.address);
    }
    let repeated = programs.join_all().await;
    assert!(repeated.iter().all(|times| *times <= RESTARTS), "more than one a restart: {repeated:?}");
    assert_eq!(served.stop().await, Some(0));
    for number in 0..PROGRAMS {
        let recording = open_recording(dir.path(), &format!("program-{number}"));
        let mut said = BTreeMap::new();
        for (place, step) in recording.trajectory.steps.iter().enumerate() {
            assert_eq!((step.step as usize, step.call as usize), (place, place), "numbers go on, without a hole");
            assert_eq!(step.attempts.len(), 1);
            if step.attempts[0].cause == Some(CloseCause::Complete) {
                *said.entry(String::from_utf8_lossy(&step.request).into_owned()).or_insert(0) += 1;
            }
        }
        assert_eq!(said.len(), CALLS, "each call is recorded");
        assert!(said.values().all(|times| *times == 1), "and once");
    }
}

/// A server that begins before the one before it has ended asks programs of runs that are still held to come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_another_server_still_holds_is_asked_for_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs"];
    let path = "/r/moved/a/solver/v1/chat/completions";
    let first = Served::start(dir.path(), &arguments).await;
    assert_eq!(call(&first, path, "One.").await.status, 200);
    let second = Served::start(dir.path(), &arguments).await;
    let refused = call(&second, path, "Two.").await;
    refused.assert_own_error(503, "recording_failed");
    assert_eq!(refused.header("retry-after").as_deref(), Some("1"));
    assert_eq!(refused.header("x-should-retry").as_deref(), Some("true"));
    assert_eq!(first.stop().await, Some(0));
    assert_eq!(call(&second, path, "Two.").await.status, 200);
    assert_eq!(second.stop().await, Some(0));
    let calls: Vec<u32> = open_recording(dir.path(), "moved").trajectory.steps.iter().map(|step| step.call).collect();
    assert_eq!(calls, [0, 1]);
}

/// Answers the first calls at once and holds a stream for each call after those until the gate is open.
async fn upstream_with_gate(at_once: usize, held: usize) -> Scripted {
    let mut stream = vec![stream_head(), chunk(delta("first")), Act::Gate];
    stream.extend([chunk(finish("stop")), chunk("data: [DONE]\n\n"), last_chunk()]);
    let whole = vec![http("200 OK", "application/json", &chat_reply("Five."))];
    let mut script = vec![whole.clone(); at_once];
    script.extend(vec![stream; held]);
    script.push(whole);
    Scripted::start(script).await
}

const PLAN: &str = "format = 1\nseed = 7\n\
    [[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 1\nside = \"response\"\n\
    manipulator.replace_text = { find = \"Five\", with = \"Six\" }\n\
    [[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 3\nside = \"response\"\n\
    manipulator.replace_text = { find = \"Five\", with = \"Nine\" }\n";

/// What is under way ends whole, what comes is told to come again, and what a run knows is there afterwards: its numbers,
/// the errors that were planted in it, and those that are still to be.
#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_ends_calls_and_no_run() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let upstream = upstream_with_gate(2 * PROGRAMS, PROGRAMS).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--plan", "plan.toml"];
    let mut served = Served::start(dir.path(), &arguments).await;
    let path = |number: usize| format!("/r/run-{number}/a/solver/v1/chat/completions");
    for number in 0..PROGRAMS {
        assert!(call(&served, &path(number), "How many?").await.text().contains("Five"));
        assert!(call(&served, &path(number), "Are you sure?").await.text().contains("Six"), "planted");
    }
    let mut streams = Vec::new();
    for number in 0..PROGRAMS {
        let mut client = Client::connect(served.address).await;
        client.post(&path(number), &chat("Think about it.")).await;
        assert!(client.read_until(b"first").await);
        streams.push(client);
    }
    served.signal(Signal::SIGTERM);
    tokio::time::timeout(DEADLINE, stops(&served)).await.expect("it stops");
    // Who calls now is held until the streams have ended: its SDK tries twice more, and each try would find no server.
    let mut late = tokio::task::JoinSet::new();
    for number in 0..PROGRAMS {
        let (address, path) = (served.address, path(number));
        late.spawn(async move { try_call(address, &path, &chat("And now?")).await.expect("an answer") });
    }
    stops(&served).await;
    assert!(late.try_join_next().is_none(), "answered while streams are under way");
    upstream.open_gate();
    while let Some(reply) = late.join_next().await {
        let reply = reply.expect("no panic");
        reply.assert_own_error(503, "stopping");
        assert_eq!(reply.header("retry-after").as_deref(), Some("1"));
        assert_eq!(reply.header("x-should-retry").as_deref(), Some("true"));
    }
    for mut stream in streams {
        assert!(stream.read_until(b"data: [DONE]\n\n").await);
    }
    assert_eq!(served.ended().await.code(), Some(0), "{}", served.said());
    assert!(served.said().contains("aegis runs end logs/run-0"), "{}", served.said());

    let served = Served::start(dir.path(), &arguments).await;
    for number in 0..PROGRAMS {
        let reply = call(&served, &path(number), "And now?").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.text().contains("Nine"), "the fourth call of the run: {}", reply.text());
        assert!(call(&served, &path(number), "Thank you.").await.text().contains("Five"));
    }
    assert_eq!(served.stop().await, Some(0));
    for number in 0..PROGRAMS {
        let recording = open_recording(dir.path(), &format!("run-{number}"));
        let steps = &recording.trajectory.steps;
        let calls: Vec<u32> = steps.iter().map(|step| step.call).collect();
        let planted: Vec<usize> = steps.iter().map(|step| step.injected.len()).collect();
        assert_eq!((calls, planted), (vec![0, 1, 2, 3, 4], vec![0, 1, 0, 1, 0]));
        assert!(steps.iter().all(|step| step.attempts[0].cause == Some(CloseCause::Complete)));
    }
    let (code, out, talk) = verb(dir.path(), &["runs", "end", "logs/run-0"]).await;
    assert!(code == Some(0) && out.contains("ended logs/run-0  5 steps"), "nobody holds it: {out}{talk}");
    let ended = recording::read(&dir.path().join("logs/run-0")).expect("a recording");
    assert!(ended.sealed && ended.label.expect("a label").errors.len() == 2);
}

/// Idleness frees what a run holds, and ends it for nobody: the next request that names it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_says_the_label_of_what_it_leaves_open() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 1\n\
        manipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    std::fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let options = ["--upstream", "simulator", "--run", "r", "--plan", "plan.toml"];
    let path = "/r/r/a/solver/v1/chat/completions";
    let label = || std::fs::read_to_string(dir.path().join("logs/r/label.json")).ok();
    let served = Served::start(dir.path(), &options).await;
    assert_eq!(call(&served, path, "A box holds 6 eggs. How many eggs do 7 boxes hold?").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    assert_eq!(label(), None, "nothing was planted yet");
    let served = Served::start(dir.path(), &options).await;
    assert_eq!(call(&served, path, "A box holds 6 eggs. How many eggs do 8 boxes hold?").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    open_recording(dir.path(), "r");
    let said = label().expect("the error was planted");
    assert!(said.contains("\"delivered\"") && said.contains("\"solver\""), "{said}");
    let (code, _, talk) = verb(dir.path(), &["runs", "end", "logs/r"]).await;
    assert!(code == Some(0) && label() == Some(said), "ended, it says the same: {talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_run_goes_on_with_the_next_request_that_names_it() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let upstream = upstream_with_gate(8, 0).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--plan", "plan.toml", "--idle", "0"];
    let served = Served::start(dir.path(), &arguments).await;
    for (number, said) in ["Five", "Six", "Five", "Nine", "Five"].into_iter().enumerate() {
        let reply = call(&served, "/r/slow/a/solver/v1/chat/completions", &format!("Question {number}")).await;
        assert!(reply.status == 200 && reply.text().contains(said), "{number}: {}", reply.text());
        // Its log is open as long as the server has the run.
        until("the run is put down", || !holds_file(&served, "logs/slow/log.jsonl")).await;
    }
    assert_eq!(served.stop().await, Some(0));
    let recording = open_recording(dir.path(), "slow");
    let planted: Vec<usize> = recording.trajectory.steps.iter().map(|step| step.injected.len()).collect();
    assert_eq!(planted, [0, 1, 0, 1, 0]);
    assert!(recording.trajectory.steps.iter().enumerate().all(|(place, step)| step.call as usize == place));
}

/// Requests that name no run are told apart by what they say; a run of theirs that nobody goes on with ends.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_run_that_nobody_named_is_sealed() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start(dir.path(), &["--upstream", "simulator", "--log-dir", "logs", "--idle", "0"]).await;
    assert_eq!(call(&served, "/v1/chat/completions", "A question.").await.status, 200);
    let logs = dir.path().join("logs");
    let run = std::fs::read_dir(&logs).expect("runs").next().expect("one").expect("readable").path();
    until("it is sealed", || run.join("seal.json").exists()).await;
    assert_eq!(served.stop().await, Some(0));
}

/// Whether the server has a file open.
pub fn holds_file(served: &Served, name: &str) -> bool {
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.id())).expect("its files").flatten();
    open.into_iter().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.ends_with(name)))
}

/// A program that names no run is told by what it says, after a restart too.
#[tokio::test(flavor = "multi_thread")]
async fn programs_that_name_no_run_go_on_with_theirs() {
    let dir = tempfile::tempdir().expect("a directory");
    let answer = |task: usize| format!("The sum of the column number {task} comes to {} in all.", 1000 + task * 37);
    let script = (0..4).chain(0..4).map(|task| vec![http("200 OK", "application/json", &chat_reply(&answer(task)))]);
    let upstream = Scripted::start(script.collect()).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs"];
    let ask = async |served: &Served, task: usize, goes_on: bool| {
        let mut messages =
            vec![serde_json::json!({"role": "user", "content": format!("Add up the column number {task}.")})];
        if goes_on {
            messages.push(serde_json::json!({"role": "assistant", "content": answer(task)}));
            messages.push(serde_json::json!({"role": "user", "content": "Check that once more."}));
        }
        let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
        let reply = try_call(served.address, "/v1/chat/completions", body.as_bytes()).await.expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    for goes_on in [false, true] {
        let served = Served::start(dir.path(), &arguments).await;
        for task in 0..4 {
            ask(&served, task, goes_on).await;
        }
        assert_eq!(served.stop().await, Some(0));
    }
    let runs: Vec<_> = std::fs::read_dir(dir.path().join("logs")).expect("runs").flatten().collect();
    assert_eq!(runs.len(), 4, "{runs:?}");
    for run in runs {
        let recording = recording::read(&run.path()).expect("a recording");
        let sources: Vec<&str> = recording.exchanges.iter().map(|exchange| exchange.run_source.as_str()).collect();
        assert!(!recording.sealed && sources == ["new", "quotes"], "{sources:?}");
    }
    // Those that nobody goes on with end as idle.
    let served = Served::start(dir.path(), &[&arguments[..], &["--idle", "0"]].concat()).await;
    let seals = || std::fs::read_dir(dir.path().join("logs")).expect("runs").flatten();
    until("they are sealed", || seals().all(|run| run.path().join("seal.json").exists())).await;
    assert_eq!(served.stop().await, Some(0));
}
