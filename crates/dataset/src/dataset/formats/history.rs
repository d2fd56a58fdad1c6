//! The shape that Who&When and AgenTracer share: one object a run, with a `history` of entries and a `mistake_…` label.
//! Steps are entries, 0-based; one entry is a logged message, not always a model call.

use serde_json::{Map, Value, json};

use super::{
    foreign::{Defects, named, number, put_back, spoken_step, text_field, unknown_fields},
    render::{Inputs, RenderedStep, render_steps},
};
use crate::{
    dataset::{FORMAT, LabelledError, Sample, SampleKind, SampleStep, Task, Truth},
    equality::EqualitySetting,
    score::agent_key,
    trajectory::{AgentName, Call, LabelStatus, MissedCatch, StepIndex, Verdict},
};

/// Who names the speaker of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpeakerField {
    /// The field `name`; `role` is one agent's view of the chat.
    Name,
    /// The field `role`, with remarks such as `Orchestrator (thought)`.
    Role,
}

/// One of the formats that share the shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryFormat {
    /// The format's name in `extra.format`.
    pub(super) format: &'static str,
    /// Where the speaker stands.
    pub(super) speaker: SpeakerField,
    /// What its labels mean.
    pub(super) definition: &'static str,
    /// The system that the traces are of, where there is only one.
    pub(super) system: &'static str,
    /// The field that says `false` for a failure; the two layouts of Who&When call it differently.
    pub(super) outcome: Option<&'static str>,
    /// Whether entries carry their own number in `step`.
    pub(super) numbered: bool,
}

/// Fields of the shape that have a place in a sample.
const PLACED: &[&str] =
    &["question", "question_ID", "ground_truth", "history", "mistake_agent", "mistake_step", "mistake_reason"];
/// Fields of a label.
const LABEL: &[&str] = &["mistake_agent", "mistake_step", "mistake_reason"];
/// Fields that some files have, kept in `extra`.
const KEPT: &[&str] = &["level", "system_prompt", "is_correct", "is_corrected", "model_prediction", "missed_catch"];

/// The name of an agent, and how somebody else wrote it.
#[derive(Debug)]
pub(super) struct SpokenName {
    /// The name that its steps have.
    pub(super) agent: AgentName,
    /// The other's, where it differs.
    pub(super) raw: Option<String>,
}

/// One error as somebody told it: who, at which step and call, and why. Nothing was executed for it.
pub(super) fn spoken(
    name: SpokenName,
    step: Option<StepIndex>,
    call: Option<Call>,
    reason: String,
    definition: &str,
) -> Truth {
    let error = LabelledError {
        culprit: crate::trajectory::PrincipalKind::Agent,
        agent: name.agent,
        raw_agent: name.raw,
        instance: 0,
        step,
        call,
        failure_mode: None,
        other_modes: Vec::new(),
        mode_claim: None,
        proposed_mode: None,
        side: None,
        operator: None,
        shown_by: None,
        injection: None,
        before: String::new(),
        after: String::new(),
        reason: Some(reason),
        extra: Map::new(),
    };
    Truth {
        status: LabelStatus::Delivered,
        definition: definition.to_owned(),
        seed: None,
        outcome: Verdict::Failure,
        errors: vec![error],
        others: Vec::new(),
        not_shown: Vec::new(),
        missed_catch: Vec::new(),
        changes: Vec::new(),
        evidence: None,
    }
}

