//! A recorded run with what a person says of it, as a file of Who&When, and back: who, when and why, in the fields that
//! its annotators filled.

use serde_json::{Value, json};

use super::{
    history::{SpokenName, spoken},
    pretty, whowhen,
};
use crate::{
    dataset::{DatasetError, Sample, SampleKind, order},
    recording::Recording,
    trajectory::{AgentName, StepIndex},
};

/// What a person says of a run. Steps are the recording's; Who&When counts entries of its `history`, in which calls that
/// overlapped stand in an order that does not depend on chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenError {
    /// The agent.
    pub agent: String,
    /// The step of the recording.
    pub step: StepIndex,
    /// The reason.
    pub why: String,
}

/// Why a file says nothing of a run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnspokenError {
    /// A field is missing, or is no text.
    #[error("`{0}` is missing or no text")]
    Field(&'static str),
    /// The step is no entry of the run's history.
    #[error("`mistake_step` is `{0}`, and the run has {1} steps")]
    Step(String, usize),
}

/// Writes a run with what is said of it. The run's own label does not go with it.
///
/// # Errors
/// The recording cannot be told as a sample, or has no such step.
pub fn write_annotated(recording: &Recording, said: &SpokenError) -> Result<Vec<u8>, DatasetError> {
    let mut sample = Sample::alone(&Recording { label: None, ..recording.clone() })?;
    sample.kind = SampleKind::Failure;
    let steps = order::canonical(recording);
    let place = (0..).zip(&steps).find(|(_, step)| step.step == said.step);
    let stray = || DatasetError::Stray { run: recording.manifest.run.clone(), step: said.step };
    let (number, step) = place.ok_or_else(stray)?;
    let parsed = AgentName::parse(&said.agent).ok();
    let raw = parsed.is_none().then(|| said.agent.clone());
    let name = SpokenName { agent: parsed.unwrap_or_else(|| step.attribution.agent.clone()), raw };
    sample.label = Some(spoken(name, Some(number), Some(step.call), said.why.clone(), "human"));
    Ok(pretty(&whowhen::written(&sample).unwrap_or_else(|| json!({})), b"    "))
}

/// What a file of Who&When says of a recorded run.
///
/// # Errors
/// It says nothing, or of a step that the run has not.
pub fn read_annotated(value: &Value, recording: &Recording) -> Result<SpokenError, UnspokenError> {
    let text = |name: &'static str| value.get(name).and_then(Value::as_str).ok_or(UnspokenError::Field(name));
    let (agent, why) = (text("mistake_agent")?.to_owned(), text("mistake_reason")?.to_owned());
    let number = match value.get("mistake_step") {
        Some(Value::String(number)) => number.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err(UnspokenError::Field("mistake_step")),
    };
    let steps = order::canonical(recording);
    let place = number.trim().parse::<usize>().ok().and_then(|at| steps.get(at));
    let step = place.ok_or(UnspokenError::Step(number, steps.len()))?.step;
    Ok(SpokenError { agent, step, why })
}
