//! A call as a span, in the words of OpenTelemetry's GenAI conventions (semantic-conventions-genai v0.1.0) and, for what they have no words for, of `OpenInference`; what only Aegis knows stands under `aegis.*`.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value as Any},
    trace::v1::{
        Span, Status,
        span::{Event, SpanKind},
        status::StatusCode,
    },
};
use serde_json::{Value, json};

use super::{ClosedCall, closed::ClosedBodies};
use crate::{
    recording::Redactor,
    surface::{Conversation, Message, Part, Reply, Role, Surface, door},
    trajectory::{
        Attribution, Call, CallEnding, CloseCause, EVALUATION_EVENT, Outcome, RunId, StepIndex, Usage, Verdict,
    },
};

/// What spans say.
#[derive(Debug, Clone)]
pub struct SpanSettings {
    /// Whether they hold what was asked and answered.
    pub content: bool,
    /// Masks keys in it.
    pub redactor: Redactor,
    /// Where the calls go: host and port.
    pub upstream: String,
}

/// A call that waits to become a span.
#[derive(Debug)]
pub(super) struct SpannedCall {
    run: RunId,
    step: StepIndex,
    call: Call,
    attempt: u32,
    attribution: Attribution,
    surface: Option<&'static dyn Surface>,
    cause: CloseCause,
    ending: CallEnding,
    status: Option<u16>,
    usage: Option<Usage>,
    streamed: bool,
    first_byte_us: Option<u64>,
    last_byte_us: u64,
    ended: SystemTime,
    bodies: ClosedBodies,
}

impl SpannedCall {
    pub(super) fn from_closed(call: &ClosedCall<'_>, bodies: ClosedBodies) -> Self {
        Self {
            run: call.run.clone(),
            step: call.step,
            call: call.call,
            attempt: call.attempt,
            attribution: call.attribution.clone(),
            surface: call.surface,
            cause: call.cause,
            ending: call.ending,
            status: call.status,
            usage: call.usage,
            streamed: call.streamed,
            first_byte_us: call.first_byte_us,
            last_byte_us: call.last_byte_us,
            ended: SystemTime::now(),
            bodies,
        }
    }

    /// Bytes of its bodies.
    pub(super) fn length(&self) -> usize {
        self.bodies.request.len() + self.bodies.answered.len()
    }

    fn request(&self) -> Option<Conversation> {
        door::request_at(self.surface?, &self.bodies.target, &self.bodies.request).ok()
    }

    fn answered(&self) -> Option<Reply> {
        let surface = self.surface.filter(|_| !self.ending.is_error())?;
        let body = &self.bodies.answered;
        door::reply(surface, body, self.streamed).ok()
    }

    /// The first bytes of a hash of what the span is: an exported recording has the same ids.
    fn id(&self) -> Vec<u8> {
        let what = match self.attempt {
            0 => format!("step {}", self.step),
            again => format!("step {} attempt {again}", self.step),
        };
        hashed(&self.run, &what, 8)
    }
}

/// A run that waits to become a span.
#[derive(Debug)]
pub(super) struct SpannedRun {
    pub(super) run: RunId,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) outcome: Outcome,
}

/// So many bytes of the hash of what is named, in a run.
fn hashed(run: &RunId, what: &str, bytes: usize) -> Vec<u8> {
    let hash = blake3::hash(format!("{what}\n{run}").as_bytes());
    hash.as_bytes().get(..bytes).unwrap_or_default().to_vec()
}

/// The span of a call.
pub(super) fn call(call: &SpannedCall, settings: &SpanSettings) -> Span {
    let (asked, answered) = (call.request(), call.answered());
    let operation = match &asked {
        Some(asked) if asked.vectors.is_some() => "embeddings",
        _ if call.surface.is_some_and(|surface| surface.name() == "openai_completions") => "text_completion",
        _ => "chat",
    };
    let model = asked.as_ref().map_or("", |asked| asked.model.as_str());
    let failed = !call.ending.is_answered();
    let mut attributes = attributes(call, operation, settings);
    if let Some(asked) = &asked {
        attributes.extend(requested(asked));
    }
    if let Some(answered) = &answered {
        attributes.extend(responded(answered));
    }
    if let Some(usage) = call.usage {
        attributes.push(count_attribute("gen_ai.usage.input_tokens", usage.input));
        attributes.push(count_attribute("gen_ai.usage.output_tokens", usage.output));
    }
    if failed {
        let error = match (call.cause, call.status) {
            (CloseCause::Complete, Some(status)) if status >= 400 => status.to_string(),
            (CloseCause::Complete, _) => call.ending.name().to_owned(),
            (cause, _) => cause.name().to_owned(),
        };
        attributes.push(string_attribute("error.type", error));
    }
    if settings.content {
        attributes.extend(content(asked.as_ref(), answered.as_ref(), &settings.redactor));
    }
    let began = call.ended.checked_sub(Duration::from_micros(call.last_byte_us)).unwrap_or(call.ended);
    Span {
        trace_id: hashed(&call.run, "trace", 16),
        span_id: call.id(),
        parent_span_id: hashed(&call.run, "run", 8),
        name: format!("{operation} {model}").trim_end().to_owned(),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: nanos(began),
        end_time_unix_nano: nanos(call.ended),
        attributes,
        status: Some(status(failed, String::new())),
        ..Span::default()
    }
}

