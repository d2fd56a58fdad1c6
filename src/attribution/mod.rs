//! Which agent and which step made a run fail: by going back and doing it again.
//!
//! A [`Bench`] runs a program again and again, each time as a recorded run whose prefix comes from a record
//! ([`crate::replay`]).

mod interval;
mod trial;

pub use interval::{Interval, Share, difference, false_blame};
pub use trial::{Bench, Command, Executing, Sample, System, TrialError, Tried};
