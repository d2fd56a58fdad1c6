//! Why a run has no label, or one that does not hold, in words.

use std::path::Path;

use super::{NoLabel, Ruling};
use crate::{
    plan,
    recording::{self, Recording, RecordingError},
    trajectory::Label,
};

/// The first gate that refuses the label of a recorded run, if one does.
///
/// # Errors
/// The run cannot be read.
pub fn refused(run_dir: &Path, label: &Label) -> Result<Option<NoLabel>, RecordingError> {
    Ok(Ruling::new(&recording::read(run_dir)?).objects_to(label))
}

/// Why a run has no label, or why a gate refuses the one that it has; `None` where it has one that holds. Takes a recording
/// with its requests.
pub fn objection(recording: &Recording) -> Option<String> {
    match &recording.label {
        None => Some(why_none(recording)),
        Some(label) => Ruling::new(recording).objects_to(label).map(|why| why.to_string()),
    }
}

/// Why a run without a label has none: the first gate that refuses, or that nothing was to be planted. Takes a recording with
/// its requests.
pub fn why_none(recording: &Recording) -> String {
    match Ruling::new(recording).label() {
        Err(NoLabel::NotInjected) if recording.manifest.plan_digest.is_none() => "no plan".to_owned(),
        Err(NoLabel::NotInjected) if let Some(of) = repeats(recording) => {
            format!("a repeat of run {of}, whose label says what was altered: those bytes were given again")
        }
        Err(why) => why.to_string(),
        Ok(_) if recording.sealed => "no gate refuses one, but none was written when the run ended".to_owned(),
        Ok(_) => "the run is open; its label is written when it ends".to_owned(),
    }
}

/// The run whose altered bytes this one got again, as its notes say.
pub fn repeats(recording: &Recording) -> Option<&str> {
    recording.notes.iter().find_map(|note| note.strip_prefix(plan::REPEATS)?.split(':').next())
}
