//! MAST's rows (`MAD_full_dataset.json`): one raw log a run and a 0/1 vector over the 14 modes, keyed `1.1` … `3.3`;
//! no agent, no step, no outcome. Its 19 human-labelled rows have another shape and three code books; they are refused.

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    fit::{TraceForm, conversation},
    foreign::{Defects, unknown_fields},
    render::Inputs,
    schema::{Field::Needed, Type},
};
use crate::{
    dataset::{FORMAT, LabelledError, Sample, SampleKind, Task},
    equality::EqualitySetting,
    score::mode_key,
    trajectory::{FailureMode, Verdict},
};

const FIELDS: &[&str] = &["mas_name", "llm_name", "benchmark_name", "trace_id", "trace", "mast_annotation"];

/// Reads a row.
pub(super) fn read(value: &Value, id: &str, defects: &mut Defects) -> Option<Sample> {
    let (Some(fields), Some(modes)) = (value.as_object(), value.get("mast_annotation").and_then(Value::as_object))
    else {
        defects.add("wrong-shape", "`mast_annotation` is no object; the human-labelled rows have other code books");
        return None;
    };
    for (code, flag) in modes {
        if FailureMode::parse(&format!("FM-{code}")).is_err() {
            defects.add("unknown-mode", format!("`{code}`"));
        }
        if !matches!(flag.as_u64(), Some(0 | 1)) {
            defects.add("not-binary", format!("`{code}` is {flag}"));
        }
    }
    let mut extra = Map::new();
    extra.insert("format".to_owned(), "mast".into());
    for name in FIELDS {
        match fields.get(*name) {
            Some(value) => drop(extra.insert((*name).to_owned(), value.clone())),
            None => defects.add("missing-field", format!("`{name}`")),
        }
    }
    let log = value.pointer("/trace/trajectory").and_then(Value::as_str).unwrap_or_default();
    if log.trim().is_empty() {
        defects.add("empty-content", "`trace.trajectory`");
    }
    let unknown = unknown_fields(fields, FIELDS, defects);
    if !unknown.is_empty() {
        extra.insert("fields".to_owned(), Value::Object(unknown));
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    // The log does not say which task it is of; the row is the only name there is.
    let task = Task { id: format!("mast-{id}"), ..Task::default() };
    Some(Sample {
        format: FORMAT,
        id: id.to_owned(),
        kind: SampleKind::Failure,
        system: text("mas_name"),
        backend: text("llm_name"),
        task,
        split: None,
        outcome: Verdict::Unknown,
        outcome_evidence: String::new(),
        final_answer: String::new(),
        tools: Vec::new(),
        steps: Vec::new(),
        label: None,
        clean_twin: None,
        equality: EqualitySetting::default(),
        extra,
    })
}

/// What the document holds.
const DOCUMENT: Type = Type::List(&Type::Open(&[
    Needed("mas_name", Type::Text),
    Needed("llm_name", Type::Text),
    Needed("benchmark_name", Type::Text),
    Needed("trace_id", Type::Json),
    Needed(
        "trace",
        Type::Open(&[Needed("key", Type::Text), Needed("index", Type::Whole), Needed("trajectory", Type::Text)]),
    ),
    Needed("mast_annotation", Type::Map(&Type::Whole)),
]));

/// Writes rows.
#[derive(Debug)]
pub(super) struct Mast;

impl Format for Mast {
    fn name(&self) -> &'static str {
        "mast"
    }
    fn description(&self) -> &'static str {
        "MAST rows: the log as text and a 0/1 vector over the 14 modes"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Document { open: "[\n", close: "\n]\n" }
    }
    fn schema(&self) -> Type {
        DOCUMENT
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn names_modes(&self) -> bool {
        true
    }

    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        if sample.extra.get("format").and_then(Value::as_str) == Some("mast") {
            let kept = |name: &&str| sample.extra.get(*name).map(|value| ((*name).to_owned(), value.clone()));
            let mut fields: Map<String, Value> = FIELDS.iter().filter_map(kept).collect();
            fields.extend(sample.extra.get("fields").and_then(Value::as_object).cloned().unwrap_or_default());
            return Ok(vec![WrittenPiece::row(Value::Object(fields))]);
        }
        let errors = sample.label.as_ref().map(|truth| truth.errors.as_slice()).unwrap_or_default();
        let modes: Vec<String> =
            errors.iter().flat_map(LabelledError::modes).map(|mode| mode_key(&mode.code)).collect();
        if sample.kind == SampleKind::Failure && errors.is_empty() {
            return Err(Unfit("a failure that nobody labelled"));
        }
        if errors.iter().any(|error| error.failure_mode.is_none()) {
            return Err(Unfit("an error without failure mode"));
        }
        let vector: Map<String, Value> = FailureMode::ALL
            .iter()
            .map(|mode| {
                let set = modes.iter().any(|code| code == mode.code());
                (mode.code().trim_start_matches("FM-").to_owned(), u8::from(set).into())
            })
            .collect();
        let model = sample.steps.iter().find_map(|step| step.model.as_deref()).unwrap_or(&sample.backend);
        let model = sample.model_name(model);
        let benchmark = sample.task.extra.get("benchmark").and_then(Value::as_str).unwrap_or_default();
        Ok(vec![WrittenPiece::row(json!({
            "mas_name": sample.system,
            "llm_name": model,
            "benchmark_name": benchmark,
            "trace_id": context.number,
            "trace": {"key": sample.id, "index": context.number, "trajectory": conversation(sample, context.options.inputs_or(Inputs::None), TraceForm::Own)},
            "mast_annotation": vector,
        }))])
    }
}
