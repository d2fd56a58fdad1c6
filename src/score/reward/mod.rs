//! Rewards for training a tracer: one answer against one truth, a number out. Pure functions, so that a trainer may
//! call them for every sample of a batch.

mod gated;
mod hierarchical;

pub use gated::{Gated, gated};
pub use hierarchical::{hierarchical, hierarchical_strict};
