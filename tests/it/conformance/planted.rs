//! A text that is put into a body anywhere an answer can stand is in the view, or the account names it: nothing is silently absent.

use std::collections::BTreeMap;

use aegis::surface::{Surface, door};
use serde_json::{Value, json};

use super::{
    requests::Asked,
    shapes::{self, Shape},
};

/// A text that no shape holds.
pub const MARKER: &str = "Nine planted words that no reader of this API knows.";

/// Members that say nothing of an answer: counts, causes, sources, thoughts, the upstream's own searches. What stands in them is not
/// looked at.
const BESIDE: &[&str] = &[
    "action",
    "agent",
    "annotations",
    "cache_control",
    "citation",
    "citationMetadata",
    "citations",
    "codeExecutionResult",
    "content_filter_offsets",
    "content_filter_results",
    "error",
    "errors",
    "executableCode",
    "extra_content",
    "groundingMetadata",
    "incomplete_details",
    "inlineData",
    "logprobs",
    "logprobsResult",
    "promptFeedback",
    "prompt_filter_results",
    "reasoning_details",
    "safetyRatings",
    "summary",
    "thinking",
    "timings",
    "usage",
    "usageMetadata",
    "usage_metadata",
    "x_groq",
];

/// Beginnings of the types of parts, items and events that say nothing of an answer.
const BESIDE_TYPES: &[&str] = &[
    "citations_delta",
    "error",
    "google_search_",
    "image",
    "item_reference",
    "keepalive",
    "mcp_",
    "reasoning",
    "redacted_thinking",
    "reference",
    "response.mcp_",
    "response.reasoning",
    "response.web_search_call",
    "server_tool_use",
    "signature_delta",
    "summary_text",
    "text_annotation_delta",
    "thinking",
    "thought",
    "user_input",
    "web_search_",
];

/// Names under which an answer is planted in every object.
const MEMBERS: &[&str] = &["text", "answer", "content"];

/// All JSON texts with the marker put into one object or list of this one, each with the place.
pub fn planted(json: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    walk(json, String::new(), &mut places);
    let mut all = Vec::new();
    for place in places {
        let at = |edited: &mut Value| edited.pointer_mut(&place).map(Value::take);
        let mut put = |what: &str, with: &dyn Fn(Value) -> Option<Value>| {
            let mut edited = json.clone();
            if let Some(new) = at(&mut edited).and_then(with) {
                *edited.pointer_mut(&place).expect("the place") = new;
                all.push((format!("{place} {what}"), edited));
            }
        };
        for member in MEMBERS {
            put(member, &|old| {
                let Value::Object(mut object) = old else { return None };
                if object.contains_key(*member) {
                    return None;
                }
                object.insert((*member).to_owned(), json!(MARKER));
                Some(Value::Object(object))
            });
        }
        put("element", &|old| {
            let Value::Array(mut list) = old else { return None };
            if list.iter().any(|element| !element.is_object()) {
                return None;
            }
            list.push(json!({"type": "zz_part", "text": MARKER}));
            Some(Value::Array(list))
        });
    }
    all
}

fn is_beside(kind: Option<&Value>) -> bool {
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    BESIDE_TYPES.iter().any(|beside| kind.starts_with(beside))
}

fn walk(json: &Value, place: String, places: &mut Vec<String>) {
    let last = place.rsplit('/').find(|key| key.parse::<usize>().is_err()).unwrap_or_default();
    if BESIDE.contains(&last) {
        return;
    }
    match json {
        Value::Object(object) if is_beside(object.get("type")) || object.get("thought") == Some(&json!(true)) => return,
        Value::Object(object) => {
            for (key, value) in object {
                walk(value, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                walk(value, format!("{place}/{at}"), places);
            }
        }
        _ => return,
    }
    places.push(place);
}

/// All bodies with the marker put into one place of this one.
fn bodies(shape: &Shape) -> Vec<(String, String)> {
    let plain = shape.plain();
    if !shape.is_stream() {
        let Ok(json) = serde_json::from_str(&plain) else { return Vec::new() };
        return planted(&json).into_iter().map(|(place, json)| (place, json.to_string())).collect();
    }
    let lines: Vec<&str> = plain.split_inclusive('\n').collect();
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(json) = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok()) else {
            continue;
        };
        let (before, after) = (lines[..number].concat(), lines[number + 1..].concat());
        for (place, json) in planted(&json) {
            all.push((format!("line {number} {place}"), format!("{before}data: {json}\n{after}")));
        }
        if !before.ends_with("\n\n") {
            continue;
        }
        let event = json!({"type": "zz.event", "text": MARKER});
        all.push((format!("line {number} event"), format!("{before}data: {event}\n\n{line}{after}")));
    }
    all
}

/// Whether a body is unread, its view holds the marker, or its account names a piece.
fn is_accounted(surface: &dyn Surface, body: &str, streamed: bool) -> bool {
    door::reading(surface, body.as_bytes(), streamed)
        .map_or(true, |reading| !reading.unplaced.is_empty() || format!("{:?}", reading.view).contains(MARKER))
}

/// A place without the numbers of lines and elements.
fn kind_of(place: &str) -> String {
    place.split(['/', ' ']).filter(|part| part.parse::<usize>().is_err()).collect::<Vec<_>>().join("/")
}

#[test]
fn a_planted_text_is_read_or_named() {
    let mut count = 0;
    let mut silent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for shape in shapes::replies() {
        // Embeddings hold no words.
        if shape.surface().name() == "openai_embeddings" || shape.unplaced.is_some() {
            continue;
        }
        for (place, body) in bodies(&shape) {
            count += 1;
            if !is_accounted(shape.surface(), &body, shape.is_stream()) {
                let at = format!("{} {}", shape.surface().name(), kind_of(&place));
                silent.entry(at).or_default().push(format!("{}, {place}", shape.name));
            }
        }
    }
    let lines: Vec<_> =
        silent.iter().map(|(place, shapes)| format!("{place}: {} ({})", shapes.len(), shapes[0])).collect();
    assert!(silent.is_empty(), "of {count} bodies:\n{}", lines.join("\n"));
    assert!(count > 5_000, "{count} bodies");
}

/// Members of a request that hold what is said.
const SAID: &[&str] = &["/contents", "/messages", "/input", "/system"];

#[test]
fn a_text_planted_in_a_request_is_read_or_named() {
    let mut count = 0;
    let mut silent = BTreeMap::new();
    for asked in shapes::read::<Asked>("requests") {
        let Ok(json) = serde_json::from_str(asked.plain().trim_start_matches('\u{feff}')) else { continue };
        if asked.api == "openai_embeddings" || asked.unplaced.is_some() {
            continue;
        }
        for (place, body) in planted(&json) {
            if !SAID.iter().any(|said| place.starts_with(said)) {
                continue;
            }
            count += 1;
            let read = door::request_reading(asked.surface(), body.to_string().as_bytes());
            let is_accounted = read
                .map_or(true, |reading| !reading.unplaced.is_empty() || format!("{:?}", reading.view).contains(MARKER));
            if !is_accounted {
                silent.insert(format!("{} {}", asked.api, kind_of(&place)), format!("{}, {place}", asked.name));
            }
        }
    }
    assert!(silent.is_empty(), "of {count} bodies: {silent:#?}");
    assert!(count > 300, "{count} bodies");
}
