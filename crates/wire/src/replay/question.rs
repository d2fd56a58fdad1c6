//! A question to a cassette: who asks, and what for.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::Request;

use super::Cassette;
use crate::{
    proxy::upstream::{Asker, SentBody},
    surface::{self, ServerPath},
    trajectory::Attempt,
};

/// A request to the cassette.
pub(super) struct CassetteQuestion {
    pub(super) asker: Asker,
    /// What it asks for (see [`surface::asked_of`]).
    pub(super) surface: Cow<'static, str>,
}

impl CassetteQuestion {
    /// What a request asks; `None` for one that no run stands behind, that is no call, or that a record does not hold which was
    /// made before such calls were recorded.
    pub(super) fn read(request: &Request<SentBody>, cassette: &Cassette) -> Option<Self> {
        let asker = request.extensions().get::<Asker>()?.clone();
        let (method, path) = (request.method().as_str(), request.uri().path());
        // A step of a server is a message, also where its client reads the broken stream of the answer on by a `GET`.
        let server = || ServerPath::of_path(path).map(|server| server.surface);
        if let Some(surface) = surface::model_api(method, path).or_else(server) {
            return Some(Self { asker, surface: surface::request_key(surface.name(), method, path) });
        }
        let row = surface::unread_call(method, path).filter(|row| cassette.records(row))?;
        Some(Self { asker, surface: surface::request_key(&row.name, method, path) })
    }

    /// A recorded attempt as the answer to this request: a server of tools names the request that it answers.
    pub(super) fn answered_by(&self, attempt: Attempt) -> Attempt {
        if !surface::is_of_server(&self.surface) {
            return attempt;
        }
        let answer = |reply: &Bytes| surface::answering(&self.asker.client_body, reply, attempt.streamed);
        let (reply, reply_delivered) = (answer(&attempt.reply), attempt.reply_delivered.as_ref().map(answer));
        Attempt { reply, reply_delivered, ..attempt }
    }
}
