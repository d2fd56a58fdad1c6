//! The request that opens a WebSocket whose messages are read. It is no step: it asks no model.

use std::sync::Arc;

use hyper::{HeaderMap, Method, Response, StatusCode, header, http::request::Parts, upgrade::OnUpgrade};

use super::{Bridge, upstream_end::UpstreamEnd};
use crate::{
    proxy::{
        arrival::{Arrived, Hinted},
        delivery::Delivery,
        error::{Interrupted, ProxyError},
        headers,
        listen::socket::Link,
        shared::Proxy,
        tunnel::{SwitchedConnection, handshake},
        upstream::{Upstream, UpstreamError},
    },
    surface::Surface,
};

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
        let mut headers = HeaderMap::new();
        // Where models have routes of their own, the first message tells where it leads.
        if upstream.opens_sockets() && self.routes.is_empty() {
            let mut answered = upstream.open_socket(end.handshake()).await?;
            headers::strip_hop_by_hop(answered.headers_mut());
            if answered.status() != StatusCode::SWITCHING_PROTOCOLS {
                tracing::warn!(status = answered.status().as_u16(), "the upstream refuses a WebSocket of this API");
                return Ok(answered.map(|body| Delivery::pass(body, silence)));
            }
            agreed = Some(answered.extensions_mut().remove::<OnUpgrade>().ok_or(UpstreamError::Switched)?);
            headers = std::mem::take(answered.headers_mut());
            headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        } else {
            headers::accept_websocket(&parts.headers, &mut headers);
        }
        // `upgrade` tells in the record of each request how it came.
        headers::strip_connection(&mut parts.headers);
        parts.method = Method::POST;
        parts.extensions.clear();
        let (head, hinted) = (parts, hinted.anew());
        let bridge = Bridge { api, head, hinted, client, agreed, end, opening, link: Arc::clone(link) };
        Ok(handshake::agreed(SwitchedConnection::Read(Box::new(bridge)), headers, link))
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
        self.head_to_upstream(&mut parts.headers, false);
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        headers::switch_to_websocket(&mut parts.headers);
        parts
    }
}
