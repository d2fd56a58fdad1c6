//! A request as the ledger sees it, and how often a run without faults asked what.

use std::collections::HashMap;

use bytes::Bytes;

use super::near::{NearMarks, near_marks};
use crate::{
    equality::Rules,
    surface::{self, Surface},
    trajectory::Step,
};

/// How often a client says that it has tried before (`x-stainless-retry-count`); `None` where it says nothing.
pub type RetryCount = Option<u32>;

/// Longest request that is compared by its words, in bytes.
pub(super) const COMPARED_MAX: usize = 256 << 10;

/// A request as the ledger sees it.
#[derive(Debug, Clone, Copy)]
pub struct LedgerRequest<'a> {
    /// What tells that it asks the same as another: see [`request_hash`].
    pub body: u128,
    /// The body, where it may be compared by its words.
    pub bytes: Option<&'a Bytes>,
    /// What reads it.
    pub surface: Option<&'static dyn Surface>,
    /// How often its client has tried before.
    pub count: RetryCount,
    /// When it arrived, in microseconds of any clock that never goes back.
    pub at_us: u64,
}

impl LedgerRequest<'_> {
    /// A request of which the hash alone is known.
    pub fn from_hash(body: u128) -> Self {
        Self { body, bytes: None, surface: None, count: None, at_us: 0 }
    }

    pub(super) fn marks(&self, rules: &Rules) -> Option<NearMarks> {
        let bytes = self.bytes.filter(|bytes| bytes.len() <= COMPARED_MAX)?;
        near_marks(self.surface?, bytes, rules)
    }
}

/// What tells that two requests ask the same: the API, the path where that says what is asked, and the bytes. `body`: hash of these.
pub fn request_hash(surface: &str, method: &str, target: &str, body: u128) -> u128 {
    body ^ twox_hash::XxHash3_128::oneshot(surface::request_key(surface, method, target).as_bytes())
}

/// As [`request_hash`], of a recorded step with this body.
pub fn step_hash(step: &Step, body: &[u8]) -> u128 {
    request_hash(&step.surface, &step.method, &step.path, twox_hash::XxHash3_128::oneshot(body))
}

/// How often a run without faults asked what.
#[derive(Debug, Default)]
pub struct ReferenceCalls {
    pub(super) exact: HashMap<u128, u32>,
    pub(super) near: HashMap<u64, u32>,
    /// What may differ in requests that ask the same.
    pub(super) rules: Rules,
}

impl ReferenceCalls {
    /// The calls of a recorded run and their bodies, each once however often it was tried.
    pub fn from_steps<'a>(steps: impl IntoIterator<Item = (&'a Step, Bytes)>, rules: Rules) -> Self {
        let mut reference = Self { rules, ..Self::default() };
        for (step, body) in steps {
            let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
            let hash = step_hash(step, &body);
            reference.count(&LedgerRequest { bytes: Some(&body), surface, ..LedgerRequest::from_hash(hash) });
        }
        reference
    }

    /// Counts a call.
    pub(super) fn count(&mut self, call: &LedgerRequest<'_>) {
        *self.exact.entry(call.body).or_default() += 1;
        if let Some(marks) = call.marks(&self.rules) {
            *self.near.entry(marks.figures).or_default() += 1;
        }
    }
}
