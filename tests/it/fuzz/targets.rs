//! What is fuzzed, and what must hold of any input.

use std::hash::{DefaultHasher, Hash, Hasher};

use aegis::{
    plan,
    proxy::Framing,
    recording,
    surface::{
        self, A2a, Mcp, Message, Reply, Role, Surface,
        splice::{Node, Splices, encode_string},
        sse, written,
    },
};

use super::{
    clone,
    examples::{bodies, heads, logs, plans, recorded, said, streams},
    files, foreign, servers, socket, task_set,
};

/// A reader of bytes.
pub struct Target {
    pub name: &'static str,
    /// Inputs that make sense.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Words of the language.
    pub words: &'static [&'static str],
    /// Panics where something that must hold does not; the number tells apart what kinds of input there are.
    pub check: fn(&[u8]) -> u64,
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "1e400",
    "-0",
    "\"\\ud800\"",
    "\"role\"",
    "\"content\"",
    "\"type\"",
    "\"text\"",
    "\"tool_calls\"",
    "\"choices\"",
    "\"delta\"",
    "\"index\"",
    "\"input\"",
    "\"output\"",
    "\"messages\"",
    "\"usage\"",
    "\"id\"",
    "\"arguments\"",
    "\"finish_reason\"",
    "\"stop_reason\"",
    "\"output_index\"",
    "\"item\"",
    "\"sequence_number\"",
    "data: ",
    "event: ",
    "\n\n",
    "[DONE]",
    "\"response\"",
    "\"system\"",
    "\"tools\"",
    "\"stream\"",
];

const RANKER: &[&str] =
    &["format = ", "[[feature]]\n", "name = ", "weight = ", "mean = ", "scale = ", "nan", "1e308", "\n"];

pub const TARGETS: &[Target] = &[
    Target {
        name: "sse",
        examples: streams,
        words: &["data:", "data: [DONE]", "\r", "\n", "\r\n", "event:", ": ", "\u{feff}"],
        check: sse,
    },
    Target { name: "splice", examples: bodies, words: JSON, check: splice },
    Target { name: "openai_chat", examples: || said(0), words: JSON, check: |input| surface(0, input) },
    Target { name: "openai_responses", examples: || said(1), words: JSON, check: |input| surface(1, input) },
    Target { name: "openai_completions", examples: || said(2), words: JSON, check: |input| surface(2, input) },
    Target { name: "anthropic_messages", examples: || said(3), words: JSON, check: |input| surface(3, input) },
    Target { name: "gemini_generate", examples: || said(4), words: JSON, check: |input| surface(4, input) },
    Target { name: "gemini_interactions", examples: || said(5), words: JSON, check: |input| surface(5, input) },
    Target { name: "openai_embeddings", examples: || said(6), words: JSON, check: |input| surface(6, input) },
    Target { name: "socket", examples: socket::examples, words: JSON, check: socket::check },
    Target { name: "mcp", examples: servers::mcp, words: servers::WORDS, check: |input| read_and_edit(&Mcp, input) },
    Target { name: "a2a", examples: servers::a2a, words: servers::WORDS, check: |input| read_and_edit(&A2a, input) },
    Target { name: "card", examples: servers::cards, words: servers::WORDS, check: servers::card },
    Target { name: "task_set", examples: task_set::examples, words: JSON, check: |input| sum(&task_set::check(input)) },
    Target {
        name: "otlp",
        examples: || foreign::examples(0),
        words: foreign::SPANS,
        check: |input| imported(0, input),
    },
    Target { name: "inspect", examples: || foreign::examples(1), words: JSON, check: |input| imported(1, input) },
    Target { name: "atif", examples: || foreign::examples(2), words: JSON, check: |input| imported(2, input) },
    Target { name: "langfuse", examples: || foreign::examples(3), words: JSON, check: |input| imported(3, input) },
    Target { name: "plain_log", examples: || foreign::examples(4), words: JSON, check: |input| imported(4, input) },
    Target {
        name: "request_head",
        examples: heads,
        words: &[
            "GET ",
            "POST ",
            " HTTP/1.1",
            "\r\n",
            "Host: h",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            "0\r\n\r\n",
            "5\r\nhello\r\n",
        ],
        check: request_head,
    },
    Target {
        name: "log",
        examples: logs,
        words: &["\"kind\":\"open\"", "\"kind\":\"close\"", "\"seq\":", "\"crc\":", "\"segs\":", "\"hash\":", "\n"],
        check: log,
    },
    Target { name: "clone", examples: clone::examples, words: clone::WORDS, check: clone::check },
    Target {
        name: "plan",
        examples: plans,
        words: &[
            "[[injection]]\n",
            "[[check]]\n",
            "agent = ",
            "when.",
            "manipulator.",
            "fault.",
            "failure_mode = ",
            "\"FM-2.6\"",
            " = { ",
            " }\n",
            "seed = ",
            "\"*\"",
            "always = true",
            "probability = ",
        ],
        check: plan,
    },
    Target { name: "row", examples: files::rows, words: JSON, check: |input| sum(&files::row(input)) },
    Target {
        name: "predictions",
        examples: files::predicted,
        words: JSON,
        check: |input| sum(&files::predictions(input)),
    },
    Target { name: "ranker", examples: files::rankers, words: RANKER, check: |input| sum(&files::ranker(input)) },
];

