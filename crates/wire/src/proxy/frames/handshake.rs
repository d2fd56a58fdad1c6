//! The request that opens a WebSocket whose messages are read. It is no step: it asks no model.

use std::sync::Arc;

use hyper::{
    HeaderMap, Method, Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
    upgrade::OnUpgrade,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Bridge, upstream_end::UpstreamEnd};
use crate::{
    proxy::{
        arrival::{Arrived, Hinted},
        delivery::Delivery,
        error::{Interrupted, ProxyError},
        exchange::Proxy,
        headers,
        listen::socket::Link,
        tunnel::Switched,
        upstream::{Upstream, UpstreamError},
    },
    surface::Surface,
};

/// Headers that say something of the connection, and nothing of what is asked on it.
static OF_CONNECTION: [HeaderName; 8] = [
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::SEC_WEBSOCKET_VERSION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
];

impl Proxy {
    /// A request to switch to a WebSocket of this API. What the upstream says instead of `101` passes as it is.
    pub(in crate::proxy) async fn frames(
        &self,
        arrived: Arrived,
        api: &'static dyn Surface,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { mut parts, hinted, .. } = arrived;
        self.identity.declared(&hinted.envelope())?;
        let own = self.own_upstream(&hinted)?;
        let upstream = own.as_ref().unwrap_or(&self.upstream);
        let client = parts.extensions.remove::<OnUpgrade>().ok_or(ProxyError::BodyBroken)?;
        let (silence, message_max) = (self.limits.silence_timeout, self.limits.max_body_bytes);
        let (end, opening) = UpstreamEnd::new(self.to_switch(&parts), silence, message_max);
        let mut agreed = None;
        let mut head = HeaderMap::new();
        if upstream.opens_sockets() {
            let mut answered = upstream.open_socket(end.handshake()).await?;
            headers::strip_hop_by_hop(answered.headers_mut());
            if answered.status() != StatusCode::SWITCHING_PROTOCOLS {
                tracing::warn!(status = answered.status().as_u16(), "the upstream refuses a WebSocket of this API");
                return Ok(answered.map(|body| Delivery::pass(body, silence)));
            }
            agreed = Some(answered.extensions_mut().remove::<OnUpgrade>().ok_or(UpstreamError::Switched)?);
            head = std::mem::take(answered.headers_mut());
            head.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        } else if let Some(key) = parts.headers.get(header::SEC_WEBSOCKET_KEY) {
            let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
            head.insert(header::SEC_WEBSOCKET_ACCEPT, accepted.map_err(|_| ProxyError::Internal)?);
        }
        link.switch();
        headers::switch_to_websocket(&mut head);
        let head_of_calls = of_calls(parts);
        let link = Arc::clone(link);
        let bridge = Bridge { api, head: head_of_calls, hinted: hinted.anew(), client, agreed, end, opening, link };
        let mut response = Response::new(Delivery::switched(Switched::Read(Box::new(bridge))));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = head;
        Ok(response)
    }

    /// The upstream of the run that a request names, where that is open and has one of its own.
    fn own_upstream(&self, hinted: &Hinted) -> Result<Option<Arc<dyn Upstream>>, ProxyError> {
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        let run = named.or_else(|| self.default_run.clone()).and_then(|run| self.runs.find(&run));
        Ok(run.and_then(|run| run.upstream.clone()))
    }

    /// The handshake as the upstream gets it: its frames are to be plain.
    fn to_switch(&self, asked: &Parts) -> Parts {
        let mut parts = asked.clone();
        parts.extensions.clear();
        headers::to_upstream(&mut parts.headers, self.hint_headers(), false);
        if self.identity.hints.uses_keys() {
            parts.headers.remove(header::AUTHORIZATION);
            parts.headers.remove(&headers::API_KEY);
        }
        parts.headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        parts.headers.remove(header::CONTENT_LENGTH);
        headers::switch_to_websocket(&mut parts.headers);
        parts
    }
}

/// The head of each request that comes by it, made of that of the handshake: `upgrade` tells in the record how it came.
fn of_calls(mut parts: Parts) -> Parts {
    parts.method = Method::POST;
    parts.extensions.clear();
    for name in &OF_CONNECTION {
        parts.headers.remove(name);
    }
    parts
}