impl HistoryFormat {
    /// Reads one object. `None`, with a defect, when it has not the shape at all.
    pub(super) fn read(&self, value: &Value, id: &str, defects: &mut Defects) -> Option<Sample> {
        let shape = |defects: &mut Defects, what: &str| defects.add("wrong-shape", what.to_owned());
        let Some(fields) = value.as_object() else {
            shape(defects, "no object");
            return None;
        };
        let Some(entries) = fields.get("history").and_then(Value::as_array) else {
            shape(defects, "`history` is no list");
            return None;
        };
        let mut steps = Vec::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            let Some(step) = self.entry(place, entry, defects) else {
                shape(defects, &format!("history[{place}] is no object with texts"));
                return None;
            };
            steps.push(step);
        }
        number(&mut steps);
        let outcome = self.achieved(fields);
        let label = self.label(fields, outcome, &steps, defects);
        let mut extra = Map::new();
        extra.insert("format".to_owned(), self.format.into());
        let file = defects.file().rsplit(['/', '\\']).next().unwrap_or_default();
        extra.insert("file".to_owned(), file.into());
        for name in KEPT.iter().copied().filter(|name| Some(*name) != self.outcome) {
            extra.extend(fields.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        self.check_outcome(fields, &mut extra, defects);
        extra.extend(raw_label(fields, label.as_ref()));
        let known: Vec<&str> = PLACED.iter().chain(KEPT).copied().collect();
        let unknown = unknown_fields(fields, &known, defects);
        if !unknown.is_empty() {
            extra.insert("fields".to_owned(), Value::Object(unknown));
        }
        let task = Task {
            id: text_field(fields, "question_ID", defects),
            question: text_field(fields, "question", defects),
            answer: text_field(fields, "ground_truth", defects),
            ..Task::default()
        };
        Some(Sample {
            format: FORMAT,
            id: id.to_owned(),
            kind: if outcome == Verdict::Success { SampleKind::Clean } else { SampleKind::Failure },
            system: self.system.to_owned(),
            backend: String::new(),
            task,
            split: None,
            outcome,
            outcome_evidence: String::new(),
            final_answer: String::new(),
            tools: Vec::new(),
            steps,
            label,
            clean_twin: None,
            equality: EqualitySetting::default(),
            extra,
        })
    }

    fn entry(&self, place: usize, entry: &Value, defects: &mut Defects) -> Option<SampleStep> {
        let fields = entry.as_object()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        // An entry may lack the field that its layout has besides the speaker's, or name the speaker in the other one.
        let (content, role, name) = (text("content")?, text("role"), text("name"));
        let raw = match self.speaker {
            SpeakerField::Name => name.or(role)?,
            SpeakerField::Role => role.or(name)?,
        };
        for (field, is_there) in
            [("role", role.is_some()), ("name", name.is_some() || self.speaker == SpeakerField::Role)]
        {
            if !is_there {
                defects.add("missing-field", format!("history[{place}] has no `{field}`"));
            }
        }
        if content.trim().is_empty() {
            defects.add("empty-content", format!("history[{place}] of `{raw}`"));
        }
        let canonical = match self.speaker {
            SpeakerField::Name => raw,
            SpeakerField::Role => raw.split(" (").next().unwrap_or(raw),
        };
        let (agent, raw_agent) = named(raw, canonical, defects);
        let view = if self.speaker == SpeakerField::Role { "other" } else { role.unwrap_or("other") };
        let mut step = spoken_step(agent, raw_agent, view, content.to_owned());
        let mut known = vec!["content", "role"];
        if self.speaker == SpeakerField::Name {
            known.push("name");
        }
        for field in known.iter().filter(|field| !fields.contains_key(**field)) {
            step.extra.insert((*field).to_owned(), Value::Null);
        }
        if self.numbered {
            known.push("step");
            let right = fields.get("step").and_then(Value::as_u64) == u64::try_from(place).ok();
            if !right {
                let found = fields.get("step").unwrap_or(&Value::Null);
                defects.add("step-number", format!("history[{place}] has step {found}"));
                step.extra.insert("step".to_owned(), found.clone());
            }
        }
        step.extra.extend(unknown_fields(fields, &known, defects));
        Some(step)
    }

    /// What the row says that the run achieved. One that names a culprit is of a failure; one that says nothing is not known.
    fn achieved(&self, fields: &Map<String, Value>) -> Verdict {
        let told = self.outcome.and_then(|name| fields.get(name)).and_then(Value::as_bool);
        match told {
            Some(true) => Verdict::Success,
            Some(false) => Verdict::Failure,
            None if names_culprit(fields) => Verdict::Failure,
            None => Verdict::Unknown,
        }
    }

    /// The label of a failure; `None` where nobody is named, and where the run succeeded.
    fn label(
        &self,
        fields: &Map<String, Value>,
        outcome: Verdict,
        steps: &[SampleStep],
        defects: &mut Defects,
    ) -> Option<Truth> {
        if outcome == Verdict::Success {
            return None;
        }
        if !names_culprit(fields) {
            defects.add("no-label", "no agent is named");
            return None;
        }
        let raw = text_field(fields, "mistake_agent", defects);
        let (agent, raw_agent) = named(&raw, &raw, defects);
        let step = label_step(fields.get("mistake_step"), steps.len(), defects);
        check_agent(&raw, step, steps, defects);
        let reason = text_field(fields, "mistake_reason", defects);
        let call =
            step.and_then(|step| steps.get(step as usize)).filter(|step| step.agent == agent).map(|step| step.call);
        Some(spoken(SpokenName { agent, raw: raw_agent }, step, call, reason, self.definition))
    }

    fn check_outcome(&self, fields: &Map<String, Value>, extra: &mut Map<String, Value>, defects: &mut Defects) {
        let Some(name) = self.outcome else { return };
        match fields.get(name) {
            Some(Value::Bool(false)) => {}
            Some(other) => {
                defects.add("not-a-failure", format!("`{name}` is {other}"));
                extra.insert(name.to_owned(), other.clone());
            }
            None => {
                defects.add("missing-field", format!("`{name}`"));
                extra.insert(name.to_owned(), Value::Null);
            }
        }
    }

    /// Writes one sample; of several errors that were imported the earliest. `None` for a run without a labelled agent.
    pub(super) fn write(&self, sample: &Sample, inputs: Inputs) -> Option<Value> {
        let truth = sample.label.as_ref()?;
        let error = truth.errors.iter().min_by_key(|error| error.step.unwrap_or(StepIndex::MAX))?;
        let ours = sample.extra.get("format").and_then(Value::as_str).is_none_or(|format| format != self.format);
        let mut fields = Map::new();
        if let Some(name) = self.outcome {
            match sample.extra.get(name) {
                Some(Value::Null) => {}
                Some(other) => drop(fields.insert(name.to_owned(), other.clone())),
                None => drop(fields.insert(name.to_owned(), false.into())),
            }
        }
        fields.insert("question".to_owned(), sample.task.question.clone().into());
        fields.insert("question_ID".to_owned(), sample.task.id.clone().into());
        let kept = |name: &str| sample.extra.get(name).map(|value| (name.to_owned(), value.clone()));
        fields.extend(kept("level"));
        fields.insert("ground_truth".to_owned(), sample.task.answer.clone().into());
        let first = sample.steps.first().map(|step| &step.agent);
        let told = render_steps(sample, inputs);
        let entries = sample.steps.iter().zip(&told);
        let entries = entries.map(|(step, told)| self.write_entry(step, told, first == Some(&step.agent)));
        fields.insert("history".to_owned(), entries.collect());
        let agent = error.raw_agent.clone().unwrap_or_else(|| error.agent.as_str().to_owned());
        fields.insert("mistake_agent".to_owned(), agent.into());
        match (kept("mistake_step"), error.step) {
            (Some((name, raw)), _) => drop(fields.insert(name, raw)),
            (None, Some(step)) => drop(fields.insert("mistake_step".to_owned(), step.to_string().into())),
            (None, None) if ours => return None,
            (None, None) => {}
        }
        let mode = || error.modes().map(|mode| format!("{} {}", mode.code, mode.name)).collect::<Vec<_>>().join("; ");
        fields.insert("mistake_reason".to_owned(), error.reason.clone().unwrap_or_else(mode).into());
        for name in KEPT.iter().copied().filter(|name| *name != "level" && Some(*name) != self.outcome) {
            fields.extend(kept(name));
        }
        if !truth.missed_catch.is_empty() {
            fields.insert("missed_catch".to_owned(), truth.missed_catch.iter().map(later_agent).collect());
        }
        if ours && self.speaker == SpeakerField::Name {
            fields.insert("system_prompt".to_owned(), system_prompts(sample));
        }
        fields.extend(sample.extra.get("fields").and_then(Value::as_object).cloned().unwrap_or_default());
        Some(Value::Object(fields))
    }

    fn write_entry(&self, step: &SampleStep, told: &RenderedStep, first: bool) -> Value {
        let raw = step.raw_agent.as_deref().unwrap_or(step.agent.as_str());
        // A role of the file itself is kept; in a trace of ours the first speaker's view is the chat's. In AgenTracer's own
        // data everybody's is.
        let own = step.output.as_ref().filter(|_| step.input.is_none()).map(|output| output.role.as_str());
        let role =
            own.filter(|role| *role != "other").unwrap_or(if first || self.numbered { "assistant" } else { "user" });
        let mut entry = match self.speaker {
            SpeakerField::Name => json!({"content": told.both_parts(), "role": role, "name": raw}),
            SpeakerField::Role => json!({"content": told.both_parts(), "role": raw}),
        };
        if let Some(fields) = entry.as_object_mut() {
            if self.numbered {
                fields.insert("step".to_owned(), step.step.into());
            }
            put_back(fields, &step.extra);
        }
        entry
    }
}

/// What is shown of an agent that spoke after the error, in the words of a row.
fn later_agent(one: &MissedCatch) -> Value {
    json!({"agent": one.agent, "step": one.step.to_string(), "state": one.state})
}

/// Whether a row names who erred.
fn names_culprit(fields: &Map<String, Value>) -> bool {
    fields.get("mistake_agent").and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty())
}

