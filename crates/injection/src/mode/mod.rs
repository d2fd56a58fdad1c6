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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_of_what_a_label_lacks_says_what_is_missing() {
        let preconditions = Precondition::ALL.iter().map(|one| (one.name(), one.missing()));
        let all: Vec<_> = preconditions.chain(OutOfBounds::ALL.iter().map(|one| (one.name(), one.wrong()))).collect();
        for (name, clause) in &all {
            assert_eq!(missing(name), Some(*clause));
            assert!(clause.contains(' '), "{name}: {clause}");
        }
        assert_eq!(all.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len(), 13);
        assert_eq!((OutOfBounds::ToolCall.name(), OutOfBounds::ToolResult.name()), ("tool-call", "tool-result"));
        assert_eq!(missing("prosa"), None);
    }
}
