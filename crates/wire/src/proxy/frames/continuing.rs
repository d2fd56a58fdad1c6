//! What a server may go on from by itself: the last calls of a socket, and what the client has said to their responses since.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock},
};

use bytes::Bytes;

use super::words::CallOwner;
use crate::proxy::lock::locked;

/// Calls that are remembered.
const CALLS_MAX: usize = 64;
/// Messages to responses that are kept.
const STEERS_MAX: usize = 16;
/// The longest of them that is kept, in bytes.
const STEER_MAX: usize = 64 << 10;

/// What a server may go on from, oldest first.
#[derive(Debug, Default)]
pub(super) struct Continuable {
    calls: Mutex<VecDeque<Arc<RecentCall>>>,
    steers: Mutex<VecDeque<Steer>>,
}

/// A call of a socket, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct RecentCall {
    pub(super) placed: Arc<OnceLock<CallOwner>>,
    /// The id of its response.
    pub(super) response: OnceLock<String>,
}

/// What the client has said to a response under way.
#[derive(Debug)]
struct Steer {
    response: String,
    text: Bytes,
}

impl Continuable {
    /// A call begins.
    pub(super) fn begin(&self) -> Arc<RecentCall> {
        let begun = Arc::<RecentCall>::default();
        push(&mut locked(&self.calls), CALLS_MAX, Arc::clone(&begun));
        begun
    }

    /// The call that this is the response of; where it is not known, the last one.
    pub(super) fn last(&self, response: Option<&str>) -> Option<CallOwner> {
        let calls = locked(&self.calls);
        let is_of = |call: &&Arc<RecentCall>| response.is_some() && call.response.get().map(String::as_str) == response;
        let of_it = calls.iter().rev().find(is_of).and_then(|call| call.placed.get());
        of_it.or_else(|| calls.iter().rev().find_map(|call| call.placed.get())).cloned()
    }

    /// The client says something to a response.
    pub(super) fn steer(&self, response: String, text: &Bytes) {
        if text.len() <= STEER_MAX {
            push(&mut locked(&self.steers), STEERS_MAX, Steer { response, text: text.clone() });
        }
    }

    /// What the client has last said to a response.
    pub(super) fn take_steer(&self, response: &str) -> Option<Bytes> {
        let mut steers = locked(&self.steers);
        let at = steers.iter().rposition(|steer| steer.response == response)?;
        steers.remove(at).map(|steer| steer.text)
    }
}

fn push<T>(list: &mut VecDeque<T>, most: usize, next: T) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(next);
}
