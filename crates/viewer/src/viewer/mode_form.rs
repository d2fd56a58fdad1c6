//! Which failure mode a planted change shows, asked of somebody on the page. They see the change and three modes with their meaning,
//! and are not told which one its plan calls it. What they say is a fact beside the run, which its label is read with.

use std::path::Path;

use serde::Deserialize;

use super::{
    no_answer::NoAnswer,
    page_data::{GivenMode, ModeQuestion, OfferedMode, WrittenAnnotation},
    planted::{PlantedAt, planted},
    step,
};
use crate::{
    mode::offered,
    recording::{self, Amendment, AmendmentSource, FactSource, Recording, Settings},
    trajectory::{FailureMode, ModeVerdict, StepIndex},
};

/// Longest reason, in bytes.
const WHY_MAX: usize = 8000;

/// What the page sends.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeAnswer {
    step: StepIndex,
    injection: u32,
    /// A code, or none of those that were offered.
    shown: Option<FailureMode>,
    why: String,
}

/// The modes that are offered for a change: the same to everybody, in the same order.
fn modes(run: &str, one: &PlantedAt<'_>) -> Vec<FailureMode> {
    let error = &one.entry.error;
    offered(one.declared, run, error.step, error.injection, 0)
}

/// The questions of a run, each with what this annotator said before.
pub(super) fn questions(recording: &Recording, annotator: &str) -> Vec<ModeQuestion> {
    let (run, given) = (recording.manifest.run.as_str(), recording.mode_verdicts());
    let question = |one: PlantedAt<'_>| {
        let error = &one.entry.error;
        let own = given.iter().find(|given| given.by == annotator && given.verdict.is_about(error));
        let offered = modes(run, &one).into_iter().map(|mode| OfferedMode {
            code: mode.code(),
            name: mode.name(),
            meaning: mode.meaning(),
        });
        ModeQuestion {
            step: error.step,
            injection: error.injection,
            agent: error.agent.to_string(),
            side: one.change.side,
            pairs: step::pairs(&one.change.before, &one.change.after),
            offered: offered.collect(),
            said: own
                .map(|own| GivenMode { shown: own.verdict.shown.map(FailureMode::code), why: own.verdict.why.clone() }),
        }
    };
    planted(recording).into_iter().map(question).collect()
}

/// Whether this annotator has answered all questions of a run; its log is not read.
pub(super) fn is_answered(run_dir: &Path, annotator: &str) -> bool {
    let (Ok(Some(label)), Ok(facts)) = (recording::read_label(run_dir), recording::read_facts(run_dir)) else {
        return false;
    };
    let given = recording::mode_verdicts(&facts);
    let mut asked = label.planted().filter(|entry| !entry.is_found() && entry.error.failure_mode.is_some()).peekable();
    asked.peek().is_some()
        && asked.all(|entry| given.iter().any(|given| given.by == annotator && given.verdict.is_about(&entry.error)))
}

/// Writes what somebody says of one change, and gives it back.
///
/// # Errors
/// Nothing was planted there, the mode was not offered, the reason is too long, or it cannot be written.
pub(super) fn answer(
    run_dir: &Path,
    annotator: &str,
    settings: &Settings,
    said: &[u8],
) -> Result<WrittenAnnotation, NoAnswer> {
    let wrong = |why: String| NoAnswer::Wrong(why);
    let unreadable = |error: recording::RecordingError| NoAnswer::Unreadable(error.to_string());
    let said: ModeAnswer = serde_json::from_slice(said).map_err(|error| wrong(error.to_string()))?;
    let recording = recording::read(run_dir).map_err(unreadable)?;
    let planted = planted(&recording);
    let is_it = |one: &&PlantedAt<'_>| (one.entry.error.step, one.entry.error.injection) == (said.step, said.injection);
    let one = planted.iter().find(is_it).ok_or_else(|| wrong(format!("nothing was planted at step {}", said.step)))?;
    let offered = modes(recording.manifest.run.as_str(), one);
    if said.shown.is_some_and(|shown| !offered.contains(&shown)) {
        let codes: Vec<&str> = offered.iter().map(|mode| mode.code()).collect();
        return Err(wrong(format!("expected one of {}, or null", codes.join(", "))));
    }
    if said.why.len() > WHY_MAX {
        return Err(wrong(format!("expected a reason of at most {WHY_MAX} bytes")));
    }
    let verdict = ModeVerdict {
        step: said.step,
        injection: said.injection,
        declared: one.declared,
        shown: said.shown,
        votes: None,
        why: said.why.trim().to_owned(),
    };
    let amendment = Amendment { modes: vec![verdict], ..Amendment::default() };
    let giver = AmendmentSource { source: FactSource::Page, by: Some(annotator.to_owned()) };
    recording::amend(run_dir, &amendment, &giver, settings).map_err(unreadable)?;
    let ModeAnswer { step, injection, shown, .. } = said;
    Ok(WrittenAnnotation::Mode { step, injection, shown: shown.map(FailureMode::code) })
}
