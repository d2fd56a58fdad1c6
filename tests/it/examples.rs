//! The example systems through the simulator, over HTTP: every task solved; planted errors propagate, are caught, are
//! healed.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use aegis::{
    example::{ApiClient, Example, ExampleError},
    proxy::upstream::Upstream as _,
    simulator::Simulator,
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, service::service_fn};

/// What becomes of a reply: its number and text, then the text that is delivered.
type Alter = dyn Fn(usize, &str) -> String + Send + Sync;

/// The simulator behind a free port; replies may be altered on their way, or refused.
struct Backend {
    url: String,
    calls: Arc<AtomicUsize>,
}

impl Backend {
    async fn start(seed: u64, refusals: usize, alter: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/r/run1/v1", listener.local_addr().expect("an address"));
        let calls = Arc::new(AtomicUsize::new(0));
        let (simulator, alter): (_, Arc<Alter>) = (Arc::new(Simulator::new(seed)), Arc::new(alter));
        let counted = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (simulator, alter, counted) = (Arc::clone(&simulator), Arc::clone(&alter), Arc::clone(&counted));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (simulator, alter) = (Arc::clone(&simulator), Arc::clone(&alter));
                    let call = counted.fetch_add(1, Ordering::SeqCst);
                    async move {
                        let refused = call < refusals;
                        Ok::<_, Infallible>(if refused {
                            refusal()
                        } else {
                            reply(&simulator, request, call, &*alter).await
                        })
                    }
                });
                let stream = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        });
        Self { url, calls }
    }

    /// The answer and the transcript.
    async fn run(&self, example: Example, task: &str, stream: bool) -> Result<(String, String), ExampleError> {
        let client = ApiClient::new(&self.url, Some("key".to_owned()), "m".to_owned(), stream)?;
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        example.run(&client, task, &mut out, &mut talk).await?;
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let answer = text(out).strip_prefix("ANSWER: ").expect("an answer line").trim().to_owned();
        Ok((answer, text(talk)))
    }
}

fn refusal() -> Response<Full<Bytes>> {
    let refusal = Response::builder().status(StatusCode::TOO_MANY_REQUESTS).header("retry-after-ms", "1");
    refusal.body(Full::default()).expect("a response")
}

async fn reply(simulator: &Simulator, request: Request<Incoming>, call: usize, alter: &Alter) -> Response<Full<Bytes>> {
    let response = simulator.send(request.map(|body| Either::Right(body.into()))).await.expect("a reply");
    let (mut head, body) = response.into_parts();
    let mut body = body.collect().await.expect("a body").to_bytes();
    if let Ok(mut whole) = serde_json::from_slice::<serde_json::Value>(&body) {
        let content = &mut whole["choices"][0]["message"]["content"];
        *content = alter(call, content.as_str().expect("text")).into();
        body = Bytes::from(whole.to_string());
        head.headers.remove("content-length");
    }
    Response::from_parts(head, Full::new(body))
}

struct Task {
    question: String,
    answer: String,
}

fn tasks() -> Vec<Task> {
    let read = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a task");
        let text = |key: &str| value[key].as_str().expect("text").to_owned();
        assert!(!text("id").is_empty());
        Task { question: text("question"), answer: text("answer") }
    };
    include_str!("../../examples/tasks.jsonl").lines().map(read).collect()
}

/// Adds seven to the number after the last `ANSWER: ` of a reply.
fn corrupted(text: &str) -> String {
    let (before, value) = text.rsplit_once("ANSWER: ").expect("an answer line");
    let value: f64 = value.trim().parse().expect("a number");
    format!("{before}ANSWER: {}", value + 7.0)
}

/// The call's place within its run: a run of this system makes so many calls while nothing is revised.
fn within(call: usize, calls: usize) -> usize {
    call % calls
}

