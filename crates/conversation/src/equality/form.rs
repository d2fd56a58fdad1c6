//! The canonical form of a request: what two requests must have in common to be the same request.

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

use super::{Rules, rules::SeenValues};
use crate::surface::{self, Conversation, Part, Role, Surface, door};

/// The longest boundary of a multipart body that RFC 2046 allows, in bytes.
const LONGEST_BOUNDARY: usize = 70;

/// A body as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// JSON, keys in order, volatile parts replaced.
    Json(Value),
    /// Other text, volatile parts replaced.
    Text(String),
    /// No text: its length and hash.
    Bytes(String),
}

/// What was said, beside the ids in it by which calls and replies are named.
#[derive(Debug, Clone)]
pub struct ComparedContent {
    /// The words. Strings that are an id, whole, name a call of a tool or a reply; those in the midst of a text do not.
    pub value: Value,
    /// The ids.
    pub ids: Vec<String>,
}

impl Form {
    /// Reads a request of an API shape; `surface` may be one that is not known.
    pub fn from_body(surface: &str, body: &[u8], rules: &Rules) -> Self {
        Self::read(surface, body, rules, &mut SeenValues::default()).0
    }

    /// The form, and the ids that its numbers stand for.
    pub(super) fn read(name: &str, body: &[u8], rules: &Rules, seen: &mut SeenValues) -> (Self, Vec<String>) {
        let body = &*door::without_codings(body);
        if let Ok(value) = serde_json::from_slice::<Value>(body) {
            let is_read = rules.pair_ids() || !rules.tool_results().is_exact();
            let asked = surface_of(name).filter(|_| is_read);
            let asked = asked.and_then(|surface| door::request(surface, body).ok());
            let results = asked.as_ref().map(|asked| tool_results(asked, rules)).unwrap_or_default();
            let ids = asked.filter(|_| rules.pair_ids()).map(ids).unwrap_or_default();
            let mut words = ComparedContent { value, ids };
            if let Some(surface) = surface_of(name) {
                surface.drop_names(&mut words.value);
            }
            if !results.is_empty() {
                replace(&mut words.value, &results);
            }
            let numbered = words.number();
            rules.apply(&mut words.value, seen);
            return (Form::Json(words.value), numbered);
        }
        let body = &*without_boundary(body);
        let form = match std::str::from_utf8(body) {
            Ok(text) => {
                let mut value = Value::from(text);
                rules.mask_strings(&mut value, seen);
                Form::Text(value.as_str().unwrap_or_default().to_owned())
            }
            Err(_) => Form::Bytes(format!("{} bytes, blake3 {}", body.len(), blake3::hash(body).to_hex())),
        };
        (form, Vec::new())
    }

    /// The form as one text: equal forms, equal texts.
    pub fn text(&self) -> String {
        match self {
            Form::Json(value) => value.to_string(),
            Form::Text(text) | Form::Bytes(text) => text.clone(),
        }
    }
}

impl ComparedContent {
    /// Puts keys in order and a number in the place of each id; gives the ids by their numbers.
    pub(super) fn number(&mut self) -> Vec<String> {
        self.value.sort_all_objects();
        // A bare number may be what the task is about, and a program that counts its calls counts them alike again.
        let ids = self.ids.drain(..).filter(|id| !id.bytes().all(|byte| byte.is_ascii_digit()));
        let mut numbers: HashMap<String, Option<usize>> = ids.map(|id| (id, None)).collect();
        let mut numbered = Vec::new();
        if !numbers.is_empty() {
            number(&mut self.value, &mut numbers, &mut numbered);
        }
        numbered
    }
}

