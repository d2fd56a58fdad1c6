//! Spans and log records for the tests, and what is read of them in short.

use serde_json::{Map, Value, json};

use super::{ForeignReader, ForeignRun, Grouping, SpanReader, TracePlace};
use crate::foreign::ForeignCall;

pub(super) fn typed(value: &Value) -> Value {
    match value {
        Value::String(said) => json!({"stringValue": said}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(all) => json!({"arrayValue": {"values": all.iter().map(typed).collect::<Vec<_>>()}}),
        Value::Object(fields) => json!({"kvlistValue": {"values": pairs(fields)}}),
        Value::Bool(flag) => json!({"boolValue": flag}),
        Value::Null => json!({}),
    }
}

pub(super) fn pairs(fields: &Map<String, Value>) -> Value {
    fields.iter().map(|(key, value)| json!({"key": key, "value": typed(value)})).collect()
}

pub(super) fn attributes(fields: &Value) -> Value {
    fields.as_object().map_or(json!([]), pairs)
}

/// A span: id, parent, name, attributes. Structured values that tracers write as texts are texts here too.
pub(super) fn span(id: &str, parent: &str, name: &str, fields: &Value) -> Value {
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name, "startTimeUnixNano": "1",
        "endTimeUnixNano": "2", "attributes": attributes(fields)})
}

pub(super) fn with_events(mut span: Value, events: &[(&str, Value)]) -> Value {
    span["events"] =
        events.iter().map(|(name, fields)| json!({"name": name, "attributes": attributes(fields)})).collect();
    span
}

pub(super) fn with_status(mut span: Value, code: u32) -> Value {
    span["status"] = json!({"code": code, "message": "it broke"});
    span
}

pub(super) fn record(name: &str, body: &Value) -> Value {
    json!({"traceId": "t", "spanId": "c", "timeUnixNano": "1", "eventName": name, "body": typed(body), "attributes": []})
}

pub(super) fn read(spans: &[Value], records: &[Value]) -> ForeignRun {
    let document = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}],
        "resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let mut reader = Box::new(SpanReader::default());
    let place = TracePlace { file: "t.json", number: 0, line: None, beside: None };
    reader.take(&document, &place).expect("OTLP");
    reader.finish(Grouping::Trace).pop().expect("a run")
}

pub(super) fn request_texts(call: &ForeignCall) -> Vec<String> {
    let messages = call.request.iter().flat_map(|request| &request.messages);
    let line = |message: &std::sync::Arc<crate::surface::Message>| {
        let calls: Vec<String> =
            message.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
        let answers = message.answers_call.as_ref().map(|id| format!("<{id}")).unwrap_or_default();
        format!("{:?}{answers} {}{}", message.role, message.text(), calls.join("")).replace(": ", ":")
    };
    messages.map(line).collect()
}

pub(super) fn answered(call: &ForeignCall) -> Option<String> {
    let message = &call.answer.as_ref()?.message;
    let calls: Vec<String> = message.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
    Some(format!("{}{}", message.text(), calls.join("")))
}

pub(super) fn names(run: &ForeignRun) -> Vec<&str> {
    run.calls.iter().map(|call| call.agent.as_ref().map_or("", |agent| agent.name.as_str())).collect()
}

pub(super) fn text(value: &Value) -> String {
    value.to_string()
}

/// All attributes of several.
pub(super) fn joined(all: &[Value]) -> Value {
    Value::Object(
        all.iter().filter_map(Value::as_object).flatten().map(|(key, value)| (key.clone(), value.clone())).collect(),
    )
}
