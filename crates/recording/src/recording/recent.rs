//! The bodies that a new one may grow from: a bounded ring of those written last, and the hashes of all.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

use super::{content_hash::ContentHash, hash_cache::HashCache, share};

/// Most bodies that are kept.
const MOST: usize = 64;
/// Most bytes that are kept; a single body may be longer.
const MOST_BYTES: usize = 8 << 20;
/// Names of bodies that are kept. One that is forgotten and comes back is recorded by the texts that the log has of it.
const NAMES: usize = 2048;

/// A body that stands in the log.
#[derive(Debug, Default)]
pub(super) struct RememberedBody {
    /// As it passed; never written.
    pub(super) raw: Bytes,
    /// As it stands in the log, by its hash.
    pub(super) hash: Option<ContentHash>,
    /// What was masked.
    pub(super) masked: Vec<Range<usize>>,
    /// Long strings, and empty ranges that lie outside any string: where a scan may begin.
    pub(super) marks: Vec<Range<usize>>,
}

/// What a body has in common with an earlier one.
#[derive(Debug)]
pub(super) struct Shared {
    /// The earlier one.
    pub(super) parent: Arc<RememberedBody>,
    /// Bytes at the start.
    pub(super) prefix: usize,
    /// Bytes at the end; start and end do not overlap in either body.
    pub(super) suffix: usize,
}

/// Bodies, oldest first, each with a hash of its start: most are told apart without a look at them, since they lie
/// scattered in memory and have long left the caches.
pub(super) type Ring = Vec<(u64, Arc<RememberedBody>)>;

/// How much of a body's start is hashed.
const START: usize = 256;
/// How many of the newest bodies are compared in any case: one that is edited at its start is among them.
const NEWEST: usize = 2;

/// The bodies of one run.
#[derive(Debug, Default)]
pub(super) struct RecentBodies {
    inner: Mutex<RecentState>,
}

#[derive(Debug)]
struct RecentState {
    /// Oldest first. A snapshot is one reference count.
    ring: Arc<Ring>,
    bytes: usize,
    /// By the hash of a body's raw bytes: the hash under which they stand in the log.
    by_raw_hash: HashCache<ContentHash>,
}

impl Default for RecentState {
    fn default() -> Self {
        Self { ring: Arc::default(), bytes: 0, by_raw_hash: HashCache::new(NAMES) }
    }
}

impl RecentBodies {
    /// The name of an equal body in the log, if there is one, and the ring as it is now.
    pub(super) fn look(&self, raw: ContentHash) -> (Option<ContentHash>, Arc<Ring>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.by_raw_hash.get(raw), Arc::clone(&inner.ring))
    }

    /// Only remembers that these raw bytes stand in the log.
    pub(super) fn know(&self, raw: ContentHash, stored: ContentHash) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).by_raw_hash.insert(raw, stored);
    }

    /// Takes in a body that was just written. It replaces the one that it extends.
    pub(super) fn remember(&self, body: Arc<RememberedBody>, extends: Option<ContentHash>) {
        let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        let ring = Arc::make_mut(&mut inner.ring);
        if let Some(at) = extends.and_then(|hash| ring.iter().position(|(_, kept)| kept.hash == Some(hash))) {
            inner.bytes -= ring.remove(at).1.raw.len();
        }
        inner.bytes += body.raw.len();
        ring.push((start_of(&body.raw), body));
        let mut surplus = 0;
        let mut bytes = inner.bytes;
        for (_, kept) in ring.iter() {
            if ring.len() - surplus <= 1 || (ring.len() - surplus <= MOST && bytes <= MOST_BYTES) {
                break;
            }
            bytes -= kept.raw.len();
            surplus += 1;
        }
        ring.drain(..surplus);
        inner.bytes = bytes;
    }
}

/// The body that has the longest start in common with this one: of those that begin alike, the newest, and `beside`.
pub(super) fn best(
    raw: &[u8],
    beside: Option<&Arc<RememberedBody>>,
    ring: &[(u64, Arc<RememberedBody>)],
) -> Option<Shared> {
    let start = start_of(raw);
    let alike = ring.iter().rev().enumerate().filter(|(age, (kept, _))| *kept == start || *age < NEWEST);
    let mut best: Option<&Arc<RememberedBody>> = None;
    let mut longest = 0;
    for candidate in beside.into_iter().chain(alike.map(|(_, (_, kept))| kept)) {
        // To be better it must be equal where the best so far ends; most are not, and cost one comparison.
        if raw.get(longest) != candidate.raw.get(longest) || raw.len() <= longest {
            continue;
        }
        let prefix = share::prefix(raw, &candidate.raw);
        if prefix > longest {
            (best, longest) = (Some(candidate), prefix);
        }
        if longest + longest / 16 >= raw.len() {
            break;
        }
    }
    let parent = Arc::clone(best?);
    let suffix = share::suffix(raw.get(longest..).unwrap_or_default(), parent.raw.get(longest..).unwrap_or_default());
    Some(Shared { parent, prefix: longest, suffix })
}

fn start_of(raw: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(raw.get(..START).unwrap_or(raw))
}
