//! Equal questions at once, of which some are refused and tried again: each try is one of the question that failed, and a
//! replay gives each client what it got.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aegis::{
    proxy::{
        RunSetup,
        upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream},
    },
    recording::Recording,
    replay::{Cassette, Replayed},
    trajectory::RunId,
};
use hyper::{Request, Response, StatusCode, header};
use tokio::sync::Semaphore;

use crate::{
    lab::{Lab, Setup, chat, request},
    scripted::chat_reply,
};

/// Answers each request, in the order of their arrival, as its script says; with gates, when its gate is opened.
#[derive(Debug)]
struct Moody {
    script: Vec<u16>,
    gates: Vec<Semaphore>,
    came: AtomicUsize,
}

impl Moody {
    fn new(script: Vec<u16>, gated: usize) -> Arc<Self> {
        let gates = (0..gated).map(|_| Semaphore::new(0)).collect();
        Arc::new(Self { script, gates, came: AtomicUsize::new(0) })
    }

    async fn has_seen(&self, requests: usize) {
        while self.came.load(Ordering::SeqCst) < requests {
            tokio::task::yield_now().await;
        }
    }
}

impl Upstream for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    fn send(&self, _: Request<SentBody>) -> BackendAnswering<'_> {
        let number = self.came.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match self.gates.get(number) {
                Some(gate) => drop(gate.acquire().await),
                None => tokio::time::sleep(Duration::from_micros(number as u64 * 377 % 1500)).await,
            }
            let status = self.script.get(number).copied().unwrap_or(200);
            let body =
                if status == 200 { chat_reply(&format!("answer {number}")) } else { "{\"error\":{}}".to_owned() };
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([body.into()])));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}

