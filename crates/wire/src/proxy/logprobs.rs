//! Replies that say more than the client asked for: the upstream is asked for the log-probabilities of its tokens, the record
//! keeps the reply as it came, and everything after works on the reply as it would be without.

use std::{collections::HashSet, sync::Mutex};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Response, StatusCode,
    header::{self, HeaderValue},
};

use super::{
    chunks::{composed, joined},
    headers,
    limits::Limits,
    lock::locked,
    open_step::OpenStep,
    read_whole::read_whole,
    strip::{RawTape, StrippedStream, strip_events},
    upstream::{ReceivedBody, UpstreamError},
};
use crate::surface::{Surface, door};

/// Bytes of a refusal that are looked at.
const REFUSAL_MAX: usize = 64 << 10;

/// Asks for log-probabilities, but not those that refuse the question.
#[derive(Debug, Default)]
pub(super) struct LogprobRequests {
    /// Surfaces and models that refused.
    refused: Mutex<HashSet<(&'static str, String)>>,
}

impl LogprobRequests {
    /// The request with the question; `None` where it is not to be asked.
    pub(super) fn ask(&self, surface: Option<&'static dyn Surface>, body: &[u8]) -> Option<Bytes> {
        let surface = surface?;
        let asked = surface.ask_logprobs(body)?;
        let known = locked(&self.refused);
        let refuses = !known.is_empty() && known.contains(&(surface.name(), model(surface, body)));
        (!refuses).then_some(asked)
    }

    /// What refused the question answers without it: it is not asked again. Gives words for whoever wonders, the first time.
    pub(super) fn refused(&self, surface: &'static dyn Surface, body: &[u8], status: StatusCode) -> Option<String> {
        let model = model(surface, body);
        let words = format!(
            "`{model}` refused to be asked for log-probabilities (status {}): it was asked again without, and is not asked any more",
            status.as_u16()
        );
        locked(&self.refused).insert((surface.name(), model)).then_some(words)
    }
}

fn model(surface: &dyn Surface, body: &[u8]) -> String {
    door::outline(surface, body).map(|outline| outline.model.into_owned()).unwrap_or_default()
}

/// Whether a reply may refuse the question rather than the request: the request is worth another try without it.
///
/// # Errors
/// The reply breaks off.
pub(super) async fn may_refuse(received: &mut Response<ReceivedBody>) -> Result<bool, UpstreamError> {
    match received.status().as_u16() {
        400 | 403 | 422 => Ok(true),
        // An error of the upstream's own is nobody's question, unless it says so.
        500 | 501 => {
            let (mut read, mut told) = (std::collections::VecDeque::new(), Vec::new());
            let body = received.body_mut();
            while told.len() < REFUSAL_MAX
                && let Some(frame) = body.frame().await
            {
                let frame = frame.map_err(|error| UpstreamError::Closed(Box::new(error)))?;
                if let Ok(data) = frame.into_data() {
                    told.extend_from_slice(&data);
                    read.push_back(data);
                }
            }
            let rest = std::mem::replace(body, ReceivedBody::Made(std::collections::VecDeque::new()));
            *body = ReceivedBody::Resumed(read, Box::new(rest));
            Ok(memchr::memmem::find(&told, b"logprob").is_some())
        }
        _ => Ok(false),
    }
}

/// The reply as it would be had nobody asked for log-probabilities. A stream stays one; what is whole is taken in whole.
///
/// # Errors
/// The reply breaks off, or is silent for too long.
pub(super) async fn strip_logprobs(
    step: &mut OpenStep,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, UpstreamError> {
    let Some(surface) = step.surface.filter(|_| received.status().is_success()) else { return Ok(received) };
    let tape = RawTape::default();
    step.raw_tape = Some(tape.clone());
    let (mut head, body) = received.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    // A stream that says how long it is has been made already.
    if streamed && !head.headers.contains_key(header::CONTENT_LENGTH) {
        let narrowed = StrippedStream::new(body, surface, tape);
        return Ok(Response::from_parts(head, ReceivedBody::Stripped(Box::new(narrowed))));
    }
    let chunks = match read_whole(body, limits).await? {
        Ok(chunks) => chunks,
        // It is more than is held: it passes as it is.
        Err(rest) => return Ok(Response::from_parts(head, rest)),
    };
    let whole = joined(chunks);
    let streamed = door::is_stream(&whole, streamed);
    tape.push(&whole);
    let body = if streamed { Some(strip_events(surface, &whole)) } else { surface.drop_logprobs(&whole) };
    let body = body.filter(|narrowed| *narrowed != whole).map_or(whole, |narrowed| {
        headers::body_changed(&mut head.headers);
        narrowed
    });
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    if streamed {
        return Ok(Response::from_parts(head, composed(body, true)));
    }
    Ok(Response::from_parts(head, ReceivedBody::Made([body].into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::OpenaiChat;

    #[test]
    fn who_refused_is_not_asked_again() {
        let questions = LogprobRequests::default();
        let body = |model: &str| format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"a"}}]}}"#);
        let chat: &'static dyn Surface = &OpenaiChat;
        assert!(questions.ask(Some(chat), body("m").as_bytes()).is_some());
        let words = questions.refused(chat, body("m").as_bytes(), StatusCode::BAD_REQUEST);
        assert!(words.is_some_and(|words| words.contains("`m` refused")));
        assert!(questions.refused(chat, body("m").as_bytes(), StatusCode::BAD_REQUEST).is_none(), "said once");
        assert!(questions.ask(Some(chat), body("m").as_bytes()).is_none());
        assert!(questions.ask(Some(chat), body("other").as_bytes()).is_some());
        assert!(questions.ask(None, body("m").as_bytes()).is_none());
    }
}
