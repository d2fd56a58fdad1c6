//! ATIF, the Agent Trajectory Interchange Format of Harbor (RFC 0001, v1.7): one JSON document a run, steps from 1, the
//! task as the first. Several agents share one trajectory; each step names its own in `extra.agent`.

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::arguments,
    pretty,
    schema::{
        Field::{May, Needed},
        Type,
    },
};
use crate::dataset::{Called, Sample, SampleMessage, SampleStep};

/// The version whose fields are written.
const VERSION: &str = "ATIF-v1.7";

/// What a document holds.
const DOCUMENT: Type = Type::Record(&[
    Needed("schema_version", Type::OneOf(&[VERSION])),
    Needed("session_id", Type::Text),
    Needed("trajectory_id", Type::Text),
    Needed("agent", Type::Record(&[Needed("name", Type::Text), Needed("version", Type::Text)])),
    Needed("steps", Type::List(&STEP)),
    Needed("final_metrics", Type::Record(&[Needed("total_steps", Type::Whole)])),
    Needed("extra", Type::Map(&Type::Json)),
]);

const STEP: Type = Type::Record(&[
    Needed("step_id", Type::Whole),
    Needed("source", Type::OneOf(&["user", "agent"])),
    May("model_name", Type::Text),
    Needed("message", Type::Text),
    May(
        "tool_calls",
        Type::List(&Type::Record(&[
            Needed("tool_call_id", Type::Text),
            Needed("function_name", Type::Text),
            Needed("arguments", Type::Map(&Type::Json)),
        ])),
    ),
    May(
        "observation",
        Type::Record(&[Needed(
            "results",
            Type::List(&Type::Record(&[Needed("source_call_id", Type::Text), Needed("content", Type::Text)])),
        )]),
    ),
    May("llm_call_count", Type::Whole),
    May("extra", Type::Map(&Type::Json)),
]);

/// Writes documents.
#[derive(Debug)]
pub(super) struct Atif;

impl Format for Atif {
    fn name(&self) -> &'static str {
        "atif"
    }
    fn description(&self) -> &'static str {
        "Agent Trajectory Interchange Format v1.7: one document a run, step 1 is the task, ours follow from 2"
    }
    fn takes_recordings(&self) -> bool {
        true
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Files
    }
    fn schema(&self) -> Type {
        DOCUMENT
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, _: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let mut steps = vec![json!({"step_id": 1, "source": "user", "message": sample.task.question})];
        steps.extend(sample.steps.iter().map(|at| step(sample, at)));
        let document = json!({
            "schema_version": VERSION,
            "session_id": sample.id,
            "trajectory_id": sample.id,
            "agent": {"name": if sample.system.is_empty() { "unknown" } else { &sample.system }, "version": "unknown"},
            "steps": steps,
            "final_metrics": {"total_steps": steps.len()},
            "extra": {"outcome": sample.outcome, "final_answer": sample.final_answer, "answer": sample.task.answer,
                "label": sample.label.as_ref().map(|truth| &truth.errors)},
        });
        Ok(vec![WrittenPiece::file(format!("{}.json", sample.id), pretty(&document, b"  "))])
    }
}

fn step(sample: &Sample, at: &SampleStep) -> Value {
    let mut fields = Map::new();
    fields.insert("step_id".to_owned(), (at.step + 2).into());
    fields.insert("source".to_owned(), "agent".into());
    fields.extend(at.model.as_ref().map(|model| ("model_name".to_owned(), sample.model_name(model).into())));
    let text = at.output.as_ref().map(|output| output.text.clone()).unwrap_or_default();
    fields.insert("message".to_owned(), text.into());
    let calls = at.output.as_ref().map(|output| output.calls.as_slice()).unwrap_or_default();
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.iter().map(call).collect());
        let results: Vec<Value> = calls.iter().filter_map(|call| result(sample, call)).collect();
        if !results.is_empty() {
            fields.insert("observation".to_owned(), json!({"results": results}));
        }
    }
    // A step of ours is one model call.
    fields.insert("llm_call_count".to_owned(), 1.into());
    let mut extra = json!({"agent": at.agent, "call": at.call, "turn": at.turn});
    if let (Some(extra), Some(account)) = (extra.as_object_mut(), &at.account) {
        extra.insert("account".to_owned(), account.as_str().into());
    }
    fields.insert("extra".to_owned(), extra);
    Value::Object(fields)
}

fn call(call: &Called) -> Value {
    json!({"tool_call_id": call.id, "function_name": call.name, "arguments": arguments(&call.arguments)})
}

/// What a tool answered, as the next request of the run quotes it.
fn result(sample: &Sample, call: &Called) -> Option<Value> {
    let messages = sample.steps.iter().filter_map(|step| step.input.as_ref()).flat_map(|input| &input.messages);
    let answers =
        |message: &&SampleMessage| !call.id.is_empty() && message.answers.as_deref() == Some(call.id.as_str());
    let answer = messages.into_iter().find(answers)?;
    Some(json!({"source_call_id": call.id, "content": answer.text}))
}
