//! An Inspect AI evaluation log (`EvalLog` version 2, the `.json` form): one document, one sample a run. `inspect log
//! convert` makes `.eval` of it. A dataset has no clock, so the log's times are the epoch.

use serde_json::{Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::{arguments, role},
    manifest::not_whole,
    render::{Inputs, shared_messages},
    schema::{
        Field::{May, Needed},
        Type,
    },
};
use crate::{
    dataset::{Sample, SampleMessage, SampleStep},
    trajectory::Verdict,
};

/// What the log holds.
const DOCUMENT: Type = Type::Record(&[
    Needed("version", Type::Whole),
    Needed("status", Type::OneOf(&["success"])),
    Needed(
        "eval",
        Type::Record(&[
            Needed("eval_id", Type::Text),
            Needed("run_id", Type::Text),
            Needed("task_id", Type::Text),
            Needed("created", Type::Text),
            Needed("task", Type::Text),
            Needed("task_version", Type::Whole),
            Needed("dataset", Type::Record(&[Needed("name", Type::Text)])),
            Needed("model", Type::Text),
            Needed("config", Type::Map(&Type::Json)),
        ]),
    ),
    Needed("plan", Type::Record(&[Needed("name", Type::Text), Needed("steps", Type::List(&Type::Json))])),
    Needed(
        "results",
        Type::Record(&[
            Needed("total_samples", Type::Whole),
            Needed("completed_samples", Type::Whole),
            Needed("scores", Type::List(&Type::Json)),
        ]),
    ),
    Needed(
        "stats",
        Type::Record(&[
            Needed("started_at", Type::Text),
            Needed("completed_at", Type::Text),
            Needed("model_usage", Type::Map(&Type::Json)),
        ]),
    ),
    Needed("samples", Type::List(&SAMPLE)),
]);

const SAMPLE: Type = Type::Record(&[
    Needed("id", Type::Text),
    Needed("epoch", Type::Whole),
    Needed("input", Type::Text),
    Needed("target", Type::Text),
    Needed("messages", Type::List(&MESSAGE)),
    Needed(
        "output",
        Type::Record(&[
            Needed("model", Type::Text),
            Needed(
                "choices",
                Type::List(&Type::Record(&[Needed("message", MESSAGE), Needed("stop_reason", Type::Text)])),
            ),
        ]),
    ),
    Needed(
        "scores",
        Type::Map(&Type::Record(&[
            Needed("value", Type::OneOf(&["C", "I", "N"])),
            Needed("answer", Type::Text),
            Needed("explanation", Type::Text),
        ])),
    ),
    Needed("metadata", Type::Map(&Type::Json)),
    Needed("store", Type::Map(&Type::Json)),
    Needed("events", Type::List(&Type::Json)),
    Needed("model_usage", Type::Map(&Type::Json)),
]);

const MESSAGE: Type = Type::Record(&[
    Needed("role", Type::OneOf(&["system", "user", "assistant", "tool"])),
    Needed("content", Type::Text),
    May("source", Type::Text),
    May("model", Type::Text),
    May(
        "metadata",
        Type::Record(&[Needed("agent", Type::Text), Needed("step", Type::Whole), May("given", Type::Flag)]),
    ),
    May("tool_call_id", Type::Text),
    May("function", Type::Text),
    May(
        "tool_calls",
        Type::List(&Type::Record(&[
            Needed("id", Type::Text),
            Needed("function", Type::Text),
            Needed("arguments", Type::Map(&Type::Json)),
            Needed("type", Type::OneOf(&["function"])),
        ])),
    ),
]);

/// Writes the log.
#[derive(Debug)]
pub(super) struct Inspect;