/// One number for what was seen.
pub fn sum(seen: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    seen.hash(&mut hasher);
    hasher.finish()
}

/// An error without what differs between inputs of one kind: numbers, and what it quotes of the input.
pub fn kind(error: &str) -> String {
    let unquoted: String = error.split('`').step_by(2).collect();
    unquoted.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

/// Events lie in order in the stream, and its end is found wherever chunks are cut, no byte lost.
fn sse(input: &[u8]) -> u64 {
    let events = sse::events(input);
    let mut end = 0;
    for event in &events {
        assert!(event.span.start >= end && event.span.end > event.span.start, "{event:?}");
        assert!(event.data.iter().all(|data| event.span.start <= data.start && data.end <= event.span.end));
        end = event.span.end;
    }
    assert!(end == input.len() || events.is_empty() && input.len() <= 3);
    let watched = |sizes: &[usize]| {
        let mut splitter = sse::Splitter::new(&[b"data: [DONE]", b"event: error"]);
        let (mut free, mut held, mut ended, mut at) = (0, 0, false, 0);
        for size in sizes.iter().cycle() {
            let chunk = &input[at..(at + size).min(input.len())];
            if chunk.is_empty() || ended {
                break;
            }
            let seen = splitter.push(chunk);
            assert!(seen.free <= chunk.len());
            if seen.release_held {
                free += std::mem::take(&mut held);
            }
            // What is free may not overtake what is held.
            assert!(held == 0 || seen.free == 0, "{held} bytes are overtaken");
            free += seen.free;
            held += chunk.len() - seen.free;
            ended = seen.ended;
            at += chunk.len();
        }
        assert!(ended || free + held == input.len());
        ended
    };
    let ended = watched(&[input.len().max(1)]);
    assert_eq!(ended, watched(&[1]), "whole and byte by byte");
    assert_eq!(ended, watched(&[3, 1, 7]), "whole and cut");
    sum(&(events.len().min(6), events.iter().map(|event| event.data.len().min(3)).max(), ended))
}

/// A text put in the place of any node changes that place alone.
fn splice(input: &[u8]) -> u64 {
    let Ok(root) = Node::parse(input) else { return 0 };
    let source = std::str::from_utf8(input).expect("parsed");
    let mut nodes = vec![root];
    let mut at = 0;
    while let (Some(node), true) = (nodes.get(at).copied(), nodes.len() < 200) {
        nodes.extend(node.members().iter().map(|member| member.value));
        nodes.extend(node.elements());
        at += 1;
    }
    for node in &nodes {
        assert_eq!(&source[node.span()], node.raw());
        let mut splices = Splices::default();
        splices.replace(node.span(), "7");
        let written = splices.apply(input);
        let expected = [&input[..node.span().start], b"7", &input[node.span().end..]].concat();
        assert_eq!(&written[..], expected);
        assert!(Node::parse(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
        if let Some(text) = node.string() {
            let again = encode_string(&text);
            assert_eq!(Node::parse(again.as_bytes()).expect("a string").string().as_deref(), Some(&*text));
        }
        if node.is_array() {
            let origins: Vec<_> = (0..node.elements().len()).rev().map(Some).chain([None]).collect();
            let mut splices = Splices::default();
            splices.write_array(source, &node.listed(), &origins, |_, _, _| {}, |_| "[]".to_owned());
            let written = splices.apply(input);
            let read =
                Node::parse(&written).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written)));
            if node.span() == root.span() {
                let (before, after) = (node.elements(), read.elements());
                let expected = before.iter().rev().map(Node::raw).chain(["[]"]);
                assert!(after.iter().map(Node::raw).eq(expected), "{}", read.raw());
            }
        }
    }
    sum(&(nodes.len().min(20), nodes.iter().map(|node| node.raw().as_bytes()[0]).collect::<Vec<_>>().len().min(9)))
}

