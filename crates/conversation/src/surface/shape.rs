//! What a reply comes to: answered, cut short, an error instead of an answer or on the way to one, or nothing that can be read.
//!
//! Two questions are answered from the same look at the bytes: how a call ended ([`ending`]), and what a client's parser makes of
//! its reply ([`shape`]).

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{Answer, Message, Part, Reply, Surface, door, finish, provider_error, scan, splice::Node, sse};
use crate::trajectory::{CallEnding, CloseCause};

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

/// What the bytes of a reply come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyContent {
    /// An answer of this API.
    Answered,
    /// An answer to its end marker, without a word for why the model stopped.
    Unfinished,
    /// The beginning of an answer, or of a body.
    Torn,
    /// An error, or a word for why the model stopped that is one.
    Ended(CallEnding),
    /// Neither: a page, another object, nothing at all.
    NoAnswer(CallEnding),
    /// What cannot be told: packed bytes, JSON of a server that takes its liberties.
    Unknown,
}

/// How a call ended, told from transport and from what came: why the exchange closed, the status, the body. `streamed` is what the
/// type of the body says. A body of no surface is not looked at.
pub fn ending(
    surface: Option<&dyn Surface>,
    cause: CloseCause,
    status: Option<u16>,
    body: &[u8],
    streamed: bool,
) -> CallEnding {
    let by_transport = CallEnding::of_transport(cause, status);
    // What the proxy did itself, a planned fault included, is told from the cause.
    let (Some(surface), Some(status), false) = (surface, status, cause.is_own()) else { return by_transport };
    let body = &*door::without_codings(body);
    if status >= 400 {
        return error_of(surface, body, Some(status)).unwrap_or(by_transport);
    }
    let plainly_answered =
        || surface.is_plainly_finished(body, streamed) && !mentions_error(body) && !is_torn_json(body);
    if !(200..300).contains(&status) || plainly_answered() {
        return by_transport;
    }
    match (content(surface, body, streamed), by_transport) {
        // An error that was said is the end, whoever hung up then.
        (ReplyContent::Ended(ending), _) if by_transport.is_answered() || ending.is_error() => ending,
        (ReplyContent::NoAnswer(ending), CallEnding::Answered) => ending,
        // Clients leave at the marker, and do not wait for the connection's end.
        (ReplyContent::NoAnswer(ending), CallEnding::Abandoned) if is_marked_over(surface, body) => ending,
        (ReplyContent::Torn, CallEnding::Answered) => CallEnding::Cut,
        _ => by_transport,
    }
}

/// The shape of a reply.
pub fn shape(surface: &dyn Surface, body: &[u8], streamed: bool) -> Shape {
    let body = &*door::without_codings(body);
    match content(surface, body, streamed) {
        ReplyContent::Ended(_) => Shape::Failed,
        ReplyContent::Torn | ReplyContent::Unfinished if streamed => Shape::CutShort,
        // A surface reads past what a client's parser does not.
        ReplyContent::Answered if streamed || serde_json::from_slice::<IgnoredAny>(body).is_ok() => Shape::Whole,
        _ => Shape::Unreadable,
    }
}

/// The text that a reply gives a client that takes it as it is, however it ends; empty where there is none.
pub fn text_so_far(surface: &dyn Surface, body: &[u8], streamed: bool) -> String {
    let plain = door::without_codings(body);
    let read = if door::is_stream(&plain, streamed) {
        surface.read_stream(whole_frames(&plain))
    } else {
        door::reply(surface, &plain, false)
    };
    let answers = read.map(|reply| reply.answers).unwrap_or_default();
    answers.iter().map(|answer| answer.message.text()).collect::<Vec<_>>().join("\n")
}

/// What an unpacked body says. Its bytes tell a stream from JSON where they can.
fn content(surface: &dyn Surface, body: &[u8], streamed: bool) -> ReplyContent {
    let text = door::json(body).trim_ascii_start();
    match text.first() {
        None if streamed => ReplyContent::Torn,
        None => ReplyContent::NoAnswer(CallEnding::Failed),
        Some(b'{' | b'[' | b'"') => of_whole(surface, door::whole_and_rest(text).0),
        _ if sse::is_stream(body) == Some(true) => of_stream(surface, body),
        Some(b'<') => ReplyContent::NoAnswer(CallEnding::Failed),
        Some(byte) if byte.is_ascii_graphic() => of_text(text),
        // Packed, and not to its end.
        Some(0x1f) if text.starts_with(&[0x1f, 0x8b]) => ReplyContent::Torn,
        Some(_) => ReplyContent::Unknown,
    }
}

