//! The simulator as an upstream: reads requests by their surface, answers in it, whole or streamed.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, Response, StatusCode, header};

use super::{
    reply,
    stored::{AnsweredRequest, Stored},
};
use crate::{
    proxy::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream},
    surface::{
        self, ErrorBody, OpenaiChat, StreamForm, Surface,
        door::{self, UnpackedBody},
        sse,
    },
};

/// When every reply says that it was created: a fixed second, so that equal requests get equal replies.
const CREATED: u64 = 1_760_000_000;
/// The longest request body that is read, in bytes.
const LONGEST_BODY: usize = 64 << 20;
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";

/// The embedded backend. It stands in for a real model and is always named as such.
#[derive(Debug, Default)]
pub struct Simulator {
    seed: u64,
    unread: AtomicU64,
    stored: Mutex<Stored>,
}

impl Simulator {
    /// A simulator whose draws depend on this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// How many requests got the fixed short answer because nothing in them could be read.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// A panic while the lock was held leaves at worst one reply unkept.
    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kept reply at a path, or a new conversation; `None` where there is nothing of the kind.
    fn stored_reply(&self, method: &hyper::Method, path: &str) -> Option<Bytes> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match (method.as_str(), segments.as_slice()) {
            ("POST", [.., "conversations"]) => Some(Bytes::from(self.stored().new_thread(CREATED)?.to_string())),
            ("GET", [.., "responses" | "interactions", id] | [.., "chat", "completions", id]) => {
                self.stored().look(id, CREATED)
            }
            _ => None,
        }
    }

    async fn respond(&self, request: Request<SentBody>) -> Response<ReceivedBody> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let target = head.uri.path_and_query().map_or(path, |target| target.as_str());
        if head.method == hyper::Method::GET && path.trim_end_matches('/').ends_with("/models") {
            return composed_response(StatusCode::OK, JSON, [models()]);
        }
        let Some(surface) = surface::for_path(head.method.as_str(), path) else {
            if let Some(kept) = self.stored_reply(&head.method, path) {
                return composed_response(StatusCode::OK, JSON, [kept]);
            }
            let message = format!("The simulator does not serve {} {path}.", head.method);
            return refused(&OpenaiChat, StatusCode::NOT_FOUND, &message);
        };
        let read = http_body_util::Limited::new(body, LONGEST_BODY).collect().await;
        let body = match read {
            Ok(body) => {
                UnpackedBody::unpack(
                    &body.to_bytes(),
                    head.headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok()),
                )
                .plain
            }
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return refused(surface, StatusCode::PAYLOAD_TOO_LARGE, "The request body is too long.");
            }
            Err(_) => return refused(surface, StatusCode::BAD_REQUEST, "The request body ended early."),
        };
        let conversation = match door::request_at(surface, target, &body) {
            Ok(conversation) => conversation,
            Err(error) => return refused(surface, StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let conversation = match self.stored().complete(conversation) {
            Ok(conversation) => conversation,
            Err(message) => return refused(surface, StatusCode::BAD_REQUEST, &message),
        };
        let (mut reply, ability) = reply::give(&conversation, self.seed);
        if !surface.generates(&body) {
            reply.answers.clear();
        }
        if ability.is_none() {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
        let whole = surface.compose(&reply, CREATED);
        let answered =
            AnsweredRequest { surface, body: &body, conversation: &conversation, reply: &reply, served: &whole };
        self.stored().keep(&answered);
        if conversation.stream {
            let frames = surface.compose_stream(&reply, CREATED, conversation.stream_usage);
            if surface.path_parameters(target).stream == Some(StreamForm::List) {
                return composed_response(StatusCode::OK, JSON, [listed(&frames.concat())]);
            }
            return composed_response(StatusCode::OK, EVENTS, frames);
        }
        let unmade = surface.in_background(&body).then(|| surface.read_reply(&whole).ok()).flatten();
        let unmade = unmade.and_then(|read| self.stored().look(&read.id, CREATED));
        composed_response(StatusCode::OK, JSON, [unmade.unwrap_or(whole)])
    }
}

impl Upstream for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move { Ok(self.respond(request).await) })
    }
}

fn refused(surface: &dyn Surface, status: StatusCode, message: &str) -> Response<ReceivedBody> {
    let error = ErrorBody { message, kind: "invalid_request_error", code: None, param: None };
    composed_response(status, JSON, [surface.error_body(&error)])
}

/// The data of a stream's events as one list.
fn listed(stream: &[u8]) -> Bytes {
    let events = sse::events(stream);
    let data: Vec<&[u8]> =
        events.iter().flat_map(|event| &event.data).filter_map(|span| stream.get(span.clone())).collect();
    Bytes::from([b"[", &data.join(&b",\r\n"[..])[..], b"]"].concat())
}

fn models() -> Bytes {
    let model = serde_json::json!({"id": "simulator", "object": "model", "created": CREATED, "owned_by": "aegis"});
    Bytes::from(serde_json::json!({"object": "list", "data": [model]}).to_string())
}

fn composed_response(
    status: StatusCode,
    kind: &'static str,
    frames: impl IntoIterator<Item = Bytes>,
) -> Response<ReceivedBody> {
    let frames: VecDeque<Bytes> = frames.into_iter().collect();
    let length: usize = frames.iter().map(Bytes::len).sum();
    let mut response = Response::new(ReceivedBody::Made(frames));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    if kind == JSON {
        headers.insert(header::CONTENT_LENGTH, header::HeaderValue::from(length));
    }
    response
}