fn words_of(reply: &Reply) -> Vec<(String, usize, Option<String>)> {
    let answers = reply.answers.iter();
    answers.map(|a| (a.message.text(), a.message.tool_calls.len(), a.finish_reason.clone())).collect()
}

/// What an import of one format makes of it.
fn imported(format: usize, input: &[u8]) -> u64 {
    sum(&foreign::check(format, input))
}

fn surface(index: usize, input: &[u8]) -> u64 {
    read_and_edit(surface::ALL[index], input)
}

/// Whatever can be read is written back unchanged, and an edited request reads back where the edit has a place. An edited reply says what
/// was meant, or is refused.
fn read_and_edit(surface: &dyn Surface, input: &[u8]) -> u64 {
    let mut said = Vec::new();
    let outlined = surface.outline(input).is_ok();
    match surface.read_request(input) {
        Ok(view) => {
            // What is only recorded is never written.
            if let Ok(same) = surface.write_request(input, &view, &view) {
                assert_eq!(&same[..], input);
            }
            assert!(outlined, "what is read whole is read in one pass");
            let mut after = view.clone();
            after.messages.push(Message::text_of(Role::User, "Seven."));
            let edited = surface.write_request(input, &view, &after).map(|written| {
                surface
                    .read_request(&written)
                    .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&written)))
            });
            said.push(format!("{} {} {}", view.messages.len().min(5), view.tools.len().min(3), edited.is_ok()));
        }
        Err(error) => said.push(kind(&error.to_string())),
    }
    for streamed in [false, true] {
        let read = |body: &[u8]| if streamed { surface.read_stream(body) } else { surface.read_reply(body) };
        let write = |before: &Reply, after: &Reply| {
            if streamed {
                surface.write_stream(input, before, after)
            } else {
                surface.write_reply(input, before, after)
            }
        };
        surface.usage(input, streamed);
        match read(input) {
            Ok(view) => {
                if let Ok(same) = write(&view, &view) {
                    assert_eq!(&same[..], input, "streamed: {streamed}");
                }
                let mut after = view.clone();
                if let Some(answer) = after.answers.first_mut() {
                    answer.message.set_text("Seven.");
                }
                // Whatever is written is read again before it leaves; broken JSON may part in other places then, which refuses it.
                let edited = write(&view, &after).map_err(|error| error.to_string());
                let edited = edited.and_then(|body| written::reply(surface, &body, streamed, &view, &after));
                let shape: Vec<_> = words_of(&view)
                    .iter()
                    .map(|(text, calls, end)| (text.is_empty(), (*calls).min(3), end.is_some()))
                    .take(3)
                    .collect();
                said.push(format!("{shape:?} {}", edited.is_ok()));
            }
            Err(error) => said.push(kind(&error.to_string())),
        }
    }
    sum(&(said, surface.is_finished(input)))
}

/// A verdict on requests does not depend on how they are cut.
fn request_head(input: &[u8]) -> u64 {
    let judged = |size: usize| {
        let mut framing = Framing::default();
        input.chunks(size.max(1)).try_for_each(|chunk| framing.push(chunk)).err()
    };
    let whole = judged(input.len());
    for size in [1, 2, 7] {
        let cut = judged(size);
        assert_eq!(whole.is_none(), cut.is_none(), "{whole:?} whole, {cut:?} in pieces of {size}");
    }
    sum(&format!("{whole:?}"))
}

/// A log is read, or refused in words; what is read is read alike again.
fn log(input: &[u8]) -> u64 {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("run.json"), &recorded().0).expect("written");
    std::fs::write(dir.path().join("log.jsonl"), input).expect("written");
    match recording::read(dir.path()) {
        Ok(read) => {
            let again = recording::read(dir.path()).expect("as before");
            assert_eq!(read.trajectory.steps.len(), again.trajectory.steps.len());
            let causes: Vec<_> = read
                .trajectory
                .steps
                .iter()
                .map(|step| format!("{:?}", step.last_attempt().and_then(|a| a.cause)))
                .collect();
            sum(&(causes, read.notes.len().min(4), read.torn_bytes > 0))
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty());
            sum(&text.chars().filter(|c| c.is_alphabetic()).rev().take(60).collect::<String>())
        }
    }
}

/// A plan is read, or refused with a place; what is read can be explained.
fn plan(input: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(input) else { return 0 };
    match plan::parse(text, "plan.toml") {
        Ok(plan) => {
            assert!(plan.injections.is_empty() || !plan::explain(&plan).is_empty());
            sum(&plan.injections.iter().map(|injection| injection.name.clone()).collect::<Vec<_>>())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("plan.toml"), "{text}");
            sum(&kind(text.split_once(": ").map_or("", |(_, what)| what)))
        }
    }
}