/// The span of a run, which those of its calls hang from.
pub(super) fn run(told: &SpannedRun) -> Span {
    let SpannedRun { run, began, ended, outcome } = told;
    let verdict = match outcome.verdict {
        Verdict::Success => "success",
        Verdict::Failure => "failure",
        Verdict::Unknown => "unknown",
    };
    Span {
        trace_id: hashed(run, "trace", 16),
        span_id: hashed(run, "run", 8),
        name: format!("invoke_workflow {run}"),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(*began),
        end_time_unix_nano: nanos(*ended),
        attributes: vec![
            string_attribute("gen_ai.operation.name", "invoke_workflow".into()),
            // The conventions name a workflow as they name an agent.
            string_attribute("gen_ai.agent.name", run.to_string()),
            string_attribute("gen_ai.conversation.id", run.to_string()),
            string_attribute("openinference.span.kind", "CHAIN".into()),
            string_attribute("session.id", run.to_string()),
            string_attribute("aegis.outcome", verdict.into()),
        ],
        events: evaluation(outcome, nanos(*ended)).into_iter().collect(),
        status: Some(status(outcome.verdict == Verdict::Failure, outcome.evidence.clone())),
        ..Span::default()
    }
}

/// What the run achieved, as the conventions have it; `None` where that is not known.
fn evaluation(outcome: &Outcome, time_unix_nano: u64) -> Option<Event> {
    let score = outcome.verdict.score()?;
    let mut attributes = vec![
        string_attribute("gen_ai.evaluation.name", "outcome".into()),
        string_attribute("gen_ai.evaluation.score.label", score.label.into()),
        keyed("gen_ai.evaluation.score.value", Any::DoubleValue(score.value.into())),
    ];
    attributes.extend(
        (!outcome.evidence.is_empty())
            .then(|| string_attribute("gen_ai.evaluation.explanation", outcome.evidence.clone())),
    );
    Some(Event { time_unix_nano, name: EVALUATION_EVENT.to_owned(), attributes, ..Event::default() })
}

/// What is known of a call without its bodies.
fn attributes(call: &SpannedCall, operation: &str, settings: &SpanSettings) -> Vec<KeyValue> {
    let provider = match call.surface.map(Surface::name) {
        Some("anthropic_messages") => "anthropic",
        Some(name) if name.starts_with("gemini_") => "gcp.gemini",
        Some(_) => "openai",
        None => "unknown",
    };
    let (host, port) = settings.upstream.rsplit_once(':').unwrap_or((&settings.upstream, ""));
    let mut attributes = vec![
        string_attribute("gen_ai.operation.name", operation.into()),
        string_attribute("gen_ai.provider.name", provider.into()),
        string_attribute("gen_ai.conversation.id", call.run.to_string()),
        string_attribute("gen_ai.agent.name", call.attribution.agent.to_string()),
        string_attribute("openinference.span.kind", if operation == "embeddings" { "EMBEDDING" } else { "LLM" }.into()),
        string_attribute("session.id", call.run.to_string()),
        string_attribute("aegis.run", call.run.to_string()),
        count_attribute("aegis.step", call.step.into()),
        count_attribute("aegis.call", call.call.into()),
        count_attribute("aegis.attempt", call.attempt.into()),
        count_attribute("aegis.agent.instance", call.attribution.instance.into()),
        keyed("aegis.agent.confidence", Any::DoubleValue(call.attribution.confidence.into())),
        keyed("aegis.agent.ambiguous", Any::BoolValue(call.attribution.ambiguous)),
        string_attribute("server.address", host.to_owned()),
    ];
    attributes.extend(port.parse().ok().map(|port| count_attribute("server.port", port)));
    attributes.extend(call.status.map(|status| count_attribute("http.response.status_code", status.into())));
    let first = call.first_byte_us.map(|first| Duration::from_micros(first).as_secs_f64());
    attributes.extend(
        first
            .filter(|_| call.streamed)
            .map(|first| keyed("gen_ai.response.time_to_first_chunk", Any::DoubleValue(first))),
    );
    attributes
}

