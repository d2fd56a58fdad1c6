//! Rewards for training a tracer: one answer against one truth, a number out. Pure functions, so that a trainer may
//! call them for every sample of a batch.

mod gated;
mod hierarchical;
mod matched;

pub use gated::{Gated, gated, gated_set};
pub use hierarchical::{hierarchical, hierarchical_strict, of_own};
pub use matched::graded;
