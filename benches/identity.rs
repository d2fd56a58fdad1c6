//! What telling agents costs: identity's share of an exchange's CPU, at 2 and 32 kB.
//!
//!     cargo bench --bench identity
//!
//! The exchange is the whole proxy in this process, over real sockets, recording on, before an upstream that answers at
//! once; its CPU is the process's without the client's thread. Identity's own cost is measured on the same requests, in
//! a run that knows them as a run would: reading the outline, placing the request in a run, naming the agent, reading
//! and taking in the answer. The record wants the answer's token counts, so that of reading it only what looking for
//! those alone would not cost is identity's. Three kinds of request: one that names run and agent, one that names its
//! run (as below `aegis run`), one that names nothing (lineage). The conversation goes on: each request brings the
//! answer before it and new words, a kilobyte each, behind what is already known.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a measurement that cannot go on is to fail, and prints"
)]

use std::{
    collections::VecDeque,
    hint::black_box,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
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
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response, header};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use twox_hash::XxHash3_64;

/// Requests of one measurement, and how many of them only warm up.
const ROUNDS: usize = 4000;
const WARM_UP: usize = 400;
/// Words of one message and of a reply: about a kilobyte.
const WORDS: usize = 140;

/// Answers one request after the other, each with words of its own.
#[derive(Debug)]
struct Scripted(Vec<Bytes>, AtomicUsize);

impl Upstream for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn send(&self, request: Request<SentBody>) -> Answering<'_> {
        Box::pin(async move {
            let _ = request.into_body().collect().await;
            let reply = self.0[self.1.fetch_add(1, Ordering::Relaxed)].clone();
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([reply])));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}

/// Words that no other seed has in this order, not even five of them: each is drawn by a hash of its place.
fn words(seed: usize) -> String {
    let words = ["tide", "moon", "water", "harbour", "rises", "sinks", "slowly", "again"];
    (0..WORDS).fold(String::new(), |text, at| {
        let end = if at % 14 == 13 { ".\n" } else { " " };
        let [word, high, low, ..] = XxHash3_64::oneshot(&(seed * WORDS + at).to_le_bytes()).to_le_bytes();
        text + words[usize::from(word % 8)] + &(u16::from_le_bytes([low, high]) % 1000).to_string() + end
    })
}

fn answer(round: usize) -> String {
    words(2 * round + 1)
}

