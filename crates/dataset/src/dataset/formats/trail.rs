//! TRAIL (Patronus AI, 2025): `data/SET/TRACE.json`, a tree of `OpenInference` spans, and
//! `processed_annotations_SET/TRACE.json`, its errors by span. Each span is a step, parents first; each error is one of the
//! label, by the agent in whose span it lies.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, spoken_step, text_message, unknown_fields},
    published::{PublishedError, PublishedRun, as_text, decoded, own_mode, read_companion},
};
use crate::{
    dataset::{Input, Sample, SampleStep, Task},
    trajectory::Verdict,
};

/// The name in `extra.format`, and of the code book.
const NAME: &str = "trail";
/// What directories of annotations begin with.
const ANNOTATIONS: &str = "processed_annotations";
/// How far above a trace its annotations are looked for.
const ABOVE: usize = 3;
/// How deep spans may lie in each other.
const DEEPEST: usize = 100;
/// What speaks where no span of an agent is around it.
const NOBODY: &str = "agent";
/// The attribute that says what a span is of.
const KIND: &str = "openinference.span.kind";

/// Whether a file holds annotations, which are read with their trace.
pub(super) fn is_annotation(path: &Path) -> bool {
    let dir = path.parent().and_then(Path::file_name);
    dir.is_some_and(|dir| dir.to_string_lossy().starts_with(ANNOTATIONS))
}

/// Reads a trace, and its annotations beside it.
pub(super) fn read(value: &Value, stem: &str, path: &Path, defects: &mut Defects) -> Option<Sample> {
    let (Some(fields), Some(spans)) = (value.as_object(), value.get("spans").and_then(Value::as_array)) else {
        defects.add("wrong-shape", "`spans` is no list");
        return None;
    };
    let Some(annotations) = annotations(path) else {
        defects.add("missing-file", format!("no `{ANNOTATIONS}…/{stem}.json` in the directories above the trace"));
        return None;
    };
    let annotated = read_companion(&annotations, defects)?;
    let Some(told) = annotated.get("errors").and_then(Value::as_array) else {
        defects.add("wrong-shape", "`errors` of the annotations is no list");
        return None;
    };
    let mut walk = SpanWalk { steps: Vec::new(), places: BTreeMap::new(), question: None };
    if !walk.add_spans(spans, NOBODY, 0, defects) {
        defects.add("wrong-shape", "a span has no `span_id`, or spans lie too deep in each other");
        return None;
    }
    let errors: Vec<PublishedError> = told.iter().filter_map(|error| walk.error(error, defects)).collect();
    let mut extra = unknown_fields(fields, &["spans", "trace_id"], defects);
    extra.extend(annotated.get("scores").map(|scores| ("scores".to_owned(), scores.clone())));
    let set = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    extra.insert("set".to_owned(), set.into());
    let id = fields.get("trace_id").and_then(Value::as_str).unwrap_or(stem);
    let run = PublishedRun {
        id: format!("{NAME}-{id}"),
        format: NAME,
        system: String::new(),
        task: Task { id: format!("{NAME}-{id}"), question: walk.question.unwrap_or_default(), ..Task::default() },
        // The set does not say whether a run solved its task.
        outcome: if errors.is_empty() { Verdict::Unknown } else { Verdict::Failure },
        final_answer: String::new(),
        steps: walk.steps,
        extra,
    };
    Some(run.sample(errors, "human", defects))
}

/// The annotations of a trace: the file of its name in a directory of annotations.
fn annotations(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    path.ancestors().skip(1).take(ABOVE).find_map(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let mut dirs: Vec<PathBuf> = fs::read_dir(above).ok()?.flatten().map(|entry| entry.path()).collect();
        dirs.sort();
        dirs.into_iter().map(|dir| dir.join(name)).find(|file| is_annotation(file) && file.is_file())
    })
}

/// The steps of a tree of spans, in the order of their ids.
struct SpanWalk {
    steps: Vec<SampleStep>,
    /// Where each span stands.
    places: BTreeMap<String, usize>,
    question: Option<String>,
}

impl SpanWalk {
    /// Takes spans and all that lie in them, by time; `false` for one that is none.
    fn add_spans(&mut self, spans: &[Value], agent: &str, deep: usize, defects: &mut Defects) -> bool {
        let mut spans: Vec<&Value> = spans.iter().collect();
        spans.sort_by_key(|span| span.get("timestamp").and_then(Value::as_str));
        deep < DEEPEST && spans.into_iter().all(|span| self.add_span(span, agent, deep, defects))
    }

