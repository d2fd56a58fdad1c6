//! OTLP/JSON: spans of the GenAI conventions of OpenTelemetry and of `OpenInference`, as a collector's file exporter, a
//! tracer's own or a trace store writes them: one document or one a line, spans of a trace anywhere among them.

mod genai;
mod openinference;
mod span;
mod tree;

use std::collections::BTreeMap;

use serde_json::Value;

use self::span::{TraceSpan, attributes};
use super::{
    ForeignReader, ForeignRun, ForeignTrace, Grouping, TracePlace,
    fields::{list, text},
};

/// Event and log record that hold what was said, where the span does not.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

/// Reads spans.
#[derive(Debug)]
pub(super) struct OtlpSpans;

impl ForeignTrace for OtlpSpans {
    fn name(&self) -> &'static str {
        "otlp"
    }
    fn about(&self) -> &'static str {
        "OTLP/JSON spans with GenAI or OpenInference attributes: a run a trace, a step a span of a model call"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl"]
    }
    fn advice(&self, beginning: &[u8]) -> Option<&'static str> {
        // A protobuf message of `ResourceSpans` begins with its field 1.
        (beginning.first() == Some(&0x0a))
            .then_some("this looks like OTLP as protobuf: let the collector's file exporter write `format: json`")
    }
    fn reader(&self) -> Box<dyn ForeignReader> {
        Box::new(SpanReader::default())
    }
}

/// All spans of an import, by trace.
#[derive(Debug, Default)]
struct SpanReader {
    traces: BTreeMap<String, GatheredTrace>,
    /// The order in which traces were first seen.
    order: Vec<String>,
}

/// The spans of one trace.
#[derive(Debug, Default)]
struct GatheredTrace {
    id: String,
    file: (usize, String),
    spans: Vec<TraceSpan>,
    /// Attributes that log records hold of spans, by span.
    details: Vec<(String, BTreeMap<String, Value>)>,
}

impl ForeignReader for SpanReader {
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let resources = ["resourceSpans", "batches"].iter().find_map(|name| document.get(*name)?.as_array());
        let logs = document.get("resourceLogs").and_then(Value::as_array);
        if resources.is_none() && logs.is_none() {
            if document.get("resourceMetrics").is_some() {
                return Ok(());
            }
            return Err("no OTLP/JSON: expected an object with `resourceSpans`".to_owned());
        }
        for scope in resources.into_iter().flatten().flat_map(|resource| {
            ["scopeSpans", "instrumentationLibrarySpans"].into_iter().flat_map(|name| list(resource, name))
        }) {
            for value in list(scope, "spans") {
                let trace = text(value, "traceId").ok_or("a span has no `traceId`")?;
                let span = TraceSpan::read(value).ok_or("a span has no `spanId`")?;
                self.trace(trace, place).spans.push(span);
            }
        }
        for scope in logs.into_iter().flatten().flat_map(|resource| list(resource, "scopeLogs")) {
            for record in list(scope, "logRecords") {
                self.log(record, place);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, grouping: Grouping) -> Vec<ForeignRun> {
        let Self { mut traces, order } = *self;
        let ordered = order.iter().filter_map(|id| traces.remove(id));
        let mut groups: Vec<(String, Vec<GatheredTrace>)> = Vec::new();
        // Files may have equal names, and are told apart by their numbers.
        let mut places: BTreeMap<(usize, String), usize> = BTreeMap::new();
        for mut trace in ordered.filter(|trace| !trace.spans.is_empty()) {
            for (span, details) in std::mem::take(&mut trace.details) {
                let spans = trace.spans.iter_mut().filter(|known| known.id == span);
                spans.for_each(|known| known.add(&details));
            }
            let key = match grouping {
                Grouping::Trace => (0, trace.id.clone()),
                Grouping::Session => (0, trace.session().unwrap_or_else(|| trace.id.clone())),
                Grouping::File => trace.file.clone(),
            };
            let place = *places.entry(key.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, group)) => group.push(trace),
                None => groups.push((key.1, vec![trace])),
            }
        }
        groups.into_iter().map(|(key, traces)| tree::run(key, traces)).collect()
    }
}

impl SpanReader {
    fn trace(&mut self, id: &str, place: &TracePlace<'_>) -> &mut GatheredTrace {
        let order = &mut self.order;
        self.traces.entry(id.to_owned()).or_insert_with(|| {
            order.push(id.to_owned());
            GatheredTrace { id: id.to_owned(), file: (place.number, place.file.to_owned()), ..GatheredTrace::default() }
        })
    }

    /// What a log record says of a span, if it is one that holds messages.
    fn log(&mut self, record: &Value, place: &TracePlace<'_>) {
        let attributes = attributes(record);
        let named = text(record, "eventName").or_else(|| attributes.get("event.name")?.as_str());
        if let (Some(DETAILS), Some(trace), Some(span)) = (named, text(record, "traceId"), text(record, "spanId")) {
            let span = span.to_owned();
            self.trace(trace, place).details.push((span, attributes));
        }
    }
}

impl GatheredTrace {
    /// The conversation or session that the trace names.
    fn session(&self) -> Option<String> {
        let names = ["gen_ai.conversation.id", "session.id"];
        self.spans.iter().find_map(|span| names.iter().find_map(|name| span.text(name)).map(str::to_owned))
    }
}