fn number(value: &mut Value, numbers: &mut HashMap<String, Option<usize>>, numbered: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let Some(known) = numbers.get_mut(text.as_str()) else { return };
            let number = *known.get_or_insert(numbered.len());
            let id = std::mem::replace(text, format!("<call:{number}>"));
            if number == numbered.len() {
                numbered.push(id);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| self::number(value, numbers, numbered)),
        Value::Object(map) => map.values_mut().for_each(|value| self::number(value, numbers, numbered)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The results of tools in a request that may differ, with what is left of each.
fn tool_results(asked: &Conversation, rules: &Rules) -> HashMap<String, String> {
    let setting = rules.tool_results();
    if setting.is_exact() {
        return HashMap::new();
    }
    let results = asked.messages.iter().filter(|message| message.role == Role::Tool);
    let texts = results.flat_map(|message| message.parts.iter().filter_map(Part::as_text));
    texts.map(|text| (text.to_owned(), setting.reduce(text))).collect()
}

/// Replaces strings that stand whole in a value.
fn replace(value: &mut Value, texts: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(other) = texts.get(text.as_str()) {
                text.clone_from(other);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, texts)),
        Value::Object(map) => map.values_mut().for_each(|value| replace(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The ids that a request names: of calls of tools, and of what the upstream keeps.
fn ids(asked: Conversation) -> Vec<String> {
    let mut ids: Vec<String> = asked.messages.iter().flat_map(|message| message.call_ids().cloned()).collect();
    ids.extend(asked.quotes.into_iter().chain(asked.continues).chain(asked.thread));
    ids
}

pub(super) fn surface_of(name: &str) -> Option<&'static dyn Surface> {
    // A key of requests goes on with method and path.
    surface::named(name.split(' ').next().unwrap_or_default())
}

/// A multipart body with a boundary that is always the same: clients draw a new one for each request.
fn without_boundary(body: &[u8]) -> Cow<'_, [u8]> {
    let line = body.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let is_boundary = line.starts_with(b"--") && (3..=LONGEST_BOUNDARY + 2).contains(&line.len());
    let ended = body.trim_ascii_end().strip_suffix(b"--").is_some_and(|rest| rest.ends_with(line));
    if !is_boundary || !ended {
        return Cow::Borrowed(body);
    }
    let mut plain = Vec::with_capacity(body.len());
    let mut rest = 0;
    for at in memchr::memmem::find_iter(body, line) {
        plain.extend_from_slice(body.get(rest..at).unwrap_or_default());
        plain.extend_from_slice(b"--boundary");
        rest = at + line.len();
    }
    plain.extend_from_slice(body.get(rest..).unwrap_or_default());
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equality::ToolResults;

    #[test]
    fn the_boundary_of_a_multipart_body_is_no_difference() {
        let body = |boundary: &str, said: &str| {
            let part = "Content-Disposition: form-data; name=\"file\"";
            let body = format!("--{boundary}\r\n{part}\r\n\r\n{said}\r\n--{boundary}--\r\n");
            Form::from_body("files", body.as_bytes(), &Rules::default()).text()
        };
        assert_eq!(body("a1b2", "one\u{0}"), body("zzz", "one\u{0}"));
        assert_ne!(body("a1b2", "one"), body("a1b2", "two"));
        assert_ne!(
            Form::from_body("files", b"--", &Rules::default()),
            Form::from_body("files", b"--\r\n--", &Rules::default())
        );
    }

    #[test]
    fn results_of_tools_may_differ_as_far_as_the_setting_says() {
        let asked = |result: &str, question: &str| {
            format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"{question}"}},
                {{"role":"tool","tool_call_id":"c1","content":"{result}"}}]}}"#
            )
        };
        for (setting, one, other, equal) in [
            (ToolResults::Exact, "3 passed in 0.5s", "3 passed in 0.7s", false),
            (ToolResults::Masked, "3 passed in 0.5s", "3 passed in 0.7s", true),
            (ToolResults::Masked, "3 passed in 0.5s", "3 failed in 0.5s", false),
            (ToolResults::Any, "3 passed in 0.5s", "all is well", true),
        ] {
            let rules = Rules::default().with_tool_results(setting);
            let form = |body: &str| Form::from_body("openai_chat", body.as_bytes(), &rules).text();
            assert_eq!(form(&asked(one, "q")) == form(&asked(other, "q")), equal, "{setting:?} {one} {other}");
            assert_ne!(form(&asked(one, "7 eggs")), form(&asked(one, "8 eggs")), "{setting:?}");
        }
    }

    fn form(body: &str) -> String {
        Form::from_body("openai_chat", body.as_bytes(), &Rules::default()).text()
    }

    #[test]
    fn what_a_message_to_tools_is_called_by_is_no_part_of_what_it_asks() {
        let call = |id: &str, a: u32| {
            let params = format!(r#"{{"name":"add","arguments":{{"a":{a}}},"_meta":{{"progressToken":{id}}}}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            Form::from_body(surface::MCP, body.as_bytes(), &Rules::default()).text()
        };
        assert_eq!(call("7", 2), call("\"c-41\"", 2));
        assert_ne!(call("7", 2), call("7", 3));
    }

    fn quoting(made: &str, answered: &str, text: &str) -> String {
        let made = format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"{made}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}]}}"#
        );
        let answered = format!(r#"{{"role":"tool","tool_call_id":"{answered}","content":"{text}"}}"#);
        format!(r#"{{"model":"m","messages":[{made},{answered}]}}"#)
    }

    #[test]
    fn ids_of_calls_are_numbers_and_what_they_answer_counts() {
        let first = form(&quoting("d5b1x", "d5b1x", "three"));
        assert_eq!(first, form(&quoting("other", "other", "three")));
        assert_ne!(first, form(&quoting("other", "nobody", "three")));
        assert_ne!(first, form(&quoting("other", "other", "four")));
        // Where the id is a bare number, the same number elsewhere is what was said.
        assert_ne!(form(&quoting("3", "3", "3")), form(&quoting("4", "4", "4")));
        // A file that switches the rule off compares them.
        let plain = Rules::parse("format = 1\nbuilt_in = []", "r.toml").expect("reads");
        let form = |body: &str| Form::from_body("openai_chat", body.as_bytes(), &plain).text();
        assert_ne!(form(&quoting("d5b1x", "d5b1x", "three")), form(&quoting("other", "other", "three")));
    }
}
