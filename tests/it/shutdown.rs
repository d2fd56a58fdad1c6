//! F15, F16: the end of the program, and a defect in one exchange.

use std::sync::Arc;

use aegis::{
    manipulator::{Context, Manipulator, ManipulatorError},
    plan::{Injection, Operator, Plan},
    surface::{Answer, Conversation},
    trajectory::{CloseCause, Side},
};
use nix::sys::signal::Signal;
use tokio::task::JoinSet;

use crate::{
    lab::{Client, Lab, Setup, chat, request},
    program::Served,
    scripted::{Act, Scripted, chat_reply, chunk, delta, finish, http, last_chunk, stream_head},
};

const STREAMS: usize = 100;

/// Streams that end only when the test lets them.
async fn gated() -> Scripted {
    let mut script = vec![stream_head(), chunk(delta("first")), Act::Gate];
    script.extend([chunk(finish("stop")), chunk("data: [DONE]\n\n"), last_chunk()]);
    Scripted::always(script).await
}

async fn streaming(served: &Served) -> Vec<Client> {
    let mut clients = JoinSet::new();
    for number in 0..STREAMS {
        let address = served.address;
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            client.post("/v1/chat/completions", &chat(&format!("call {number}"))).await;
            assert!(client.read_until(b"first").await, "the stream begins");
            client
        });
    }
    clients.join_all().await
}

/// Waits until the server says that it is stopping.
async fn closed(served: &Served) {
    let start = std::time::Instant::now();
    loop {
        let mut client = Client::connect(served.address).await;
        client.send(&request("GET", "/readyz", b"", "Connection: close\r\n")).await;
        let reply = client.reply().await;
        if reply.header("x-aegis-error").as_deref() == Some("stopping") {
            return assert_eq!(reply.status, 503);
        }
        assert!(start.elapsed() < crate::lab::DEADLINE, "new connections are still served: {}", served.said());
    }
}

/// F15.
#[tokio::test(flavor = "multi_thread")]
async fn streams_under_way_end_whole_when_the_program_is_told_to_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = gated().await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--run", "r"];
    let mut served = Served::start(dir.path(), &arguments).await;
    let clients = streaming(&served).await;
    // An idle connection that is kept open does not hold up the end.
    let idle = Client::connect(served.address).await;
    served.signal(Signal::SIGTERM);
    closed(&served).await;
    upstream.open_gate();
    for mut client in clients {
        let reply = client.reply().await;
        assert!(reply.whole && reply.text().ends_with("data: [DONE]\n\n"), "{}", reply.text());
    }
    assert_eq!(served.ended().await.code(), Some(0), "{}", served.said());
    drop(idle);
    let recording = aegis::recording::read(&dir.path().join("logs/r")).expect("a recording");
    assert!(!recording.sealed, "its programs may go on with it");
    let whole = recording.trajectory.steps.iter().filter(|step| step.attempts[0].cause == Some(CloseCause::Complete));
    assert_eq!(whole.count(), STREAMS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_program_at_once() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let dir = tempfile::tempdir().expect("a directory");
        let upstream = gated().await;
        let url = format!("http://{}", upstream.address);
        let arguments = ["--upstream", &url, "--log-dir", "logs", "--run", "r"];
        let mut served = Served::start(dir.path(), &arguments).await;
        let clients = streaming(&served).await;
        served.signal(signal);
        closed(&served).await;
        served.signal(signal);
        assert_eq!(served.ended().await.code(), Some(code), "{}", served.said());
        for mut client in clients {
            assert!(!client.reply().await.whole, "a stream that was cut looks whole");
        }
        let recording = aegis::recording::read(&dir.path().join("logs/r")).expect("the log is readable");
        assert!(!recording.sealed);
        assert_eq!(recording.trajectory.steps.len(), STREAMS);
        let complete = |cause| cause == Some(CloseCause::Complete) || cause == Some(CloseCause::ClientGone);
        assert!(!recording.trajectory.steps.iter().any(|step| complete(step.attempts[0].cause)), "nobody left");
    }
}

/// What outlasts the drain is cut, and recorded as what it is.
#[tokio::test(flavor = "multi_thread")]
async fn what_outlasts_the_drain_is_cut_and_said_so() {
    let upstream = gated().await;
    let mut setup = Setup::default();
    setup.limits.drain = std::time::Duration::from_millis(300);
    let mut lab = Lab::before(upstream.address, setup).await;
    let mut client = lab.client().await;
    client.post("/v1/chat/completions", &chat("x")).await;
    assert!(client.read_until(b"first").await);
    assert_eq!(lab.drain().await, 1);
    assert!(!client.reply().await.whole);
    assert_eq!(lab.causes("r0"), [Some(CloseCause::Stopped)]);
}

/// A manipulator with a defect.
#[derive(Debug)]
struct Defect;

impl Manipulator for Defect {
    fn edit_request(&self, _: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        panic!("a defect, made for this test")
    }

    fn edit_answer(&self, _: &mut Answer, _: &Context<'_>) -> Result<(), ManipulatorError> {
        panic!("a defect, made for this test")
    }

    fn explain(&self) -> String {
        "panics".to_owned()
    }
}

