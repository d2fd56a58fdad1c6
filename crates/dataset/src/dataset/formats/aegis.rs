//! Aegis' unified record (arXiv 2509.14295): one JSON object a line, labels as a set of (agent, failure mode) without a
//! step. Steps are 1-based there; a gap in them means that entries were dropped.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    aegis_entry::entry,
    foreign::{Defects, named, number, spoken_step, unknown_fields},
    render::{Inputs, render_steps},
    schema::{
        Field::{May, Needed},
        Type,
    },
};
use crate::{
    dataset::{FORMAT, LabelledError, Mode, Sample, SampleKind, SampleStep, Task, Truth},
    equality::EqualitySetting,
    score::{agent_key, mode_key},
    trajectory::{FailureMode, LabelStatus, Side, Verdict},
};

/// The name of their reading of MAST's codes, most of which they rename.
const THEIR_TAXONOMY: &str = "Aegis-2509.14295";

/// Reads a record.
pub(super) fn read(value: &Value, id: &str, defects: &mut Defects) -> Option<Sample> {
    let history = value.pointer("/input/conversation_history").and_then(Value::as_array);
    let (Some(fields), Some(history)) = (value.as_object(), history) else {
        defects.add("wrong-shape", "`input.conversation_history` is no list");
        return None;
    };
    let mut steps =
        history.iter().enumerate().map(|(place, entry)| step(place, entry, defects)).collect::<Option<Vec<_>>>();
    let Some(steps) = steps.as_mut() else {
        defects.add("wrong-shape", "an entry of `conversation_history` names no agent or says no text");
        return None;
    };
    number(steps);
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let errors = errors(value, steps, defects);
    let normal = errors.is_empty();
    if normal && value.pointer("/ground_truth/is_normal_sample") != Some(&Value::Bool(true)) {
        defects.add("no-modes", "`output.faulty_agents` is empty and the row is no normal sample");
    }
    check_counts(value, steps, defects);
    let outcome = if normal { Verdict::Success } else { Verdict::Failure };
    let mut extra = Map::new();
    extra.insert("format".to_owned(), "aegis".into());
    for name in ["id", "metadata", "ground_truth"] {
        extra.extend(fields.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    if value.pointer("/input/final_output").is_none() {
        extra.insert("no_final_output".to_owned(), true.into());
    }
    let unknown = unknown_fields(fields, &["id", "metadata", "input", "output", "ground_truth"], defects);
    if !unknown.is_empty() {
        extra.insert("fields".to_owned(), Value::Object(unknown));
    }
    let question = text("/input/query");
    let task_id = format!("aegis-{}", blake3::hash(question.as_bytes()).to_hex().get(..12).unwrap_or_default());
    Some(Sample {
        format: FORMAT,
        id: id.to_owned(),
        kind: if normal { SampleKind::Clean } else { SampleKind::Failure },
        system: text("/metadata/framework"),
        backend: text("/metadata/model"),
        task: Task { id: task_id, question, answer: text("/ground_truth/correct_answer"), ..Task::default() },
        split: None,
        outcome,
        outcome_evidence: String::new(),
        final_answer: text("/input/final_output"),
        tools: Vec::new(),
        steps: std::mem::take(steps),
        label: (!normal).then(|| label(errors)),
        clean_twin: None,
        equality: EqualitySetting::default(),
        extra,
    })
}

/// The label of a failure, as its source says it.
fn label(errors: Vec<LabelledError>) -> Truth {
    Truth {
        status: LabelStatus::Delivered,
        definition: "injected".to_owned(),
        seed: None,
        outcome: Verdict::Failure,
        errors,
        others: Vec::new(),
        not_shown: Vec::new(),
        missed_catch: Vec::new(),
        changes: Vec::new(),
        evidence: None,
    }
}

fn step(place: usize, entry: &Value, defects: &mut Defects) -> Option<SampleStep> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let (raw, content) = (text("agent_name")?, text("content")?);
    if content.trim().is_empty() {
        defects.add("empty-content", format!("entry {place} of `{raw}`"));
    }
    let (agent, raw_agent) = named(raw, raw, defects);
    let mut step = spoken_step(agent, raw_agent, "assistant", content.to_owned());
    let own = entry.get("step").cloned().unwrap_or(Value::Null);
    if own.as_u64() != u64::try_from(place + 1).ok() {
        defects.add("step-number", format!("entry {place} has step {own}"));
        step.extra.insert("step".to_owned(), own);
    }
    let fields = entry.as_object()?;
    for name in ["agent_role", "phase"] {
        step.extra.extend(fields.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    step.extra.extend(unknown_fields(fields, &["step", "agent_name", "content", "agent_role", "phase"], defects));
    Some(step)
}

fn errors(value: &Value, steps: &[SampleStep], defects: &mut Defects) -> Vec<LabelledError> {
    let listed = value.pointer("/output/faulty_agents").and_then(Value::as_array);
    if listed.is_none() {
        defects.add("missing-field", "`output.faulty_agents` is no list");
    }
    let mut errors = Vec::new();
    for entry in listed.into_iter().flatten() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let raw = text("agent_name");
        let (agent, raw_agent) = named(raw, raw, defects);
        let speaks = |key: &dyn Fn(&SampleStep) -> bool| steps.iter().any(key);
        if !speaks(&|step| step.agent == agent) {
            match steps.iter().find(|step| agent_key(step.agent.as_str()) == agent_key(raw)) {
                Some(step) => defects.add("agent-case", format!("label `{raw}`, trace `{}`", step.agent)),
                None => defects.add("agent-absent", format!("`{raw}`")),
            }
        }
        let code = text("error_type");
        if FailureMode::parse(&mode_key(code)).is_err() {
            defects.add("unknown-mode", format!("`{code}`"));
        }
        let strategy = text("injection_strategy");
        let side = match strategy {
            "prompt_injection" | "prompt" => Some(Side::Request),
            "response_corruption" => Some(Side::Response),
            _ => None,
        };
        let mut extra = Map::new();
        extra.extend(entry.get("injection_strategy").map(|value| ("injection_strategy".to_owned(), value.clone())));
        let known = ["agent_name", "error_type", "injection_strategy"];
        extra.extend(entry.as_object().map(|fields| unknown_fields(fields, &known, defects)).unwrap_or_default());
        let name = FailureMode::parse(&mode_key(code)).map(|mode| mode.name().to_owned()).unwrap_or_default();
        errors.push(LabelledError {
            culprit: crate::trajectory::PrincipalKind::Agent,
            agent,
            raw_agent,
            instance: 0,
            step: None,
            call: None,
            failure_mode: Some(Mode { code: code.to_owned(), name, taxonomy: THEIR_TAXONOMY.to_owned() }),
            other_modes: Vec::new(),
            mode_claim: None,
            proposed_mode: None,
            side,
            operator: None,
            shown_by: None,
            injection: None,
            before: String::new(),
            after: String::new(),
            reason: None,
            extra,
        });
    }
    errors
}

fn check_counts(value: &Value, steps: &[SampleStep], defects: &mut Defects) {
    let speakers: BTreeSet<&str> = steps.iter().map(|step| step.agent.as_str()).collect();
    let said = value.pointer("/metadata/num_agents").and_then(Value::as_u64);
    if let Some(said) = said.filter(|said| u64::try_from(speakers.len()) != Ok(*said)) {
        defects.add("wrong-count", format!("`num_agents` is {said}, {} agents speak", speakers.len()));
    }
}

/// What a record holds.
pub(super) const RECORD: Type = Type::Open(&[
    Needed("id", Type::Text),
    Needed(
        "metadata",
        Type::Open(&[
            May("framework", Type::Text),
            May("benchmark", Type::Text),
            May("model", Type::Text),
            May("num_agents", Type::Whole),
            May("num_injected_agents", Type::Whole),
            May("task_type", Type::Text),
        ]),
    ),
    Needed(
        "input",
        Type::Record(&[
            Needed("query", Type::Text),
            Needed(
                "conversation_history",
                Type::List(&Type::Open(&[
                    Needed("step", Type::Whole),
                    Needed("agent_name", Type::Text),
                    Needed("content", Type::Text),
                    May("agent_role", Type::Text),
                    May("phase", Type::Text),
                ])),
            ),
            May("final_output", Type::Text),
        ]),
    ),
    Needed("output", Type::Record(&[Needed("faulty_agents", Type::List(&FAULTY))])),
    Needed(
        "ground_truth",
        Type::Open(&[
            May("correct_answer", Type::Text),
            May("injected_agents", Type::List(&Type::Json)),
            May("is_injection_successful", Type::Flag),
            May("is_normal_sample", Type::Flag),
        ]),
    ),
]);

const FAULTY: Type = Type::Open(&[
    Needed("agent_name", Type::Text),
    Needed("error_type", Type::Text),
    May("injection_strategy", Type::Text),
]);

/// Writes records.
#[derive(Debug)]
pub(super) struct Aegis;

impl Format for Aegis {
    fn name(&self) -> &'static str {
        "aegis"
    }
    fn description(&self) -> &'static str {
        "Aegis' unified record: a set of (agent, failure mode) a run, steps from 1; clean runs are normal samples"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        RECORD
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn names_modes(&self) -> bool {
        true
    }

    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        Ok(vec![WrittenPiece::row(entered(sample, context.options.inputs_or(Inputs::None))?)])
    }
}

