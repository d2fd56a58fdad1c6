//! Strict replay of a long recording: `cargo bench --bench replay`. A run of 10,000 steps is recorded, opened as a
//! cassette and asked for over one kept-alive connection, in its order; every reply is compared. Three recordings: agents
//! whose conversations begin anew now and then, one agent whose conversation only grows, and one request again and again.
//! Memory is the most that this process held since the recording was made, the client's and the new recording's included.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement talks, and stops where it cannot measure")]
#![expect(clippy::indexing_slicing, reason = "a measurement that cannot read a reply stops")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use aegis::{
    identity::Identity,
    proxy::{Gate, Limits, Proxy, RunSetup, RunTemplate, Runs, serve, upstream::Upstream},
    recording::{Captured, Close, Manifest, Open, Recorder, Settings},
    replay::{Cassette, Replayed},
    trajectory::{AgentName, Attribution, CloseCause, RunId, Source, Usage},
};
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Steps of a recording, of ten agents.
const STEPS: u32 = 10_000;
/// Turns after which an agent's conversation starts anew.
const TURNS: u32 = 20;
/// Steps of the recording whose one conversation grows: its requests take 300 MB.
const GROWING: u32 = 1_200;

/// A recording: its name, its steps, how many agents they are of, and the request of each.
type Kind = (&'static str, u32, u32, fn(u32) -> Bytes);

const KINDS: [Kind; 3] =
    [("anew", STEPS, 10, anew), ("growing", GROWING, 1, growing), ("the same", STEPS, 1, |_| anew(0))];

/// Each kind in a process of its own, so that memory is that kind's.
fn main() {
    let asked: Vec<String> = std::env::args().collect();
    if let Some(kind) = KINDS.into_iter().find(|(name, ..)| asked.iter().any(|asked| asked == name)) {
        return measure(kind);
    }
    println!("requests   steps   MB asked   opened    calls/s   p50        p99        memory before → peak, MB");
    for (name, ..) in KINDS {
        let own = std::env::current_exe().expect("this program");
        assert!(std::process::Command::new(own).arg(name).status().expect("it runs").success(), "{name}");
    }
}

fn measure(kind: Kind) {
    let (name, steps, _, request) = kind;
    let dir = tempfile::tempdir().expect("a directory");
    let asked: usize = (0..steps).map(|step| request(step).len()).sum();
    record(dir.path(), kind);
    let before = forget_peak();
    let began = Instant::now();
    let cassette = Arc::new(Cassette::open(&dir.path().join("long")).expect("a cassette"));
    let opened = began.elapsed();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (took, mut each) = runtime.block_on(replay(dir.path(), cassette, kind));
    each.sort_unstable();
    let at = |percent: usize| format!("{:.1?}", each[(each.len() - 1) * percent / 100]);
    let rate = f64::from(steps) / took.as_secs_f64();
    println!(
        "{name:<9} {steps:>6} {:>10}   {:<8} {rate:>8.0}   {:<9}  {:<9}  {before} → {}",
        asked >> 20,
        format!("{opened:.1?}"),
        at(50),
        at(99),
        memory("VmHWM:")
    );
}

/// A request of ten agents in turn: a conversation that grows by a turn of 400 bytes, for `TURNS` turns.
fn anew(step: u32) -> Bytes {
    let (agent, turn) = (step % 10, step / 10 % TURNS);
    conversation(&format!("agent {agent} chapter {}", step / 10 / TURNS), turn)
}

/// A request of one conversation that never ends.
fn growing(step: u32) -> Bytes {
    conversation("agent 0", step)
}

fn conversation(whose: &str, turn: u32) -> Bytes {
    let said = (0..=turn).map(|turn| {
        serde_json::json!({"role": "user", "content": format!("{whose} turn {turn} {}", "and so on it goes ".repeat(20))})
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

fn record(logs: &Path, (_, steps, agents, request): Kind) {
    let settings = Settings::default();
    let manifest = Manifest::new(RunId::parse("long").expect("an id"), "http://upstream", settings.clock.wall());
    let recorder = Recorder::create(logs, manifest, &settings).expect("creates");
    for step in 0..steps {
        let request = request(step);
        let attribution = Attribution {
            agent: AgentName::parse(&format!("agent{}", step % agents)).expect("a name"),
            instance: 0,
            source: Source::Path,
            evidence: "path /a/".to_owned(),
            confidence: 1.0,
            ambiguous: false,
        };
        let opened = recorder.open(Open {
            step,
            call: step / agents,
            attempt: 0,
            attribution: &attribution,
            overlapping: false,
            relates: aegis::trajectory::RecordedRelation::first(),
            run_source: "server",
            surface: "openai_chat",
            method: "POST",
            path: "/v1/chat/completions",
            headers: &[],
            body: Some(&request),
            body_hash: None,
            at_us: u64::from(step) * 1000,
            wall: settings.clock.wall(),
        });
        opened.expect("opened");
        let closed = recorder.close(Close {
            step,
            attempt: 0,
            cause: CloseCause::Complete,
            origin: aegis::trajectory::ReplyOrigin::Live,
            status: Some(200),
            headers: &[("content-type", b"application/json")],
            streamed_request: None,
            reply: Captured::Whole(&[reply(step)]),
            truncated: false,
            delivered: None,
            reply_with_logprobs: None,
            proxy_error: None,
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
async fn replay(logs: &Path, cassette: Arc<Cassette>, kind: Kind) -> (Duration, Vec<Duration>) {
    let (_, steps, agents, request) = kind;
    let replayed = Arc::new(Replayed::new(cassette));
    let upstream: Arc<dyn Upstream> = Arc::clone(&replayed) as Arc<dyn Upstream>;
    let run = RunId::parse("again").expect("an id");
    let template = RunTemplate {
        log_dir: logs.to_owned(),
        recording: Settings::default(),
        plan: None,
        upstream: "replay".to_owned(),
        base_url: None,
        config: None,
        equality: aegis::equality::EqualitySetting::default(),
    };
    let proxy = Arc::new(Proxy {
        identity: Identity::default(),
        upstream: Arc::clone(&upstream),
        runs: Arc::new(Runs::new(template)),
        default_run: Some(run.clone()),
        routes: Vec::new(),
        servers: aegis::proxy::NamedServers::default(),
        gate: Gate::default(),
        limits: Limits::default(),
    });
    proxy.runs.open(&run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await.expect("opens");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(serve(proxy, listener, std::future::pending()));
    let mut connection = TcpStream::connect(address).await.expect("connects");
    connection.set_nodelay(true).expect("set");
    let mut each = Vec::new();
    for step in 0..steps {
        let body = request(step);
        let asked = Instant::now();
        let head = format!(
            "POST /a/agent{}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            step % agents,
            body.len()
        );
        connection.write_all(&[head.as_bytes(), &body[..]].concat()).await.expect("sent");
        let got = read_reply(&mut connection).await;
        each.push(asked.elapsed());
        assert!(got == reply(step), "step {step}: {}", String::from_utf8_lossy(&got));
    }
    server.abort();
    let report = replayed.report();
    assert!(report.missed.is_empty() && report.unused.is_empty(), "every step was served");
    (each.iter().sum(), each)
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

/// Forgets the most memory that this process ever held; what it holds now, in MB.
fn forget_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux forgets the peak");
    memory("VmRSS:")
}

/// A figure of this process in MB.
fn memory(figure: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("the figure");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}
