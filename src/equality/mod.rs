//! What is equal: one notion for requests, replies and the beginnings of runs, for replay, campaigns and lint.
//!
//! [`Rules`] say what may differ in a request without making it another one; [`Form`] is what is left of it. [`Told`]
//! is a call with its answer as they are compared, and [`parting_before`] says whether a run is its reference up to a
//! step: calls that overlapped, or waited for nothing of one another, are one group without order, wherever they stand.

mod built_in;
mod form;
mod masked;
mod pairing;
mod parting;
mod rules;
mod rules_error;
mod told;
mod tool_results;

pub use form::{Form, SaidWords};
pub use masked::MaskedValue;
pub use pairing::Pairing;
pub use parting::{Parting, Spoken, joins, parting, parting_before, unordered};
pub use rules::Rules;
pub use rules_error::RulesError;
pub use told::{Told, same_reply, same_request};
pub use tool_results::ToolResults;
