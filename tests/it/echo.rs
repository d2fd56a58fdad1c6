//! An upstream in this process that answers each call with the last words it was sent, after everybody has come.

use std::collections::VecDeque;

use aegis::proxy::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};

use crate::scripted::chat_reply;

/// Says back the content of the last message.
#[derive(Debug, Default)]
pub struct Echo;

impl Upstream for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let body = request.into_body().collect().await;
            let body = body.map_err(UpstreamError::Closed)?.to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let said = body["messages"].as_array().and_then(|messages| messages.last()?["content"].as_str());
            // Others get their turn between a request and its reply, so that exchanges really interleave.
            tokio::task::yield_now().await;
            let reply = chat_reply(&format!("echo: {}", said.unwrap_or_default()));
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([reply.into()])));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}
