//! What holds for every surface of the list, checked over all of them.

use super::*;

fn call(number: usize, name: &str, arguments: &str) -> ToolCall {
    let id = format!("call_{number}");
    ToolCall { id, name: name.to_owned(), arguments: arguments.to_owned(), origin: Some(number) }
}

fn reply(text: Option<&str>, calls: &[ToolCall], finish: &str) -> Reply {
    let parts = text.map(|text| Part::Text(text.to_owned())).into_iter().collect();
    let message =
        Message { parts, tool_calls: calls.to_vec(), origin: Some(0), ..Message::text_of(Role::Assistant, "") };
    let answers = vec![Answer { index: 0, message, finish_reason: Some(finish.to_owned()) }];
    let usage = Some(Usage { input: 30, output: 5 });
    Reply { id: "chatcmpl-1".to_owned(), model: "m".to_owned(), answers, usage, ..Reply::default() }
}

/// Surfaces whose replies are words.
fn wordy() -> impl Iterator<Item = &'static dyn Surface> {
    ALL.iter().copied().filter(|surface| surface.name() != "openai_embeddings")
}

#[test]
fn a_composed_reply_reads_alike_whole_and_streamed() {
    let calls = [call(0, "add", r#"{"a": 1}"#), call(1, "sub", "{}")];
    for said in [
        reply(Some("The total is 12 apples."), &[], "stop"),
        reply(Some("The total"), &[], "length"),
        reply(None, &calls, "tool_calls"),
        reply(Some("I add."), &calls, "tool_calls"),
    ] {
        for surface in wordy() {
            let whole = surface.compose(&said, 7);
            let frames = surface.compose_stream(&said, 7, true);
            let stream = frames.concat();
            let read = surface.read_reply(&whole).expect("a reply");
            assert_eq!(surface.read_stream(&stream).expect("a stream"), read, "{surface:?}");
            assert_eq!(read.usage, said.usage, "{surface:?}");
            assert_eq!(surface.usage(&whole, false), said.usage, "{surface:?}");
            assert_eq!(surface.usage(&stream, true), said.usage, "{surface:?}");
            let (read, said) = (&read.answers[0], &said.answers[0]);
            assert_eq!(read.message.text(), said.message.text(), "{surface:?}");
            if surface.name() != "openai_completions" {
                let pairs = |answer: &Answer| -> Vec<_> {
                    let parsed =
                        |call: &ToolCall| serde_json::from_str::<serde_json::Value>(&call.arguments).expect("json");
                    answer
                        .message
                        .tool_calls
                        .iter()
                        .map(|call| (call.id.clone(), call.name.clone(), parsed(call)))
                        .collect()
                };
                assert_eq!((pairs(read), &read.finish_reason), (pairs(said), &said.finish_reason), "{surface:?}");
            }
        }
    }
}

#[test]
fn the_end_of_a_stream_is_held_whatever_the_chunks() {
    for surface in wordy() {
        let frames = surface.compose_stream(&reply(Some("one two"), &[], "stop"), 7, false);
        let stream = frames.concat();
        let last = frames.last().expect("a last frame");
        for size in [1, 7, stream.len()] {
            let mut splitter = sse::Splitter::new(surface.ends_of_stream());
            let (mut passed, mut held, mut ended) = (Vec::new(), Vec::new(), false);
            for chunk in stream.chunks(size) {
                let seen = splitter.push(chunk);
                if seen.release_held {
                    passed.append(&mut held);
                }
                passed.extend_from_slice(&chunk[..seen.free]);
                held.extend_from_slice(&chunk[seen.free..]);
                ended |= seen.ended;
            }
            assert!(ended, "{surface:?} {size}");
            assert_eq!(held, last[..], "{surface:?} {size}");
        }
        assert!(surface.ends_of_stream().len() <= sse::MARKERS_MAX);
    }
}

#[test]
fn paths_speak_one_surface_each() {
    for (path, expected) in [
        ("/v1/chat/completions", Some("openai_chat")),
        ("/chat/completions/", Some("openai_chat")),
        ("/openai/deployments/d/chat/completions", Some("openai_chat")),
        ("/openai/deployments/d/completions", Some("openai_completions")),
        ("/openai/deployments/d/embeddings", Some("openai_embeddings")),
        ("/openai/v1/responses", Some("openai_responses")),
        ("/openai/responses", Some("openai_responses")),
        ("/v1/completions", Some("openai_completions")),
        ("/v1/messages", Some("anthropic_messages")),
        ("/v1/messages/count_tokens", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/threads/t/messages", None),
        ("/v1/models", None),
    ] {
        assert_eq!(for_path("POST", path).map(Surface::name), expected, "{path}");
        assert!(for_path("GET", path).is_none(), "{path}");
        assert!(ALL.iter().filter(|surface| surface.matches("POST", path)).count() <= 1, "{path}");
    }
    assert_eq!(unread_call("POST", "/api/chat"), Some("ollama_chat"));
}
