//! Whose the replies and conversations are that an upstream keeps. Users of one server may share the upstream's key, and whoever has
//! that and an id may read what it names. So a user's line knows the ids that its own runs were given, and refuses all others.

use std::{
    collections::{HashSet, VecDeque},
    sync::Mutex,
};

use serde::Deserialize;

use super::objects::UserObjects;
use crate::{proxy::lock::locked, surface::Reply};

/// Ids that a line knows; the oldest are forgotten, and refused.
const IDS_MAX: usize = 1 << 16;

/// The ids that a user's runs were given, as hashes.
#[derive(Debug)]
pub(in crate::proxy) struct StoredIds {
    list: Mutex<IdList>,
    /// What the user has had the upstream make.
    pub(in crate::proxy) objects: UserObjects,
}

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

impl StoredIds {
    /// None yet, of the user whose objects these are.
    pub(in crate::proxy) fn of_user(objects: UserObjects) -> Self {
        Self { list: Mutex::default(), objects }
    }

    /// Takes in the ids of a reply and of its parts, and of what its body says that was made by the way.
    pub(in crate::proxy) fn learn(&self, reply: &Reply, body: &[u8]) {
        self.objects.claim_made_by(body);
        std::iter::once(&reply.id).chain(&reply.items).for_each(|id| self.add(id));
    }

    /// Takes in the id of a reply that no surface reads: a conversation has one.
    pub(in crate::proxy) fn learn_unread(&self, body: &[u8]) {
        if let Ok(NamedBody { id, thread_id }) = serde_json::from_slice(body) {
            [Some(id), thread_id].iter().flatten().for_each(|id| self.add(id));
        }
    }

    fn add(&self, id: &str) {
        let list = &mut *locked(&self.list);
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

    pub(super) fn holds(&self, id: &str) -> bool {
        locked(&self.list).ids.contains(&twox_hash::XxHash3_128::oneshot(id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::proxy::{stored::objects::ObjectOwners, user_name::UserName};

    #[test]
    fn as_many_ids_as_may_be() {
        let dir = tempfile::tempdir().expect("a directory");
        let owners = Arc::new(ObjectOwners::open(dir.path()));
        let ids = StoredIds::of_user(UserObjects::new(owners, &UserName::parse("alice").expect("a name")));
        (0..=IDS_MAX).for_each(|number| ids.add(&number.to_string()));
        assert!(!ids.holds("0") && ids.holds("1") && ids.holds(&IDS_MAX.to_string()) && !ids.holds(""));
        assert_eq!(locked(&ids.list).ids.len(), IDS_MAX);
    }
}
