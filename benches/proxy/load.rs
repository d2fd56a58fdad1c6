//! The load generator: closed loop (the next request when the last is answered) or open loop
//! (request `i` is due at start + `i` ÷ rate whatever the answers do, and its latency counts from
//! then, so that a stall is charged to every request it delays). Checks every byte of every reply.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::chat::{Ask, Verdict, judge};
use crate::conversation::{Conversation, Shape};
use crate::upstream::{STACK, precise, sleep_until};
use crate::wire::Wire;

/// Whatever happens, a load ends this long after its planned end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a proxy is asked for the server of tools.
const TOOLS_PATH: &str = "/mcp/calc";

/// When a load stops asking.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    /// Each connection holds this many whole conversations.
    Conversations(u64),
}

/// What to send where.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) port: u16,
    pub(crate) shape: Shape,
    pub(crate) connections: u64,
    /// Requests a second over all connections; `None` is the closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) until: Until,
    /// Between the starts of two connections.
    pub(crate) stagger: Duration,
    /// Run and agent are told by the path, a run a conversation; else the path is the plain one.
    pub(crate) explicit: bool,
    /// The target appends the instruction to each request.
    pub(crate) edited: bool,
    /// Text and run names of two loads with different seeds never meet.
    pub(crate) seed: u64,
}

/// What came back. Times are nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) verdicts: BTreeMap<Verdict, u64>,
    pub(crate) failures: BTreeMap<String, u64>,
    /// From due (open loop) or sent (closed loop) to the last byte.
    pub(crate) latency: Vec<u64>,
    /// The same to the first bytes of a stream.
    pub(crate) first_token: Vec<u64>,
    /// How far two reads of a paced stream were from the pace.
    pub(crate) gap_error: Vec<u64>,
    /// Sent − due: how late the generator was itself.
    pub(crate) late: Vec<u64>,
    pub(crate) tokens: u64,
    pub(crate) request_bytes: u64,
    /// Bytes of text said for the first time.
    pub(crate) first_said: u64,
    pub(crate) most_in_flight: u64,
    pub(crate) elapsed: Duration,
}

impl Outcome {
    /// Requests that got an answer, right or wrong.
    pub(crate) fn answered(&self) -> u64 {
        self.verdicts.values().sum()
    }

    fn add(&mut self, other: Self) {
        other.verdicts.into_iter().for_each(|(verdict, count)| *self.verdicts.entry(verdict).or_default() += count);
        other.failures.into_iter().for_each(|(cause, count)| *self.failures.entry(cause).or_default() += count);
        self.latency.extend(other.latency);
        self.first_token.extend(other.first_token);
        self.gap_error.extend(other.gap_error);
        self.late.extend(other.late);
        self.tokens += other.tokens;
        self.request_bytes += other.request_bytes;
        self.first_said += other.first_said;
        self.most_in_flight = self.most_in_flight.max(other.most_in_flight);
    }
}

/// Shared by the connections of one load.
struct Clockwork {
    start: Instant,
    tickets: AtomicU64,
    in_flight: AtomicU64,
}

/// Runs the load to its end.
pub(crate) fn run(load: &Load) -> Outcome {
    let clockwork = Clockwork {
        start: Instant::now() + Duration::from_millis(10),
        tickets: AtomicU64::new(0),
        in_flight: AtomicU64::new(0),
    };
    let mut all = Outcome::default();
    thread::scope(|scope| {
        let connections: Vec<_> = (0..load.connections)
            .map(|number| {
                let connection = Connection { load, clockwork: &clockwork, number, outcome: Outcome::default() };
                let run = move || connection.run();
                thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).expect("the system has threads left")
            })
            .collect();
        for connection in connections {
            all.add(connection.join().expect("a connection of the load does not panic"));
        }
    });
    all.elapsed = clockwork.start.elapsed();
    all
}

/// The path of a request: `run` and `agent` are told where the load is explicit.
pub(crate) fn path(run: Option<&str>, agent: &str, asks_a_tool: bool) -> String {
    let below = if asks_a_tool { TOOLS_PATH } else { "/v1/chat/completions" };
    match run {
        Some(run) => format!("/r/{run}/a/{agent}{below}"),
        None => below.to_owned(),
    }
}

/// The head of a request with a body of `length` bytes.
pub(crate) fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\nUser-Agent: bench\r\nContent-Length: {length}\r\n\r\n"
    )
}

struct Connection<'load> {
    load: &'load Load,
    clockwork: &'load Clockwork,
    number: u64,
    outcome: Outcome,
}

