//! Model calls as instrumentations write them, in OTLP spans: each is imported, and the step that was made of it is what is meant.

use std::{collections::BTreeSet, fs, path::Path};

use aegis::{
    foreign::{self, FieldNames, ForeignOptions, ForeignTrace, Grouping, TracePlace},
    recording,
    surface::{OpenaiChat, account},
    trajectory::{Source, Step, Usage},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    edits, page, planted, reading, requests,
    shapes::{self, Ending, Meant},
};

/// A span of a model call, and what it means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traced {
    /// Its name, one of a kind in its convention.
    pub name: String,
    /// The convention that it is written in.
    pub convention: String,
    /// Who writes it so.
    pub source: String,
    /// Its attributes, as a JSON object.
    attributes: String,
    /// Set where structured attributes are values; else they are texts of JSON.
    #[serde(default)]
    values: bool,
    /// Its events: `name`, `attributes`.
    #[serde(default)]
    events: Vec<String>,
    /// Log records that name it: `name`, `body`.
    #[serde(default)]
    records: Vec<String>,
    /// The spans above it, outermost first: `name`, `attributes`.
    #[serde(default)]
    above: Vec<String>,
    /// What its status says, where that is an error.
    status: Option<String>,
    /// Who made the call, where the trace says so.
    pub agent: Option<String>,
    #[serde(default)]
    asked: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<[String; 3]>,
    finish: Option<String>,
    usage: Option<[u64; 2]>,
    /// How the call ended.
    #[serde(default)]
    pub ending: Ending,
    /// The piece of it that no reader can place.
    pub unplaced: Option<String>,
}

/// What came of a span; an error says what is not as it should be.
pub struct TracedRow {
    /// What was asked and answered.
    pub read: Result<(), String>,
    /// Who made the call.
    pub agent: Result<(), String>,
    /// How it ended.
    pub ended: Result<(), String>,
    /// What could not be placed.
    pub account: Result<(), String>,
}

fn parsed(json: &str, name: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{name}: {error}: {json}"))
}

