//! Secrets in pieces: forms of streams × secrets × sizes of pieces.

use std::{fmt::Write, ops::RangeInclusive};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::recording::{Redactor, Secrets, frames, redact, spread};

const KEY: &str = "ghp_Qz7Wm3Xk9Rt2Yb5Nc8Vd1Lf4Jh6Gs0PaXy1";
/// Shapes of keys, the client's own credential, and a declared value.
const SECRETS: [&str; 5] =
    [KEY, "sk-proj-Qz7Wm3Xk9Rt2Yb5Nc8Vd1Lf4Jh6", "9f8e7d6c5b4a39281706", "hunter2-is-declared", "AKIAIOSFODNN7EXAMPLE"];
const SIZES: RangeInclusive<usize> = 1..=11;

/// A form of a stream: its events, of a text in pieces.
struct StreamForm {
    name: &'static str,
    events: fn(&[&str]) -> Vec<String>,
    /// Where each event has a piece, as JSON pointers.
    pieces: &'static [&'static str],
}

fn redactor() -> Redactor {
    let secrets = Secrets { values: vec![SECRETS[3].to_owned()], ..Secrets::default() };
    let redactor = Redactor::new(&secrets).expect("compiles");
    redactor.add_credentials("/", &[("authorization", format!("Bearer {}", SECRETS[2]).as_bytes())]);
    redactor
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn each(pieces: &[&str], event: impl Fn(usize, &str) -> Value) -> Vec<String> {
    pieces.iter().enumerate().map(|(number, piece)| data(&event(number, piece))).collect()
}

/// As it is written in a permuted order of members, which `json!` does not keep.
fn written(pieces: &[&str], event: impl Fn(usize, String) -> String) -> Vec<String> {
    let text = |piece: &str| json!(piece).to_string();
    pieces.iter().enumerate().map(|(number, piece)| format!("data: {}\n\n", event(number, text(piece)))).collect()
}

/// Something between each two events.
fn between(events: Vec<String>, every: usize, what: &str) -> Vec<String> {
    let more =
        |(number, event): (usize, String)| if number % every == 0 { vec![what.to_owned(), event] } else { vec![event] };
    events.into_iter().enumerate().flat_map(more).collect()
}

fn chat(pieces: &[&str]) -> Vec<String> {
    each(
        pieces,
        |_, piece| json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]}),
    )
}

fn messages(pieces: &[&str]) -> Vec<String> {
    let (first, rest) = pieces.split_first().expect("a piece");
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": first}});
    let deltas = each(
        rest,
        |_, piece| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
    );
    std::iter::once(data(&start)).chain(deltas).collect()
}