#[tokio::test]
async fn both_solve_every_task_streamed_and_whole() {
    let tasks = tasks();
    assert!(tasks.len() >= 24);
    let backend = Backend::start(0, 0, |_, text| text.to_owned()).await;
    for (number, task) in tasks.iter().enumerate() {
        for (example, calls) in [(Example::Pipeline, 3), (Example::Debate, 7)] {
            let before = backend.calls.load(Ordering::SeqCst);
            let (answer, talk) = backend.run(example, &task.question, number % 2 == 0).await.expect("an answer");
            assert_eq!(answer, task.answer, "{talk}");
            assert_eq!(backend.calls.load(Ordering::SeqCst) - before, calls, "{talk}");
        }
    }
}

#[tokio::test]
async fn a_corrupted_solver_is_sometimes_caught_and_sometimes_passed_on() {
    let (mut caught, mut passed) = (0, 0);
    for task in tasks() {
        let corrupt = |call, text: &str| if call == 1 { corrupted(text) } else { text.to_owned() };
        let backend = Backend::start(0, 0, corrupt).await;
        let (answer, talk) = backend.run(Example::Pipeline, &task.question, false).await.expect("an answer");
        let wrong = task.answer.parse::<f64>().expect("a number") + 7.0;
        if answer == task.answer {
            assert!(talk.contains("[critic] REVISE"), "{talk}");
            caught += 1;
        } else {
            assert_eq!(answer, wrong.to_string(), "{talk}");
            passed += 1;
        }
    }
    assert!(caught >= 5 && passed >= 5, "{caught} caught, {passed} passed on");
}

#[tokio::test]
async fn a_corrupted_plan_misleads_the_solver() {
    let task = &tasks()[0].question;
    let mut answers = Vec::new();
    for seed in 0..8 {
        let corrupt = |call, text: &str| if call == 0 { text.replace("by 8", "by 9") } else { text.to_owned() };
        let backend = Backend::start(seed, 0, corrupt).await;
        let (answer, talk) = backend.run(Example::Pipeline, task, false).await.expect("an answer");
        assert!(talk.contains("[solver] Step 1: 12 * 9 = 108"), "{talk}");
        answers.push(answer);
    }
    assert!(["84", "96"].iter().all(|either| answers.iter().any(|answer| answer == either)), "{answers:?}");
}

#[tokio::test]
async fn a_corrupted_critic_has_the_last_word() {
    let backend = Backend::start(0, 0, |call, text| if call == 2 { corrupted(text) } else { text.to_owned() }).await;
    let (answer, _) = backend.run(Example::Pipeline, &tasks()[0].question, false).await.expect("an answer");
    assert_eq!(answer, "91");
}

#[tokio::test]
async fn a_debate_heals_one_corrupted_debater_and_not_two() {
    for wrong in 0..3 {
        let one = move |call, text: &str| if within(call, 7) == wrong { corrupted(text) } else { text.to_owned() };
        let two = move |call, text: &str| {
            let hit = within(call, 7) < 3 && within(call, 7) != wrong;
            if hit { corrupted(text) } else { text.to_owned() }
        };
        let (healed, carried) = (Backend::start(0, 0, one).await, Backend::start(0, 0, two).await);
        for task in tasks().iter().step_by(3) {
            let (answer, talk) = healed.run(Example::Debate, &task.question, false).await.expect("an answer");
            assert_eq!(answer, task.answer, "{talk}");
            let (answer, talk) = carried.run(Example::Debate, &task.question, false).await.expect("an answer");
            assert_ne!(answer, task.answer, "{talk}");
        }
    }
}

#[tokio::test]
async fn two_refusals_are_healed_by_retries_and_three_are_not() {
    let task = &tasks()[0];
    for (refusals, calls) in [(2, 5), (3, 3)] {
        let backend = Backend::start(0, refusals, |_, text| text.to_owned()).await;
        let result = backend.run(Example::Pipeline, &task.question, false).await;
        assert_eq!(backend.calls.load(Ordering::SeqCst), calls);
        match result {
            Ok((answer, _)) => assert_eq!((refusals, answer), (2, task.answer.clone())),
            Err(ExampleError::Refused { status, .. }) => assert_eq!((refusals, status.as_u16()), (3, 429)),
            Err(error) => panic!("{error}"),
        }
    }
}
