//! Langfuse's JSON: a trace with its observations as the page's download and `GET /api/public/traces/ID` write it, lists of
//! observations as `GET /api/public/observations` and batch exports do. An observation is a span of Langfuse's own
//! convention, so that agents, doubles and what has no place are told as of spans.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    ForeignReader, ForeignRun, ForeignTrace, Grouping, TracePlace,
    field_names::FieldNames,
    fields::{list, text, time},
    otlp::SpanReader,
    scored,
};
use crate::trajectory::Verdict;

/// Fields of an observation that are read, or known to hold nothing that was said.
const KNOWN: &[&str] = &[
    "id",
    "traceId",
    "startTime",
    "endTime",
    "parentObservationId",
    "type",
    "name",
    "level",
    "statusMessage",
    "input",
    "output",
    "metadata",
    "model",
    "modelParameters",
    "usage",
    "usageDetails",
    "costDetails",
    "version",
    "environment",
    "sessionId",
    "userId",
    "tags",
    "scores",
    "promptName",
    "promptId",
    "promptVersion",
    "projectId",
    "createdAt",
    "updatedAt",
    "release",
    "traceName",
    "completionStartTime",
    "modelId",
    "internalModelId",
    "providedModelName",
    "toolDefinitions",
    "toolCalls",
    "toolCallNames",
    "usagePricingTierName",
    "usagePricingTierId",
    "comments",
    "trace",
];

/// Reads exports.
#[derive(Debug)]
pub(super) struct LangfuseExport;

impl ForeignTrace for LangfuseExport {
    fn name(&self) -> &'static str {
        "langfuse"
    }
    fn description(&self) -> &'static str {
        "Langfuse's JSON export: traces with observations, or lists of observations; a run a trace, a step a generation"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl"]
    }
    fn reader(&self, _: &FieldNames) -> Box<dyn ForeignReader> {
        Box::new(ExportReader::default())
    }
}

#[derive(Debug, Default)]
struct ExportReader {
    spans: SpanReader,
    /// What scores say, by trace.
    outcomes: BTreeMap<String, (Verdict, String)>,
}

impl ForeignReader for ExportReader {
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let document = camel(document);
        // A page of the API, whatever it lists.
        let listed = document.get("data").and_then(Value::as_array);
        if let Some(listed) = listed.filter(|_| document.get("meta").is_some() || document.get("type").is_none()) {
            return listed.iter().try_for_each(|one| self.add_document(one, place));
        }
        self.add_document(&document, place)
    }

    fn finish(self: Box<Self>, grouping: Grouping) -> Vec<ForeignRun> {
        let Self { spans, mut outcomes } = *self;
        let mut runs = Box::new(spans).finish(grouping);
        for run in &mut runs {
            run.requests = "what the generations were given";
            run.outcome = outcomes.remove(&run.key).or(run.outcome.take());
        }
        runs
    }
}

impl ExportReader {
    /// A trace with its observations, or one observation.
    fn add_document(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let trace = &camel(document.get("trace").filter(|trace| trace.is_object()).unwrap_or(document));
        let observed = ["observations", "observation"]
            .iter()
            .find_map(|name| document.get(*name).or_else(|| trace.get(*name)).and_then(Value::as_array));
        if let Some(observed) = observed {
            let id = text(trace, "id").or_else(|| text(observed.first()?, "traceId"));
            let id = id.ok_or("the trace has no `id`")?;
            if observed.iter().any(Value::is_string) {
                return Err("the trace names its observations and does not hold them: fetch it by its id, or export \
                            observations"
                    .to_owned());
            }
            let scores =
                if list(document, "scores").is_empty() { list(trace, "scores") } else { list(document, "scores") };
            self.outcomes.extend(outcome(scores).map(|told| (id.to_owned(), told)));
            let spans = observed.iter().map(|one| span(one, id, Some(trace))).collect::<Result<Vec<_>, _>>()?;
            return self.spans.take(&otlp(&spans), place);
        }
        let id = text(document, "traceId").filter(|_| document.get("type").is_some());
        let id = id.ok_or(
            "no Langfuse export: expected a trace with `observations`, or observations with `traceId` and `type`",
        )?;
        self.spans.take(&otlp(&[span(document, id, None)?]), place)
    }
}