fn requested(asked: &Conversation) -> Vec<KeyValue> {
    let mut attributes = vec![string_attribute("gen_ai.request.model", asked.model.clone())];
    let double = |name, value: Option<f64>| value.map(|value| keyed(name, Any::DoubleValue(value)));
    attributes.extend(double("gen_ai.request.temperature", asked.sampling.temperature));
    attributes.extend(double("gen_ai.request.top_p", asked.sampling.top_p));
    attributes.extend(asked.sampling.seed.map(|seed| keyed("gen_ai.request.seed", Any::IntValue(seed))));
    attributes.extend(asked.max_tokens.map(|most| count_attribute("gen_ai.request.max_tokens", most)));
    attributes.extend(
        Some(asked.choices).filter(|n| *n > 1).map(|n| count_attribute("gen_ai.request.choice.count", n.into())),
    );
    if !asked.stop.is_empty() {
        attributes.push(listed("gen_ai.request.stop_sequences", asked.stop.iter().cloned()));
    }
    attributes
}

fn responded(answered: &Reply) -> Vec<KeyValue> {
    let text = |name, text: &String| Some(string_attribute(name, text.clone())).filter(|_| !text.is_empty());
    let mut attributes = Vec::new();
    attributes.extend(text("gen_ai.response.id", &answered.id));
    attributes.extend(text("gen_ai.response.model", &answered.model));
    let reasons: Vec<String> = answered.answers.iter().filter_map(|answer| answer.finish_reason.clone()).collect();
    if !reasons.is_empty() {
        attributes.push(listed("gen_ai.response.finish_reasons", reasons.into_iter()));
    }
    attributes
}

/// What was asked and answered, with keys masked.
fn content(asked: Option<&Conversation>, answered: Option<&Reply>, redactor: &Redactor) -> Vec<KeyValue> {
    let text = |value: &Value| redactor.text(&value.to_string()).into_owned();
    let mut attributes = Vec::new();
    if let Some(asked) = asked {
        let messages: Value = asked.messages.iter().map(|message| message_value(message, None)).collect();
        attributes.push(string_attribute("gen_ai.input.messages", text(&messages)));
        attributes.push(string_attribute("input.value", text(&messages)));
        if !asked.tools.is_empty() {
            let tool = |tool: &crate::surface::Tool| json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters});
            let tools: Value = asked.tools.iter().map(tool).collect();
            attributes.push(string_attribute("gen_ai.tool.definitions", text(&tools)));
        }
    }
    if let Some(answered) = answered {
        let messages: Value = answered
            .answers
            .iter()
            .map(|answer| message_value(&answer.message, answer.finish_reason.as_deref()))
            .collect();
        attributes.push(string_attribute("gen_ai.output.messages", text(&messages)));
        let first = answered.answers.first().map(|answer| answer.message.text()).unwrap_or_default();
        attributes.push(string_attribute("output.value", redactor.text(&first).into_owned()));
    }
    attributes
}

/// A message as the conventions have it: role and parts.
fn message_value(message: &Message, finish: Option<&str>) -> Value {
    let role = match message.role {
        Role::System | Role::Developer => "system",
        Role::User | Role::Other => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut parts: Vec<Value> = match &message.answers_call {
        Some(id) => vec![json!({"type": "tool_call_response", "id": id, "response": message.text()})],
        None => message
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => json!({"type": "text", "content": text}),
                Part::Opaque(kind) => json!({"type": kind}),
            })
            .collect(),
    };
    parts.extend(message.tool_calls.iter().map(|call| {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
        json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    }));
    let mut said = json!({"role": role, "parts": parts});
    if let Some(fields) = said.as_object_mut() {
        fields.extend(message.name.as_ref().map(|name| ("name".to_owned(), name.as_str().into())));
        fields.extend(finish.map(|finish| ("finish_reason".to_owned(), finish.into())));
    }
    said
}

fn status(failed: bool, message: String) -> Status {
    let code = if failed { StatusCode::Error } else { StatusCode::Unset };
    Status { message, code: code.into() }
}

pub(super) fn string_attribute(key: &str, value: String) -> KeyValue {
    let masked = match Redactor::of_process().text(&value) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    };
    keyed(key, Any::StringValue(masked.unwrap_or(value)))
}

fn count_attribute(key: &str, value: u64) -> KeyValue {
    keyed(key, Any::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn listed(key: &str, values: impl Iterator<Item = String>) -> KeyValue {
    let values = values.map(|value| AnyValue { value: Some(Any::StringValue(value)) }).collect();
    keyed(key, Any::ArrayValue(ArrayValue { values }))
}

fn keyed(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
