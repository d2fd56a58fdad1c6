//! Refuses a run for what cannot be done with it, before anything is executed.

use std::path::Path;

use super::{Exit, Failure};
use crate::{
    capability::{Capabilities, RunVerb},
    recording::Recording,
};

/// Refuses a verb for what cannot be done with the run.
///
/// # Errors
/// Why the verb can do nothing with it.
pub(super) fn require(verb: RunVerb, recording: &Recording, run_dir: &Path) -> Result<(), Failure> {
    match Capabilities::new(recording, run_dir).obstacle(verb) {
        None => Ok(()),
        Some(why) => Err(Failure::new(Exit::Usage, format!("`{}` {why}", run_dir.display()))),
    }
}
