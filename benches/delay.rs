//! What a hop through Aegis adds to the first and to each further token of a stream, for streams that nothing holds and
//! for streams that an edit holds: `cargo bench --bench delay [-- --streams 200 --tokens 40 --gap-ms 5]`.
//!
//! Upstream and client live in this process: each frame says when it was sent, so that its delay is known when it is
//! read. The direct way is measured beside; what is added is the difference of the medians, in one run, rounds
//! interleaved. Everything is on the loopback.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::large_futures,
    reason = "a measuring program: it stops at the first thing it did not expect, talks to a terminal, computes medians of counts"
)]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use clap::Parser;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[derive(Debug, Parser)]
struct Arguments {
    /// Streams of each way.
    #[arg(long, default_value_t = 200)]
    streams: usize,
    /// Tokens of a stream.
    #[arg(long, default_value_t = 40)]
    tokens: usize,
    /// Milliseconds between two tokens.
    #[arg(long, default_value_t = 5)]
    gap_ms: u64,
    /// The program to measure.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_aegis"))]
    aegis: PathBuf,
    /// Given by `cargo bench`; without it nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way from the client to the upstream.
struct Way {
    name: &'static str,
    port: u16,
    agent: &'static str,
    /// Delays of first tokens, and of the others, in microseconds.
    first: Vec<f64>,
    other: Vec<f64>,
}

/// A running program, ended when it is dropped.
struct Served {
    child: Child,
    _dir: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An edit of each reply of `solver`; nothing for anybody else.
const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nside = \"response\"\nwhen.always = true\nmanipulator.replace_text = { find = \"done\", with = \"over\" }\n";

fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // Twenty digits, the first not 0: JSON knows no leading zeros, and a frame that is none is not edited.
    10_u64.pow(19) + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::parse();
    if !arguments.bench {
        println!("`cargo bench --bench delay` measures");
        return;
    }
    nanoseconds();
    let upstream = start_upstream(arguments.tokens, Duration::from_millis(arguments.gap_ms)).await;
    let way = |name, port, agent| Way { name, port, agent, first: Vec::new(), other: Vec::new() };
    let (_free, free_port) = serve(&arguments.aegis, upstream, None);
    let (_planned, planned_port) = serve(&arguments.aegis, upstream, Some(PLAN));
    let mut ways = [
        way("direct", upstream, "x"),
        way("Aegis, no plan", free_port, "solver"),
        way("Aegis, a plan for others", planned_port, "critic"),
        way("Aegis, held by an edit", planned_port, "solver"),
    ];
    for way in &mut ways {
        stream(way, arguments.tokens, false).await;
    }
    for _ in 0..arguments.streams {
        for way in &mut ways {
            stream(way, arguments.tokens, true).await;
        }
    }
    report(&mut ways, &arguments);
}

fn report(ways: &mut [Way], arguments: &Arguments) {
    let Arguments { streams, tokens, gap_ms, .. } = arguments;
    println!("# Delay of a token, from the upstream's write to the client's read\n");
    println!(
        "{streams} streams each, {tokens} tokens, {gap_ms} ms apart; microseconds; loopback, one stream at a time.\n"
    );
    println!("| way | first token p50 | p99 | added p50 | further tokens p50 | p99 | added p50 |");
    println!("|---|---|---|---|---|---|---|");
    let mut direct = None;
    for way in ways {
        let (first, other) = (spread(&mut way.first), spread(&mut way.other));
        let (base_first, base_other) = *direct.get_or_insert((first.0, other.0));
        println!(
            "| {} | {:.0} | {:.0} | {:+.0} | {:.0} | {:.0} | {:+.0} |",
            way.name,
            first.0,
            first.1,
            first.0 - base_first,
            other.0,
            other.1,
            other.0 - base_other
        );
    }
    println!(
        "\nA held stream waits for the whole reply, because an edit may concern any part of it: its first token is late"
    );
    println!("by the length of the stream, and its last by next to nothing.");
}

/// Median and 99th percentile.
fn spread(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
    (at(0.5), at(0.99))
}

/// An upstream whose frames say when they were sent.
async fn start_upstream(tokens: usize, gap: Duration) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bind");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket, tokens, gap));
        }
    });
    port
}