const FORMS: &[StreamForm] = &[
    StreamForm { name: "chat", events: chat, pieces: &["/choices/0/delta/content"] },
    StreamForm {
        name: "chat, an id and a time in each chunk",
        events: |pieces| {
            each(
                pieces,
                |number, piece| json!({"id": format!("c-{number}"), "created": 1_700_000_000 + number, "choices": [{"index": 0, "delta": {"content": piece}}]}),
            )
        },
        pieces: &["/choices/0/delta/content"],
    },
    StreamForm {
        name: "chat, two choices in turn",
        events: |pieces| {
            let both = pieces.iter().flat_map(|piece| [(0, *piece), (1, "word ")]);
            both.map(|(index, piece)| data(&json!({"choices": [{"delta": {"content": piece}, "index": index}]})))
                .collect()
        },
        pieces: &["/choices/0/delta/content"],
    },
    StreamForm {
        name: "chat, comments between",
        events: |pieces| between(chat(pieces), 1, ": keep-alive\n\n"),
        pieces: &["/choices/0/delta/content"],
    },
    StreamForm {
        name: "chat, a refusal, members permuted",
        events: |pieces| {
            written(pieces, |number, piece| {
                format!(
                    r#"{{"usage": null, "choices": [{{"delta": {{"refusal": {piece}}}, "logprobs": null, "index": 0}}], "n": {number}}}"#
                )
            })
        },
        pieces: &["/choices/0/delta/refusal"],
    },
    StreamForm {
        name: "chat, arguments of two tools in turn",
        events: |pieces| {
            let both = pieces.iter().flat_map(|piece| [(1, *piece), (0, "x")]);
            both.map(|(index, piece)| data(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}}]}))).collect()
        },
        pieces: &["/choices/0/delta/tool_calls/0/function/arguments"],
    },
    StreamForm {
        name: "chat, tokens with alternatives",
        events: |pieces| {
            each(pieces, |_, piece| {
                let bytes: Vec<u8> = piece.bytes().collect();
                json!({"choices": [{"index": 0, "delta": {"content": piece}, "logprobs": {"content": [{"token": piece, "bytes": bytes,
                "top_logprobs": [{"token": piece, "bytes": bytes}, {"token": "no", "bytes": [110, 111]}]}]}}]})
            })
        },
        pieces: &[
            "/choices/0/delta/content",
            "/choices/0/logprobs/content/0/token",
            "/choices/0/logprobs/content/0/bytes",
            "/choices/0/logprobs/content/0/top_logprobs/0/token",
            "/choices/0/logprobs/content/0/top_logprobs/0/bytes",
        ],
    },
    StreamForm {
        name: "completions",
        events: |pieces| {
            each(pieces, |_, piece| json!({"choices": [{"text": piece, "index": 0, "finish_reason": null}]}))
        },
        pieces: &["/choices/0/text"],
    },
    StreamForm {
        name: "Responses, numbers before the text",
        events: |pieces| {
            written(pieces, |number, piece| {
                format!(
                    r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"m","output_index":0,"content_index":0,"delta":{piece}}}"#
                )
            })
        },
        pieces: &["/delta"],
    },
    StreamForm {
        name: "Responses, numbers behind, padding, arguments",
        events: |pieces| {
            written(pieces, |number, piece| {
                format!(
                    r#"{{"delta":{piece},"obfuscation":"{}","output_index":1,"sequence_number":{number},"type":"response.function_call_arguments.delta"}}"#,
                    "aZ9".repeat(number % 4)
                )
            })
        },
        pieces: &["/delta"],
    },
    StreamForm {
        name: "Messages, begun in the first block",
        events: messages,
        pieces: &["/content_block/text", "/delta/text"],
    },
    StreamForm {
        name: "Messages, pings between",
        events: |pieces| between(messages(pieces), 3, "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        pieces: &["/content_block/text", "/delta/text"],
    },
    StreamForm {
        name: "Messages, thinking",
        events: |pieces| {
            each(
                pieces,
                |_, piece| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": piece}}),
            )
        },
        pieces: &["/delta/thinking"],
    },
    StreamForm {
        name: "Gemini",
        events: |pieces| {
            each(
                pieces,
                |number, piece| json!({"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}}], "usageMetadata": {"totalTokenCount": number}}),
            )
        },
        pieces: &["/candidates/0/content/parts/0/text"],
    },
    StreamForm {
        name: "text alone",
        events: |pieces| pieces.iter().map(|piece| format!("data: {piece}\n\n")).collect(),
        pieces: &[""],
    },
];

/// The text cut into pieces of so many characters.
fn cut(text: &str, size: usize) -> Vec<&str> {
    let starts = (0..text.len()).step_by(size);
    starts.map(|start| text.get(start..(start + size).min(text.len())).expect("ASCII")).collect()
}

/// What a reader puts together at a place of each event.
fn read_at(stream: &[u8], pointer: &str) -> String {
    let text = std::str::from_utf8(stream).expect("UTF-8");
    let values = text.lines().filter_map(|line| line.strip_prefix("data: "));
    values.fold(String::new(), |mut read, value| {
        let event = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        match event.pointer(pointer) {
            Some(Value::String(piece)) => read.push_str(piece),
            Some(Value::Array(bytes)) => {
                read.extend(bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok().map(char::from)));
            }
            _ => {}
        }
        read
    })
}

fn masked(stream: &str, redactor: &Redactor) -> Vec<u8> {
    let mut bytes = stream.as_bytes().to_vec();
    let frames = frames::split(&bytes, &[]);
    let mut spans = redactor.find(&bytes, 0..bytes.len());
    spans.extend(spread::in_stream(&bytes, &frames, redactor));
    redact::mask(&mut bytes, &redact::merged(spans));
    bytes
}

#[test]
fn no_form_of_stream_has_a_readable_secret() {
    let redactor = redactor();
    let mut table = String::new();
    for form in FORMS {
        let mut readable = Vec::new();
        for secret in SECRETS {
            for size in SIZES {
                for begins_the_text in [false, true] {
                    let before = if begins_the_text { "" } else { "Your key: " };
                    let said = format!("{before}{secret} is it");
                    let stream = (form.events)(&cut(&said, size)).concat();
                    let masked = masked(&stream, &redactor);
                    assert_eq!(masked.len(), stream.len());
                    let half = &secret[secret.len() / 2..];
                    let read = |pointer: &&str| read_at(&masked, pointer).contains(half);
                    if form.pieces.iter().any(read) {
                        readable.push((secret, size, before));
                    }
                }
            }
        }
        if !readable.is_empty() {
            let _ = writeln!(table, "{}: {} of 110: {:?}", form.name, readable.len(), readable.first());
        }
    }
    assert!(table.is_empty(), "\n{table}");
}

#[test]
fn streams_without_secrets_stay() {
    let redactor = redactor();
    let prose =
        "So the answer is 42, as the token budget of 1200 says; see https://example.org/a?b=c and code=7. ".repeat(4);
    for form in FORMS {
        for size in SIZES {
            let stream = (form.events)(&cut(&prose, size)).concat();
            assert_eq!(masked(&stream, &redactor), stream.as_bytes(), "{}", form.name);
        }
    }
}

#[test]
fn tokens_and_lines_of_a_whole_reply() {
    let redactor = redactor();
    let tokens: Vec<Value> = cut(KEY, 3).iter().map(|piece| {
        let bytes: Vec<u8> = piece.bytes().collect();
        json!({"token": piece, "bytes": bytes, "top_logprobs": [{"token": piece, "bytes": bytes}, {"token": "a", "bytes": [97]}]})
    }).collect();
    let chat = json!({"choices": [{"message": {"content": "?"}, "logprobs": {"content": tokens}}]}).to_string();
    let completions = json!({"choices": [{"text": "?", "logprobs": {"tokens": cut(KEY, 3)}}]}).to_string();
    let lines: String =
        cut(KEY, 3).iter().map(|piece| json!({"message": {"content": piece}}).to_string() + "\n").collect();
    let array = json!(
        cut(KEY, 3)
            .iter()
            .map(|piece| json!({"candidates": [{"content": {"parts": [{"text": piece}]}}]}))
            .collect::<Vec<_>>()
    )
    .to_string();
    for reply in [chat, completions, lines, array] {
        let mut bytes = Bytes::from(reply.clone()).to_vec();
        let spans = redact::merged(spread::in_reply(&bytes, &redactor));
        redact::mask(&mut bytes, &spans);
        let left = String::from_utf8(bytes).expect("UTF-8");
        for piece in cut(KEY, 3) {
            assert!(!left.contains(&format!("\"{piece}\"")), "{piece} of {reply}\n{left}");
        }
        assert!(!left.contains("103"), "the number of a `g`: {left}");
        assert!(left.trim().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{left}");
    }
}
