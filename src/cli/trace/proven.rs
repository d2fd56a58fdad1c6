//! What a search for missed catches rests on: a label that is proven, and replies that correct whoever spoke later.

use super::arguments::TraceArgs;
use crate::{
    cli::{Exit, Failure},
    replay::Cassette,
    ruling::Ruling,
    trajectory::{Label, LabelStatus},
};

/// Refuses a run of which nobody is later than a proven error, or whose later agents nothing would correct.
pub(super) fn require(arguments: &TraceArgs, cassette: &Cassette) -> Result<(), Failure> {
    let label = proven(cassette)?;
    let twin = label.evidence.as_ref().and_then(|evidence| evidence.twin.as_ref());
    if arguments.source.names_one() || twin.is_some() {
        return Ok(());
    }
    let error = "--missed-catch: the proof of the label began with no clean run, so no reply corrects the later agents";
    Err(Failure::new(Exit::Usage, error).hint("name a run of the same task that succeeded: --twin RUN_DIR"))
}

/// The label, where it is proven: what led to the failure is to be known first.
pub(super) fn proven(cassette: &Cassette) -> Result<Label, Failure> {
    let label = cassette
        .recording()
        .label
        .as_ref()
        .filter(|label| label.status == LabelStatus::Verified && !label.errors.is_empty());
    let label = label.filter(|label| Ruling::new(cassette.recording()).objects_to(label).is_none());
    label.cloned().ok_or_else(|| {
        Failure::new(Exit::Usage, "--missed-catch: the run has no proven label, so no agent is later than its error")
            .hint("aegis prove proves the label of a run with a plan; aegis trace finds the error of another")
    })
}
