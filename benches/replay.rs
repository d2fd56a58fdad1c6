//! Strict replay of a long recording: `cargo bench --bench replay`. A run of 10,000 steps is recorded, opened as a
//! cassette and asked for over one kept-alive connection, in its order; every reply is compared.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement talks, and stops where it cannot measure")]
#![expect(clippy::indexing_slicing, reason = "a measurement that cannot read a reply stops")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use aegis::{
    identity::Identity,
    proxy::{Limits, Proxy, RunSetup, RunTemplate, Runs, serve, upstream::Upstream},
    recording::{Captured, Close, Manifest, Open, Recorder, Settings},
    replay::{Cassette, Replayed},
    trajectory::{AgentName, Attribution, CloseCause, RunId, Source, Usage},
};
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Steps of the recording, of ten agents.
const STEPS: u32 = 10_000;
/// Turns after which an agent's conversation starts anew.
const TURNS: u32 = 20;

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let requests: Vec<Bytes> = (0..STEPS).map(request).collect();
    let size: usize = requests.iter().map(Bytes::len).sum();
    let began = Instant::now();
    record(dir.path(), &requests);
    println!("recorded   {STEPS} steps, {} MB of requests, in {:.1?}", size >> 20, began.elapsed());
    println!("memory     {} MB", peak_memory());
    let began = Instant::now();
    let cassette = Arc::new(Cassette::open(&dir.path().join("long")).expect("a cassette"));
    println!("opened     in {:.1?}, peak memory {} MB", began.elapsed(), peak_memory());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (took, mut each) = runtime.block_on(replay(dir.path(), cassette, &requests));
    each.sort_unstable();
    let at = |percent: usize| each[(each.len() - 1) * percent / 100];
    println!("replayed   {:.0} calls/s over one connection", f64::from(STEPS) / took.as_secs_f64());
    println!("delay      p50 {:.1?}  p99 {:.1?}", at(50), at(99));
    println!("memory     peak {} MB", peak_memory());
}

/// The request of a step: a conversation that grows by a turn of 400 bytes, for `TURNS` turns.
fn request(step: u32) -> Bytes {
    let (agent, turn) = (step % 10, step / 10 % TURNS);
    let chapter = step / 10 / TURNS;
    let said = (0..=turn).map(|turn| {
        let words = format!("agent {agent} chapter {chapter} turn {turn} {}", "and so on it goes ".repeat(20));
        serde_json::json!({"role": "user", "content": words})
    });
    let messages: Vec<_> = said.collect();
    Bytes::from(serde_json::json!({"model": "m", "messages": messages}).to_string())
}

fn reply(step: u32) -> Bytes {
    let text = format!("reply {step} {}", "as was to be said ".repeat(20));
    Bytes::from(
        serde_json::json!({"id": format!("c{step}"), "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
        .to_string(),
    )
}

fn record(logs: &Path, requests: &[Bytes]) {
    let settings = Settings::default();
    let manifest = Manifest::new(RunId::parse("long").expect("an id"), "http://upstream", settings.clock.wall());
    let recorder = Recorder::create(logs, manifest, &settings).expect("creates");
    for (step, request) in (0..).zip(requests) {
        let attribution = Attribution {
            agent: AgentName::parse(&format!("agent{}", step % 10)).expect("a name"),
            instance: 0,
            source: Source::Path,
            evidence: "path /a/".to_owned(),
            confidence: 1.0,
            ambiguous: false,
        };
        let opened = recorder.open(Open {
            step,
            call: step / 10,
            attempt: 0,
            attribution: &attribution,
            overlapping: false,
            run_source: "server",
            surface: "openai_chat",
            method: "POST",
            path: "/v1/chat/completions",
            headers: &[],
            body: Some(request),
            body_hash: None,
            at_us: u64::from(step) * 1000,
            wall: settings.clock.wall(),
        });
        opened.expect("opened");
        let closed = recorder.close(Close {
            step,
            attempt: 0,
            cause: CloseCause::Complete,
            status: Some(200),
            headers: &[("content-type", b"application/json")],
            request_body: None,
            reply: Captured::Whole(&[reply(step)]),
            truncated: false,
            delivered: None,
            usage: Some(Usage { input: 100, output: 100 }),
            finish_reason: None,
            first_byte_us: Some(400),
            last_byte_us: Some(500),
        });
        closed.expect("closed");
    }
    recorder.seal().expect("sealed");
}

/// Asks for every step; says how long all took, and each.
async fn replay(logs: &Path, cassette: Arc<Cassette>, requests: &[Bytes]) -> (Duration, Vec<Duration>) {
    let replayed = Arc::new(Replayed::new(cassette));
    let upstream: Arc<dyn Upstream> = Arc::clone(&replayed) as Arc<dyn Upstream>;
    let run = RunId::parse("again").expect("an id");
    let template = RunTemplate {
        log_dir: logs.to_owned(),
        recording: Settings::default(),
        plan: None,
        upstream: "replay".to_owned(),
    };
    let proxy = Arc::new(Proxy {
        identity: Identity::default(),
        upstream: Arc::clone(&upstream),
        runs: Runs::new(template),
        default_run: Some(run.clone()),
        routes: Vec::new(),
        allowed_hosts: Vec::new(),
        limits: Limits::default(),
    });
    proxy.runs.open(&run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).expect("opens");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(serve(proxy, listener, std::future::pending()));
    let mut connection = TcpStream::connect(address).await.expect("connects");
    connection.set_nodelay(true).expect("set");
    let mut each = Vec::with_capacity(requests.len());
    let began = Instant::now();
    for (step, body) in (0..).zip(requests) {
        let asked = Instant::now();
        let head = format!(
            "POST /a/agent{}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            step % 10,
            body.len()
        );
        connection.write_all(&[head.as_bytes(), body].concat()).await.expect("sent");
        let got = read_reply(&mut connection).await;
        each.push(asked.elapsed());
        assert!(got == reply(step), "step {step}: {}", String::from_utf8_lossy(&got));
    }
    let took = began.elapsed();
    server.abort();
    let report = replayed.report();
    assert!(report.missed.is_empty() && report.unused.is_empty(), "every step was served");
    (took, each)
}

/// The body of the next reply on a connection.
async fn read_reply(connection: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = connection.read(&mut buffer).await.expect("readable");
        assert!(count > 0, "the connection ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
        let Some(head) = memchr::memmem::find(&seen, b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&seen[..head]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let length = length.expect("a length");
        if seen.len() >= head + 4 + length {
            return seen[head + 4..].to_vec();
        }
    }
}

/// The most memory that this process ever held, in MB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the figure");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}
