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
    /// Hash of its body.
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
        let surface = |step: &Step| surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
        Self::from_calls(steps.into_iter().map(|(step, body)| (surface(step), body)), rules)
    }

    /// The same of calls: what reads each, and its body.
    pub(super) fn from_calls(
        calls: impl IntoIterator<Item = (Option<&'static dyn Surface>, Bytes)>,
        rules: Rules,
    ) -> Self {
        let mut reference = Self { rules, ..Self::default() };
        for (surface, bytes) in calls {
            let body = twox_hash::XxHash3_128::oneshot(&bytes);
            *reference.exact.entry(body).or_default() += 1;
            let request = LedgerRequest { bytes: Some(&bytes), surface, ..LedgerRequest::from_hash(body) };
            if let Some(marks) = request.marks(&reference.rules) {
                *reference.near.entry(marks.figures).or_default() += 1;
            }
        }
        reference
    }
}