impl Connection<'_> {
    fn run(mut self) -> Outcome {
        precise();
        sleep_until(self.clockwork.start + self.load.stagger * u32::try_from(self.number).unwrap_or(u32::MAX));
        let mut wire = None;
        for count in 0.. {
            if matches!(self.load.until, Until::Conversations(limit) if count >= limit) {
                break;
            }
            let seed = self.load.seed ^ (self.number << 40) ^ (count << 20);
            let mut conversation = Conversation::new(self.load.shape, seed);
            let run = self.load.explicit.then(|| format!("bench-{seed:016x}"));
            let goes_on = self.hold(&mut conversation, run.as_deref(), &mut wire);
            self.outcome.first_said += conversation.first_said;
            if !goes_on {
                break;
            }
        }
        self.outcome
    }

    /// Holds one conversation to its end or to the load's; false at the latter.
    fn hold(&mut self, conversation: &mut Conversation, run: Option<&str>, wire: &mut Option<Wire>) -> bool {
        let (mut body, mut got) = (Vec::new(), Vec::new());
        while !conversation.is_over() {
            let Some(due) = self.due() else {
                if matches!(self.load.until, Until::Conversations(_)) {
                    *self.outcome.failures.entry("out of time".to_owned()).or_default() += 1;
                }
                return false;
            };
            let path = path(run, conversation.agent(), conversation.asks_a_tool());
            conversation.next_request(&mut body);
            let mut ask = Ask::of(&body).expect("the load asks what the upstream can read");
            ask.edited = self.load.edited;
            sleep_until(due);
            got.clear();
            match self.exchange(wire, &path, &body, &mut got, due) {
                Ok(()) => {
                    *self.outcome.verdicts.entry(judge(&ask, &ask.expected(), &got)).or_default() += 1;
                    self.outcome.tokens += ask.reply.tokens as u64;
                    self.outcome.request_bytes += body.len() as u64;
                    conversation.answered(&ask.text());
                }
                Err(cause) => {
                    *self.outcome.failures.entry(cause).or_default() += 1;
                    *wire = None;
                    // A target that refuses at once must not be asked a million times a second.
                    sleep_until(Instant::now() + Duration::from_millis(20));
                    return true;
                }
            }
        }
        true
    }

    /// When the next request is due; `None` at the end of the load.
    fn due(&self) -> Option<Instant> {
        let now = Instant::now().max(self.clockwork.start);
        let ticket = self.clockwork.tickets.fetch_add(1, Ordering::Relaxed);
        let due = match self.load.rate {
            Some(rate) => self.clockwork.start + Duration::from_secs_f64(ticket as f64 / rate),
            None => now,
        };
        let end = match self.load.until {
            Until::Elapsed(time) => self.clockwork.start + time,
            Until::Conversations(_) => self.clockwork.start + PATIENCE,
        };
        (due < end && now < end + PATIENCE).then_some(due)
    }

    /// One request and its whole answer.
    fn exchange(
        &mut self,
        kept: &mut Option<Wire>,
        path: &str,
        body: &[u8],
        got: &mut Vec<u8>,
        due: Instant,
    ) -> Result<(), String> {
        let broken = |error: io::Error| format!("{:?}", error.kind());
        let mut wire = match kept.take() {
            Some(wire) => wire,
            None => Wire::connect(self.load.port, PATIENCE).map_err(broken)?,
        };
        let sent = Instant::now();
        let in_flight = self.clockwork.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.outcome.most_in_flight = self.outcome.most_in_flight.max(in_flight);
        let from = if self.load.rate.is_some() { due } else { sent };
        let pace = self.load.shape.reply.pace;
        let mut last: Option<Instant> = None;
        let answer = wire.send(head(path, body.len()).as_bytes(), body).and_then(|()| {
            let head = wire.head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            wire.body(&head, |bytes, at| {
                got.extend_from_slice(bytes);
                match last.replace(at) {
                    None if self.load.shape.stream => self.outcome.first_token.push(nanoseconds(at - from)),
                    Some(before) if at > before && !pace.is_zero() => {
                        self.outcome.gap_error.push(nanoseconds((at - before).abs_diff(pace)));
                    }
                    _ => {}
                }
            })?;
            Ok(head)
        });
        self.clockwork.in_flight.fetch_sub(1, Ordering::Relaxed);
        let head = answer.map_err(broken)?;
        if head.status != 200 {
            return Err(format!("status {}: {}", head.status, String::from_utf8_lossy(&got[..got.len().min(160)])));
        }
        self.outcome.latency.push(nanoseconds(wire.read_at - from));
        if self.load.rate.is_some() {
            self.outcome.late.push(nanoseconds(sent - due));
        }
        if !head.close {
            *kept = Some(wire);
        }
        Ok(())
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
