//! What recording costs an exchange, in µs of CPU (user and system): `cargo bench --bench recording`.
//!
//! Each row is the median of several rounds of open + close on one thread, beside the floor that no recorder goes
//! below: a hash of the request and the two writes of as many bytes as the recorder wrote.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement talks, and stops where it cannot measure")]

use std::{fmt::Write as _, io::Write, path::Path};

use aegis::{
    recording::{Captured, Close, Manifest, Open, Recorder, Settings},
    trajectory::{AgentName, Attribution, CloseCause, RunId, Source, Usage},
};
use bytes::Bytes;
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

const ROUNDS: usize = 9;
const EXCHANGES: u32 = 400;

fn main() {
    println!("{:34}{:>10}{:>10}{:>12}", "exchange", "µs", "floor µs", "bytes/exch.");
    for (name, request, fresh) in
        [("2 kB, all new", 2_000, 2_000), ("32 kB, 6 kB new", 32_000, 6_000), ("256 kB, 6 kB new", 256_000, 6_000)]
    {
        measure(name, &|step| conversation(step, request, fresh), &|step| (whole(step, 800), Vec::new()));
    }
    measure("30-step conversation, 2 kB a step", &|step| growing(step % 30), &|step| (whole(step, 2_000), Vec::new()));
    measure("2 kB, streamed, 200 events", &|step| conversation(step, 2_000, 2_000), &|step| {
        (Bytes::new(), events(step))
    });
}

type Reply = (Bytes, Vec<(Bytes, u64)>);

fn measure(name: &str, request: &dyn Fn(u32) -> Bytes, reply: &dyn Fn(u32) -> Reply) {
    let requests: Vec<Bytes> = (0..EXCHANGES).map(request).collect();
    let replies: Vec<Reply> = (0..EXCHANGES).map(reply).collect();
    let (mut took, mut floor, mut bytes) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let logs = tempfile::tempdir().expect("a directory");
        let (micros, written) = record(logs.path(), &requests, &replies);
        bytes = written;
        // The first round warms caches and pages.
        if round > 0 {
            took.push(micros);
            floor.push(floor_of(logs.path(), &requests, written));
        }
    }
    println!("{name:34}{:>10.2}{:>10.2}{:>12}", median(took), median(floor), bytes / u64::from(EXCHANGES));
}

fn record(logs: &Path, requests: &[Bytes], replies: &[Reply]) -> (f64, u64) {
    let run = RunId::parse("bench").expect("an id");
    let clock = Settings::default().clock;
    let recorder = Recorder::create(logs, Manifest::new(run, "http://upstream", clock.wall()), &Settings::default());
    let recorder = recorder.expect("creates");
    let attribution = Attribution {
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        source: Source::Header,
        evidence: "x-aegis-agent: solver".to_owned(),
        confidence: 1.0,
        ambiguous: false,
    };
    let began = cpu_micros();
    for (step, (request, reply)) in (0..).zip(requests.iter().zip(replies)) {
        exchange(&recorder, &attribution, step, request, reply);
    }
    let took = (cpu_micros() - began) / f64::from(EXCHANGES);
    (took, std::fs::metadata(recorder.dir().join("log.jsonl")).expect("a log").len())
}