/// The record of a sample.
///
/// # Errors
/// [`Unfit`] where an error of ours has no failure mode.
pub(super) fn entered(sample: &Sample, inputs: Inputs) -> Result<Value, Unfit> {
    let own = sample.extra.get("format").and_then(Value::as_str) == Some("aegis");
    let errors = sample.label.as_ref().map(|truth| truth.errors.as_slice()).unwrap_or_default();
    if !own && sample.kind == SampleKind::Failure && errors.is_empty() {
        return Err(Unfit("a failure that nobody labelled"));
    }
    if !own && errors.iter().any(|error| error.failure_mode.is_none()) {
        return Err(Unfit("an error without failure mode"));
    }
    Ok(record(sample, errors, own, inputs))
}

fn record(sample: &Sample, errors: &[LabelledError], own: bool, inputs: Inputs) -> Value {
    let kept = |name: &str| sample.extra.get(name).filter(|_| own).cloned();
    let faulty: Vec<Value> = errors.iter().flat_map(|error| faulty(error, own)).collect();
    let told = render_steps(sample, inputs);
    let history: Vec<Value> = sample.steps.iter().zip(&told).map(|(step, told)| entry(step, told)).collect();
    let mut input = json!({"query": sample.task.question, "conversation_history": history});
    if let Some(input) = input.as_object_mut().filter(|_| kept("no_final_output").is_none()) {
        input.insert("final_output".to_owned(), sample.final_answer.clone().into());
    }
    let mut record = Map::new();
    record.insert("id".to_owned(), kept("id").unwrap_or_else(|| sample.id.clone().into()));
    record.insert("metadata".to_owned(), kept("metadata").unwrap_or_else(|| metadata(sample, errors)));
    record.insert("input".to_owned(), input);
    record.insert("output".to_owned(), json!({"faulty_agents": faulty}));
    let truth = || {
        let mut truth = json!({"correct_answer": sample.task.answer, "injected_agents": faulty,
            "is_injection_successful": !errors.is_empty()});
        if let Some(truth) = truth.as_object_mut().filter(|_| errors.is_empty()) {
            truth.insert("is_normal_sample".to_owned(), true.into());
        }
        truth
    };
    record.insert("ground_truth".to_owned(), kept("ground_truth").unwrap_or_else(truth));
    if let Some(Value::Object(fields)) = kept("fields") {
        record.extend(fields);
    }
    Value::Object(record)
}

