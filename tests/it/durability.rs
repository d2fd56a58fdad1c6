//! Invariant 8, F1, F4, F17: what a client got is on disk, whatever ends the program; what cannot be recorded is not
//! served.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};

use aegis::trajectory::CloseCause;
use nix::sys::signal::Signal;
use tokio::task::JoinSet;

use crate::{
    lab::{Client, Reply, chat, request, until},
    program::{Served, verb},
};

/// How often the program is killed.
const KILLS: usize = 20;
const CLIENTS: usize = 8;

/// Calls until the connection breaks; notes the number of every call whose end it got. Each asks with so many words that
/// no other says.
async fn call_on(
    address: std::net::SocketAddr,
    (client, cycle): (usize, usize),
    words: usize,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
) {
    for number in 0.. {
        let nonce = format!("Say {cycle}-{client}-{number}.");
        let word = |word: usize| blake3::hash(format!("{nonce}{word}").as_bytes()).to_hex().to_string();
        let asked: String =
            std::iter::once(nonce.clone()).chain((0..words).map(|at| format!(" {}", word(at)))).collect();
        let streamed = number % 2 == 0;
        let body =
            serde_json::json!({"model": "m", "stream": streamed, "messages": [{"role": "user", "content": asked}]});
        let Ok(stream) = tokio::net::TcpStream::connect(address).await else { return };
        let mut client = Client { stream, seen: Vec::new() };
        let body = body.to_string();
        client.send(&request("POST", "/v1/chat/completions", body.as_bytes(), "Connection: close\r\n")).await;
        // An SDK takes the end marker for the end.
        let ended = if streamed {
            client.read_until(b"data: [DONE]\n\n").await
        } else {
            client.rest().await;
            let reply = Reply::parse(&client.seen);
            reply.status == 200 && reply.whole
        };
        if !ended {
            return;
        }
        acknowledged.lock().expect("lock").insert(nonce);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_loses_no_exchange_whose_end_a_client_got() {
    let dir = tempfile::tempdir().expect("a directory");
    nothing_is_lost(dir.path(), KILLS, 0).await;
}

/// The same where the log rolls all the time.
#[tokio::test(flavor = "multi_thread")]
async fn kill_loses_nothing_of_a_log_that_rolls() {
    let dir = tempfile::tempdir().expect("a directory");
    nothing_is_lost(dir.path(), 8, 500).await;
    let rolled = (0..4).filter(|run| dir.path().join(format!("logs/run{run}/head.jsonl.zst")).exists()).count();
    assert!(rolled > 0, "some logs have a head");
}

async fn nothing_is_lost(dir: &Path, kills: usize, words: usize) {
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    for cycle in 0..kills {
        // Two cycles a run, so that runs are reopened after a kill too.
        let run = format!("run{}", cycle / 2);
        let arguments = ["--upstream", "simulator", "--log-dir", "logs", "--run", &run, "--quiet"];
        let mut served = Served::start(dir, &arguments).await;
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            clients.spawn(call_on(served.address, (client, cycle), words, Arc::clone(&acknowledged)));
        }
        // The moment of the kill is drawn: after so many more answers.
        let more = 1 + usize::from(blake3::hash(&cycle.to_le_bytes()).as_bytes()[0]) % 60;
        let before = acknowledged.lock().expect("lock").len();
        until("answers come", || acknowledged.lock().expect("lock").len() >= before + more).await;
        served.signal(Signal::SIGKILL);
        served.ended().await;
        clients.join_all().await;
    }
    let acknowledged = acknowledged.lock().expect("lock").clone();
    let mut recorded = BTreeSet::new();
    let mut open = 0;
    for run in 0..kills / 2 {
        let recording = aegis::recording::read(&dir.join(format!("logs/run{run}"))).expect("readable");
        for (number, step) in recording.trajectory.steps.iter().enumerate() {
            assert_eq!(step.step as usize, number, "step numbers have no hole");
            assert_eq!(step.attempts.len(), 1, "step {number} of run {run}: two calls under one number");
            let request: serde_json::Value = serde_json::from_slice(&step.request).expect("the request is whole");
            let asked = request["messages"][0]["content"].as_str().expect("words");
            let nonce = asked.split_inclusive('.').next().expect("the nonce").to_owned();
            match step.attempts[0].cause {
                Some(CloseCause::Complete) => {
                    assert!(!step.attempts[0].reply.is_empty(), "{nonce}: the reply is recorded");
                    recorded.insert(nonce);
                }
                _ => open += 1,
            }
        }
    }
    let lost: Vec<_> = acknowledged.difference(&recorded).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
    assert!(open <= kills * CLIENTS, "{open} interrupted exchanges");
}

/// F4, invariant 6: on a full disk no answer is completed without its record; earlier records stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_completes_no_answer_without_its_record() {
    let dir = tempfile::tempdir().expect("a directory");
    // A limit on the size of files fails writes as a full disk does, and needs no privilege.
    let full = "trap '' XFSZ; ulimit -f 60";
    std::fs::write(dir.path().join("aegis.toml"), "[limits]\nroom_wait_s = 0\n").expect("written");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs", "--run", "r", "--quiet"];
    let served = Served::start_after(full, dir.path(), &arguments).await;
    let mut answered = BTreeSet::new();
    let mut refused = 0;
    for number in 0..400 {
        let nonce = format!("Say {number}: {}", "word ".repeat(200 + number));
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", "/v1/chat/completions", &chat(&nonce), "Connection: close\r\n")).await;
        let reply = client.reply().await;
        match reply.status {
            200 if reply.whole => drop(answered.insert(nonce)),
            503 => {
                reply.assert_own_error(503, "recording_failed");
                assert_eq!(reply.header("x-should-retry").as_deref(), Some("true"), "somebody may clear the disk");
                refused += 1;
            }
            _ => {}
        }
        if refused > 5 {
            break;
        }
    }
    assert!(refused > 5 && answered.len() > 5, "{} answered, {refused} refused", answered.len());
    let recording = aegis::recording::read(&dir.path().join("logs/r")).expect("what is there is readable");
    let complete = |nonce: &String| {
        recording.trajectory.steps.iter().any(|step| {
            let whole = step.attempts[0].cause == Some(CloseCause::Complete);
            whole && String::from_utf8_lossy(&step.request).contains(nonce.as_str())
        })
    };
    let lost: Vec<_> = answered.iter().filter(|nonce| !complete(nonce)).collect();
    assert!(lost.is_empty(), "{} answers are not recorded", lost.len());
    let last = answered.len();
    assert_eq!(served.stop().await, Some(5), "after {last} answers");
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_writer_is_refused_and_told_who_holds_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--upstream", "simulator", "--log-dir", "logs", "--run", "held"];
    let first = Served::start(dir.path(), &arguments).await;
    let mut client = Client::connect(first.address).await;
    client.send(&request("POST", "/v1/chat/completions", &chat("hi"), "Connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
    let holder = format!("process {}", first.id());
    let run = ["run", "--upstream", "simulator", "--log-dir", "logs", "--run", "held", "--", "true"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--upstream", "simulator", "--log-dir", "logs", "--run", "held"];
    for second in [&run[..], &serve] {
        let (code, _, talk) = verb(dir.path(), second).await;
        assert_eq!(code, Some(2), "{second:?}: {talk}");
        assert!(talk.contains(&holder), "{second:?}: {talk}");
    }
    // The holder goes on undisturbed.
    let mut client = Client::connect(first.address).await;
    client.send(&request("POST", "/v1/chat/completions", &chat("hi again"), "Connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
    assert_eq!(first.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_at_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let taken = port.local_addr().expect("address").to_string();
    std::fs::write(dir.path().join("file"), "").expect("written");
    std::fs::write(dir.path().join("bad.toml"), "listten = 1\n").expect("written");
    let simulator = ["serve", "--upstream", "simulator"];
    for (arguments, said) in [
        (&["--listen", &taken, "--log-dir", "logs"][..], "another program holds the port"),
        (&["--listen", "127.0.0.1:0", "--log-dir", "file/logs", "--run", "r"], "file/logs"),
        (&["--listen", "somewhere", "--log-dir", "logs"], "expected HOST:PORT"),
        (&["--listen", "127.0.0.1:0", "--run", "../up"], "run id"),
        (&["--listen", "127.0.0.1:0", "--config", "bad.toml"], "bad.toml:1:1"),
        (&["--listen", "127.0.0.1:0", "--config", "missing.toml"], "missing.toml"),
        (&["--listen", "127.0.0.1:0", "--plan", "missing-plan.toml"], "missing-plan.toml"),
    ] {
        let (code, _, talk) = verb(dir.path(), &[&simulator[..], arguments].concat()).await;
        assert_eq!(code, Some(2), "{arguments:?}: {talk}");
        assert!(talk.contains(said), "{arguments:?}: {talk}");
    }
    // S3: a proxy that is its own upstream would ask itself for ever.
    let itself = format!("http://{}/v1", Path::new(&taken).display());
    drop(port);
    let (code, _, talk) =
        verb(dir.path(), &["serve", "--listen", &taken, "--upstream", &itself, "--log-dir", "logs"]).await;
    assert_eq!(code, Some(2), "{talk}");
}
