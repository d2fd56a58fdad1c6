//! OpenTelemetry spans as OTLP/JSON, one `resourceSpans` object a line and run, with the attributes of the GenAI
//! conventions (semantic-conventions-genai v0.1.0) and of OpenInference. The run's verdict is a `gen_ai.evaluation.result`
//! event of its span, each labelled error one of its step's; what was injected stands under `aegis.injection.*` besides. A
//! dataset has no clock: step n lasts from second n to n + 1 after the epoch.

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::message,
    render::spoken,
    schema::{
        Field::{May, Needed},
        Type,
    },
};
use crate::{
    dataset::{LabelledError, Sample, SampleMessage, SampleStep},
    trajectory::{EVALUATION_EVENT, GENAI_SCHEMA_URL, Verdict},
};

/// What a line holds.
const LINE: Type = Type::Record(&[Needed(
    "resourceSpans",
    Type::List(&Type::Record(&[
        Needed("resource", Type::Record(&[Needed("attributes", ATTRIBUTES)])),
        Needed(
            "scopeSpans",
            Type::List(&Type::Record(&[
                Needed("scope", Type::Record(&[Needed("name", Type::Text), Needed("version", Type::Text)])),
                Needed("spans", Type::List(&SPAN)),
                Needed("schemaUrl", Type::OneOf(&[GENAI_SCHEMA_URL])),
            ])),
        ),
        Needed("schemaUrl", Type::OneOf(&[GENAI_SCHEMA_URL])),
    ])),
)]);

const SPAN: Type = Type::Record(&[
    Needed("traceId", Type::Text),
    Needed("spanId", Type::Text),
    May("parentSpanId", Type::Text),
    Needed("name", Type::Text),
    Needed("kind", Type::Whole),
    Needed("startTimeUnixNano", Type::Text),
    Needed("endTimeUnixNano", Type::Text),
    Needed("attributes", ATTRIBUTES),
    May("events", Type::List(&EVENT)),
    Needed("status", Type::Record(&[May("code", Type::Whole), May("message", Type::Text)])),
]);

const EVENT: Type = Type::Record(&[
    Needed("timeUnixNano", Type::Text),
    Needed("name", Type::OneOf(&[EVALUATION_EVENT])),
    Needed("attributes", ATTRIBUTES),
]);

const ATTRIBUTES: Type = Type::List(&Type::Record(&[
    Needed("key", Type::Text),
    Needed("value", Type::Record(&[May("stringValue", Type::Text), May("intValue", Type::Text)])),
]));

/// Writes lines.
#[derive(Debug)]
pub(super) struct Otlp;

impl Format for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }
    fn description(&self) -> &'static str {
        "OTLP/JSON spans with GenAI and OpenInference attributes, one run a line; times are step numbers in seconds"
    }
    fn takes_recordings(&self) -> bool {
        true
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        LINE
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, _: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let trace = hex(&sample.id, "trace", 32);
        let root = hex(&sample.id, "run", 16);
        let mut spans = vec![workflow(sample, &trace, &root)];
        spans.extend(sample.steps.iter().map(|step| chat(sample, step, &trace, &root)));
        Ok(vec![WrittenPiece::row(json!({"resourceSpans": [{
            "resource": {"attributes": attributes([("service.name", Value::from("aegis"))])},
            "scopeSpans": [{"scope": {"name": "aegis", "version": env!("CARGO_PKG_VERSION")}, "spans": spans,
                "schemaUrl": GENAI_SCHEMA_URL}],
            "schemaUrl": GENAI_SCHEMA_URL,
        }]}))])
    }
}

/// So many hex digits of an id and what it names.
fn hex(id: &str, what: &str, digits: usize) -> String {
    let hash = blake3::hash(format!("{what}\n{id}").as_bytes()).to_hex();
    hash.get(..digits).unwrap_or_default().to_owned()
}

fn workflow(sample: &Sample, trace: &str, root: &str) -> Value {
    let failed = sample.outcome == Verdict::Failure;
    json!({
        "traceId": trace, "spanId": root, "name": format!("invoke_workflow {}", sample.system).trim_end(), "kind": 1,
        "startTimeUnixNano": "0", "endTimeUnixNano": nanos(sample.steps.len() as u64),
        "attributes": attributes([
            ("gen_ai.operation.name", Value::from("invoke_workflow")),
            ("gen_ai.agent.name", sample.system.clone().into()),
            ("gen_ai.conversation.id", sample.id.clone().into()),
            ("openinference.span.kind", "CHAIN".into()),
            ("session.id", sample.id.clone().into()),
            ("input.value", sample.task.question.clone().into()),
            ("output.value", sample.final_answer.clone().into()),
        ]),
        "events": verdict(sample),
        "status": if failed { json!({"code": 2, "message": sample.outcome_evidence}) } else { json!({}) },
    })
}

