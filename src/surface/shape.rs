//! What a reply looks like from a client's side: whole, cut short, an error under way, or nothing that can be read.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Surface, sse};

/// The shape of a reply that came with a status of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// It can be read to its end.
    Whole,
    /// It can be read, and does not say that the model had finished.
    CutShort,
    /// It says an error instead of an answer, or on the way to one.
    Failed,
    /// It cannot be read.
    Unreadable,
}

/// An error as every API says it: as a member, or as the kind of an event.
#[derive(Deserialize)]
struct SaidError {
    error: Option<IgnoredAny>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// The shape of a reply.
pub fn shape(surface: &dyn Surface, body: &[u8], streamed: bool) -> Shape {
    if !streamed {
        return match surface.read_reply(body) {
            // A surface reads past what a client's parser does not.
            Ok(_) if serde_json::from_slice::<IgnoredAny>(body).is_ok() => Shape::Whole,
            _ if says_error(body) => Shape::Failed,
            _ => Shape::Unreadable,
        };
    }
    if sse::events(body).into_iter().flat_map(|event| event.data).any(|data| body.get(data).is_some_and(says_error)) {
        return Shape::Failed;
    }
    let whole = whole_frames(body);
    match surface.read_stream(whole) {
        // What was cut before its first frame says nothing that could be misread.
        _ if whole.is_empty() => Shape::CutShort,
        Ok(reply) if whole.len() == body.len() && reply.answers.iter().all(|answer| answer.finish_reason.is_some()) => {
            Shape::Whole
        }
        Ok(_) => Shape::CutShort,
        Err(_) => Shape::Unreadable,
    }
}

/// The text that a reply gives a client that takes it as it is, however it ends; empty where there is none.
pub fn text_so_far(surface: &dyn Surface, body: &[u8], streamed: bool) -> String {
    let read = if streamed { surface.read_stream(whole_frames(body)) } else { surface.read_reply(body) };
    let answers = read.map(|reply| reply.answers).unwrap_or_default();
    answers.iter().map(|answer| answer.message.text()).collect::<Vec<_>>().join("\n")
}

/// The stream without a last frame that was cut in its middle.
fn whole_frames(body: &[u8]) -> &[u8] {
    match sse::events(body).last() {
        Some(last) if !ends_with_blank_line(body.get(last.span.clone()).unwrap_or_default()) => {
            // An end marker may lack its blank line: clients leave as soon as they have read it.
            let data = last.data.first().and_then(|data| body.get(data.clone())).unwrap_or_default();
            let complete = data == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok();
            if complete { body } else { body.get(..last.span.start).unwrap_or_default() }
        }
        _ => body,
    }
}

fn ends_with_blank_line(frame: &[u8]) -> bool {
    [b"\n\n".as_slice(), b"\r\n\r\n", b"\r\r"].iter().any(|end| frame.ends_with(end))
}

fn says_error(json: &[u8]) -> bool {
    let said: Option<SaidError> = serde_json::from_slice(json).ok();
    said.is_some_and(|said| {
        said.error.is_some() || said.kind.is_some_and(|kind| matches!(kind.as_str(), "error" | "response.failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{ALL, Answer, ErrorBody, Message, Part, Reply, Role};

    fn reply() -> Reply {
        let message = Message {
            role: Role::Assistant,
            name: None,
            parts: vec![Part::Text("Three boxes hold twelve eggs each.".to_owned())],
            tool_calls: Vec::new(),
            answers_call: None,
            origin: crate::surface::conversation::Origin::default(),
        };
        let finish_reason = Some("stop".to_owned());
        Reply { answers: vec![Answer { index: 0, message, finish_reason }], id: "r1".to_owned(), ..Reply::default() }
    }

    fn spoilt(body: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
        let at = memchr::memmem::find(body, old).expect("it is there");
        [&body[..at], new, &body[at + old.len()..]].concat()
    }

    #[test]
    fn every_surface_knows_a_whole_reply_from_a_broken_one() {
        let error = ErrorBody { message: "overloaded", kind: "server_error", code: None, param: None };
        for surface in ALL.iter().filter(|surface| surface.name() != "openai_embeddings") {
            let whole = surface.compose(&reply(), 0);
            let frames = surface.compose_stream(&reply(), 0, false);
            let stream = frames.concat();
            // The text is said before the last quarter of the frames, its end after that.
            let said = frames[..frames.len() / 2 + 1].concat();
            let torn = &stream[..said.len() + 12];
            let failed = [&said[..], &surface.error_frame(&error)].concat();
            for (what, body, streamed, expected) in [
                ("whole", &whole[..], false, Shape::Whole),
                ("half", &whole[..whole.len() / 2], false, Shape::Unreadable),
                ("no UTF-8", &spoilt(&whole, b"eggs", b"e\xffgs"), false, Shape::Unreadable),
                ("no comma", &spoilt(&whole, b",\"", b" \""), false, Shape::Unreadable),
                ("a page", b"<html>502</html>", false, Shape::Unreadable),
                ("empty", b"", false, Shape::Unreadable),
                ("an error", &surface.error_body(&error), false, Shape::Failed),
                ("stream", &stream, true, Shape::Whole),
                ("half a stream", &said, true, Shape::CutShort),
                ("a torn frame", torn, true, Shape::CutShort),
                ("no frame", b"", true, Shape::CutShort),
                ("an error under way", &failed, true, Shape::Failed),
                ("no stream", b"data: {\"oops\n\ndata: 1\n\n", true, Shape::Unreadable),
            ] {
                assert_eq!(shape(*surface, body, streamed), expected, "{surface:?}: {what}");
            }
            assert!(text_so_far(*surface, torn, true).starts_with("Three"), "{surface:?}");
        }
    }
}
