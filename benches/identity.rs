//! What telling agents costs: identity's share of an exchange's CPU, at 2 and 32 kB.
//!
//!     cargo bench --bench identity
//!
//! The exchange is the whole proxy in this process, recording on, between a client and a backend that answers at once,
//! both over real sockets; its CPU is the process's without the threads of client and backend. Identity's own cost is
//! measured on the same requests, in a run that knows them as a run would: reading the outline, placing the request in
//! a run, naming the agent, reading and taking in the answer. The record wants the answer's token counts, so that of
//! reading it only what looking for those alone would not cost is identity's. Three kinds of request: one that names
//! run and agent, one that names its run (as below `aegis run`), one that names nothing (lineage). The conversation
//! goes on: each request brings the answer before it and new words, a kilobyte each, behind what is already known.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a measurement that cannot go on is to fail, and prints"
)]

use std::{
    hint::black_box,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use aegis::{
    identity::{AttributedCall, EndedCall, Envelope, Identity, LedgerRequest, Speakers},
    proxy::{Gate, HttpUpstream, Limits, Proxy, RunTemplate, Runs, UpstreamOrigin, serve},
    recording::Settings,
    surface::{OpenaiChat, Surface},
    trajectory::RunId,
};
use bytes::Bytes;
use memchr::memmem;
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::runtime::Runtime;
use twox_hash::XxHash3_64;

/// Looks at each kind of request, one kind after the other.
const LOOKS: usize = 5;
/// Requests of one look, and how many of them only warm up.
const ROUNDS: usize = 4000;
const WARM_UP: usize = 400;
/// Words of one message and of a reply: about a kilobyte.
const WORDS: usize = 140;

/// A backend that answers one request after the other, each with words of its own, on threads of its own.
struct Backend {
    url: String,
    /// What its threads have used so far, in nanoseconds.
    cpu: Arc<AtomicU64>,
}

impl Backend {
    fn start(replies: &[Bytes]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (cpu, next) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let (used, replies) = (Arc::clone(&cpu), replies.to_vec());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, used, next) = (stream.expect("a connection"), Arc::clone(&used), Arc::clone(&next));
                let replies = replies.clone();
                thread::spawn(move || answer_all(stream, &replies, &next, &used));
            }
        });
        Self { url, cpu }
    }
}

fn answer_all(mut stream: TcpStream, replies: &[Bytes], next: &AtomicUsize, used: &AtomicU64) {
    stream.set_nodelay(true).expect("a socket");
    let (mut buffer, mut before) = (vec![0; 1 << 17], 0);
    while read_message(&mut stream, &mut buffer).is_some() {
        let reply = &replies[next.fetch_add(1, Ordering::Relaxed)];
        let length = reply.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        // Told before the answer goes out, so that who reads the answer sees it.
        let now = u64::try_from(cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID).as_nanos()).expect("years");
        used.fetch_add(now - before, Ordering::Relaxed);
        before = now;
        stream.write_all(&[head.as_bytes(), reply].concat()).expect("sent");
    }
}