/// A question, tried `said` times before; the headers of a client that counts, or of one that does not.
async fn ask(lab: &Lab, path: &str, said: u32, counts: bool) -> (u16, String) {
    let mut client = lab.client().await;
    let count = if counts { format!("x-stainless-retry-count: {said}\r\n") } else { String::new() };
    client.send(&request("POST", path, &chat("the same"), &format!("{count}Connection: close\r\n"))).await;
    let reply = client.reply().await;
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

async fn replaying(lab: &Lab) -> (Lab, Arc<Replayed>) {
    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"))));
    let again = Lab::over(Moody::new(vec![418; 100], 0), Setup::default()).await;
    let upstream = Some(Arc::clone(&replayed) as Arc<dyn Upstream>);
    let id = RunId::parse("r0").expect("an id");
    again.proxy.runs.open(&id, RunSetup { upstream, ..RunSetup::default() }).await.expect("opens");
    (again, replayed)
}

/// The statuses of each step's attempts.
fn statuses(recording: &Recording) -> Vec<Vec<u16>> {
    let attempts = |step: &aegis::trajectory::Step| step.attempts.iter().filter_map(|attempt| attempt.status).collect();
    recording.trajectory.steps.iter().map(attempts).collect()
}

/// Of a client that does not count only a pause tells a retry from a third call that asks the same.
async fn paused(counts: bool) {
    if !counts {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// The same bytes to another API ask something else, whatever became of the first call.
#[tokio::test(flavor = "multi_thread")]
async fn equal_bytes_on_two_paths_are_two_calls() {
    let upstream = Moody::new(vec![503, 200, 200], 0);
    let mut lab = Lab::over(Arc::clone(&upstream) as Arc<dyn Upstream>, Setup::default()).await;
    for path in ["chat/completions", "completions", "chat/completions?api-version=2"] {
        ask(&lab, &format!("/a/solver/v1/{path}"), 0, false).await;
    }
    let recording = lab.sealed("r0").await;
    assert_eq!(statuses(&recording), [vec![503, 200], vec![200]]);
    assert_eq!(recording.trajectory.steps[1].path, "/v1/completions");
    // A replay tells them apart as well.
    let (again, replayed) = replaying(&lab).await;
    for (path, status) in [("completions", 200), ("chat/completions", 503), ("chat/completions", 200)] {
        assert_eq!(ask(&again, &format!("/a/solver/v1/{path}"), 0, false).await.0, status, "{path}");
    }
    drop(replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_one_of_the_step_that_failed() {
    for path in ["/a/solver/v1/chat/completions", "/r/r0/v1/chat/completions"] {
        for counts in [true, false] {
            // Which of the two fails, and whether it ends before the other.
            for (failing, first) in [(0, true), (0, false), (1, true), (1, false)] {
                let name = format!("{path}, counts {counts}, {failing} fails, first {first}");
                let script = if failing == 0 { vec![503, 200, 200] } else { vec![200, 503, 200] };
                let upstream = Moody::new(script, 2);
                let mut lab = Lab::over(Arc::clone(&upstream) as Arc<dyn Upstream>, Setup::default()).await;
                let run = async |lab: &Lab| {
                    let one = ask(lab, path, 0, counts);
                    let other = async {
                        upstream.has_seen(1).await;
                        ask(lab, path, 0, counts).await
                    };
                    let gates = async {
                        upstream.has_seen(2).await;
                        let order = if (failing == 0) == first { [0, 1] } else { [1, 0] };
                        for gate in order {
                            upstream.gates[gate].add_permits(1);
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                    };
                    let (one, other, ()) = tokio::join!(one, other, gates);
                    paused(counts).await;
                    let again = ask(lab, path, 1, counts).await;
                    [one, other, again]
                };
                let then = run(&lab).await;
                let recording = lab.sealed("r0").await;
                let mut expected = vec![vec![200], vec![200]];
                expected[failing].insert(0, 503);
                assert_eq!(statuses(&recording), expected, "{name}");

                let (mut again, replayed) = replaying(&lab).await;
                upstream.came.store(2, Ordering::SeqCst);
                let later = async {
                    while replayed.report().served.is_empty() {
                        tokio::task::yield_now().await;
                    }
                    ask(&again, path, 0, counts).await
                };
                let (one, other) = tokio::join!(ask(&again, path, 0, counts), later);
                paused(counts).await;
                let now = [one, other, ask(&again, path, 1, counts).await];
                assert_eq!(now, then, "{name}");
                let report = replayed.report();
                assert!(report.missed.is_empty() && report.unused.is_empty(), "{name}: {report:?}");
                again.sealed("r0").await;
            }
        }
    }
}

/// Clients that ask the same at times of their own, each until it is answered.
async fn crowd(lab: &Lab, seed: u64, counts: bool) -> Vec<Vec<u16>> {
    let clients = (0..5_u64).map(|client| async move {
        let pause = |said: u64| Duration::from_micros((seed * 7919 + client * 104_729 + said * 1299) % 3000);
        let mut told = Vec::new();
        for said in 0..8_u64 {
            tokio::time::sleep(pause(said)).await;
            let (status, _) =
                ask(lab, "/a/solver/v1/chat/completions", u32::try_from(said).expect("small"), counts).await;
            told.push(status);
            if status == 200 {
                break;
            }
        }
        told
    });
    // That the clients try again is seen before the others come.
    for said in 0..2 {
        let mut client = lab.client().await;
        let count = if counts { format!("x-stainless-retry-count: {said}\r\n") } else { String::new() };
        let path = "/a/solver/v1/chat/completions";
        client.send(&request("POST", path, &chat("first"), &format!("{count}Connection: close\r\n"))).await;
        assert_eq!(client.reply().await.status, [503, 200][said]);
    }
    let mut told = futures_of(clients).await;
    told.sort();
    told
}

async fn futures_of<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = all.map(|future| Box::pin(future)).collect();
    let mut done: Vec<Option<T>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in pending.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_equal_questions_replays_exactly() {
    for seed in 0..24_u64 {
        for counts in [true, false] {
            let script = (0..40)
                .map(|n| if n == 0 || ((seed * 31 + n * 17) % 5 < 2 && (2..12).contains(&n)) { 503 } else { 200 })
                .collect();
            let mut lab = Lab::over(Moody::new(script, 0), Setup::default()).await;
            let then = crowd(&lab, seed, counts).await;
            let recording = lab.sealed("r0").await;
            let told = statuses(&recording)[1..].to_vec();
            let name = format!("seed {seed}, counts {counts}: {told:?}");
            let answered_in_the_midst = |step: &Vec<u16>| step.iter().rev().skip(1).any(|status| *status == 200);
            assert!(!told.iter().any(answered_in_the_midst), "{name}");
            if counts {
                // Each client is a step, with its own tries.
                let mut steps = told.clone();
                steps.sort();
                assert_eq!(steps, then, "{name}");
            }
            let (mut again, replayed) = replaying(&lab).await;
            let now = crowd(&again, seed, counts).await;
            let report = replayed.report();
            assert!(report.missed.is_empty() && report.unused.is_empty(), "{name}: {report:?}");
            if counts {
                assert_eq!(now, then, "{name}");
            }
            again.sealed("r0").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_quotes_the_answers_says_who_got_which() {
    let quoting = chat("first answer 1, then answer 0");
    let paths = ["/a/solver/v1/chat/completions", "/r/r0/v1/chat/completions"];
    for (path, quotes) in paths.into_iter().flat_map(|path| [(path, true), (path, false)]) {
        let upstream = Moody::new(vec![200; 3], 2);
        let mut lab = Lab::over(Arc::clone(&upstream) as Arc<dyn Upstream>, Setup::default()).await;
        let gates = async {
            upstream.has_seen(2).await;
            upstream.gates.iter().for_each(|gate| gate.add_permits(1));
        };
        let (one, other, ()) = tokio::join!(ask(&lab, path, 0, false), ask(&lab, path, 0, false), gates);
        if quotes {
            assert_eq!(lab.post(path, &quoting).await.status, 200);
        }
        lab.sealed("r0").await;

        let (again, replayed) = replaying(&lab).await;
        // The first to ask is given what is quoted first, whoever was answered first then.
        let now = [ask(&again, path, 0, false).await.1, ask(&again, path, 0, false).await.1];
        let mut then = [one.1, other.1];
        then.sort();
        if quotes {
            then.reverse();
            assert!(now[0].contains("answer 1"), "{now:?}");
            // The second was quicker than the first: the miss says so.
            let (other, _) = replaying(&lab).await;
            let overtaken = other.post(path, &chat("first answer 0, then answer 1")).await;
            overtaken.assert_own_error(409, "not_recorded");
            assert!(overtaken.text().contains("got each other's answers"), "{}", overtaken.text());
            assert_eq!(again.post(path, &quoting).await.status, 200);
        }
        assert_eq!(now, then);
        let report = replayed.report();
        assert!(report.missed.is_empty() && report.unused.is_empty(), "{report:?}");
        assert_eq!(report.unsure, if quotes { vec![] } else { vec![0, 1] });
    }
}
