//! What is equal: one notion for requests, replies and the beginnings of runs, for replay, campaigns and lint.
//!
//! [`Rules`] say what may differ in a request without making it another one; [`Form`] is what is left of it. [`Told`]
//! is a call with its answer as they are compared, and [`parting_before`] says whether a run is its reference up to a
//! step: calls that overlapped, or waited for nothing of one another, are one group without order, wherever they stand.

mod built_in;
mod form;
mod pairing;
mod parting;
mod rules;
mod told;

pub use form::{Form, SaidWords};
pub use pairing::Pairing;
pub use parting::{Parting, Spoken, joins, parting, parting_before, unordered};
pub use rules::{Rules, RulesError};
pub use told::{Told, same_reply, same_request};
