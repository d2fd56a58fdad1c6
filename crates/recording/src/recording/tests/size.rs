//! A growing conversation is stored once.

use bytes::Bytes;

use super::sample;
use crate::recording::{Captured, Recorder, Settings, read};

/// Words of a made-up language: text that compresses about as prose does, the same in every run.
fn prose(seed: u64, bytes: usize) -> String {
    const SYLLABLES: &[&str] =
        &["ra", "ti", "on", "the", "pre", "sum", "ver", "al", "com", "ist", "ing", "mo", "del", "er", "plan", "so"];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % limit
    };
    // A vocabulary with a steep distribution, as words of a language have.
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let rank = (next(40) * next(40)) / 4 + 1;
        let mut word = rank;
        for _ in 0..=rank % 3 {
            text.push_str(SYLLABLES[word % SYLLABLES.len()]);
            word = word * 7 / 3 + 1;
        }
        text.push_str(if next(9) == 0 { ". " } else { " " });
    }
    text
}

struct Measured {
    said: usize,
    sent: usize,
    live: u64,
    sealed: u64,
}

/// Four agents with system prompts of 2 kB speak in turn; each hears everything said so far.
fn conversation(steps: u32, streamed: bool) -> Measured {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let systems: Vec<String> = (0..4).map(|agent| prose(1000 + agent, 2000)).collect();
    let task = prose(1, 2000);
    let mut said = task.len() + systems.iter().map(String::len).sum::<usize>();
    let mut sent = 0;
    let mut history: Vec<(u32, String)> = Vec::new();
    let mut exchanges = Vec::new();
    for step in 0..steps {
        let agent = step % 4;
        let request = request(agent, &systems[agent as usize], &task, &history);
        let answer = format!("Step {step}: {}\n\"done\"", prose(u64::from(step) + 10, 2000));
        sample::open(&recorder, step, &format!("agent {agent}"), &request).expect("records");
        let pieces = if streamed { events(step, &answer) } else { vec![(whole(step, &answer), 0)] };
        let whole: Vec<Bytes> = pieces.iter().map(|(piece, _)| piece.clone()).collect();
        let reply = if streamed { Captured::Stream(&pieces) } else { Captured::Whole(&whole) };
        recorder.close(sample::closing(step, reply)).expect("records");
        said += answer.len();
        sent += request.len() + whole.concat().len();
        exchanges.push((request, whole.concat()));
        history.push((agent, answer));
    }
    let size = |name: &str| std::fs::metadata(logs.path().join("r").join(name)).expect("is there").len();
    let live = size("log.jsonl");
    recorder.seal().expect("seals");
    let sealed = size("log.jsonl.zst");
    let recording = read(&logs.path().join("r")).expect("reads");
    for (step, (request, reply)) in recording.trajectory.steps.iter().zip(exchanges) {
        assert_eq!(step.request, request);
        assert_eq!(step.attempts[0].reply, reply);
    }
    Measured { said, sent, live, sealed }
}

fn request(agent: u32, system: &str, task: &str, history: &[(u32, String)]) -> Bytes {
    let mut messages = vec![
        serde_json::json!({"role": "system", "content": system}),
        serde_json::json!({"role": "user", "content": task}),
    ];
    messages.extend(history.iter().map(|(by, text)| {
        let role = if *by == agent { "assistant" } else { "user" };
        serde_json::json!({"role": role, "content": text})
    }));
    let tools = serde_json::json!([{"type": "function", "function": {"name": "lookup", "parameters": {}}}]);
    serde_json::json!({"model": "m-1", "messages": messages, "tools": tools, "temperature": 0}).to_string().into()
}

fn whole(step: u32, answer: &str) -> Bytes {
    serde_json::json!({"id": format!("chatcmpl-{step:08}"), "object": "chat.completion",
        "created": 1_700_000_000 + step, "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900 + step, "completion_tokens": 500}})
    .to_string()
    .into()
}

fn events(step: u32, answer: &str) -> Vec<(Bytes, u64)> {
    let event = |(at, word): (u64, &str)| {
        let event = serde_json::json!({"id": format!("chatcmpl-{step:08}"), "object": "chat.completion.chunk",
            "created": 1_700_000_000 + step, "model": "m-1",
            "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]});
        (Bytes::from(format!("data: {event}\n\n")), at * 20_000)
    };
    (0..).zip(answer.split_inclusive(' ')).map(event).collect()
}

/// A share in per mille.
fn per_mille(part: u64, whole: usize) -> u64 {
    part * 1000 / whole as u64
}

#[test]
fn stored_bytes_follow_what_is_said_not_what_is_sent() {
    let (short, long) = (conversation(30, false), conversation(100, false));
    for Measured { said, sent, live, sealed } in [&short, &long] {
        let (live, sealed) = (per_mille(*live, *said), per_mille(*sealed, *said));
        println!("said {said}, sent {sent}; of what was said: live {live} per mille, sealed {sealed} per mille");
        assert!(live <= 1800, "the live log is {live} per mille of what was said");
        assert!(sealed <= 500, "the sealed log is {sealed} per mille of what was said");
    }
    let (short, long) = (per_mille(short.sealed, short.said), per_mille(long.sealed, long.said));
    assert!(long * 100 <= short * 105, "the share grows with length: {short} to {long} per mille");
}

#[test]
fn streamed_replies_cost_little_more() {
    let measured = conversation(30, true);
    let sealed = per_mille(measured.sealed, measured.said);
    println!("streamed: sealed {sealed} per mille of what was said");
    assert!(sealed <= 1000, "the sealed log is {sealed} per mille of what was said");
}

/// A run that is open for long: agents that hear the last words of the others.
#[test]
fn a_long_run_is_small_while_it_is_open() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = logs.path().join("r");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let systems: Vec<String> = (0..4).map(|agent| prose(1000 + agent, 2000)).collect();
    let task = prose(1, 2000);
    let mut said = task.len() + systems.iter().map(String::len).sum::<usize>();
    let mut history: Vec<(u32, String)> = Vec::new();
    let mut most = 0;
    for step in 0..2_400 {
        let agent = step % 4;
        let request = request(agent, &systems[agent as usize], &task, &history[history.len().saturating_sub(2)..]);
        let answer = format!("Step {step}: {}\n\"done\"", prose(u64::from(step) + 10, 2000));
        let reply = whole(step, &answer);
        sample::exchange(&recorder, step, &format!("agent {agent}"), &request, &reply).expect("records");
        said += answer.len();
        history.push((agent, answer));
        if said > 4 << 20 {
            // Not before the thread has caught up: what it has to do is no figure to hold.
            recorder.log.roll();
            let files = std::fs::read_dir(&dir).expect("lists").flatten();
            let held: u64 = files.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len())).sum();
            most = most.max(per_mille(held, said));
        }
    }
    recorder.seal().expect("seals");
    let sealed = per_mille(std::fs::metadata(dir.join("log.jsonl.zst")).expect("is there").len(), said);
    println!("said {said}; of that at most {most} per mille were held while it was open, {sealed} per mille sealed");
    assert!(most <= 600, "{most} per mille of what was said");
    assert_eq!(read(&dir).expect("reads").trajectory.steps.len(), 2_400);
}
