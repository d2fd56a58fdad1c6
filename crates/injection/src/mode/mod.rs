//! When may an error be called a failure mode of MAST? Each mode says what must be so at a call ([`preconditions`]) and what an
//! edit that shows it may touch ([`out_of_bounds`]). The sampler, `plan check`, the model that rewrites, the ruling and lint ask
//! this room and no other.
//!
//! A mode whose preconditions hold is *applicable*. That a reader would call the error by that name is a further claim: a person
//! or a judge makes it, who sees the change and chooses among modes that are [`offered`].

mod edited;
mod facts;
mod offered;
mod precondition;
mod words;

pub use edited::{EditedPair, OutOfBounds, out_of_bounds, touched};
pub use facts::{CallFacts, ObservedCall, of_run, unmet};
pub use offered::offered;
pub use precondition::{Precondition, is_about_calls, preconditions};
pub use words::{JSON_VERDICTS, STANDING_ALONE, VERDICTS, speaks_of_checking};

/// What a name that stands in a label as unmet says, as a clause.
pub fn missing(name: &str) -> Option<&'static str> {
    let precondition = Precondition::ALL.iter().find(|one| one.name() == name).map(|one| one.missing());
    precondition.or_else(|| OutOfBounds::ALL.iter().find(|one| one.name() == name).map(|one| one.wrong()))
}