/// Reads one message: gives its head; nothing at the end.
fn read_message(stream: &mut TcpStream, buffer: &mut [u8]) -> Option<String> {
    let mut seen = 0;
    let (mut head, mut whole) = (String::new(), usize::MAX);
    while seen < whole {
        let count = stream.read(&mut buffer[seen..]).ok().filter(|count| *count > 0)?;
        seen += count;
        if let (true, Some(end)) = (head.is_empty(), memmem::find(&buffer[..seen], b"\r\n\r\n")) {
            head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            whole = end + 4 + length.and_then(|length| length.parse::<usize>().ok()).expect("a length");
        }
    }
    Some(head)
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

fn cpu_time(clock: ClockId) -> Duration {
    Duration::from(clock_gettime(clock).expect("a clock"))
}

fn micros(clock: ClockId) -> f64 {
    cpu_time(clock).as_secs_f64() * 1e6
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

/// CPU of one exchange in microseconds, without the client's and the backend's.
fn exchange(address: SocketAddr, backend: &Backend, prefix: &str, bodies: &[String]) -> f64 {
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
    let used = || {
        let elsewhere = Duration::from_nanos(backend.cpu.load(Ordering::Relaxed)).as_secs_f64() * 1e6;
        micros(ClockId::CLOCK_PROCESS_CPUTIME_ID) - micros(ClockId::CLOCK_THREAD_CPUTIME_ID) - elsewhere
    };
    let mut before = 0.0;
    let mut buffer = vec![0; 1 << 16];
    for (round, request) in requests.iter().enumerate() {
        if round == WARM_UP {
            before = used();
        }
        stream.write_all(request).expect("sent");
        let head = read_message(&mut stream, &mut buffer).expect("a reply");
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
    per_round(used() - before)
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
        let bytes = Bytes::from(body.clone());
        let start = Instant::now();
        let declared = rules.declared(&envelope).expect("a name");
        let outline = declared.is_none().then(|| OpenaiChat.outline(&body).expect("a request"));
        let outlined = Instant::now();
        let placed = rules.place(outline.as_ref(), hash, || RunId::parse(&format!("run{round}")).expect("an id"));
        let request =
            LedgerRequest { bytes: Some(&bytes), surface: Some(&OpenaiChat), ..LedgerRequest::from_hash(hash) };
        let AttributedCall { attribution: told, number, .. } =
            speakers.attribute(&rules, outline.as_ref(), declared, &request);
        if let Some((placed, track)) = &placed {
            track.opened(u32::try_from(round).expect("small"), 0, &told);
            known += usize::from(placed.run.as_str() == "run0");
        }
        let named = Instant::now();
        let heard = OpenaiChat.read_reply(&reply).expect("a reply");
        let read = Instant::now();
        speakers.ended(&told, &EndedCall { number, reply: Some(&heard), failed: false, at_us: 0 });
        if let Some((_, track)) = &placed {
            track.ended(Some(&heard), false);
        }
        if round >= WARM_UP {
            each(&[start, outlined, named, read, Instant::now()]);
        }
    }
    (per_round(micros(clock) - before), known)
}

/// One look at one kind of request: exchange, parts, and their share in percent.
fn look(runtime: &Runtime, names: Names, prefix: &str, bodies: &[String], replies: &[Bytes]) -> Vec<f64> {
    let directory = tempfile::tempdir().expect("a directory");
    let backend = Backend::start(replies);
    let origin = UpstreamOrigin::parse(&backend.url, None).expect("an origin");
    let upstream = HttpUpstream::new(origin, Vec::new(), None, Duration::from_secs(10)).expect("an upstream");
    let template = RunTemplate {
        log_dir: directory.path().to_owned(),
        recording: Settings::default(),
        plan: None,
        upstream: backend.url.clone(),
        base_url: None,
        config: None,
        equality: aegis::equality::EqualitySetting::default(),
    };
    let proxy = Arc::new(Proxy {
        identity: rules(names),
        upstream: upstream.shared(),
        runs: Arc::new(Runs::new(template)),
        default_run: None,
        routes: Vec::new(),
        servers: aegis::proxy::NamedServers::default(),
        gate: Gate::default(),
        limits: Limits::default(),
    });
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = runtime.spawn(async move { serve(proxy, listener, std::future::pending()).await });
    let whole = exchange(address, &backend, prefix, bodies);
    server.abort();
    let parts = identity(names, bodies, replies);
    let share = parts.iter().sum::<f64>() / whole * 100.0;
    [&[whole], &parts[..], &[share]].concat()
}

/// The middle one of each column, and the last column's least and greatest.
fn middle(mut columns: Vec<Vec<f64>>) -> (Vec<f64>, [f64; 2]) {
    for column in &mut columns {
        column.sort_by(f64::total_cmp);
    }
    let share = columns.last().expect("a share");
    let ends = [share[0], share[share.len() - 1]];
    (columns.iter().map(|column| column[column.len() / 2]).collect(), ends)
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    println!("CPU in microseconds, medians of {LOOKS} looks; identity/exchange with the least and the greatest");
    println!("names        size   exchange   {}   identity/exchange", PARTS.join("   "));
    let replies: Vec<Bytes> = (0..ROUNDS).map(|round| reply(round).into()).collect();
    for size in [2 << 10, 32 << 10] {
        let bodies: Vec<String> = (0..ROUNDS).map(|round| body(size, round)).collect();
        let mut looks: [Vec<Vec<f64>>; KINDS.len()] = std::array::from_fn(|_| vec![Vec::new(); PARTS.len() + 2]);
        for _ in 0..LOOKS {
            for ((names, prefix, _), columns) in KINDS.into_iter().zip(&mut looks) {
                let figures = look(&runtime, names, prefix, &bodies, &replies);
                columns.iter_mut().zip(figures).for_each(|(column, figure)| column.push(figure));
            }
        }
        for ((_, _, called), columns) in KINDS.into_iter().zip(looks) {
            let (figures, [least, greatest]) = middle(columns);
            let parts = PARTS.iter().zip(&figures[1..]).fold(String::new(), |row, (name, part)| {
                let width = name.len();
                row + &format!("   {part:width$.1}")
            });
            let (whole, share) = (figures[0], figures[figures.len() - 1]);
            println!("{called:<11} {size:5}   {whole:8.1}{parts}   {share:.1} % ({least:.1}–{greatest:.1})");
        }
    }
}
