//! What of all that an upstream keeps a user's requests may have.

use hyper::header;

use super::{
    objects,
    stored_path::{SHELVES, StoredPath, decoded, segments, stored_path},
};
use crate::{
    proxy::{
        arrival::{Arrived, Kind, ModelCall},
        error::ProxyError,
        headers,
        shared::Proxy,
    },
    surface::{self, door},
};

/// How much of what the upstream keeps a request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum StoredAccess {
    /// All that it asks for.
    Whole,
    /// Of the list that it asks for, what is the user's.
    OwnList,
}

impl Proxy {
    /// Whether all that a call goes on from was given to this user's runs. To be asked once its run is open.
    ///
    /// # Errors
    /// It names what was not.
    pub(in crate::proxy) fn check_goes_on(&self, call: &ModelCall) -> Result<(), ProxyError> {
        // What packed bytes name is not known.
        if self.runs.objects().is_some()
            && let Some(refused) = call.unpacked.refused.as_ref().filter(|_| is_json(call))
        {
            return Err(ProxyError::Unreadable(refused.to_string()));
        }
        if let Some(foreign) = self.runs.objects().and_then(|objects| objects.foreign_in(&call.unpacked.plain)) {
            return Err(ProxyError::NotYourObject(foreign));
        }
        let surface = match call.kind {
            Kind::Unread(row) => row.like.as_deref().and_then(surface::named),
            kind => kind.surface(),
        };
        let Some((ids, surface)) = self.runs.stored_ids().zip(surface) else { return Ok(()) };
        let Ok(asked) = door::request(surface, &call.unpacked.plain) else { return Ok(()) };
        let named = asked.continues.iter().chain(&asked.thread).chain(&asked.refers);
        named.into_iter().find(|id| !ids.holds(id)).map_or(Ok(()), |id| Err(ProxyError::NotStored(id.clone())))
    }

    /// Whether none of these names an object of another user.
    fn check_object(&self, names: &[&str]) -> Result<(), ProxyError> {
        let Some(objects) = self.runs.objects() else { return Ok(()) };
        let foreign = names.iter().find(|name| objects.is_foreign(name));
        foreign.map_or(Ok(()), |name| Err(ProxyError::NotYourObject((*name).to_owned())))
    }

    /// Whether a request is for nothing that the upstream keeps of other users; a list of objects is, once it is cut to those of this
    /// user.
    ///
    /// # Errors
    /// Its path names something that was not given to this user's runs, or all replies that there are; or it is a WebSocket in which
    /// that could be asked unseen.
    pub(in crate::proxy) async fn check_stored_path(&self, arrived: &Arrived) -> Result<StoredAccess, ProxyError> {
        let Some(ids) = self.runs.stored_ids() else { return Ok(StoredAccess::Whole) };
        if matches!(arrived.kind, Kind::Frames(_)) {
            // Each request that comes by it is checked.
            return Ok(StoredAccess::Whole);
        }
        let path = decoded(arrived.parts.uri.path());
        if matches!(arrived.kind, Kind::Tunnel) {
            let last = segments(&path).last().unwrap_or_default();
            let is_checked = !last.eq_ignore_ascii_case("responses");
            return is_checked.then_some(StoredAccess::Whole).ok_or(ProxyError::UncheckedSocket);
        }
        let method = &arrived.parts.method;
        match stored_path(&objects::SHELVES, method, &path) {
            Some(StoredPath::List) => return Ok(StoredAccess::OwnList),
            Some(StoredPath::Id { id, name }) => self.check_object(&[&id, &name])?,
            Some(StoredPath::New) | None => {}
        }
        match stored_path(&SHELVES, method, &path) {
            None | Some(StoredPath::New) => Ok(StoredAccess::Whole),
            Some(StoredPath::List) => Err(ProxyError::StoredList),
            Some(StoredPath::Id { id, .. }) if ids.holds(&id) => Ok(StoredAccess::Whole),
            Some(StoredPath::Id { id, .. }) => {
                // A run that was put down, or left by an earlier server, says what it was given once it is open.
                let named = self.identity.run(&arrived.hinted.envelope(), || None)?;
                if let Some((run, _)) = named.filter(|(run, _)| self.runs.standing(run).is_some()) {
                    self.runs.get(&run).await?.named();
                }
                if ids.holds(&id) { Ok(StoredAccess::Whole) } else { Err(ProxyError::NotStored(id)) }
            }
        }
    }
}

/// Whether a call's body is JSON, by its API or by its own word.
fn is_json(call: &ModelCall) -> bool {
    let kind = headers::text(&call.parts.headers, &header::CONTENT_TYPE);
    call.kind.surface().is_some() || kind.is_some_and(|kind| kind.contains("json"))
}
