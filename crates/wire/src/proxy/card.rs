//! The card of a peer: each address in it that leads to the peer is written as one that leads through here. A run keeps the cards
//! that its program asked for, and its replay gives them again.

use bytes::Bytes;
use hyper::{Response, header, http::request::Parts};

use super::{
    delivery::Delivery, error::Interrupted, headers, limits::Limits, memory::HeldMemory, run::Run, servers,
    upstream::ReceivedBody,
};
use crate::{recording::RecordedCard, surface};

/// A card that is asked for.
pub(super) struct CardRequest {
    /// Where the path of the peer begins.
    place: String,
    /// The path below that.
    path: String,
    /// Where its clients reach the peer through here.
    ours: String,
}

impl CardRequest {
    /// The card that a request asks for; `None` where it asks for something else. `own_path`: the path as it came, our prefix
    /// included.
    pub(super) fn read(parts: &Parts, own_path: &str) -> Option<Self> {
        let path = parts.uri.path();
        if !surface::is_card(parts.method.as_str(), path) {
            return None;
        }
        let place = servers::place(path)?;
        let below = path.strip_prefix(place)?;
        let host = headers::text(&parts.headers, &header::HOST)?;
        // What stands before the peer's own path: our prefix and the place of the peer.
        let own_path = own_path.split('?').next().unwrap_or_default();
        let ours = own_path.find(surface::CARD_FOLDER).and_then(|end| own_path.get(..end))?;
        let ours = format!("http://{host}{}", ours.trim_end_matches('/'));
        Some(Self { place: place.to_owned(), path: below.to_owned(), ours })
    }

    /// The reply of the peer at an address, with our addresses in the place of its own. `run`: whose program asks.
    pub(super) async fn rewritten(
        self,
        received: Response<ReceivedBody>,
        address: &str,
        run: Option<&Run>,
        limits: &Limits,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let (mut head, body) = received.into_parts();
        let body = super::arrival::collect(body, limits, &mut HeldMemory::default()).await?;
        if let (Some(run), true, Ok(text)) = (run, head.status.is_success(), std::str::from_utf8(&body)) {
            self.keep(run, address, text);
        }
        let written = surface::readdressed_card(&body, address, &self.ours);
        headers::body_changed(&mut head.headers);
        // Another one would be another client's.
        for name in [header::ETAG, header::LAST_MODIFIED] {
            head.headers.remove(name);
        }
        let written: Bytes = written.unwrap_or(body);
        Ok(Response::from_parts(head, Delivery::composed(written)))
    }

    /// The card that a run's record holds.
    pub(super) fn recorded(&self, run: &Run) -> Option<Response<Box<Delivery>>> {
        let card = run.cards.find(&self.place, &self.path)?;
        let body = Bytes::from(card.body);
        let written = surface::readdressed_card(&body, &card.address, &self.ours).unwrap_or(body);
        let mut response = Response::new(Delivery::composed(written));
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Some(response)
    }

    /// Keeps a card with a run.
    fn keep(&self, run: &Run, address: &str, body: &str) {
        let Self { place, path, .. } = self;
        let card = RecordedCard {
            place: place.clone(),
            path: path.clone(),
            address: address.to_owned(),
            body: run.recorder.redactor().text(body).into_owned(),
        };
        run.cards.keep(run.dir(), card);
    }
}
