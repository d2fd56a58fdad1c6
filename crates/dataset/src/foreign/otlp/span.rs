//! One span with its attributes as plain values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{
    ForeignAgent,
    fields::{list, text, whole_number},
    held::TraceValue,
};

/// A span.
#[derive(Debug, Clone, Default)]
pub(super) struct TraceSpan {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) began: Option<i64>,
    pub(super) ended: Option<i64>,
    attributes: BTreeMap<String, Value>,
    pub(super) events: Vec<SpanEvent>,
    pub(super) status: SpanStatus,
    /// What the status says.
    pub(super) status_text: String,
    /// What it is of, and whom it names: told once, when all of it is known.
    pub(super) span_kind: Option<SpanOf>,
    pub(super) agent: Option<ForeignAgent>,
    /// The node of a loop, for a call that nothing else names.
    pub(super) node: Option<ForeignAgent>,
}

/// An event of a span, or a log record that names the span.
#[derive(Debug, Clone)]
pub(super) struct SpanEvent {
    pub(super) name: String,
    pub(super) attributes: BTreeMap<String, Value>,
    /// What a log record holds beside its attributes.
    pub(super) body: Value,
}

impl SpanEvent {
    /// An event of a span, or a log record: `None` where it has no name.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let attributes = attributes(value);
        let named = ["name", "eventName", "event_name"].iter().find_map(|name| text(value, name));
        let named = named.or_else(|| attributes.get("event.name")?.as_str()).map(str::to_owned)?;
        let body = value.get("body").map(untyped_value).unwrap_or_default();
        let body = body.as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(body);
        Some(Self { name: named, attributes, body })
    }

    /// Its fields, wherever tracers put them: attributes, the body, JSON in one attribute.
    pub(super) fn fields(&self) -> Value {
        let mut fields: serde_json::Map<String, Value> = self.attributes.clone().into_iter().collect();
        // Attributes have no structure: what has one is written as JSON.
        for name in ["tool_calls", "message", "function_call"] {
            let inner =
                fields.get(name).and_then(Value::as_str).and_then(|said| serde_json::from_str::<Value>(said).ok());
            if let Some(inner) = inner.filter(|inner| inner.is_object() || inner.is_array()) {
                fields.insert(name.to_owned(), inner);
            }
        }
        let inner = self.attributes.get("gen_ai.event.content").and_then(Value::as_str);
        let inner = inner.and_then(|inner| serde_json::from_str::<Value>(inner).ok());
        for more in [inner.as_ref(), Some(&self.body)].into_iter().flatten() {
            match more {
                Value::Object(more) => fields.extend(more.clone()),
                Value::String(said) => drop(fields.insert("content".to_owned(), said.as_str().into())),
                _ => {}
            }
        }
        Value::Object(fields)
    }
}

/// How a span ended. `Ok` is not told apart from unset: tracers write it for whatever raised nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SpanStatus {
    /// Nothing was raised, or nobody says.
    #[default]
    Unset,
    /// It failed.
    Error,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanOf {
    /// One call of a model.
    Call,
    /// A call for vectors.
    Vectors,
    /// A tool.
    Tool,
    /// An agent's work.
    Agent,
    /// A whole program: a graph, a crew, a workflow. Its name is nobody's.
    Workflow,
    /// Anything else.
    Other,
}

impl TraceSpan {
    /// Reads a span; `None` without an id.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let time = |names: [&str; 2]| {
            let nanos = names.iter().find_map(|name| value.get(*name)).and_then(whole_number)?;
            i64::try_from(nanos).ok().filter(|nanos| *nanos >= 0)
        };
        let status = value.get("status").unwrap_or(&Value::Null);
        let code = status.get("code").unwrap_or(&Value::Null);
        let failed = whole_number(code) == Some(2) || matches!(code.as_str(), Some("STATUS_CODE_ERROR" | "ERROR"));
        let id = |names: [&str; 2]| names.iter().find_map(|name| text(value, name)).map(identifier);
        let mut span = Self {
            id: id(["spanId", "span_id"])?,
            parent: id(["parentSpanId", "parent_span_id"]).filter(|id| !is_no_id(id)),
            name: text(value, "name").unwrap_or_default().to_owned(),
            began: time(["startTimeUnixNano", "start_time_unix_nano"]),
            ended: time(["endTimeUnixNano", "end_time_unix_nano"]),
            attributes: attributes(value),
            events: list(value, "events").iter().filter_map(SpanEvent::read).collect(),
            status: if failed { SpanStatus::Error } else { SpanStatus::Unset },
            status_text: text(status, "message").unwrap_or_default().to_owned(),
            span_kind: None,
            agent: None,
            node: None,
        };
        for event in std::mem::take(&mut span.events) {
            span.happened(event);
        }
        Some(span)
    }

    /// Takes an event in. One that holds what the span could hold itself gives it its attributes.
    pub(super) fn happened(&mut self, event: SpanEvent) {
        if event.name == super::DETAILS {
            self.add(&event.attributes);
            let body = event.body.as_object().cloned().unwrap_or_default();
            self.add(&body.into_iter().collect());
        } else {
            self.events.push(event);
        }
    }

    /// Takes in attributes that stand elsewhere; its own stay.
    pub(super) fn add(&mut self, more: &BTreeMap<String, Value>) {
        for (name, value) in more {
            self.attributes.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// All attributes, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether an attribute begins so.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.attributes.range(prefix.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// An attribute.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }

    /// An attribute with its name.
    pub(super) fn at<'a>(&'a self, name: &'a str) -> Option<TraceValue<'a>> {
        Some(TraceValue::at(name, self.value(name)?))
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A whole number.
    pub(super) fn whole_number(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(whole_number)
    }

    /// A structured attribute: written as JSON in a text, or as values.
    pub(super) fn json(&self, name: &str) -> Option<Value> {
        match self.value(name)? {
            Value::String(text) => serde_json::from_str(text).ok(),
            other => Some(other.clone()),
        }
    }

    /// The attributes below a prefix that ends with a dot, by the number that follows, in its order, under what follows
    /// that.
    pub(super) fn numbered<'a>(&'a self, prefix: &str) -> BTreeMap<u32, BTreeMap<&'a str, &'a Value>> {
        let mut numbered: BTreeMap<u32, BTreeMap<&str, &Value>> = BTreeMap::new();
        let from = self.attributes.range(prefix.to_owned()..);
        for (name, value) in from.take_while(|(name, _)| name.starts_with(prefix)) {
            let rest = name.strip_prefix(prefix).and_then(|rest| rest.split_once('.'));
            if let Some((number, rest)) = rest.and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
                numbered.entry(number).or_default().insert(rest, value);
            }
        }
        numbered
    }
}

