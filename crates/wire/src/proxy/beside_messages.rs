//! Requests to servers of tools and to peers that are no messages.

use std::{sync::Arc, time::Duration};

use http_body_util::Either;
use hyper::{Request, Response};

use super::{
    arrival::Arrived, card::CardRequest, delivery::Delivery, error::Interrupted, headers, listen::socket::Link,
    shared::Proxy, upstream::Upload,
};

/// How long a server may say nothing by itself: its clients hold the stream open all the time.
const SILENT_SESSION: Duration = Duration::from_hours(24);

impl Proxy {
    /// A request to a server that is no message: the stream of what it says by itself, the end of a session, its card. It passes,
    /// and is no step, unless it reads a broken stream on.
    pub(super) async fn beside_messages(
        &self,
        arrived: Arrived,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let named = self.identity.run(&arrived.hinted.envelope(), || None)?.map(|(run, _)| run);
        let named = named.or_else(|| self.default_run.clone());
        let card = CardRequest::read(&arrived.parts, &arrived.own_path);
        // Who asks for a card goes on with a message: its run begins here. Where it cannot, that message is told so.
        let run = match named {
            Some(named) if card.is_some() => self.runs.get(&named).await.ok(),
            named => named.and_then(|run| self.runs.find(&run)),
        };
        if let Some(message) = run.as_ref().and_then(|run| Self::read_on(&arrived, run)) {
            return Box::pin(self.resume(arrived, message, link)).await;
        }
        let Arrived { mut parts, body, .. } = arrived;
        let own = run.as_ref().and_then(|run| run.upstream.clone());
        let recorded = run.as_deref().filter(|_| own.is_some()).zip(card.as_ref());
        if let Some(recorded) = recorded.and_then(|(run, card)| card.recorded(run)) {
            return Ok(recorded);
        }
        let card = card.and_then(|card| Some((card, self.servers.address(parts.uri.path())?)));
        self.head_to_upstream(&mut parts.headers, false);
        let (upload, end) = Upload::new(body, &self.limits);
        let sent = own.as_ref().unwrap_or(&self.upstream).send(Request::from_parts(parts, Either::Right(upload))).await;
        let mut received = match sent {
            Err(_) if let Some(error) = end.error(&self.limits) => return Err(error.into()),
            sent => sent?,
        };
        headers::strip_hop_by_hop(received.headers_mut());
        match card {
            Some((card, address)) => card.rewritten(received, address, run.as_deref(), &self.limits).await,
            None => Ok(received.map(|body| Delivery::pass(body, SILENT_SESSION))),
        }
    }
}
