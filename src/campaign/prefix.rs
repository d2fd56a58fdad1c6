//! What a cell's model calls are answered by: live, or first by the record of its reference.

use std::sync::Arc;

use super::{bench::Bench, budget::Cost, cell::Cell, error::CampaignError};
use crate::proxy::upstream::Upstream;

/// The upstream of one cell, with what is to be asked of it afterwards.
#[derive(Debug)]
pub(super) struct Arm {
    upstream: Arc<dyn Upstream>,
}

impl Arm {
    /// The upstream of a cell over the live one.
    pub(super) fn of(_bench: &Bench, _cell: &Cell, live: Arc<dyn Upstream>) -> Result<Self, CampaignError> {
        Ok(Self { upstream: live })
    }

    /// The upstream.
    pub(super) fn upstream(&self) -> Arc<dyn Upstream> {
        Arc::clone(&self.upstream)
    }

    /// Where the run left the record before it was to, in words.
    pub(super) fn diverged(&self) -> Option<String> {
        None
    }

    /// What the record answered.
    pub(super) fn served(&self) -> Cost {
        Cost::default()
    }
}