/// A manipulator at work for as long as the test wants.
#[derive(Debug)]
struct Held {
    begun: tokio::sync::mpsc::UnboundedSender<()>,
    end: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Manipulator for Held {
    fn edit_answer(&self, _: &mut Answer, _: &Context<'_>) -> Result<(), ManipulatorError> {
        self.begun.send(()).expect("the test waits");
        // Until the test drops the other end.
        let _ = self.end.lock().expect("one at a time").recv();
        Err(ManipulatorError::Unchanged)
    }

    fn explain(&self) -> String {
        "waits".to_owned()
    }
}

/// Two agents get large replies, and the edit of the solver's is under way.
async fn with_an_edit_under_way() -> (Lab, Client, std::sync::mpsc::Sender<()>) {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (release, end) = std::sync::mpsc::channel();
    let large = chat_reply(&"a sum of 42 ".repeat(100_000));
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &large)]).await;
    let plan = plan_of(Side::Response, Arc::new(Held { begun, end: std::sync::Mutex::new(end) }));
    let mut setup = Setup { plan: Some(Arc::new(plan)), ..Setup::default() };
    setup.limits.drain = std::time::Duration::from_millis(300);
    let lab = Lab::before(upstream.address, setup).await;
    let mut client = lab.client().await;
    client.post("/a/solver/v1/chat/completions", &chat("x")).await;
    begins.recv().await.expect("the edit begins");
    (lab, client, release)
}

/// It is left, its call is cut, and nothing of it is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_an_edit() {
    let (mut lab, mut client, release) = with_an_edit_under_way().await;
    assert_eq!(lab.drain().await, 1, "with the edit under way");
    lab.proxy.runs.close_all().into_iter().for_each(|run| drop(lab.proxy.runs.put_down(run).expect("put down")));
    drop(release);
    let got = client.reply().await.text();
    assert!(!got.contains("a sum of"), "{got}");
    assert_eq!(lab.causes("r0"), [None], "what ends after the stop says nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_edit_keeps_no_other_large_reply() {
    let (lab, mut client, release) = with_an_edit_under_way().await;
    let other = lab.post("/a/critic/v1/chat/completions", &chat("y")).await;
    assert!(other.whole && other.text().contains("a sum of 42 a sum of"), "{}", other.head);
    assert_eq!(lab.causes("r0"), [None, Some(CloseCause::Complete)]);
    drop(release);
    assert_eq!(client.reply().await.status, 200);
}

fn defect(side: Side) -> Plan {
    plan_of(side, Arc::new(Defect))
}

fn plan_of(side: Side, manipulator: Arc<dyn Manipulator>) -> Plan {
    let text = "format = 1\nseed = 1\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\nmanipulator.end_early = {}\n";
    let mut plan = aegis::plan::parse(text, "plan.toml").expect("a plan");
    let operator = Operator::Manipulator { side, manipulator };
    plan.injections = plan.injections.into_iter().map(|old| Injection { operator: operator.clone(), ..old }).collect();
    plan
}

/// F16.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_one_exchange_and_no_other() {
    for side in [Side::Request, Side::Response] {
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("ok"))]).await;
        let mut lab =
            Lab::before(upstream.address, Setup { plan: Some(Arc::new(defect(side))), ..Setup::default() }).await;
        let mut others = JoinSet::new();
        for number in 0..20 {
            let (address, agent) = (lab.address, if number % 4 == 0 { "solver" } else { "critic" });
            others.spawn(async move {
                let mut client = Client::connect(address).await;
                // Two calls on one connection: it outlives the defect of its first.
                for call in 0..2 {
                    client.seen.clear();
                    let (path, body) = (format!("/a/{agent}/v1/chat/completions"), chat(&format!("{number} {call}")));
                    client.send(&request("POST", &path, &body, "")).await;
                    assert!(client.read_until(b"}}").await, "{agent}: {}", String::from_utf8_lossy(&client.seen));
                    let reply = crate::lab::Reply::parse(&client.seen);
                    match agent {
                        "solver" => reply.assert_own_error(502, "internal"),
                        _ => assert_eq!(reply.text(), chat_reply("ok")),
                    }
                }
            });
        }
        while let Some(client) = others.join_next().await {
            client.expect("the client is content");
        }
        let recording = lab.sealed("r0").await;
        assert_eq!(recording.trajectory.steps.len(), 40);
        for step in &recording.trajectory.steps {
            let expected =
                if step.attribution.agent.as_str() == "solver" { CloseCause::Internal } else { CloseCause::Complete };
            assert_eq!(step.attempts[0].cause, Some(expected), "{side:?}");
        }
        assert_eq!(recording.label, None, "{side:?}");
    }
}

#[tokio::test]
async fn of_many_runs_that_are_left_open_the_first_are_named_and_the_rest_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut served = Served::start(dir.path(), &["--upstream", "simulator", "--log-dir", "logs"]).await;
    for run in 0..23 {
        let path = format!("/r/run-{run:02}/v1/chat/completions");
        assert_eq!(crate::tokens::send(&served, "POST", &path, "", &chat("Hi?")).await.status, 200);
    }
    served.signal(Signal::SIGTERM);
    assert_eq!(served.ended().await.code(), Some(0), "{}", served.said());
    let talk = served.said();
    let left: Vec<&str> = talk.lines().filter(|line| line.starts_with("left open ")).collect();
    assert_eq!(left.len(), 21, "{talk}");
    assert!(left[19].starts_with("left open logs/run-19  1 step  "), "{talk}");
    assert_eq!(left[20], "left open 3 more  aegis runs logs");
}