/// A plain value as OTLP writes it.
fn typed(value: &Value) -> Value {
    let pair = |(key, value): (&String, &Value)| json!({"key": key, "value": typed(value)});
    match value {
        Value::String(said) => json!({"stringValue": said}),
        Value::Number(number) if number.is_u64() => json!({"intValue": number.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::Bool(flag) => json!({"boolValue": flag}),
        Value::Array(all) => json!({"arrayValue": {"values": all.iter().map(typed).collect::<Vec<_>>()}}),
        Value::Object(fields) => json!({"kvlistValue": {"values": fields.iter().map(pair).collect::<Vec<_>>()}}),
        Value::Null => json!({}),
    }
}

impl Traced {
    /// Its name among all cells.
    pub fn key(&self) -> String {
        format!("otlp: {}: {}", self.convention, self.name)
    }

    /// The span, its events and records in plain JSON: here texts are planted.
    fn plain(&self) -> Value {
        let all = |list: &[String]| list.iter().map(|one| parsed(one, &self.name)).collect::<Vec<_>>();
        json!({"attributes": parsed(&self.attributes, &self.name), "events": all(&self.events), "records": all(&self.records)})
    }

    /// Attributes as OTLP writes them. What has a structure is a text of JSON, unless it is a list of words or the shape says so.
    fn attributes(&self, plain: &Value) -> Vec<Value> {
        let is_structured = |value: &Value| match value {
            Value::Array(all) => !all.iter().all(Value::is_string),
            other => other.is_object(),
        };
        let written = |value: &Value| {
            if is_structured(value) && !self.values { typed(&value.to_string().into()) } else { typed(value) }
        };
        let fields = plain.as_object().cloned().unwrap_or_else(Map::new);
        fields.iter().map(|(key, value)| json!({"key": key, "value": written(value)})).collect()
    }

    /// The document that a collector would write.
    fn document(&self, plain: &Value) -> Value {
        let list = |name: &str| plain[name].as_array().cloned().unwrap_or_default();
        let span = |id: &str, parent: &str, name: &str, attributes: Vec<Value>| {
            json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": name, "startTimeUnixNano": "1000000000",
                "endTimeUnixNano": "2000000000", "attributes": attributes})
        };
        let (mut spans, mut parent) = (Vec::new(), String::new());
        for (at, above) in self.above.iter().map(|above| parsed(above, &self.name)).enumerate() {
            let id = format!("above-{at}");
            let name = above["name"].as_str().expect("a name");
            spans.push(span(&id, &parent, name, self.attributes(&above["attributes"])));
            parent = id;
        }
        let mut call = span("c", &parent, "a call", self.attributes(&plain["attributes"]));
        let event = |event: &Value| json!({"name": event["name"], "attributes": self.attributes(&event["attributes"])});
        call["events"] = list("events").iter().map(event).collect();
        if let Some(said) = &self.status {
            call["status"] = json!({"code": 2, "message": said});
        }
        spans.push(call);
        let record = |record: &Value| {
            json!({"traceId": "t", "spanId": "c", "timeUnixNano": "1500000000", "eventName": record["name"],
                "body": typed(&record["body"]), "attributes": []})
        };
        let records: Vec<Value> = list("records").iter().map(record).collect();
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}],
            "resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    }

    /// Imports it, and looks at its one step.
    fn row(&self, dir: &Path) -> TracedRow {
        let (file, logs) = (dir.join("t.json"), dir.join("logs"));
        fs::write(&file, self.document(&self.plain()).to_string()).expect("written");
        let imported = foreign::import(otlp(), &[file], &logs, &ForeignOptions::default()).expect("imports");
        assert!(imported.defects.is_empty() && imported.runs.len() == 1, "{}: {imported:?}", self.name);
        let recording = recording::read(&logs.join(imported.runs[0].run.as_str())).expect("a recording");
        let [step] = &recording.trajectory.steps[..] else { panic!("{}: one step", self.name) };
        TracedRow {
            read: self.read(step),
            agent: self.agent(step),
            ended: self.ended(step),
            account: self.account(step),
        }
    }

    fn read(&self, step: &Step) -> Result<(), String> {
        let attempt = step.last_attempt().expect("an attempt");
        let read = |body: &bytes::Bytes| (!body.is_empty()).then(|| body.clone());
        let asked = read(&step.request).map(|body| reading::request(&OpenaiChat, &body)).transpose()?;
        let offered = asked.iter().flat_map(|asked| &asked.tools).map(|tool| tool.name.as_str()).collect::<Vec<_>>();
        if offered != self.tools {
            return Err(format!("it offers {offered:?}, and {:?} were meant", self.tools));
        }
        let asked = asked.as_ref().map(requests::says).unwrap_or_default();
        let answered = read(&attempt.reply).map(|body| reading::read(&OpenaiChat, &body, false)).transpose()?;
        let answered = answered.as_ref().map(edits::said).unwrap_or_default();
        let said = self.text.clone().unwrap_or_default();
        let is_answered = self.text.is_some() || !self.calls.is_empty();
        let meant = Meant { text: said, calls: self.calls.clone(), finish: self.finish.clone(), call: None };
        let meant: Vec<Meant> = is_answered.then_some(meant).into_iter().collect();
        let usage = self.usage.map(|[input, output]| Usage { input, output });
        if (&asked, &answered, attempt.usage) == (&self.asked, &meant, usage) {
            return Ok(());
        }
        Err(format!(
            "it says {asked:?} {answered:?} {:?}, and {:?} {meant:?} {usage:?} was meant",
            attempt.usage, self.asked
        ))
    }

    fn agent(&self, step: &Step) -> Result<(), String> {
        let named = (step.attribution.source == Source::Trace).then(|| step.attribution.agent.as_str());
        if named == self.agent.as_deref() { Ok(()) } else { Err(format!("the trace names {named:?}")) }
    }

    fn ended(&self, step: &Step) -> Result<(), String> {
        self.ending.holds(step.last_attempt().and_then(|attempt| attempt.ending))
    }

    fn account(&self, step: &Step) -> Result<(), String> {
        let lines = account::of_step(step).lines();
        match (&self.unplaced, &lines[..]) {
            (None, []) => Ok(()),
            (Some(piece), [line]) if line.contains(piece.as_str()) => Ok(()),
            _ => Err(format!("the account is {lines:?}")),
        }
    }
}

fn otlp() -> &'static dyn ForeignTrace {
    *foreign::ALL.iter().find(|format| format.name() == "otlp").expect("a format")
}

fn all() -> Vec<Traced> {
    shapes::read("otlp")
}