async fn answer(mut socket: TcpStream, tokens: usize, gap: Duration) {
    socket.set_nodelay(true).expect("a socket");
    let mut seen = Vec::new();
    while read_until(&mut socket, &mut seen, b"\"end\":1}").await {
        seen.clear();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        if socket.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        for token in 0..=tokens {
            tokio::time::sleep(gap).await;
            let text = if token + 1 == tokens { "done" } else { "word " };
            let frame = if token == tokens {
                "data: [DONE]\n\n".to_owned()
            } else {
                let choice = format!("{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}");
                format!("data: {{\"id\":\"c\",\"at\":{:020},\"choices\":[{choice}]}}\n\n", nanoseconds())
            };
            let end = if token == tokens { "0\r\n\r\n" } else { "" };
            let chunk = format!("{:x}\r\n{frame}\r\n{end}", frame.len());
            if socket.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn read_until(socket: &mut TcpStream, seen: &mut Vec<u8>, end: &[u8]) -> bool {
    let mut buffer = [0; 16 << 10];
    loop {
        match socket.read(&mut buffer).await {
            Ok(length @ 1..) => seen.extend_from_slice(&buffer[..length]),
            _ => return false,
        }
        if memchr::memmem::find(seen, end).is_some() {
            return true;
        }
    }
}

/// One stream; notes how late each token is.
async fn stream(way: &mut Way, tokens: usize, counts: bool) {
    let mut socket = TcpStream::connect(("127.0.0.1", way.port)).await.expect("connect");
    socket.set_nodelay(true).expect("a socket");
    let body = format!(
        "{{\"model\":\"m\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}],\"end\":1}}",
        nanoseconds()
    );
    let head = format!(
        "POST /r/bench/a/{}/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        way.agent,
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
    let (mut seen, mut from, mut count) = (Vec::new(), 0, 0);
    let mut buffer = vec![0; 64 << 10];
    while memchr::memmem::find(&seen, b"0\r\n\r\n").is_none() || count < tokens {
        let length = socket.read(&mut buffer).await.expect("readable");
        let now = nanoseconds();
        assert!(length > 0, "{}: ended early: {}", way.name, String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..length]);
        while let Some(at) = memchr::memmem::find(&seen[from..], b"\"at\":") {
            let start = from + at + 5;
            let Some(digits) = seen.get(start..start + 20) else { break };
            let sent: u64 = std::str::from_utf8(digits).expect("digits").parse().expect("a time");
            let late = now.saturating_sub(sent) as f64 / 1e3;
            if counts && count == 0 {
                way.first.push(late);
            } else if counts {
                way.other.push(late);
            }
            (from, count) = (start + 20, count + 1);
        }
    }
    assert_eq!(count, tokens, "{}", way.name);
    let edited = memchr::memmem::find(&seen, b"\"over\"").is_some();
    assert_eq!(edited, way.name.contains("held"), "{}: the edit is where it should be", way.name);
}

fn serve(aegis: &Path, upstream: u16, plan: Option<&str>) -> (Served, u16) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(aegis);
    command.args(["serve", "--listen", "127.0.0.1:0", "--upstream", &format!("http://127.0.0.1:{upstream}")]);
    command.arg("--log-dir").arg(dir.path().join("logs")).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(plan) = plan {
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, plan).expect("written");
        command.arg("--plan").arg(path);
    }
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let port =
        ["listen", "address", "listening"].iter().find_map(|key| said[key].as_str()?.rsplit_once(':')?.1.parse().ok());
    let port = port.or_else(|| u16::try_from(said["port"].as_u64()?).ok()).expect("the program says its port");
    (Served { child, _dir: dir }, port)
}
