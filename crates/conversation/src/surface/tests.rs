//! What holds for every surface of the list, checked over all of them.

use proptest::prelude::*;

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
    // Others end with the connection.
    for surface in wordy().filter(|surface| !surface.ends_of_stream().is_empty()) {
        let frames = surface.compose_stream(&reply(Some("one two"), &[], "stop"), 7, false);
        let stream = frames.concat();
        // What stands behind the marker says nothing more.
        let ends = |frame: &Bytes| surface.ends_of_stream().iter().any(|marker| frame.starts_with(marker));
        let before = frames.iter().take_while(|frame| !ends(frame)).map(Bytes::len).sum::<usize>();
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
            assert_eq!((passed.len(), [passed, held].concat()), (before, stream.clone()), "{surface:?} {size}");
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
        ("/v1beta/models/g:generateContent", Some("gemini_generate")),
        ("/v1/publishers/google/models/g:streamGenerateContent", Some("gemini_generate")),
        ("/v1/messages/count_tokens", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/threads/t/messages", None),
        ("/v1/models", None),
    ] {
        assert_eq!(for_path("POST", path).map(Surface::name), expected, "{path}");
        assert!(for_path("GET", path).is_none(), "{path}");
        assert!(ALL.iter().filter(|surface| surface.matches("POST", path)).count() <= 1, "{path}");
    }
    for surface in ALL {
        assert_eq!(for_path("POST", surface.path()).map(Surface::name), Some(surface.name()));
    }
    assert!(is_unread("gemini_embed") && !is_unread("openai_chat"));
}

/// What an answer says, without what belongs to one API.
fn reply_content(reply: &Reply) -> (String, Vec<(String, String, String)>, Option<String>) {
    let answer = &reply.answers[0];
    let calls = answer.message.tool_calls.iter();
    let calls = calls.map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone())).collect();
    (answer.message.text(), calls, answer.finish_reason.clone())
}

/// Edits a reply sent whole and the same reply streamed: both then read as the edited view. `None` where the surface
/// has no place for the edit, either way.
fn edit(surface: &dyn Surface, before: &Reply, edit: &dyn Fn(&mut Answer)) -> Option<(Bytes, Bytes)> {
    let whole = surface.compose(before, 7);
    let stream = Bytes::from(surface.compose_stream(before, 7, true).concat());
    let read = surface.read_reply(&whole).expect("a reply");
    let mut after = read.clone();
    edit(&mut after.answers[0]);
    let unedited = surface.write_stream(&stream, &read, &read.clone()).expect("nothing to write");
    assert_eq!(unedited, stream, "{surface:?}: an unedited stream keeps its bytes");
    assert_eq!(surface.write_reply(&whole, &read, &read.clone()).expect("nothing to write"), whole);
    let (edited_whole, edited_stream) =
        match (surface.write_reply(&whole, &read, &after), surface.write_stream(&stream, &read, &after)) {
            (Ok(whole), Ok(stream)) => (whole, stream),
            (Err(SurfaceError::NoPlace(_)), Err(SurfaceError::NoPlace(_))) => return None,
            other => panic!("{surface:?}: {other:?}"),
        };
    let from_whole = surface.read_reply(&edited_whole).expect("still a reply");
    let from_stream = surface.read_stream(&edited_stream).expect("still a stream");
    let shown = String::from_utf8_lossy(&edited_stream).into_owned();
    assert_eq!(
        reply_content(&from_whole),
        reply_content(&after),
        "{surface:?}: {}",
        String::from_utf8_lossy(&edited_whole)
    );
    assert_eq!(reply_content(&from_stream), reply_content(&after), "{surface:?}: {shown}");
    assert_eq!(from_whole.items, from_stream.items, "{surface:?}: {shown}");
    Some((edited_whole, edited_stream))
}

type Edit = Box<dyn Fn(&mut Answer)>;