/// Cells that are not as they should be.
fn wrong(shapes: &[Traced], rows: &[TracedRow]) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for (shape, row) in shapes.iter().zip(rows) {
        let cells = [("read", &row.read), ("agent", &row.agent), ("ended", &row.ended), ("account", &row.account)];
        for (column, cell) in cells {
            wrong.extend(cell.as_ref().err().map(|why| (format!("{}: {column}", shape.key()), why.clone())));
        }
    }
    wrong
}

#[test]
fn every_shape_of_a_span_is_imported_as_it_is_meant() {
    let shapes = all();
    let mut names = BTreeSet::new();
    for shape in &shapes {
        assert!(names.insert(shape.key()), "two shapes are called `{}`", shape.key());
    }
    assert!(shapes.len() >= 40, "{} shapes", shapes.len());
    let rows: Vec<TracedRow> =
        shapes.iter().map(|shape| shape.row(tempfile::tempdir().expect("a directory").path())).collect();
    page::assert_known(&wrong(&shapes, &rows), |cell| cell.starts_with("otlp: "));
    page::assert_holds("tests/shapes/SHAPES.md", "traces", &page::trace_table(&shapes, &rows));
}

/// Names below which nothing stands that was asked or answered: settings, counts, tools on offer.
const BESIDE: &[&str] = &[
    "ai.prompt.tools",
    "gen_ai.tool.definitions",
    "langfuse.observation.usage_details",
    "llm.invocation_parameters",
    "llm.request.functions.0.parameters",
    "llm.tools.0.tool.json_schema",
    "metadata",
    "mlflow.chat.tokenUsage",
    "tools",
    "usage",
];

/// Whether a text at this place of a plain shape is one that a call may say.
fn is_said(plain: &Value, place: &str) -> bool {
    let (at, _) = place.split_once(' ').unwrap_or((place, ""));
    let mut keys = at.split('/').skip(1);
    let within = match (keys.next(), keys.next(), keys.next()) {
        (Some("events"), Some(number), Some("attributes")) => {
            plain["events"][number.parse::<usize>().expect("a number")]["name"] != "exception"
        }
        (Some("attributes"), ..) | (Some("records"), Some(_), Some("body")) => true,
        _ => false,
    };
    let is_blob = plain.pointer(at).is_some_and(|value| value["type"] == "blob");
    within && !is_blob && !at.split('/').any(|key| BESIDE.contains(&key))
}

/// Whether the call of a document says the planted text, or its account names a piece.
fn is_accounted(document: &Value) -> bool {
    let mut reader = otlp().reader(&FieldNames::default());
    let place = TracePlace { file: "t.json", number: 0, line: None, beside: None };
    reader.take(document, &place).expect("OTLP");
    let runs = reader.finish(Grouping::Trace);
    let calls = runs.iter().flat_map(|run| &run.calls);
    calls.into_iter().any(|call| {
        !call.unplaced.is_empty() || format!("{:?} {:?}", call.request, call.answer).contains(planted::MARKER)
    })
}

#[test]
fn a_text_planted_in_a_span_is_read_or_named_by_its_call() {
    let (mut count, mut silent) = (0, Vec::new());
    for shape in all().iter().filter(|shape| shape.unplaced.is_none()) {
        let plain = shape.plain();
        let mut all: Vec<(String, Value)> =
            planted::planted(&plain).into_iter().filter(|(place, _)| is_said(&plain, place)).collect();
        let mut event = plain.clone();
        let said = json!({"name": "acme.event", "attributes": {"words": planted::MARKER}});
        event["events"].as_array_mut().expect("a list").push(said);
        all.push(("an event".to_owned(), event));
        // Beside each attribute of a list of messages.
        for name in plain["attributes"]
            .as_object()
            .expect("attributes")
            .keys()
            .filter(|name| name.split('.').next_back() == Some("role"))
        {
            let mut member = plain.clone();
            member["attributes"][name.replace(".role", ".annex")] = planted::MARKER.into();
            all.push((name.clone(), member));
        }
        for (place, planted) in all {
            count += 1;
            if !is_accounted(&shape.document(&planted)) {
                silent.push(format!("{}: {place}", shape.key()));
            }
        }
    }
    assert!(silent.is_empty(), "of {count} documents:\n{}", silent.join("\n"));
    assert!(count > 500, "{count} documents");
}
