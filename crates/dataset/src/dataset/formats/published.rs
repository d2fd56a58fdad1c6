//! What readers of published sets with several files or several errors a run share: the sample, its label, files beside
//! the one that is read.

use std::{fs, path::Path};

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, number, text_message},
    history::{SpokenName, spoken},
};
use crate::{
    dataset::{FORMAT, Input, Mode, Sample, SampleKind, SampleStep, Task, Truth},
    equality::EqualitySetting,
    trajectory::{StepIndex, Verdict},
};

/// Most steps that a row may say it has without holding them.
const STEPS_MAX: u64 = 100_000;

/// A run as a published set tells it.
#[derive(Debug)]
pub(super) struct PublishedRun {
    /// The id of the sample.
    pub(super) id: String,
    /// The set's name in `extra.format`.
    pub(super) format: &'static str,
    /// The multi-agent system.
    pub(super) system: String,
    /// The task.
    pub(super) task: Task,
    /// What the run achieved.
    pub(super) outcome: Verdict,
    /// The system's answer.
    pub(super) final_answer: String,
    /// Its steps, numbered or not.
    pub(super) steps: Vec<SampleStep>,
    /// What else the set says.
    pub(super) extra: Map<String, Value>,
}

/// One error of a run, as its annotators tell it.
#[derive(Debug)]
pub(super) struct PublishedError {
    /// The agent as they write it; absent where they name a step only.
    pub(super) agent: Option<String>,
    /// The place among the sample's steps.
    pub(super) step: Option<usize>,
    /// Their category, in their words.
    pub(super) mode: Option<Mode>,
    /// Their reason.
    pub(super) reason: String,
    /// What else they say.
    pub(super) extra: Map<String, Value>,
}

impl PublishedRun {
    /// The sample, with every error as one of its label. A success has none; a run without any is a failure nobody labelled.
    pub(super) fn sample(mut self, errors: Vec<PublishedError>, definition: &str, defects: &mut Defects) -> Sample {
        number(&mut self.steps);
        let is_success = self.outcome == Verdict::Success;
        let label = if is_success { None } else { label(errors, &self.steps, definition, defects) };
        if label.is_none() && !is_success {
            defects.add("no-label", "no error is named");
        }
        let mut extra = Map::from_iter([("format".to_owned(), Value::from(self.format))]);
        extra.extend(self.extra);
        Sample {
            format: FORMAT,
            id: self.id,
            kind: if is_success { SampleKind::Clean } else { SampleKind::Failure },
            system: self.system,
            backend: String::new(),
            task: self.task,
            split: None,
            outcome: self.outcome,
            outcome_evidence: String::new(),
            final_answer: self.final_answer,
            tools: Vec::new(),
            steps: self.steps,
            label,
            clean_twin: None,
            equality: EqualitySetting::default(),
            extra,
        }
    }
}

fn label(errors: Vec<PublishedError>, steps: &[SampleStep], definition: &str, defects: &mut Defects) -> Option<Truth> {
    let mut all: Option<Truth> = None;
    for error in errors {
        let step = error.step.and_then(|at| steps.get(at));
        let name = match (&error.agent, step) {
            (Some(raw), _) => {
                let (agent, raw) = named(raw, raw, defects);
                SpokenName { agent, raw }
            }
            (None, Some(step)) => SpokenName { agent: step.agent.clone(), raw: step.raw_agent.clone() },
            // An error that is nowhere is nobody's.
            (None, None) => continue,
        };
        if step.is_some_and(|step| step.agent != name.agent) {
            defects.add("other-speaker", format!("label `{}`", name.agent));
        } else if !steps.iter().any(|step| step.agent == name.agent) {
            defects.add("agent-absent", format!("`{}`", name.agent));
        }
        let call = step.filter(|step| step.agent == name.agent).map(|step| step.call);
        let at = step.and(error.step).and_then(|at| StepIndex::try_from(at).ok());
        let mut truth = spoken(name, at, call, error.reason, definition);
        for one in &mut truth.errors {
            one.failure_mode.clone_from(&error.mode);
            one.extra.extend(error.extra.clone());
        }
        match &mut all {
            Some(all) => all.errors.extend(truth.errors),
            None => all = Some(truth),
        }
    }
    all
}

/// A category of another code book than MAST's, by its own name.
pub(super) fn own_mode(code: &str, taxonomy: &str) -> Option<Mode> {
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    (!code.is_empty()).then(|| Mode { name: code.clone(), code, taxonomy: taxonomy.to_owned() })
}

/// A value, or what a text that holds JSON holds.
pub(super) fn decoded(value: &Value) -> Value {
    let inner = value.as_str().filter(|text| text.trim_start().starts_with(['[', '{']));
    inner.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

/// A value as text: texts as they are, nothing for nothing, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The messages that a step was given, from a list of `{role, content}`.
pub(super) fn messages(value: &Value) -> Option<Input> {
    let messages = value.as_array()?.iter().map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("other");
        text_message(role, as_text(message.get("content").unwrap_or(&Value::Null)))
    });
    Some(Input { messages: messages.collect(), ..Input::default() })
}

/// A number that a file writes as one or as text.
pub(super) fn number_or_text(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// How many steps a row says it has, where they are not at hand.
pub(super) fn step_count(value: Option<&Value>) -> Option<usize> {
    number_or_text(value).filter(|count| *count <= STEPS_MAX).and_then(|count| usize::try_from(count).ok())
}

/// A JSON file that belongs to the one that is read; `None`, with a defect, where it is absent or no JSON. Commas before a
/// closing bracket, which one published file has, are read over.
pub(super) fn read_companion(path: &Path, defects: &mut Defects) -> Option<Value> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            defects.add("missing-file", format!("`{name}`: {error}"));
            return None;
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let read =
        serde_json::from_str(text).or_else(|error| serde_json::from_str(&without_last_commas(text)).map_err(|_| error));
    read.map_err(|error| defects.add("not-json", format!("`{name}`: {error}"))).ok()
}

/// The text without commas that stand before a closing bracket, outside of texts.
fn without_last_commas(text: &str) -> String {
    let (mut kept, mut comma, mut is_text, mut is_escaped) = (String::with_capacity(text.len()), None, false, false);
    for letter in text.chars() {
        if !is_text && !letter.is_whitespace() {
            if let Some(at) = comma.take().filter(|_| matches!(letter, ']' | '}')) {
                kept.remove(at);
            }
            comma = (letter == ',').then_some(kept.len());
        }
        if letter == '"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = is_text && letter == '\\' && !is_escaped;
        kept.push(letter);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_commas_are_read_over() {
        for (text, kept) in [
            ("[1, 2, ]", "[1, 2 ]"),
            (r#"{"a": ",]", "b": [1,],}"#, r#"{"a": ",]", "b": [1]}"#),
            (r#"["\",]", 1]"#, r#"["\",]", 1]"#),
            ("[1,2]", "[1,2]"),
        ] {
            assert_eq!(without_last_commas(text), kept);
        }
    }
}
