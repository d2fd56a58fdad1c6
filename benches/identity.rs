//! What telling agents costs: identity's share of an exchange's CPU, at 2 and 32 kB.
//!
//!     cargo bench --bench identity
//!
//! The exchange is the whole proxy in this process, over real sockets, recording on, before an upstream that answers at
//! once; its CPU is the process's without the client's thread. Identity's own cost is measured on the same requests, in
//! a run that knows them as a run would: reading the outline, placing the request in a run, naming the agent, taking in
//! the answer. Three kinds of request: one that names run and agent, one that names its run (as below `aegis run`), one
//! that names nothing (lineage).
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a measurement that cannot go on is to fail, and prints"
)]

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use aegis::{
    identity::{Envelope, Identity, Speakers},
    proxy::{
        Limits, Proxy, RunTemplate, Runs, serve,
        upstream::{Answering, ReceivedBody, SentBody, Upstream},
    },
    recording::Settings,
    surface::{OpenaiChat, Surface},
    trajectory::RunId,
};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;

/// Requests of one measurement.
const ROUNDS: usize = 4000;
/// Words of one message and of a reply: about a kilobyte.
const WORDS: usize = 160;

/// Answers each request with the same words.
#[derive(Debug)]
struct Fixed(String);

impl Upstream for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn send(&self, request: Request<SentBody>) -> Answering<'_> {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([self.0.clone().into()])));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}

fn words(seed: usize) -> String {
    let word =
        |at: usize| ["tide", "moon", "water", "harbour", "rises", "sinks", "slowly", "again"][(seed * 7 + at * at) % 8];
    (0..WORDS).fold(String::new(), |text, at| text + word(at) + &((seed + at) % 10).to_string() + " ")
}

fn reply() -> String {
    let message = json!({"role": "assistant", "content": words(99)});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}})
    .to_string()
}

/// The body of round `round`: a conversation of about `size` bytes whose last message is new.
fn body(size: usize, round: usize) -> String {
    let mut messages = vec![json!({"role": "system", "content": format!("You are the writer. {}", words(1))})];
    for turn in 2..(size / 1024).max(2) {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({"role": role, "content": words(turn)}));
    }
    messages.push(json!({"role": "user", "content": format!("{round} go on")}));
    json!({"model": "m", "messages": messages}).to_string()
}

fn micros(clock: ClockId) -> f64 {
    let time = Duration::from(clock_gettime(clock).expect("a clock"));
    time.as_secs_f64() * 1e6
}

/// What a request says of itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Agent,
    Run,
    Nothing,
}

/// Each kind, with its path and what it is called here.
const KINDS: [(Names, &str, &str); 3] = [
    (Names::Agent, "/r/bench/a/writer", "run, agent"),
    (Names::Run, "/r/bench", "run"),
    (Names::Nothing, "", "nothing"),
];

/// CPU of one exchange in microseconds, without the client's.
fn exchange(address: SocketAddr, prefix: &str, size: usize, rounds: usize) -> f64 {
    let requests: Vec<Vec<u8>> = (0..rounds)
        .map(|round| {
            let body = body(size, round);
            let head = format!(
                "POST {prefix}/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            [head.into_bytes(), body.into_bytes()].concat()
        })
        .collect();
    let mut stream = TcpStream::connect(address).expect("the proxy listens");
    stream.set_nodelay(true).expect("a socket");
    let (process, own) = (ClockId::CLOCK_PROCESS_CPUTIME_ID, ClockId::CLOCK_THREAD_CPUTIME_ID);
    let before = micros(process) - micros(own);
    let mut buffer = vec![0; 1 << 16];
    for request in &requests {
        stream.write_all(request).expect("sent");
        let mut seen = 0;
        let mut whole = usize::MAX;
        while seen < whole {
            let count = stream.read(&mut buffer[seen..]).expect("a reply");
            assert!(count > 0, "the proxy closed");
            seen += count;
            if whole == usize::MAX {
                let text = String::from_utf8_lossy(&buffer[..seen]).to_lowercase();
                if let Some(end) = text.find("\r\n\r\n") {
                    assert!(text.starts_with("http/1.1 200"), "{text}");
                    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
                    whole = end + 4 + length.and_then(|length| length.parse::<usize>().ok()).expect("a length");
                }
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousand rounds")]
    let rounds = rounds as f64;
    (micros(process) - micros(own) - before) / rounds
}

fn rules(names: Names) -> Identity {
    Identity { lineage: (names == Names::Nothing).then(Arc::default), ..Identity::default() }
}

/// CPU of identity's part of one exchange: outline, run and name, taking in the answer. An agent that is named needs
/// no outline; its answers are taken in all the same.
fn identity(names: Names, size: usize, rounds: usize) -> [f64; 3] {
    let (rules, mut speakers) = (rules(names), Speakers::default());
    let envelope = Envelope {
        path_agent: (names == Names::Agent).then_some("writer"),
        path_run: None,
        header_agent: None,
        header_run: None,
        key: None,
    };
    let answer = reply();
    let mut parts = [0.0; 3];
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    for round in 0..rounds {
        let body = body(size, round);
        let hash = u128::try_from(round).expect("small");
        let mut marks = [micros(clock); 4];
        let declared = rules.declared(&envelope).expect("a name");
        let outline = declared.is_none().then(|| OpenaiChat.outline(body.as_bytes()).expect("a request"));
        marks[1] = micros(clock);
        let placed = rules.place(outline.as_ref(), hash, || RunId::parse("bench").expect("an id"));
        let told = speakers.attribute(&rules, outline.as_ref(), declared, hash, false);
        if let Some((_, _, track)) = &placed {
            track.opened(u32::try_from(round).expect("small"), 0, &told);
        }
        marks[2] = micros(clock);
        let heard = OpenaiChat.read_reply(answer.as_bytes()).expect("a reply");
        speakers.ended(&told, hash, Some(&heard), false);
        if let Some((_, _, track)) = &placed {
            track.ended(Some(&heard), false);
        }
        marks[3] = micros(clock);
        parts.iter_mut().zip(marks.windows(2)).for_each(|(part, pair)| *part += pair[1] - pair[0]);
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousand rounds")]
    let rounds = rounds as f64;
    parts.map(|part| part / rounds)
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    println!("names        size   exchange   outline    name   answer   identity/exchange   (CPU, us)");
    for (names, prefix, called) in KINDS {
        for size in [2 << 10, 32 << 10] {
            let upstream: Arc<dyn Upstream> = Arc::new(Fixed(reply()));
            let template = RunTemplate {
                log_dir: directory.path().join(format!("{called} {size}")),
                recording: Settings::default(),
                plan: None,
                upstream: "fixed".to_owned(),
            };
            let proxy = Arc::new(Proxy {
                identity: rules(names),
                upstream,
                runs: Runs::new(template),
                default_run: None,
                routes: Vec::new(),
                allowed_hosts: Vec::new(),
                limits: Limits::default(),
            });
            let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
            let address = listener.local_addr().expect("an address");
            let server = runtime.spawn(async move { serve(proxy, listener, std::future::pending()).await });
            exchange(address, prefix, size, ROUNDS / 10);
            let whole = exchange(address, prefix, size, ROUNDS);
            server.abort();
            let [outline, name, answer] = identity(names, size, ROUNDS);
            let share = (outline + name + answer) / whole * 100.0;
            println!(
                "{called:<11} {size:5}   {whole:8.1}   {outline:7.1}   {name:5.1}   {answer:6.1}   {share:15.1} %"
            );
        }
    }
}
