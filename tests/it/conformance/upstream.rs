//! An upstream in this process that says the bytes of the shape that a call's query names.

use std::{collections::VecDeque, sync::Arc};

use aegis::{
    proxy::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
    surface::{self, Answer, Message, Reply, Role},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};

use super::shapes::Shape;

/// What the agent `peer` says, on each API.
pub const PEER: &str = "Bergen has 17 bridges. I disagree.";

/// Serves shapes by their numbers: `?shape=12`; `?shape=peer` is a plain reply.
#[derive(Debug)]
pub struct Shapes(pub Arc<Vec<Shape>>);

impl Upstream for Shapes {
    fn name(&self) -> &'static str {
        "shapes"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            body.collect().await.map_err(UpstreamError::Closed)?;
            let query = head.uri.query().unwrap_or_default();
            let number = query.strip_prefix("shape=").and_then(|number| number.parse::<usize>().ok());
            let Some(shape) = number.and_then(|number| self.0.get(number)) else {
                let mut response = Response::new(ReceivedBody::Made(VecDeque::from([peer(head.uri.path())])));
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
                return Ok(response);
            };
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([shape.bytes().into()])));
            for (name, value) in
                [(header::CONTENT_TYPE, shape.content_type()), (header::CONTENT_ENCODING, shape.encoding.as_deref())]
            {
                if let Some(value) = value {
                    response.headers_mut().insert(name, value.parse().expect("a header"));
                }
            }
            Ok(response)
        })
    }
}

fn peer(path: &str) -> bytes::Bytes {
    let surface = surface::for_path("POST", path).expect("a path of a surface");
    let message = Message::text_of(Role::Assistant, PEER);
    let answers = vec![Answer { index: 0, message, finish_reason: Some("stop".to_owned()) }];
    surface.compose(&Reply { id: "peer".to_owned(), model: "m".to_owned(), answers, ..Reply::default() }, 1)
}
