//! What is equal: one notion for requests, replies and the beginnings of runs, for replay, campaigns and lint.
//!
//! [`Rules`] say what may differ in a request without making it another one; [`Form`] is what is left of it. [`ComparedCall`]
//! is a call with its answer as they are compared, [`ComparedRun`] the calls of a run with the order that they have, and
//! [`parting_before`] says whether a run is its reference up to a step.

mod built_in;
mod compared_call;
mod form;
mod masked;
mod order;
mod pairing;
mod parting;
mod pointer;
mod rules;
mod rules_error;
mod setting;
mod tool_results;
mod volatile;
mod volatile_place;

pub use compared_call::{ComparedCall, same_reply, same_request};
pub use form::{ComparedContent, Form};
pub use masked::MaskedValue;
pub use order::{ComparedRun, OrderedCall, QuoteSearch, QuotedAnswer};
pub use pairing::Pairing;
pub use parting::{Parting, joins, parting, parting_before};
pub use rules::Rules;
pub use rules_error::RulesError;
pub use setting::EqualitySetting;
pub use tool_results::ToolResults;
pub use volatile::{are_results_repeated, volatile_between, volatile_of_call, volatile_within};
pub use volatile_place::VolatilePlace;
