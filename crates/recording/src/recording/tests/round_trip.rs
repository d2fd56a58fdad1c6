//! Whatever was written is read back to the byte: bodies, histories and streams at random.

use std::fmt::Write;

use bytes::Bytes;
use proptest::prelude::*;

use super::sample;
use crate::recording::{Captured, Recorder, Settings, read, read_apart};

/// Text with everything that escapes and boundaries can stumble over, long enough to become a text or not.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c \"\\\\\n\té😀{}\\[\\],:]{0,80}",
        "(so it goes on and on\\. ){3,20}[a-z]{0,5}",
        Just("the same text every time, long enough to be referred to by its hash".to_owned()),
    ]
}

#[derive(Debug, Clone)]
enum Change {
    Say(String),
    Edit(usize, String),
    Drop(usize),
    Python,
    Cut(usize),
    Raw(Vec<u8>),
    Flip(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => text().prop_map(Change::Say),
        1 => (any::<usize>(), text()).prop_map(|(at, text)| Change::Edit(at, text)),
        1 => any::<usize>().prop_map(Change::Drop),
        1 => Just(Change::Python),
        1 => any::<usize>().prop_map(Change::Cut),
        1 => proptest::collection::vec(any::<u8>(), 0..300).prop_map(Change::Raw),
        1 => any::<usize>().prop_map(Change::Flip),
    ]
}

/// Request bodies of a conversation that grows, is edited, cut, re-encoded and garbled.
fn bodies(changes: &[Change]) -> Vec<Bytes> {
    let mut history: Vec<String> = Vec::new();
    let mut bodies = Vec::new();
    for change in changes {
        let place = |at: usize| at % history.len().max(1);
        match change {
            Change::Say(text) => history.push(text.clone()),
            Change::Edit(at, text) => {
                let at = place(*at);
                history.splice(at..(at + 1).min(history.len()), [text.clone()]);
            }
            Change::Drop(at) if !history.is_empty() => drop(history.remove(place(*at))),
            _ => {}
        }
        let messages: Vec<_> =
            history.iter().map(|text| serde_json::json!({"role": "user", "content": text})).collect();
        let mut body =
            serde_json::json!({"model": "m", "messages": messages, "stream": false}).to_string().into_bytes();
        match change {
            Change::Python => {
                let mut ascii = String::new();
                for c in String::from_utf8(body).expect("JSON").chars() {
                    let mut units = [0; 2];
                    if c.is_ascii() {
                        ascii.push(c);
                        continue;
                    }
                    for unit in c.encode_utf16(&mut units) {
                        write!(ascii, "\\u{unit:04x}").expect("writes");
                    }
                }
                body = ascii.into_bytes();
            }
            Change::Cut(at) => body.truncate(at % (body.len() + 1)),
            Change::Raw(raw) => body.clone_from(raw),
            Change::Flip(at) => {
                let at = at % body.len();
                body[at] ^= 0x55;
            }
            _ => {}
        }
        bodies.push(body.into());
    }
    bodies
}

/// The bytes in pieces of these lengths, each with an arrival.
fn pieces(bytes: &Bytes, lengths: &[usize]) -> Vec<(Bytes, u64)> {
    let mut rest = bytes.clone();
    let mut pieces = Vec::new();
    for (at, length) in lengths.iter().cycle().enumerate() {
        if rest.is_empty() {
            break;
        }
        pieces.push((rest.split_to((*length).clamp(1, rest.len())), at as u64 * 10));
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn histories_read_back(changes in proptest::collection::vec(change(), 1..14), reopen in 0usize..20) {
        let logs = tempfile::tempdir().expect("a directory");
        let create = || Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
        let mut recorder = create();
        let bodies = bodies(&changes);
        for (step, body) in bodies.iter().enumerate() {
            if step == reopen {
                drop(recorder);
                recorder = create();
            }
            let reply = &bodies[step / 2];
            sample::exchange(&recorder, u32::try_from(step).expect("few"), "a", body, reply).expect("records");
        }
        for sealed in [false, true] {
            if sealed {
                recorder.seal().expect("seals");
            }
            let recording = read(&logs.path().join("r")).expect("reads");
            let (bare, requests) = read_apart(&logs.path().join("r")).expect("reads");
            for (step, body) in bodies.iter().enumerate() {
                // Each request by itself, put together from what it shares with earlier ones.
                prop_assert_eq!(&requests.get(step), body);
                prop_assert!(bare.trajectory.steps[step].request.is_empty());
                prop_assert_eq!(&bare.trajectory.steps[step].attempts[0].reply, &bodies[step / 2]);
                let read = &recording.trajectory.steps[step];
                prop_assert_eq!(&read.request, body);
                prop_assert_eq!(&read.attempts[0].reply, &bodies[step / 2]);
                prop_assert!(read.attempts[0].exact);
            }
        }
    }

    #[test]
    fn streams_read_back(
        words in proptest::collection::vec(text(), 0..12),
        garbage in proptest::collection::vec(any::<u8>(), 0..40),
        lengths in proptest::collection::vec(1usize..200, 1..6),
        line_end in prop_oneof![Just("\n\n"), Just("\r\n\r\n"), Just("\n")],
    ) {
        let logs = tempfile::tempdir().expect("a directory");
        let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
        let event = |word: &String| format!("data: {}{line_end}", serde_json::json!({"delta": {"content": word}}));
        let mut stream: Vec<u8> = words.iter().map(event).collect::<String>().into_bytes();
        stream.extend_from_slice(&garbage);
        let stream = Bytes::from(stream);
        let chunks = pieces(&stream, &lengths);
        let delivered = Bytes::from([&stream, b"data: [DONE]\n\n".as_slice()].concat());
        sample::open(&recorder, 0, "a", &Bytes::new()).expect("records");
        let mut close = sample::closing(0, Captured::Stream(&chunks));
        close.delivered = Some(&delivered);
        recorder.close(close).expect("records");
        let recording = read(&logs.path().join("r")).expect("reads");
        let attempt = &recording.trajectory.steps[0].attempts[0];
        prop_assert!(attempt.streamed);
        prop_assert_eq!(&attempt.reply, &stream);
        prop_assert_eq!(attempt.delivered(), &delivered);
        let frames = &recording.exchanges[0].frames;
        prop_assert_eq!(frames.iter().map(|(_, length)| *length).sum::<u64>(), stream.len() as u64);
        prop_assert!(frames.is_sorted_by_key(|(at, _)| *at));
    }
}

#[test]
fn a_body_that_comes_back_after_its_name_was_forgotten_reads_back() {
    let logs = tempfile::tempdir().expect("a directory");
    let recorder = Recorder::create(logs.path(), sample::manifest("r"), &Settings::default()).expect("creates");
    let body = |number: u32| Bytes::from(format!("{{\"content\":\"{number} {}\"}}", "so it goes ".repeat(6)));
    let numbers: Vec<u32> = (0..2500).chain([0, 2499, 1]).collect();
    for (step, number) in numbers.iter().enumerate() {
        let (step, body) = (u32::try_from(step).expect("few"), body(*number));
        sample::exchange(&recorder, step, "a", &body, &body).expect("records");
    }
    let recording = read(&logs.path().join("r")).expect("reads");
    for (step, number) in recording.trajectory.steps.iter().zip(&numbers) {
        assert_eq!(step.request, body(*number));
        assert_eq!(step.attempts[0].reply, step.request);
    }
    // Those that were forgotten are found by what they share with the newest, or by their texts.
    let log = super::whole_log(&logs.path().join("r"));
    assert_eq!(log.matches(r#""kind":"text""#).count(), 2500);
}
