//! Structured output: a schema's properties filled by what they mean. The result always fits the schema.

use serde_json::{Map, Value, json};

use super::{super::reading::ReadConversation, select};
use crate::{
    simulator::{language, reading::SpokenBy, tool_name::is_hand_off, utterance::Utterance},
    surface::RequiredFormat,
};

/// Answers as the required format wants it.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let value = match &reading.conversation.format {
        RequiredFormat::Text => return None,
        RequiredFormat::JsonObject => object(reading),
        RequiredFormat::JsonSchema { schema, .. } => Filler::new(reading, schema, &[]).fill(schema, "", 0),
    };
    Some(Utterance::text(value.to_string()))
}

/// Arguments of a tool: `fixed` names values that are known.
pub(super) fn arguments(reading: &ReadConversation<'_>, schema: &Value, fixed: &[(&str, String)]) -> Value {
    let filled = Filler::new(reading, schema, fixed).fill(schema, "", 0);
    if filled.is_object() { filled } else { json!({}) }
}

/// An object with the keys that the instructions write in quotes before a colon, or an answer.
fn object(reading: &ReadConversation<'_>) -> Value {
    let instructions = reading.instructions();
    let filler = Filler::new(reading, &Value::Null, &[]);
    let mut map = Map::new();
    for (at, _) in instructions.match_indices("\":") {
        let before = instructions.get(..at).unwrap_or_default();
        let key = before.rsplit('"').next().unwrap_or_default();
        if !key.is_empty() && key.len() < 40 && key.chars().all(|c| c.is_alphanumeric() || c == '_') {
            map.insert(key.to_owned(), filler.free(key));
        }
    }
    if map.is_empty() {
        map.insert("answer".to_owned(), filler.free("answer"));
    }
    Value::Object(map)
}

struct Filler<'a> {
    reading: &'a ReadConversation<'a>,
    root: &'a Value,
    fixed: &'a [(&'a str, String)],
    answer: Option<String>,
    holds: bool,
    lines: Vec<String>,
}