/// Every kind of edit that a reply may meet.
fn edits() -> Vec<(&'static str, Edit)> {
    let fresh = |origin| ToolCall { id: "call_x9".to_owned(), ..call(0, "find", r#"{"q":"w"}"#) }.at(origin);
    vec![
        ("another text", Box::new(|answer: &mut Answer| answer.message.set_text("The total is 13 apples. ✓"))),
        ("no text", Box::new(|answer: &mut Answer| answer.message.set_text(""))),
        (
            "cut",
            Box::new(|answer: &mut Answer| {
                answer.message.set_text("The");
                answer.finish_reason = Some(Answer::CUT.to_owned());
            }),
        ),
        (
            "said instead of called",
            Box::new(|answer: &mut Answer| {
                answer.message.set_text("done");
                answer.message.tool_calls.clear();
                answer.finish_reason = Some(Answer::STOPPED.to_owned());
            }),
        ),
        (
            "other arguments",
            Box::new(|answer: &mut Answer| {
                for call in &mut answer.message.tool_calls {
                    call.arguments = r#"{"b":[1,{"c":"ü"}]}"#.to_owned();
                }
            }),
        ),
        (
            "another tool",
            Box::new(|answer: &mut Answer| {
                for call in &mut answer.message.tool_calls {
                    call.name = "mul".to_owned();
                }
            }),
        ),
        (
            "first call dropped",
            Box::new(|answer: &mut Answer| {
                if answer.message.tool_calls.len() > 1 {
                    answer.message.tool_calls.remove(0);
                }
            }),
        ),
        (
            "last call dropped",
            Box::new(|answer: &mut Answer| {
                if answer.message.tool_calls.len() > 1 {
                    answer.message.tool_calls.pop();
                }
            }),
        ),
        (
            "a call more",
            Box::new(move |answer: &mut Answer| {
                answer.message.tool_calls.push(fresh(None));
                answer.finish_reason = Some(Answer::CALLS.to_owned());
            }),
        ),
    ]
}

impl ToolCall {
    fn at(self, origin: Option<usize>) -> Self {
        Self { origin, ..self }
    }
}

#[test]
fn every_edit_says_the_same_whole_and_streamed() {
    let calls = [call(0, "add", r#"{"a": 1}"#), call(1, "sub", "{}")];
    for before in [
        reply(Some("The total is 12 apples."), &[], "stop"),
        reply(Some("The total is 12 apples."), &calls[..1], "tool_calls"),
        reply(None, &calls, "tool_calls"),
        reply(Some(""), &[], "stop"),
    ] {
        for surface in wordy() {
            for (name, change) in edits() {
                let written = edit(surface, &before, change.as_ref());
                let calls_there = !before.answers[0].message.tool_calls.is_empty() || name == "a call more";
                // The older API has one text and no tools.
                let none_needed = surface.name() == "openai_completions" && calls_there;
                assert!(written.is_some() || none_needed, "{surface:?}: {name}");
            }
        }
    }
}

#[test]
fn a_text_edit_moves_no_frame_and_leaves_most_of_them() {
    for surface in wordy() {
        let before = reply(Some("The total is 12 apples in all the baskets of the shop."), &[], "stop");
        let stream = surface.compose_stream(&before, 7, true).concat();
        let change =
            |answer: &mut Answer| answer.message.set_text("The total is 13 apples in all the baskets of the shop.");
        let (_, edited) = edit(surface, &before, &change).expect("a place");
        let (old, new) = (sse::events(&stream), sse::events(&edited));
        assert_eq!(old.len(), new.len(), "{surface:?}");
        let same = |(a, b): &(&sse::Event, &sse::Event)| stream[a.span.clone()] == edited[b.span.clone()];
        let changed = old.iter().zip(&new).filter(|pair| !same(pair)).count();
        assert!(changed <= 5, "{surface:?}: {changed} frames changed");
    }
}

/// Bodies of every surface, to be damaged.
fn bodies() -> Vec<Vec<u8>> {
    let said = reply(Some("The total is 12."), &[call(0, "add", r#"{"a": 1}"#)], "tool_calls");
    let of = |surface: &&dyn Surface| {
        [
            surface.blank_request().to_vec(),
            surface.compose(&said, 7).to_vec(),
            surface.compose_stream(&said, 7, true).concat(),
        ]
    };
    ALL.iter().flat_map(of).collect()
}

proptest! {
    /// Whatever comes, every reader answers, and what it reads it can write back unchanged.
    #[test]
    fn damaged_bodies_never_panic(
        which in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let bodies = bodies();
        let mut body = which.get(&bodies).clone();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        body.truncate(body.len() - cut.index(body.len()) / 3);
        for surface in ALL {
            let _ = surface.outline(&body);
            if let Ok(read) = surface.read_request(&body) {
                let _ = surface.write_request(&body, &read, &read.clone());
            }
            if let Ok(read) = surface.read_reply(&body) {
                let mut after = read.clone();
                after.answers.iter_mut().for_each(|answer| answer.message.set_text("x"));
                let _ = surface.write_reply(&body, &read, &after);
            }
            if let Ok(read) = surface.read_stream(&body) {
                prop_assert_eq!(surface.write_stream(&body, &read, &read.clone()).ok(), Some(Bytes::from(body.clone())));
                let mut after = read.clone();
                after.answers.iter_mut().for_each(|answer| answer.message.set_text("x"));
                let _ = surface.write_stream(&body, &read, &after);
            }
            let _ = (surface.usage(&body, true), surface.usage(&body, false), surface.is_finished(&body));
            let _ = (surface.write_model(&body, true, "m"), surface.write_model(&body, false, "m"));
        }
    }
}