/// The system prompt of each agent, as its first request had it.
fn system_prompts(sample: &Sample) -> Value {
    let mut prompts = Map::new();
    for step in &sample.steps {
        if prompts.contains_key(step.agent.as_str()) {
            continue;
        }
        let input = sample.input(step.step).unwrap_or_default();
        let system = input.into_iter().find(|message| matches!(message.role.as_str(), "system" | "developer"));
        prompts.extend(system.map(|message| (step.agent.as_str().to_owned(), message.text.clone().into())));
    }
    Value::Object(prompts)
}

/// The label's step: a decimal text in these files, a number in some.
fn label_step(raw: Option<&Value>, entries: usize, defects: &mut Defects) -> Option<StepIndex> {
    let step = match raw {
        Some(Value::String(text)) => text.trim().parse::<StepIndex>().ok(),
        Some(Value::Number(number)) => number.as_u64().and_then(|number| StepIndex::try_from(number).ok()),
        _ => None,
    };
    match step {
        None => defects.add("no-step", format!("`mistake_step` is {}", raw.unwrap_or(&Value::Null))),
        Some(step) if step as usize >= entries => {
            defects.add("step-beyond-end", format!("step {step} of {entries} entries"));
            return None;
        }
        Some(_) => {}
    }
    step
}

/// What is kept of a label as the file has it: its step, where a canonical decimal text of the step would not give it back;
/// all of it, where it names nobody or stands beside a success, and so is none.
fn raw_label(fields: &Map<String, Value>, label: Option<&Truth>) -> Vec<(String, Value)> {
    let kept = |name: &str| Some((name.to_owned(), fields.get(name)?.clone()));
    let Some(label) = label else { return LABEL.iter().filter_map(|name| kept(name)).collect() };
    let step = label.errors.first().and_then(|error| error.step).map(|step| Value::from(step.to_string()));
    kept("mistake_step").filter(|(_, raw)| step.as_ref() != Some(raw)).into_iter().collect()
}

fn check_agent(raw: &str, step: Option<StepIndex>, steps: &[SampleStep], defects: &mut Defects) {
    let same = |step: &SampleStep| step.agent.as_str() == raw || step.raw_agent.as_deref() == Some(raw);
    let near = |step: &SampleStep| agent_key(step.agent.as_str()) == agent_key(raw);
    if !raw.is_empty() && raw.chars().any(|c| !c.is_alphanumeric() && c != '_') {
        defects.add("cut-name", format!("`{raw}`"));
    }
    if !steps.iter().any(same) {
        match steps.iter().find(|step| near(step)) {
            Some(step) => defects.add("agent-case", format!("label `{raw}`, trace `{}`", step.agent)),
            None => defects.add("agent-absent", format!("`{raw}`")),
        }
    }
    if let Some(at) = step.and_then(|step| steps.get(step as usize)).filter(|step| !near(step)) {
        let speaker = at.raw_agent.as_deref().unwrap_or(at.agent.as_str());
        defects.add("other-speaker", format!("label `{raw}`, history[{}] is `{speaker}`'s", at.step));
    }
}