impl Format for Inspect {
    fn name(&self) -> &'static str {
        "inspect"
    }
    fn description(&self) -> &'static str {
        "Inspect AI log (.json): one sample a run, steps in order with what was new to them, the label in the metadata"
    }
    fn takes_recordings(&self) -> bool {
        true
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Document {
            open: concat!(
                r#"{"version":2,"status":"success","eval":{"eval_id":"aegis","run_id":"aegis","task_id":"aegis","#,
                r#""created":"1970-01-01T00:00:00+00:00","task":"aegis","task_version":0,"dataset":{"name":"aegis"},"#,
                r#""model":"none","config":{}},"plan":{"name":"plan","steps":[]},"results":{"total_samples":{samples},"#,
                r#""completed_samples":{samples},"scores":[]},"stats":{"started_at":"1970-01-01T00:00:00+00:00","#,
                r#""completed_at":"1970-01-01T00:00:00+00:00","model_usage":{}},"samples":["#,
                "\n"
            ),
            close: "\n]}\n",
        }
    }
    fn schema(&self) -> Type {
        DOCUMENT
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let mut messages = vec![json!({"role": "user", "content": sample.task.question})];
        let inputs = context.options.inputs_or(Inputs::New);
        for (step, given) in sample.steps.iter().zip(shared_messages(sample, inputs)) {
            messages.extend(given.into_iter().map(|(said, tool)| input_message(said, tool, step)));
            if let Some(output) = &step.output {
                let model = sample.model_name(step.model.as_deref().unwrap_or(&sample.backend));
                messages.push(spoken(output, &model, step.agent.as_str(), step.step));
            }
        }
        let grade = match sample.outcome {
            Verdict::Success => "C",
            Verdict::Failure => "I",
            Verdict::Unknown => "N",
        };
        let last = json!({"role": "assistant", "content": sample.final_answer, "source": "generate"});
        let row = json!({
            "id": sample.id,
            "epoch": 1,
            "input": sample.task.question,
            "target": sample.task.answer,
            "messages": messages,
            "output": {"model": sample.backend, "choices": [{"message": last, "stop_reason": "stop"}]},
            "scores": {"outcome": {"value": grade, "answer": sample.final_answer, "explanation": sample.outcome_evidence}},
            "metadata": metadata(sample),
            "store": {},
            "events": [],
            "model_usage": {},
        });
        Ok(vec![WrittenPiece::row(row)])
    }
}

/// What the log has no field for.
fn metadata(sample: &Sample) -> Value {
    let mut metadata = json!({"system": sample.system, "kind": sample.kind, "task": sample.task.id,
        "clean_twin": sample.clean_twin, "label": sample.label});
    let account = not_whole(sample);
    if let Some(fields) = metadata.as_object_mut().filter(|_| !account.is_empty()) {
        fields.insert("account".to_owned(), json!(account));
    }
    metadata
}

/// A message that a step was given, with the tool that it answers for.
fn input_message(said: &SampleMessage, tool: Option<&str>, step: &SampleStep) -> Value {
    let mut message = json!({"role": role(said), "content": said.text, "source": "input",
        "metadata": {"agent": step.agent, "step": step.step, "given": true}});
    if let Some(fields) = message.as_object_mut() {
        fields.extend(called(said));
        fields.extend(said.answers.as_ref().map(|id| ("tool_call_id".to_owned(), id.clone().into())));
        fields.extend(tool.map(|name| ("function".to_owned(), name.into())));
    }
    message
}

fn spoken(output: &SampleMessage, model: &str, agent: &str, step: u32) -> Value {
    let mut message = json!({"role": "assistant", "content": output.text, "source": "generate", "model": model,
        "metadata": {"agent": agent, "step": step}});
    if let Some(fields) = message.as_object_mut() {
        fields.extend(called(output));
    }
    message
}

/// The tool calls of a message, if it has any.
fn called(said: &SampleMessage) -> Option<(String, Value)> {
    let call = |call: &crate::dataset::Called| json!({"id": call.id, "function": call.name, "arguments": arguments(&call.arguments), "type": "function"});
    (!said.calls.is_empty()).then(|| ("tool_calls".to_owned(), said.calls.iter().map(call).collect()))
}
