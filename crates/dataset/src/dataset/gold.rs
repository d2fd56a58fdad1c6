//! A sample's label as scoring wants it.

use serde_json::Value;

use crate::{
    dataset::{LabelledError, Sample, SampleKind, SampleMessage, SampleStep, split::words},
    score::{
        Culprit, Gold, RawLabel,
        shape::{self, StepText},
    },
    trajectory::PrincipalKind,
};

/// What predictions about a sample are measured against: nobody for a clean run, and nothing for an injection that
/// did no harm, because neither answer would be wrong there, and for a failure that nobody labelled.
pub fn gold(sample: &Sample) -> Option<Gold> {
    if matches!(sample.kind, SampleKind::Benign | SampleKind::Decoy) {
        return None;
    }
    let errors = || sample.label.iter().flat_map(|truth| &truth.errors);
    let is_of_server = errors().any(|error| error.culprit != PrincipalKind::Agent);
    // An agent that got an altered result of a tool is named for it, and has not erred.
    let servers = errors().filter(|error| !error.agent.is_agent()).map(|error| error.agent.as_str().to_owned());
    let servers: Vec<String> = servers.collect();
    let culprits: Vec<Culprit> = match &sample.label {
        Some(truth) => truth
            .errors
            .iter()
            .filter(|error| error.culprit == PrincipalKind::Agent)
            .map(|error| Culprit {
                agent: Some(error.agent.as_str().to_owned()),
                step: error.step,
                mode: error.failure_mode.as_ref().map(|mode| mode.code.clone()),
            })
            .collect(),
        None => annotated(sample),
    };
    if sample.kind == SampleKind::Failure && culprits.is_empty() && !is_of_server {
        return None;
    }
    Some(Gold {
        id: sample.id.clone(),
        servers: if culprits.is_empty() { servers } else { Vec::new() },
        culprits,
        speakers: sample.steps.iter().map(|step| step.agent.as_str().to_owned()).collect(),
        system: sample.system.clone(),
        task: words(&sample.task.question),
        template: template(sample),
        shape: shape::features(&sample.task.question, &sample.steps.iter().map(step_text).collect::<Vec<_>>()),
        raw: raw(sample),
    })
}

/// What planted the errors: one manipulator and mode each.
fn template(sample: &Sample) -> String {
    let planted = sample.label.iter().flat_map(|label| &label.errors).filter_map(LabelledError::template);
    planted.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// A step as the log shows it: the reply, and the tool results that are new in its input.
fn step_text(step: &SampleStep) -> StepText {
    let joined = |said: &SampleMessage| said.texts().collect::<Vec<_>>().join("\n");
    let input = step.input.iter().flat_map(|input| &input.messages);
    let results = input.filter(|said| said.role == "tool" || said.answers.is_some());
    StepText {
        speaker: step.agent.as_str().to_owned(),
        reply: step.output.as_ref().map(joined).unwrap_or_default(),
        given: results.map(joined).collect::<Vec<_>>().join("\n"),
    }
}

/// The modes of a label of the whole run, as MAST has them: no agent, no step.
fn annotated(sample: &Sample) -> Vec<Culprit> {
    let modes = sample.extra.get("mast_annotation").and_then(Value::as_object);
    let set = modes.into_iter().flatten().filter(|(_, value)| value.as_i64() == Some(1));
    set.map(|(code, _)| Culprit { mode: Some(format!("FM-{code}")), ..Culprit::default() }).collect()
}

/// Agent and step as the source file wrote them.
fn raw(sample: &Sample) -> Option<RawLabel> {
    let Some(file) = sample.extra.get("file") else { return own_label(sample) };
    let file = file.as_str()?.to_owned();
    let error = sample.label.as_ref()?.errors.first()?;
    let written = sample.extra.get("mistake_step");
    let step = match (written, error.step) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(other), _) => other.to_string(),
        (None, step) => step?.to_string(),
    };
    Some(RawLabel { file, agent: error.raw_agent.clone().unwrap_or_else(|| error.agent.as_str().to_owned()), step })
}

/// Of a sample of ours, as `export --to whowhen` writes it: a file by its id, where it has one error.
fn own_label(sample: &Sample) -> Option<RawLabel> {
    let [error] = sample.label.as_ref()?.errors.as_slice() else { return None };
    let agent = error.raw_agent.clone().unwrap_or_else(|| error.agent.as_str().to_owned());
    Some(RawLabel { file: format!("{}.json", sample.id), agent, step: error.step?.to_string() })
}