/// Whether the last that a stream said is the marker of its end.
pub fn is_marked_over(surface: &dyn Surface, body: &[u8]) -> bool {
    sse::events(body).last().is_some_and(|last| surface.is_end_marker(joined(body, last).trim_ascii()))
}

/// A line of a proxy, or of a server that died before it could say more.
fn of_text(text: &[u8]) -> ReplyContent {
    std::str::from_utf8(text)
        .map_or(ReplyContent::Unknown, |text| ReplyContent::NoAnswer(provider_error::ending_of_text(text)))
}

fn of_whole(surface: &dyn Surface, body: &[u8]) -> ReplyContent {
    if let Ok(reply) = surface.read_reply(body) {
        if is_silent(surface, &reply) {
            return error_of(surface, body, None)
                .map_or(ReplyContent::NoAnswer(CallEnding::Failed), ReplyContent::Ended);
        }
        let error = if mentions_error(body) { error_of(surface, body, None) } else { None };
        return error.map_or_else(|| ended(finish::of_reply(&reply)), ReplyContent::Ended);
    }
    let Ok(root) = Node::parse(body) else {
        let torn = serde_json::from_slice::<IgnoredAny>(body).is_err_and(|error| error.is_eof());
        return if torn { ReplyContent::Torn } else { ReplyContent::Unknown };
    };
    match (surface.error_part(&root), root.string()) {
        (Some(error), _) => ReplyContent::Ended(surface.error_ending(&error, None)),
        (None, Some(text)) => ReplyContent::Ended(provider_error::ending_of_text(&text)),
        (None, None) => ReplyContent::NoAnswer(CallEnding::Failed),
    }
}

fn of_stream(surface: &dyn Surface, body: &[u8]) -> ReplyContent {
    let mut marked = false;
    for event in sse::events(body) {
        let data = joined(body, &event);
        let data = data.trim_ascii();
        if surface.is_end_marker(data) {
            marked = true;
            continue;
        }
        if let Some(error) = error_of(surface, data, None).or_else(|| error_in_words(surface, body, &event, data)) {
            return ReplyContent::Ended(error);
        }
    }
    let whole = whole_frames(body);
    match surface.read_stream(whole) {
        Ok(reply) if reply.answers.iter().any(|answer| answer.finish_reason.is_some()) => {
            let open = reply.answers.iter().any(|answer| answer.finish_reason.is_none());
            match finish::of_reply(&reply) {
                CallEnding::Answered if open && marked => ReplyContent::Unfinished,
                CallEnding::Answered if open || whole.len() < body.len() => ReplyContent::Torn,
                ending => ended(ending),
            }
        }
        Ok(_) if !marked || whole.len() < body.len() => ReplyContent::Torn,
        Ok(reply) => {
            if reply.answers.iter().any(|answer| speaks(&answer.message)) {
                ReplyContent::Unfinished
            } else {
                ReplyContent::NoAnswer(CallEnding::Failed)
            }
        }
        // What is beside the API's own events must not hide that they came to their end.
        Err(_) if surface.is_finished(whole) => ReplyContent::Unknown,
        Err(_) if whole.is_empty() => ReplyContent::Torn,
        Err(_) => ReplyContent::NoAnswer(CallEnding::Failed),
    }
}

/// Whether a whole reply has no alternative that says anything, or at least why it stopped: prompts that a provider blocks come back
/// so. Embeddings have no alternatives.
fn is_silent(surface: &dyn Surface, reply: &Reply) -> bool {
    let says = |answer: &Answer| answer.finish_reason.is_some() || speaks(&answer.message);
    !reply.answers.iter().any(says)
        && (!reply.answers.is_empty()
            || ["choices", "candidates"].iter().any(|list| surface.answer_members().contains(list)))
}

/// Whether a message says anything, or calls a tool.
fn speaks(message: &Message) -> bool {
    let empty = |part: &Part| part.as_text().is_some_and(str::is_empty);
    !message.tool_calls.is_empty() || !message.parts.iter().all(empty)
}

fn ended(ending: CallEnding) -> ReplyContent {
    if ending.is_answered() { ReplyContent::Answered } else { ReplyContent::Ended(ending) }
}