impl<'a> Filler<'a> {
    fn new(reading: &'a ReadConversation<'a>, root: &'a Value, fixed: &'a [(&'a str, String)]) -> Self {
        let conclusion = reading.conclusion();
        let judgement = reading.judgement();
        Self {
            reading,
            root,
            fixed,
            answer: conclusion.as_ref().map(|c| c.answer.clone()),
            holds: judgement.as_ref().is_none_or(|j| j.holds),
            lines: conclusion.map(|c| c.lines).unwrap_or_default(),
        }
    }

    fn fill(&self, schema: &Value, name: &str, depth: u32) -> Value {
        if depth > 24 {
            return Value::Null;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = reference.trim_start_matches('#');
            return self.root.pointer(pointer).map_or(Value::Null, |target| self.fill(target, name, depth + 1));
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return self.choose(options, name);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(options) = schema.get(key).and_then(Value::as_array) {
                let real = options.iter().find(|o| o.get("type").is_none_or(|kind| kind != "null") && !loops(o, depth));
                return real.or(options.last()).map_or(Value::Null, |option| self.fill(option, name, depth + 1));
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(schema, parts, name, depth);
        }
        self.typed(schema, name, depth)
    }

    fn all_of(&self, schema: &Value, parts: &[Value], name: &str, depth: u32) -> Value {
        let mut merged = Map::new();
        let own = schema.get("properties").map(|_| self.typed(schema, name, depth));
        for part in parts.iter().map(|part| self.fill(part, name, depth + 1)).chain(own) {
            match part {
                Value::Object(map) => merged.extend(map),
                other => return other,
            }
        }
        Value::Object(merged)
    }

    fn typed(&self, schema: &Value, name: &str, depth: u32) -> Value {
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ if schema.get("items").is_some() => vec!["array"],
            _ => return self.free(name),
        };
        let kind = kinds.iter().find(|kind| **kind != "null").or(kinds.first()).copied().unwrap_or("null");
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "string" => Value::String(fit_text(&self.text(name), schema)),
            "boolean" => Value::Bool(self.truth(name)),
            "integer" => number(self.number(name).round(), schema, true),
            "number" => number(self.number(name), schema, false),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Value, depth: u32) -> Value {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
            Some(names) => names.iter().filter_map(Value::as_str).collect(),
            None if depth > 6 => Vec::new(),
            None => properties.keys().map(String::as_str).collect(),
        };
        let wanted = |name: &str| required.contains(&name) || self.fixed.iter().any(|(fixed, _)| *fixed == name);
        let fields = properties.iter().filter(|(name, _)| wanted(name));
        let mut map: Map<String, Value> =
            fields.map(|(name, schema)| (name.clone(), self.field(schema, name, depth))).collect();
        for name in required.into_iter().filter(|name| !properties.contains_key(*name)) {
            map.insert(name.to_owned(), self.free(name));
        }
        Value::Object(map)
    }

    fn field(&self, schema: &Value, name: &str, depth: u32) -> Value {
        match self.fixed.iter().find(|(fixed, _)| *fixed == name) {
            Some((_, value)) => Value::String(value.clone()),
            None => self.fill(schema, name, depth + 1),
        }
    }

    fn array(&self, schema: &Value, name: &str, depth: u32) -> Value {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let least = count("minItems").unwrap_or(0).min(64);
        let most = count("maxItems").unwrap_or(8);
        let item = schema.get("items").cloned().unwrap_or(json!({"type": "string"}));
        let text = item.get("type").is_some_and(|kind| kind == "string") && item.get("enum").is_none();
        let lines: Vec<Value> = if text {
            self.list(name).into_iter().map(|line| Value::String(fit_text(&line, &item))).collect()
        } else {
            Vec::new()
        };
        let mut items: Vec<Value> = lines.into_iter().take(most).collect();
        let wanted = least.max(usize::from(!text && depth < 10)).min(most);
        while items.len() < wanted {
            items.push(self.fill(&item, name.trim_end_matches('s'), depth + 1));
        }
        Value::Array(items)
    }

    fn list(&self, name: &str) -> Vec<String> {
        let lower = name.to_lowercase();
        let planned =
            lower.split('_').any(|word| word.starts_with("plan")) || lower.contains("step") && self.lines.is_empty();
        match &self.reading.task {
            Some(task) if planned => task.plan().lines().map(str::to_owned).collect(),
            _ if self.lines.is_empty() => self.answer.iter().cloned().collect(),
            _ => self.lines.clone(),
        }
    }

    fn choose(&self, options: &[Value], name: &str) -> Value {
        let texts: Vec<String> = options.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let lower = name.to_lowercase();
        let speaker = ["next", "speaker", "agent", "role", "worker", "goto", "route", "destination"]
            .iter()
            .any(|w| lower.contains(w));
        if let Some(chosen) = speaker.then(|| select::next(self.reading, &texts)).flatten() {
            return Value::String(chosen);
        }
        if let Some(same) = texts.iter().find(|text| self.answer.as_deref() == Some(text.as_str())) {
            return Value::String(same.clone());
        }
        let good = [
            "correct", "approve", "approved", "accept", "accepted", "pass", "yes", "true", "valid", "right", "ok",
            "success", "good", "done",
        ];
        let bad = [
            "incorrect",
            "revise",
            "reject",
            "rejected",
            "fail",
            "failed",
            "no",
            "false",
            "invalid",
            "wrong",
            "needs_improvement",
            "error",
            "bad",
        ];
        let wanted: &[&str] = if self.holds { &good } else { &bad };
        let fitting = texts.iter().find(|text| wanted.contains(&text.to_lowercase().as_str()));
        fitting.map(|text| Value::String(text.clone())).or_else(|| options.first().cloned()).unwrap_or(Value::Null)
    }

    /// A value where the schema says nothing about its type.
    fn free(&self, name: &str) -> Value {
        let lower = name.to_lowercase();
        let truth =
            ["is_", "has_", "approved", "correct", "valid", "verdict_ok"].iter().any(|stem| lower.starts_with(stem));
        if truth {
            return Value::Bool(self.truth(name));
        }
        match self.answer.as_ref().filter(|_| is_answer(&lower)).and_then(|a| a.parse::<f64>().ok()) {
            Some(value) => number(value, &Value::Null, value.fract() == 0.0),
            None => Value::String(self.text(name)),
        }
    }

    fn text(&self, name: &str) -> String {
        let reading = self.reading;
        let lower = name.to_lowercase();
        let has = |stems: &[&str]| stems.iter().any(|stem| lower.contains(stem));
        if has(&["speaker", "next", "agent", "coworker", "assignee"]) {
            let candidates: Vec<String> = reading.spoken.iter().filter_map(|s| s.name.clone()).collect();
            return select::next(reading, &candidates).unwrap_or_else(|| "next".to_owned());
        }
        if is_answer(&lower) {
            return self.answer.clone().unwrap_or_else(|| "unknown".to_owned());
        }
        if has(&["verdict", "decision", "judgement", "judgment", "status"]) {
            return if self.holds { "APPROVE" } else { "REVISE" }.to_owned();
        }
        if has(&[
            "reason",
            "feedback",
            "explanation",
            "rationale",
            "comment",
            "thought",
            "critique",
            "justification",
            "summary",
            "analysis",
            "evidence",
        ]) {
            return self.reason();
        }
        if has(&["plan", "steps"]) {
            return reading
                .task
                .as_ref()
                .map_or_else(|| "1. Read the task.".to_owned(), super::super::reading::StatedTask::plan);
        }
        if has(&["expression", "formula", "equation"]) {
            return reading.task.as_ref().map_or_else(|| "0".to_owned(), |task| task.solution.expression());
        }
        work(reading)
    }

    fn reason(&self) -> String {
        let judged = self.reading.judgement().filter(|_| self.reading.duty == crate::simulator::duty::Duty::Check);
        match (judged, self.lines.as_slice()) {
            (Some(judgement), _) => judgement.reason,
            (None, []) => match &self.answer {
                Some(answer) => format!("The answer is {answer}."),
                None => "There is nothing to compute.".to_owned(),
            },
            (None, lines) => lines.join(" "),
        }
    }

    fn truth(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        if ["needs", "revise", "revision", "wrong", "reject", "error", "retry", "incorrect", "again"]
            .iter()
            .any(|stem| lower.contains(stem))
        {
            return !self.holds;
        }
        if ["loop", "stuck"].iter().any(|stem| lower.contains(stem)) {
            return false;
        }
        self.holds
    }

    fn number(&self, name: &str) -> f64 {
        let lower = name.to_lowercase();
        if ["confidence", "probability", "certainty"].iter().any(|stem| lower.contains(stem)) {
            return 0.9;
        }
        if ["score", "rating", "grade"].iter().any(|stem| lower.contains(stem)) {
            return if self.holds { 1.0 } else { 0.0 };
        }
        if ["index", "number_of", "step", "id", "count", "round", "task_number"].iter().any(|stem| lower.contains(stem))
            && !is_answer(&lower)
        {
            return 1.0;
        }
        self.answer.as_ref().and_then(|answer| answer.parse().ok()).unwrap_or(0.0)
    }
}

/// The work as another agent is to get it: the task, then what has been found so far.
fn work(reading: &ReadConversation<'_>) -> String {
    let task = reading.task.as_ref().map_or_else(|| first_words(reading), |task| task.text.clone());
    let found = reading.spoken.iter().filter(|s| matches!(&s.who, SpokenBy::Tool(name) if !is_hand_off(name)));
    let found: Vec<&str> = found.map(|s| s.text.trim()).filter(|text| !text.is_empty()).collect();
    if found.is_empty() { task } else { format!("{task}\n\n{}", found.join("\n\n")) }
}

fn first_words(reading: &ReadConversation<'_>) -> String {
    let first = reading.spoken.iter().find(|s| s.who == SpokenBy::Caller);
    first.map(|s| s.text.trim().chars().take(400).collect()).unwrap_or_default()
}

/// Whether an option is to be passed over because it nests too deep.
fn loops(option: &Value, depth: u32) -> bool {
    depth > 6 && (option.get("$ref").is_some() || option.get("properties").is_some())
}

fn is_answer(name: &str) -> bool {
    ["answer", "result", "total", "value", "solution", "output", "final", "response", "sum"]
        .iter()
        .any(|stem| name.contains(stem))
}

/// A text within the schema's lengths.
fn fit_text(text: &str, schema: &Value) -> String {
    let length = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let most = length("maxLength").unwrap_or(usize::MAX);
    let least = length("minLength").unwrap_or(0).min(10_000);
    let mut text: String = text.chars().take(most).collect();
    let missing = least.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('.', missing));
    text
}

/// A number within the schema's bounds.
fn number(value: f64, schema: &Value, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = if whole { 1.0 } else { 0.001 };
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + step)).unwrap_or(f64::MIN);
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - step)).unwrap_or(f64::MAX);
    let mut value = value.max(low).min(high.max(low));
    if let Some(multiple) = bound("multipleOf").filter(|m| *m > 0.0) {
        value = (value / multiple).ceil() * multiple;
    }
    let text = if whole { format!("{:.0}", value.ceil()) } else { language::number_text(value) };
    serde_json::from_str(&text).unwrap_or_else(|_| json!(0))
}