/// What the run achieved, where that is known.
fn verdict(sample: &Sample) -> Vec<Value> {
    let Some(score) = sample.outcome.score() else { return Vec::new() };
    let mut told = vec![
        ("gen_ai.evaluation.name", Value::from("outcome")),
        ("gen_ai.evaluation.score.label", score.label.into()),
        ("gen_ai.evaluation.score.value", score.value.into()),
    ];
    if !sample.outcome_evidence.is_empty() {
        told.push(("gen_ai.evaluation.explanation", sample.outcome_evidence.as_str().into()));
    }
    vec![
        json!({"timeUnixNano": nanos(sample.steps.len() as u64), "name": EVALUATION_EVENT, "attributes": attributes(told)}),
    ]
}

/// A labelled error of a step: who erred, how, and how far that is established.
fn labelled(sample: &Sample, step: &SampleStep) -> Vec<Value> {
    let Some(truth) = &sample.label else { return Vec::new() };
    let status = serde_json::to_value(truth.status).unwrap_or_default();
    let told = truth.errors.iter().filter(|error| error.step == Some(step.step)).map(|error| {
        let modes: Vec<String> = error.modes().map(|mode| format!("{} {}", mode.code, mode.name)).collect();
        let mut told = vec![
            ("gen_ai.evaluation.name", Value::from("failure_attribution")),
            ("gen_ai.evaluation.score.label", status.clone()),
            ("gen_ai.agent.name", error.agent.as_str().into()),
            ("aegis.label.definition", truth.definition.as_str().into()),
        ];
        let why = error.reason.clone().filter(|why| !why.is_empty()).or(Some(modes.join("; ")).filter(|modes| !modes.is_empty()));
        told.extend(why.map(|why| ("gen_ai.evaluation.explanation", why.into())));
        json!({"timeUnixNano": nanos(u64::from(step.step) + 1), "name": EVALUATION_EVENT, "attributes": attributes(told)})
    });
    told.collect()
}

fn chat(sample: &Sample, step: &SampleStep, trace: &str, root: &str) -> Value {
    let model = sample.model_name(step.model.as_deref().unwrap_or("unknown"));
    let input = sample.input(step.step).unwrap_or_default();
    let mut list = attributes([
        ("gen_ai.operation.name", Value::from("chat")),
        ("gen_ai.provider.name", sample.backend.clone().into()),
        ("gen_ai.conversation.id", sample.id.clone().into()),
        ("gen_ai.agent.name", step.agent.as_str().into()),
        ("gen_ai.request.model", model.as_str().into()),
        ("gen_ai.input.messages", parts(input.iter().copied()).to_string().into()),
        ("gen_ai.output.messages", parts(step.output.iter()).to_string().into()),
        ("openinference.span.kind", "LLM".into()),
        ("agent.name", step.agent.as_str().into()),
        ("llm.model_name", model.as_str().into()),
        ("session.id", sample.id.clone().into()),
        ("input.value", Value::from(input.iter().map(|said| message(said)).collect::<Vec<_>>()).to_string().into()),
        ("output.value", spoken(step).into()),
    ]);
    let errors = sample.label.iter().flat_map(|truth| &truth.errors).filter(|error| error.step == Some(step.step));
    list.extend(errors.flat_map(injection));
    list.extend(step.account.iter().flat_map(|account| attributes([("aegis.account", account.as_str().into())])));
    json!({
        "traceId": trace, "spanId": hex(&sample.id, &format!("step {}", step.step), 16), "parentSpanId": root,
        "name": format!("chat {model}"), "kind": 3,
        "startTimeUnixNano": nanos(step.step.into()), "endTimeUnixNano": nanos(u64::from(step.step) + 1),
        "attributes": list, "events": labelled(sample, step), "status": {},
    })
}

fn injection(error: &LabelledError) -> Vec<Value> {
    let modes: Vec<&str> = error.modes().map(|mode| mode.code.as_str()).collect();
    attributes([
        ("aegis.injection.mode", Value::from(modes.join(", "))),
        ("aegis.injection.target", error.agent.as_str().into()),
        ("aegis.injection.applied", error.planted_by().unwrap_or_default().into()),
    ])
}

/// Messages as the conventions have them: role and parts.
fn parts<'a>(messages: impl Iterator<Item = &'a SampleMessage>) -> Value {
    messages
        .map(|said| {
            let spoken = match &said.answers {
                Some(id) => json!({"type": "tool_call_response", "id": id, "response": said.text}),
                None => json!({"type": "text", "content": said.text}),
            };
            let mut parts = vec![spoken];
            parts.extend(said.calls.iter().map(
                |call| json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}),
            ));
            let mut message = json!({"role": said.role, "parts": parts});
            if let (Some(fields), Some(name)) = (message.as_object_mut(), &said.name) {
                fields.insert("name".to_owned(), name.as_str().into());
            }
            message
        })
        .collect()
}

/// Key and value pairs in OTLP's form: 64-bit integers are texts there.
fn attributes<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Vec<Value> {
    pairs
        .into_iter()
        .map(|(key, value)| {
            let mut typed = Map::new();
            match value {
                Value::Number(number) => drop(typed.insert("intValue".to_owned(), number.to_string().into())),
                other => drop(typed.insert("stringValue".to_owned(), other)),
            }
            json!({"key": key, "value": typed})
        })
        .collect()
}

fn nanos(seconds: u64) -> String {
    seconds.saturating_mul(1_000_000_000).to_string()
}