fn exchange(recorder: &Recorder, attribution: &Attribution, step: u32, request: &Bytes, (whole, events): &Reply) {
    let clock = recorder.clock();
    let headers: &[(&str, &[u8])] = &[
        ("host", b"127.0.0.1:8484"),
        ("accept", b"application/json"),
        ("authorization", b"Bearer none"),
        ("content-type", b"application/json"),
        ("user-agent", b"OpenAI/Python 2.0.0"),
        ("x-stainless-lang", b"python"),
        ("x-stainless-retry-count", b"0"),
        ("content-length", b"2000"),
    ];
    let open = Open {
        step,
        call: step,
        attempt: 0,
        attribution,
        overlapping: false,
        relates: aegis::trajectory::RecordedRelation::first(),
        run_source: "path",
        surface: "openai_chat",
        method: "POST",
        path: "/v1/chat/completions",
        headers,
        body: Some(request),
        body_hash: None,
        at_us: clock.micros(),
        wall: clock.wall(),
    };
    recorder.open(open).expect("records");
    let reply = if events.is_empty() {
        Captured::Whole(std::slice::from_ref(whole))
    } else {
        Captured::Stream(events.as_slice())
    };
    let close = Close {
        step,
        attempt: 0,
        cause: CloseCause::Complete,
        origin: aegis::trajectory::ReplyOrigin::Live,
        status: Some(200),
        headers: &[("content-type", b"application/json"), ("x-request-id", b"req_0123456789abcdef")],
        streamed_request: None,
        reply,
        truncated: false,
        delivered: None,
        reply_with_logprobs: None,
        proxy_error: None,
        usage: Some(Usage { input: 500, output: 200 }),
        finish_reason: Some("stop"),
        first_byte_us: Some(1000),
        last_byte_us: Some(2000),
    };
    recorder.close(close).expect("records");
}

/// A hash of each request, and two writes of what the recorder wrote for it.
fn floor_of(logs: &Path, requests: &[Bytes], written: u64) -> f64 {
    let mut file = std::fs::File::options().append(true).create(true).open(logs.join("floor")).expect("opens");
    let half = vec![b'x'; usize::try_from(written / u64::from(EXCHANGES) / 2).expect("small")];
    let began = cpu_micros();
    for request in requests {
        std::hint::black_box(twox_hash::XxHash3_128::oneshot(request));
        file.write_all(&half).expect("writes");
        file.write_all(&half).expect("writes");
    }
    (cpu_micros() - began) / f64::from(EXCHANGES)
}

/// CPU time of this process so far, in µs: a busy machine falsifies it less than the clock.
fn cpu_micros() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("is counted");
    let micros = |time: nix::sys::time::TimeVal| i32::try_from(time.num_microseconds()).map_or(f64::MAX, f64::from);
    micros(usage.user_time()) + micros(usage.system_time())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Words that differ with the seed.
fn words(seed: u32, bytes: usize) -> String {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = usize::try_from(state >> 58).unwrap_or_default();
        text.push_str(["the ", "plan ", "is ", "to ", "solve ", "it\\n", "step ", "by "].get(word % 8).unwrap_or(&""));
        if word > 55 {
            write!(text, "{} ", state >> 40).expect("writes");
        }
    }
    text
}

fn body(messages: &[(&str, String)]) -> Bytes {
    let messages: Vec<String> =
        messages.iter().map(|(role, text)| format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}")).collect();
    format!("{{\"model\":\"m-1\",\"messages\":[{}],\"temperature\":0.0}}", messages.join(",")).into()
}

/// An old part of eight messages, equal in every request, and a new part of two.
fn conversation(step: u32, bytes: usize, fresh: usize) -> Bytes {
    let old = bytes.saturating_sub(fresh) / 8;
    let mut messages: Vec<(&str, String)> =
        (0..8).filter(|_| old > 0).map(|number| ("user", words(number, old))).collect();
    messages.extend([("user", words(1000 + 2 * step, fresh / 2)), ("user", words(1001 + 2 * step, fresh / 2))]);
    body(&messages)
}

fn growing(step: u32) -> Bytes {
    body(&(0..=step).map(|number| ("user", words(number, 2000))).collect::<Vec<_>>())
}

fn whole(step: u32, bytes: usize) -> Bytes {
    let text = words(5_000_000 + step, bytes);
    format!(
        "{{\"id\":\"chatcmpl-{step:012}\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"m-1\",\"choices\":[{{\"index\":0,\
         \"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":500,\"completion_tokens\":200}}}}"
    )
    .into()
}

fn events(step: u32) -> Vec<(Bytes, u64)> {
    let event = |number: u32| {
        let text = words(step.wrapping_mul(1000) + number, 4);
        let event = format!(
            "data: {{\"id\":\"chatcmpl-{step:012}\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m-1\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        );
        (Bytes::from(event), u64::from(number) * 20_000)
    };
    (0..200).map(event).collect()
}