/// An id in one spelling: hexadecimal digits have no case.
pub(super) fn identifier(id: &str) -> String {
    let is_hex = id.len() >= 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { id.to_ascii_lowercase() } else { id.to_owned() }
}

/// Whether an id says that there is none: zeros, or what base64 makes of zeros.
fn is_no_id(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0') || id == "AAAAAAAAAAA="
}

/// The attributes of a span, an event or a log record.
pub(super) fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let pair = |pair: &Value| Some((text(pair, "key")?.to_owned(), untyped_value(pair.get("value")?)));
    match of.get("attributes") {
        // Some stores write them as an object of plain values.
        Some(Value::Object(plain)) => plain.clone().into_iter().collect(),
        _ => list(of, "attributes").iter().filter_map(pair).collect(),
    }
}

/// A typed value as a plain one.
fn untyped_value(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|fields| fields.iter().next()) else {
        return if value.is_object() { Value::Null } else { value.clone() };
    };
    match kind.as_str() {
        "intValue" => {
            inner.as_str().and_then(|text| text.parse::<i64>().ok()).map_or_else(|| inner.clone(), Value::from)
        }
        "arrayValue" => list(inner, "values").iter().map(untyped_value).collect(),
        "kvlistValue" => {
            let pair = |pair: &Value| Some((text(pair, "key")?.to_owned(), untyped_value(pair.get("value")?)));
            Value::Object(list(inner, "values").iter().filter_map(pair).collect())
        }
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => inner.clone(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_plain_and_numbers_in_names_are_an_order() {
        let span =
            TraceSpan::read(&json!({"spanId": "a", "startTimeUnixNano": "5", "status": {"code": "STATUS_CODE_ERROR"},
            "attributes": [
                {"key": "m.10.role", "value": {"stringValue": "b"}}, {"key": "m.9.role", "value": {"stringValue": "a"}},
                {"key": "m.x.role", "value": {"stringValue": "c"}}, {"key": "n", "value": {"intValue": "7"}},
                {"key": "l", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"boolValue": true}]}}},
                {"key": "k", "value": {"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": 0.5}}]}}},
                {"key": "e", "value": {}}, {"key": 7, "value": {"stringValue": "no name"}}]}))
            .expect("a span");
        assert_eq!((span.began, span.ended, span.status), (Some(5), None, SpanStatus::Error));
        let numbered: Vec<(u32, &Value)> = span.numbered("m.").into_iter().map(|(n, all)| (n, all["role"])).collect();
        assert_eq!(numbered, [(9, &json!("a")), (10, &json!("b"))]);
        assert_eq!((span.whole_number("n"), span.json("l")), (Some(7), Some(json!(["x", true]))));
        assert_eq!((span.json("k"), span.value("e")), (Some(json!({"a": 0.5})), Some(&Value::Null)));
        assert!(TraceSpan::read(&json!({"name": "no id"})).is_none());
    }

    #[test]
    fn what_stands_in_an_event_is_the_spans_where_it_says_nothing_itself() {
        let attribute = |name: &str, value: &str| json!({"key": name, "value": {"stringValue": value}});
        let span = TraceSpan::read(&json!({"spanId": "a", "attributes": [attribute("own", "1")], "events": [
            {"name": "gen_ai.client.inference.operation.details",
                "attributes": [attribute("own", "2"), attribute("more", "3")]},
            {"name": "other", "attributes": [attribute("not", "4")]}]}))
        .expect("a span");
        assert_eq!((span.text("own"), span.text("more"), span.text("not")), (Some("1"), Some("3"), None));
    }
}