fn otlp(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

/// An observation as a span of Langfuse's convention. `trace`: what it is of, for one that is nobody's child.
fn span(observation: &Value, id: &str, trace: Option<&Value>) -> Result<Value, String> {
    let observation = camel(observation);
    let own = text(&observation, "id").ok_or("an observation has no `id`")?;
    let parent = text(&observation, "parentObservationId");
    let mut fields = Map::new();
    let mut give = |name: &str, value: Option<&Value>| {
        fields.extend(value.filter(|value| !value.is_null()).map(|value| (format!("langfuse.{name}"), value.clone())));
    };
    let kind = text(&observation, "type").unwrap_or("span").to_ascii_lowercase();
    give("observation.type", Some(&kind.into()));
    give("observation.input", observation.get("input"));
    give("observation.output", observation.get("output"));
    give("observation.model.name", ["model", "providedModelName"].iter().find_map(|name| observation.get(*name)));
    let counts = ["usageDetails", "usage"]
        .iter()
        .filter_map(|name| observation.get(*name))
        .find(|counts| counts.as_object().is_some_and(|counts| !counts.is_empty()));
    give("observation.usage_details", counts);
    let session = trace.and_then(|trace| trace.get("sessionId")).or_else(|| observation.get("sessionId"));
    give("session", session);
    let metadata = structured(observation.get("metadata"));
    for (name, value) in metadata.as_object().into_iter().flatten() {
        give(&format!("observation.metadata.{name}"), Some(value));
    }
    if parent.is_none() {
        give("trace.input", trace.and_then(|trace| trace.get("input")));
    }
    if let Some(session) = fields.remove("langfuse.session") {
        fields.insert("session.id".to_owned(), session);
    }
    let unknown = observation.as_object().into_iter().flatten().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    fields.extend(unknown.map(|(name, value)| (format!("observation.{name}"), value.clone())));
    let failed = text(&observation, "level") == Some("ERROR");
    Ok(json!({
        "traceId": id, "spanId": own, "parentSpanId": parent, "name": text(&observation, "name").unwrap_or_default(),
        "startTimeUnixNano": time(&observation, "startTime"), "endTimeUnixNano": time(&observation, "endTime"),
        "attributes": fields,
        "status": {"code": if failed { 2 } else { 0 }, "message": text(&observation, "statusMessage")},
    }))
}

/// What scores of a whole trace say: marks and flags. A number has a scale that nobody knows, and is evidence alone.
fn outcome(scores: &[Value]) -> Option<(Verdict, String)> {
    let scores: Vec<Value> = scores.iter().map(camel).collect();
    let of_run = scores.iter().filter(|score| text(score, "observationId").is_none());
    let read = |score: &Value| {
        let name = text(score, "name").unwrap_or("score").to_owned();
        let flag = text(score, "dataType") == Some("BOOLEAN");
        let value = score.get("value").cloned().unwrap_or_default();
        let mark = text(score, "stringValue").map(Value::from).or_else(|| flag.then(|| value.clone()));
        (name, mark.or_else(|| value.as_str().map(Value::from)), value)
    };
    let read: Vec<_> = of_run.map(read).collect();
    let marks: Vec<(String, Value)> =
        read.iter().filter_map(|(name, mark, _)| Some((name.clone(), mark.clone()?))).collect();
    let numbers: Vec<(String, Value)> = read.into_iter().map(|(name, _, value)| (name, value)).collect();
    scored::together(&marks, "score")
        .or_else(|| scored::together(&numbers, "score").map(|(_, told)| (Verdict::Unknown, told)))
}

/// JSON that may be written as a text.
fn structured(value: Option<&Value>) -> Value {
    match value {
        Some(Value::String(said)) => serde_json::from_str(said).unwrap_or_default(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// Names as the API has them: files that Langfuse writes to a store have `trace_id` for `traceId`.
fn camel(value: &Value) -> Value {
    let Some(fields) = value.as_object() else { return value.clone() };
    let name = |name: &String| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |whole, word| {
            let mut letters = word.chars();
            let head = letters.next().map(|letter| letter.to_ascii_uppercase());
            whole + &head.into_iter().chain(letters).collect::<String>()
        })
    };
    fields.iter().map(|(key, value)| (name(key), value.clone())).collect::<Map<_, _>>().into()
}
