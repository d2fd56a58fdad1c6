//! What tools and peers do, done again: while a run begins like its record, their messages reach the live servers too, so that the
//! world is as it was when the run leaves the record. What the client gets is recorded all the same, but for the name of its session.

use http_body_util::BodyExt;
use hyper::{
    Request, Response,
    header::{HeaderName, HeaderValue},
};

use crate::{
    proxy::upstream::{ReceivedBody, SentBody, Upstream, UpstreamError},
    surface::{self, Surface, sse},
};

/// The header that names a session with a server of tools (MCP 2025-11-25).
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A session that a live server has begun.
pub(super) struct LiveSession(Option<HeaderValue>);

/// Sends a message to the live server for what it does, and waits for its answer.
///
/// # Errors
/// The server cannot be reached, or breaks off.
pub(super) async fn execute(live: &dyn Upstream, request: Request<SentBody>) -> Result<LiveSession, UpstreamError> {
    let surface = surface::server_api(request.method().as_str(), request.uri().path());
    let answered = live.send(request).await?;
    let session = answered.headers().get(&SESSION).cloned();
    let mut body = answered.into_body();
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| UpstreamError::Closed(error.into()))?;
        read.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
        // A server may leave its stream open behind the answer.
        if surface.is_some_and(|surface| has_answer(surface, &read)) {
            break;
        }
    }
    Ok(LiveSession(session))
}

impl LiveSession {
    /// The recorded reply, with the session that the client is to go on with.
    pub(super) fn named_in(self, mut recorded: Response<ReceivedBody>) -> Response<ReceivedBody> {
        if let Some(session) = self.0 {
            recorded.headers_mut().insert(&SESSION, session);
        }
        recorded
    }
}

fn has_answer(surface: &dyn Surface, body: &[u8]) -> bool {
    let events = sse::events(body).into_iter().filter(|event| event.is_whole(body));
    events.filter_map(|event| body.get(event.span)).any(|event| surface.is_answer(event))
}
