//! Whose the replies and conversations are that an upstream keeps. Users of one server may share the upstream's key, and whoever has
//! that and an id may read what it names. So a user's line knows the ids that its own runs were given, and refuses all others.

use std::{
    collections::{HashSet, VecDeque},
    sync::Mutex,
};

use hyper::Method;
use serde::Deserialize;

use super::objects;
use crate::{
    proxy::{
        arrival::{Arrived, Kind, ModelCall},
        error::ProxyError,
        exchange::Proxy,
        listen::gate,
        lock::locked,
    },
    surface::{Reply, door},
};

/// Ids that a line knows; the oldest are forgotten, and refused.
const IDS_MAX: usize = 1 << 16;
/// What stands in a path before the id of something that the upstream keeps.
const SHELVES: [&str; 5] = ["responses", "completions", "conversations", "threads", "interactions"];
/// How often a path may be encoded over itself.
const ENCODINGS: usize = 4;

/// The ids that a user's runs were given, as hashes.
#[derive(Debug, Default)]
pub(in crate::proxy) struct StoredIds(Mutex<IdList>);

#[derive(Debug, Default)]
struct IdList {
    ids: HashSet<u128>,
    order: VecDeque<u128>,
}

/// A reply that no surface reads, as far as it says what it is.
#[derive(Deserialize)]
struct NamedBody {
    id: String,
    /// Where a run was made together with its thread.
    thread_id: Option<String>,
}

/// What a path asks of what the upstream keeps.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredPath {
    /// One more of it.
    New,
    /// All of it, whoever it is of.
    List,
    /// What has this id, and the shelf with it: `files/abc`.
    Id {
        /// The id.
        id: String,
        /// The shelf and the id.
        name: String,
    },
}

/// How much of what the upstream keeps a request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum StoredAccess {
    /// All that it asks for.
    Whole,
    /// Of the list that it asks for, what is the user's.
    OwnList,
}

impl StoredIds {
    /// Takes in the ids of a reply and of its parts.
    pub(in crate::proxy) fn learn(&self, reply: &Reply) {
        std::iter::once(&reply.id).chain(&reply.items).for_each(|id| self.add(id));
    }

    /// Takes in the id of a reply that no surface reads: a conversation has one.
    pub(in crate::proxy) fn learn_unread(&self, body: &[u8]) {
        if let Ok(NamedBody { id, thread_id }) = serde_json::from_slice(body) {
            [Some(id), thread_id].iter().flatten().for_each(|id| self.add(id));
        }
    }

    fn add(&self, id: &str) {
        let list = &mut *locked(&self.0);
        let hash = twox_hash::XxHash3_128::oneshot(id.as_bytes());
        if id.is_empty() || !list.ids.insert(hash) {
            return;
        }
        list.order.push_back(hash);
        if list.order.len() > IDS_MAX
            && let Some(oldest) = list.order.pop_front()
        {
            list.ids.remove(&oldest);
        }
    }

    fn holds(&self, id: &str) -> bool {
        locked(&self.0).ids.contains(&twox_hash::XxHash3_128::oneshot(id.as_bytes()))
    }
}

impl Proxy {
    /// Whether all that a call goes on from was given to this user's runs. To be asked once its run is open.
    ///
    /// # Errors
    /// It names what was not.
    pub(in crate::proxy) fn check_goes_on(&self, call: &ModelCall) -> Result<(), ProxyError> {
        if let Some(foreign) = self.runs.objects().and_then(|objects| objects.foreign_in(&call.unpacked.plain)) {
            return Err(ProxyError::NotYourObject(foreign));
        }
        let Some((ids, surface)) = self.runs.stored_ids().zip(call.kind.surface()) else { return Ok(()) };
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

/// A path as the most generous server would read it.
pub(super) fn decoded(path: &str) -> String {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..ENCODINGS {
        path = gate::decode_percent(&path);
    }
    String::from_utf8_lossy(&path).into_owned()
}

/// The segments of a path; behind a semicolon stand their parameters.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let name = |segment: &'_ str| segment.len() - segment.split_once(';').map_or(0, |(_, rest)| rest.len() + 1);
    path.split(['/', '\\'])
        .map(move |segment| segment.get(..name(segment)).unwrap_or(segment))
        .filter(|name| !name.is_empty())
}

/// What of all that the upstream keeps on some shelves a path asks for; `None` where it asks for nothing of it.
pub(super) fn stored_path(shelves: &[&str], method: &Method, path: &str) -> Option<StoredPath> {
    let mut segments =
        segments(path).skip_while(|segment| !shelves.iter().any(|shelf| segment.eq_ignore_ascii_case(shelf)));
    let shelf = segments.next()?;
    let below: Vec<&str> = segments.collect();
    Some(match below.as_slice() {
        // A thread, and a run of it at once.
        ["runs"] if *method == Method::POST && shelf.eq_ignore_ascii_case("threads") => StoredPath::New,
        [id, ..] => {
            // Behind a colon stands what is to be done with it.
            let name = format!("{shelf}/{}", id.split(':').next().unwrap_or(id));
            StoredPath::Id { id: (*id).to_owned(), name }
        }
        [] if *method == Method::POST => StoredPath::New,
        [] => StoredPath::List,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_what_is_kept() {
        let at = |shelf: &str, id: &str| Some(StoredPath::Id { id: id.to_owned(), name: format!("{shelf}/{id}") });
        for (method, path, expected) in [
            (Method::GET, "/v1/responses/resp_1", at("responses", "resp_1")),
            (Method::GET, "/v1//responses//resp_1/input_items", at("responses", "resp_1")),
            (Method::GET, "/v1/%72esponses/resp%5F1", at("responses", "resp_1")),
            (Method::GET, "/v1/%2572esponses/resp_1", at("responses", "resp_1")),
            (Method::GET, "/v1/Responses;a=b/resp_1;c", at("Responses", "resp_1")),
            (Method::POST, "/v1/responses/resp_1/cancel", at("responses", "resp_1")),
            (Method::DELETE, "/openai/v1/chat/completions/c1", at("completions", "c1")),
            (Method::POST, "/v1/conversations/conv_1/items", at("conversations", "conv_1")),
            (Method::GET, "/v1/chat/completions", Some(StoredPath::List)),
            (Method::POST, "/v1/chat/completions", Some(StoredPath::New)),
            (Method::POST, "/v1/conversations", Some(StoredPath::New)),
            (Method::POST, "/v1/threads/runs", Some(StoredPath::New)),
            (Method::GET, "/v1/threads/runs", at("threads", "runs")),
            (Method::GET, "/v1/models/gpt", None),
        ] {
            assert_eq!(stored_path(&SHELVES, &method, &decoded(path)), expected, "{path}");
        }
        let object = StoredPath::Id { id: "abc:download".to_owned(), name: "files/abc".to_owned() };
        assert_eq!(stored_path(&objects::SHELVES, &Method::GET, "/v1beta/files/abc:download"), Some(object));
    }

    #[test]
    fn as_many_ids_as_may_be() {
        let ids = StoredIds::default();
        (0..=IDS_MAX).for_each(|number| ids.add(&number.to_string()));
        assert!(!ids.holds("0") && ids.holds("1") && ids.holds(&IDS_MAX.to_string()) && !ids.holds(""));
        assert_eq!(locked(&ids.0).ids.len(), IDS_MAX);
    }
}