/// The entries of an error: one a mode, for the record is a set of pairs.
fn faulty(error: &LabelledError, own: bool) -> Vec<Value> {
    let codes = error.modes().map(|mode| mode.code.as_str());
    let codes: Vec<&str> = if error.failure_mode.is_some() { codes.collect() } else { vec![""] };
    codes.into_iter().map(|code| pair(error, code, own)).collect()
}

fn pair(error: &LabelledError, code: &str, own: bool) -> Value {
    let agent = error.raw_agent.as_deref().unwrap_or(error.agent.as_str());
    let mut fields = Map::new();
    fields.insert("agent_name".to_owned(), agent.into());
    fields.insert("error_type".to_owned(), code.into());
    let strategy = match error.side {
        Some(Side::Request) => "prompt_injection",
        Some(Side::Response) => "response_corruption",
        None => "unknown",
    };
    if !own {
        fields.insert("injection_strategy".to_owned(), strategy.into());
    }
    fields.extend(error.extra.clone());
    Value::Object(fields)
}

fn metadata(sample: &Sample, errors: &[LabelledError]) -> Value {
    let text = |name: &str| sample.task.extra.get(name).and_then(Value::as_str).unwrap_or_default();
    let model = sample.steps.iter().find_map(|step| step.model.as_deref()).unwrap_or(&sample.backend);
    let model = sample.model_name(model);
    let injected: BTreeSet<&str> = errors.iter().map(|error| error.agent.as_str()).collect();
    json!({"framework": sample.system, "benchmark": text("benchmark"), "model": model,
        "num_agents": sample.agents().len(), "num_injected_agents": injected.len(), "task_type": text("task_type")})
}