/// How a call ended whose body, or one of whose events, is this JSON: where it says an error. `status`: that of an error reply.
fn error_of(surface: &dyn Surface, json: &[u8], status: Option<u16>) -> Option<CallEnding> {
    let root = Node::parse(json).ok()?;
    surface.error_part(&root).map(|error| surface.error_ending(&error, status))
}

/// How a call ended one of whose events says an error that is no JSON of its API: an event of that name, a text or a line that begins
/// with the word, or an object on a line of its own.
fn error_in_words(surface: &dyn Surface, body: &[u8], event: &sse::Event, data: &[u8]) -> Option<CallEnding> {
    let bytes = body.get(event.span.clone()).unwrap_or_default();
    let strange = || sse::strange_lines(bytes).map(<[u8]>::trim_ascii);
    if let Some(error) = strange().find_map(|line| error_of(surface, line, None)) {
        return Some(error);
    }
    let is_named = || {
        let mut lines = bytes.split(|byte| matches!(byte, b'\r' | b'\n'));
        lines.any(|line| line.strip_prefix(b"event:").is_some_and(|name| name.trim_ascii() == b"error"))
    };
    let says = !data.starts_with(b"{") && (begins_with_error(data) || is_named());
    let line = strange().find(|line| begins_with_error(line));
    let words = line.or(says.then_some(data))?;
    Some(provider_error::ending_of_text(&String::from_utf8_lossy(words)))
}

/// Whether a text is an error by its first word.
fn begins_with_error(text: &[u8]) -> bool {
    let word = text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"error"));
    word && !text.get(5).is_some_and(u8::is_ascii_alphanumeric)
}

/// The data of an event in one piece.
fn joined<'a>(body: &'a [u8], event: &sse::Event) -> Cow<'a, [u8]> {
    match event.data.as_slice() {
        [one] => Cow::Borrowed(body.get(one.clone()).unwrap_or_default()),
        many => Cow::Owned(many.iter().filter_map(|one| body.get(one.clone())).collect::<Vec<_>>().join(&b'\n')),
    }
}

/// Whether a body that is one JSON object breaks off within it.
fn is_torn_json(body: &[u8]) -> bool {
    let text = door::json(body).trim_ascii_start();
    text.starts_with(b"{") && scan::skip(text).is_none()
}

/// Whether `"error"` stands in a body, as the name of something that is not `null` or as a word, or the word at the beginning of a line.
/// Quotes and line breaks in a text are escaped, so this is no word of the model's.
fn mentions_error(body: &[u8]) -> bool {
    const WORD: &[u8] = b"rror";
    memchr::memmem::find_iter(body, WORD).any(|at| {
        let (before, after) = (body.get(..at).unwrap_or_default(), body.get(at + WORD.len()..).unwrap_or_default());
        let Some(before) = before.strip_suffix(b"e").or_else(|| before.strip_suffix(b"E")) else { return false };
        if before.ends_with(b"\"") && after.starts_with(b"\"") {
            let after = after.get(1..).unwrap_or_default().trim_ascii_start();
            let value = after.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
            return !value.is_some_and(|value| value.starts_with(b"null"));
        }
        let line = before.get(memchr::memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1)..).unwrap_or_default();
        matches!(line.trim_ascii(), b"" | b"data:" | b"event:")
    })
}

/// The stream without a last frame that was cut in its middle.
fn whole_frames(body: &[u8]) -> &[u8] {
    match sse::events(body).last() {
        Some(last) if !ends_with_blank_line(body.get(last.span.clone()).unwrap_or_default()) => {
            // An end marker may lack its blank line: clients leave as soon as they have read it.
            let data = last.data.first().and_then(|data| body.get(data.clone())).unwrap_or_default();
            let complete = sse::is_done(data.trim_ascii()) || serde_json::from_slice::<IgnoredAny>(data).is_ok();
            if complete { body } else { body.get(..last.span.start).unwrap_or_default() }
        }
        _ => body,
    }
}

fn ends_with_blank_line(frame: &[u8]) -> bool {
    [b"\n\n".as_slice(), b"\r\n\r\n", b"\r\r"].iter().any(|end| frame.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{ALL, ErrorBody, Role};

    fn reply() -> Reply {
        let message = Message {
            role: Role::Assistant,
            name: None,
            parts: vec![Part::Text("Three boxes hold twelve eggs each.".to_owned())],
            tool_calls: Vec::new(),
            answers_call: None,
            origin: crate::surface::words::Origin::default(),
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