    fn add_span(&mut self, span: &Value, agent: &str, deep: usize, defects: &mut Defects) -> bool {
        let Some(id) = span.get("span_id").and_then(Value::as_str) else { return false };
        if self.places.contains_key(id) {
            return true;
        }
        let empty = Map::new();
        let attributes = span.get("span_attributes").and_then(Value::as_object).unwrap_or(&empty);
        let text = |name: &str| attributes.get(name).map(as_text).unwrap_or_default();
        let (kind, name) = (text(KIND), span.get("span_name").and_then(Value::as_str).unwrap_or_default());
        let agent = if kind == "AGENT" && !name.is_empty() { name } else { agent };
        if self.question.is_none() && kind == "AGENT" {
            self.question = Some(question(&text("input.value")));
        }
        let (canonical, raw) = named(agent, agent, defects);
        let role = match kind.as_str() {
            "LLM" => "assistant",
            "TOOL" => "tool",
            _ => "other",
        };
        let mut step = spoken_step(canonical, raw, role, span_text(attributes));
        step.input = Some(span_input(attributes));
        step.model = attributes.get("llm.model_name").and_then(Value::as_str).map(str::to_owned);
        let kept = [("span_id", id), ("span_name", name), ("span_kind", kind.as_str())];
        step.extra = kept.into_iter().map(|(field, value)| (field.to_owned(), value.into())).collect();
        self.places.insert(id.to_owned(), self.steps.len());
        self.steps.push(step);
        let children = span.get("child_spans").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        self.add_spans(children, agent, deep + 1, defects)
    }

    /// An error at its span. One at no span of the trace keeps no step, and is the first agent's.
    fn error(&self, error: &Value, defects: &mut Defects) -> Option<PublishedError> {
        let Some(fields) = error.as_object() else {
            defects.add("wrong-shape", "an error of the annotations is no object");
            return None;
        };
        let text = |name: &str| fields.get(name).map(as_text).unwrap_or_default();
        let location = text("location");
        let step = self.places.get(&location).copied();
        if step.is_none() {
            defects.add("no-step", format!("no span `{location}`"));
        }
        let first = self.steps.iter().find(|step| step.agent.as_str() != NOBODY).or_else(|| self.steps.first());
        let spoken = step.and_then(|at| self.steps.get(at)).or(first)?;
        let reason = ["description", "evidence"].map(text).into_iter().find(|text| !text.is_empty());
        Some(PublishedError {
            agent: Some(spoken.raw_agent.clone().unwrap_or_else(|| spoken.agent.to_string())),
            step,
            mode: own_mode(&text("category"), NAME),
            reason: reason.unwrap_or_default(),
            extra: fields.clone(),
        })
    }
}

/// What a span said: a model's message or its calls, else its output.
fn span_text(attributes: &Map<String, Value>) -> String {
    let message = "llm.output_messages.0.message";
    let own = |name: String| attributes.get(&name).map(as_text).filter(|text| !text.is_empty());
    let calls = (0..).map_while(|at| {
        let call = format!("{message}.tool_calls.{at}.tool_call.function");
        let name = own(format!("{call}.name"))?;
        Some(format!("{name}({})", own(format!("{call}.arguments")).unwrap_or_default()))
    });
    let content = own(format!("{message}.content"));
    let parts: Vec<String> = content.into_iter().chain(calls).collect();
    if parts.is_empty() { own("output.value".to_owned()).unwrap_or_default() } else { parts.join("\n") }
}

/// What a span was given: a model's messages, else its input.
fn span_input(attributes: &Map<String, Value>) -> Input {
    let own = |at: usize, field: &str| attributes.get(&format!("llm.input_messages.{at}.message.{field}")).map(as_text);
    let mut messages: Vec<_> = (0..)
        .map_while(|at| own(at, "role").map(|role| text_message(&role, own(at, "content").unwrap_or_default())))
        .collect();
    if messages.is_empty() {
        messages.extend(attributes.get("input.value").map(|value| text_message("user", as_text(value))));
    }
    Input { messages, ..Input::default() }
}

/// The task in an agent's input: a text, or an object with `task`.
fn question(input: &str) -> String {
    let value = decoded(&Value::from(input));
    value.get("task").and_then(Value::as_str).map_or_else(|| input.to_owned(), str::to_owned)
}