fn reply(round: usize) -> String {
    let message = json!({"role": "assistant", "content": answer(round)});
    json!({"id": format!("chatcmpl-{round}"), "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}})
    .to_string()
}

/// The body of round `round`: the last `size` bytes or so of a conversation that goes on; of a short one, what the last
/// answer is handed on in.
fn body(size: usize, round: usize) -> String {
    let mut messages = vec![json!({"role": "system", "content": format!("You are the writer. {}", words(1_000_001))})];
    let earlier = (size / 1024).saturating_sub(3) / 2;
    if earlier > 0 {
        messages.push(json!({"role": "user", "content": words(1_000_003)}));
    }
    for turn in round.saturating_sub(earlier)..round {
        messages.push(json!({"role": "user", "content": words(2 * turn)}));
        messages.push(json!({"role": "assistant", "content": answer(turn)}));
    }
    // What is said now stands in the next rounds word for word.
    let last = if earlier == 0 { format!("{round} {}", answer(round.saturating_sub(1))) } else { words(2 * round) };
    messages.push(json!({"role": "user", "content": last}));
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
fn exchange(address: SocketAddr, prefix: &str, bodies: &[String]) -> f64 {
    let requests: Vec<Vec<u8>> = bodies
        .iter()
        .map(|body| {
            let head = format!(
                "POST {prefix}/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), body.as_bytes()].concat()
        })
        .collect();
    let mut stream = TcpStream::connect(address).expect("the proxy listens");
    stream.set_nodelay(true).expect("a socket");
    let (process, own) = (ClockId::CLOCK_PROCESS_CPUTIME_ID, ClockId::CLOCK_THREAD_CPUTIME_ID);
    let mut before = 0.0;
    let mut buffer = vec![0; 1 << 16];
    for (round, request) in requests.iter().enumerate() {
        if round == WARM_UP {
            before = micros(process) - micros(own);
        }
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
    per_round(micros(process) - micros(own) - before)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand rounds")]
fn per_round(sum: f64) -> f64 {
    sum / (ROUNDS - WARM_UP) as f64
}

fn rules(names: Names) -> Identity {
    Identity { lineage: (names == Names::Nothing).then(Arc::default), ..Identity::default() }
}

/// What identity does for one exchange.
const PARTS: [&str; 4] = ["outline", "name", "reading", "answer"];

/// CPU of identity's part of one exchange: outline, run and name, reading the answer, taking it in. An agent that is
/// named needs no outline; its answers are taken in all the same. A first pass measures all, a second one the shares.
fn identity(names: Names, bodies: &[String], replies: &[Bytes]) -> [f64; PARTS.len()] {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let before = micros(clock);
    for (body, reply) in bodies.iter().zip(replies).skip(WARM_UP) {
        black_box((received(body.as_bytes()), received(reply)));
    }
    let copying = per_round(micros(clock) - before);
    let (whole, known) = pass(names, bodies, replies, |_| {});
    let whole = whole - copying;
    assert_eq!(known, if names == Names::Nothing { ROUNDS } else { 0 }, "all is one run");
    let mut parts = [0.0; PARTS.len()];
    pass(names, bodies, replies, |marks| {
        parts.iter_mut().zip(marks.windows(2)).for_each(|(part, pair)| *part += (pair[1] - pair[0]).as_secs_f64());
    });
    let sum: f64 = parts.iter().sum();
    // The record wants the token counts whoever speaks.
    let before = micros(clock);
    let again = received(&replies[WARM_UP]);
    let counted = (WARM_UP..ROUNDS).filter_map(|_| OpenaiChat.usage(black_box(&again), false)).count();
    assert_eq!(counted, ROUNDS - WARM_UP);
    let usage = per_round(micros(clock) - before);
    let mut parts = parts.map(|part| part / sum * whole);
    parts[2] = (parts[2] - usage).max(0.0);
    parts
}

/// A body as it comes: just written to memory.
fn received(body: &[u8]) -> Vec<u8> {
    body.to_vec()
}

/// One pass over all requests: its CPU without warming up. `each` gets the times between the parts.
fn pass(names: Names, bodies: &[String], replies: &[Bytes], mut each: impl FnMut(&[Instant; 5])) -> (f64, usize) {
    let (rules, mut speakers) = (rules(names), Speakers::default());
    let envelope = Envelope {
        path_agent: (names == Names::Agent).then_some("writer"),
        path_run: None,
        header_agent: None,
        header_run: None,
        key: None,
    };
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let (mut before, mut known) = (0.0, 0);
    for (round, (body, reply)) in bodies.iter().zip(replies).enumerate() {
        if round == WARM_UP {
            before = micros(clock);
        }
        let (body, reply) = black_box((received(body.as_bytes()), received(reply)));
        let hash = u128::try_from(round).expect("small");
        let start = Instant::now();
        let declared = rules.declared(&envelope).expect("a name");
        let outline = declared.is_none().then(|| OpenaiChat.outline(&body).expect("a request"));
        let outlined = Instant::now();
        let placed = rules.place(outline.as_ref(), hash, || RunId::parse(&format!("run{round}")).expect("an id"));
        let told = speakers.attribute(&rules, outline.as_ref(), declared, hash, false);
        if let Some((run, _, track)) = &placed {
            track.opened(u32::try_from(round).expect("small"), 0, &told);
            known += usize::from(run.as_str() == "run0");
        }
        let named = Instant::now();
        let heard = OpenaiChat.read_reply(&reply).expect("a reply");
        let read = Instant::now();
        speakers.ended(&told, hash, Some(&heard), false);
        if let Some((_, _, track)) = &placed {
            track.ended(Some(&heard), false);
        }
        if round >= WARM_UP {
            each(&[start, outlined, named, read, Instant::now()]);
        }
    }
    (per_round(micros(clock) - before), known)
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    println!("names        size   exchange   outline    name   reading   answer   identity/exchange   (CPU, us)");
    let replies: Vec<Bytes> = (0..ROUNDS).map(|round| reply(round).into()).collect();
    for size in [2 << 10, 32 << 10] {
        let bodies: Vec<String> = (0..ROUNDS).map(|round| body(size, round)).collect();
        for (names, prefix, called) in KINDS {
            let upstream: Arc<dyn Upstream> = Arc::new(Scripted(replies.clone(), AtomicUsize::new(0)));
            let template = RunTemplate {
                log_dir: directory.path().join(format!("{called} {size}")),
                recording: Settings::default(),
                plan: None,
                upstream: "scripted".to_owned(),
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
            let whole = exchange(address, prefix, &bodies);
            server.abort();
            let [outline, name, reading, answer] = identity(names, &bodies, &replies);
            let share = (outline + name + reading + answer) / whole * 100.0;
            println!(
                "{called:<11} {size:5}   {whole:8.1}   {outline:7.1}   {name:5.1}   {reading:7.1}   {answer:6.1}   {share:15.1} %"
            );
        }
    }
}
