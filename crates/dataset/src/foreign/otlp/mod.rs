//! OTLP/JSON: spans of the GenAI conventions of OpenTelemetry and of `OpenInference`, as a collector's file exporter, a
//! tracer's own or a trace store writes them: one document or one a line, spans of a trace anywhere among them.

mod ai_sdk;
mod convention;
mod conventions;
mod doubles;
mod former;
mod genai;
mod attributes;
mod langfuse;
mod langgraph;
mod logfire;
mod mlflow;
mod openinference;
mod openllmetry;
mod span;
mod span_tree;
mod tree;

#[cfg(test)]
mod form_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tree_tests;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use self::span::{SpanEvent, TraceSpan, identifier};
use super::{
    ForeignReader, ForeignRun, ForeignTrace, Grouping, TraceAccount, TracePlace,
    field_names::FieldNames,
    fields::{list, text, whole_number},
};
use crate::trajectory::{EVALUATION_EVENT, UnplacedKind};

/// Event and log record that hold what was said, where the span does not.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

/// Reads spans.
#[derive(Debug)]
pub(super) struct OtlpSpans;

impl ForeignTrace for OtlpSpans {
    fn name(&self) -> &'static str {
        "otlp"
    }
    fn description(&self) -> &'static str {
        "OTLP/JSON spans and log records (GenAI conventions present and former, OpenInference, OpenLLMetry, Langfuse, AI SDK, MLflow, Logfire): a run a trace, a step a span of a model call"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl"]
    }
    fn advice(&self, beginning: &[u8]) -> Option<&'static str> {
        // A protobuf message of `ResourceSpans` begins with its field 1.
        (beginning.first() == Some(&0x0a))
            .then_some("this looks like OTLP as protobuf: let the collector's file exporter write `format: json`")
    }
    fn reader(&self, _: &FieldNames) -> Box<dyn ForeignReader> {
        Box::new(SpanReader::default())
    }
}

/// All spans of an import, by trace.
#[derive(Debug, Default)]
pub(super) struct SpanReader {
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
    /// Log records that name a span, by span, each with its time.
    records: Vec<(String, u64, SpanEvent)>,
    /// Log records of the trace that name no span of it.
    events: Vec<SpanEvent>,
    account: TraceAccount,
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
                let trace = ["traceId", "trace_id"]
                    .iter()
                    .find_map(|name| text(value, name))
                    .ok_or("a span has no `traceId`")?;
                let span = TraceSpan::read(value).ok_or("a span has no `spanId`")?;
                self.trace(&identifier(trace), place).spans.push(span);
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
            trace.join_records();
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

    /// Keeps a log record that has a name and says whose trace it is of: an event, written beside the spans.
    fn log(&mut self, record: &Value, place: &TracePlace<'_>) {
        let id = |names: [&str; 2]| names.iter().find_map(|name| text(record, name)).map(identifier);
        let (Some(event), Some(trace)) = (SpanEvent::read(record), id(["traceId", "trace_id"])) else { return };
        let time = ["timeUnixNano", "observedTimeUnixNano"]
            .iter()
            .find_map(|name| whole_number(record.get(*name)?))
            .unwrap_or_default();
        let span = id(["spanId", "span_id"]).unwrap_or_default();
        self.trace(&trace, place).records.push((span, time, event));
    }
}

impl GatheredTrace {
    /// Gives each span the log records that name it, in the order of their times.
    fn join_records(&mut self) {
        let mut records = std::mem::take(&mut self.records);
        records.sort_by_key(|(_, time, _)| *time);
        let places: HashMap<String, usize> =
            self.spans.iter().enumerate().rev().map(|(place, span)| (span.id.clone(), place)).collect();
        for (id, _, event) in records {
            if let Some(span) = places.get(&id).and_then(|place| self.spans.get_mut(*place)) {
                span.happened(event);
                continue;
            }
            if event.name.starts_with("gen_ai.") && event.name != EVALUATION_EVENT {
                let place = format!("log record {} of no span", event.name);
                self.account.cannot_place(&place, UnplacedKind::Event, &event.fields());
            }
            self.events.push(event);
        }
    }

    /// The conversation or session that the trace names.
    fn session(&self) -> Option<String> {
        let names = ["gen_ai.conversation.id", "session.id"];
        self.spans.iter().find_map(|span| names.iter().find_map(|name| span.text(name)).map(str::to_owned))
    }
}
