//! The card of a peer: each address in it that leads to the peer is written as one that leads through here.

use bytes::Bytes;
use hyper::{Response, header, http::request::Parts};

use super::{
    delivery::Delivery, error::Interrupted, headers, limits::Limits, memory::HeldMemory, servers::NamedServers,
    upstream::ReceivedBody,
};
use crate::surface;

/// A card that is asked for.
pub(super) struct PeerCard {
    /// Where the peer is.
    address: String,
    /// Where its clients reach it through here.
    ours: String,
}

/// The card that a request asks for; `None` where it asks for something else. `own_path`: the path as it came, our prefix included.
pub(super) fn requested(parts: &Parts, own_path: &str, servers: &NamedServers) -> Option<PeerCard> {
    let path = parts.uri.path();
    if !surface::is_card(parts.method.as_str(), path) {
        return None;
    }
    let address = servers.address(path)?.to_owned();
    let host = headers::text(&parts.headers, &header::HOST)?;
    // What stands before the peer's own path: our prefix and the place of the peer.
    let own_path = own_path.split('?').next().unwrap_or_default();
    let place = own_path.find(surface::CARD_FOLDER).and_then(|end| own_path.get(..end))?;
    Some(PeerCard { ours: format!("http://{host}{}", place.trim_end_matches('/')), address })
}

impl PeerCard {
    /// The reply, with our addresses in the place of the peer's.
    pub(super) async fn rewritten(
        self,
        received: Response<ReceivedBody>,
        limits: &Limits,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let (mut head, body) = received.into_parts();
        let body = super::arrival::collect(body, limits, &mut HeldMemory::default()).await?;
        let written = surface::readdressed_card(&body, &self.address, &self.ours);
        headers::body_changed(&mut head.headers);
        // Another one would be another client's.
        for name in [header::ETAG, header::LAST_MODIFIED] {
            head.headers.remove(name);
        }
        let written: Bytes = written.unwrap_or(body);
        Ok(Response::from_parts(head, Delivery::made(written)))
    }
}
