//! What of all that an upstream keeps a user's requests may have.

use hyper::header;

use super::{
    ids::StoredIds,
    objects::{self, UserObjects},
    stored_path::{SHELVES, StoredPath, decoded, segments, stored_path},
    strict_json,
};
use crate::{
    proxy::{
        arrival::{Arrived, Kind, ModelCall},
        error::ProxyError,
        headers, heavy,
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
    /// It names what was not, or the upstream may read other names in its body than are read here.
    pub(in crate::proxy) async fn check_goes_on(&self, call: &ModelCall) -> Result<(), ProxyError> {
        let Some((objects, ids)) = self.runs.objects().zip(self.runs.stored_ids()) else { return Ok(()) };
        heavy::in_turn(call.unpacked.plain.len(), || check_names(call, objects, ids)).await
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

fn check_names(call: &ModelCall, objects: &UserObjects, ids: &StoredIds) -> Result<(), ProxyError> {
    let body = &call.unpacked.plain;
    if is_json(call) {
        // What packed bytes name is not known.
        let refused = call.unpacked.refused.as_ref().map(ToString::to_string);
        refused
            .or_else(|| strict_json::check(body).err())
            .map_or(Ok(()), |reason| Err(ProxyError::Unreadable(reason)))?;
    }
    if let Some(foreign) = objects.foreign_in(body) {
        return Err(ProxyError::NotYourObject(foreign));
    }
    let surface = match call.kind {
        Kind::Unread(row) => row.like.as_deref().and_then(surface::named),
        kind => kind.surface(),
    };
    let Some(surface) = surface else { return Ok(()) };
    let Ok(request) = door::request(surface, body) else { return Ok(()) };
    let mut names = request.continues.iter().chain(&request.thread).chain(&request.refers);
    names.find(|id| !ids.holds(id)).map_or(Ok(()), |id| Err(ProxyError::NotStored(id.clone())))
}

/// Whether a call's body is JSON: by its API, by its own word, or because the upstream may take it for that.
fn is_json(call: &ModelCall) -> bool {
    let kind = headers::text(&call.parts.headers, &header::CONTENT_TYPE);
    call.kind.surface().is_some()
        || kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("json"))
        || strict_json::looks_like_json(&call.unpacked.plain)
}
