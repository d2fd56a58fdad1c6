//! Parameters of our own questions to models: what a user sets by hand, and what it means that an upstream refuses one.

use std::{fmt, str::FromStr};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What makes a question the one that it is: nobody sets it by hand.
const FIXED: &[&str] = &["model", "messages", "stream", "stream_options", "n"];
/// Longest part of a refusal that is quoted, in characters.
const QUOTED: usize = 160;

/// A parameter that a user sets by hand, written `NAME=VALUE`: the value is JSON, else a text, and `none` leaves the parameter out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ParameterSetting {
    name: String,
    value: Option<Value>,
}

impl FromStr for ParameterSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("`{text}`: expected NAME=VALUE, for example temperature=1, or temperature=none to leave it out");
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name.is_empty() || value.is_empty() || !is_name {
            return Err(expected());
        }
        if FIXED.contains(&name) {
            return Err(format!("`{name}` is what the question is, not a parameter that can be set"));
        }
        let value = (value != "none").then(|| serde_json::from_str(value).unwrap_or_else(|_| value.into()));
        Ok(Self { name: name.to_owned(), value })
    }
}

impl TryFrom<String> for ParameterSetting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ParameterSetting> for String {
    fn from(ParameterSetting { name, value }: ParameterSetting) -> Self {
        let value = value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        format!("{name}={value}")
    }
}

/// What a user sets by hand, later settings over earlier ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParameterSettings(Vec<ParameterSetting>);

impl From<Vec<ParameterSetting>> for ParameterSettings {
    fn from(settings: Vec<ParameterSetting>) -> Self {
        Self(settings)
    }
}

impl ParameterSettings {
    /// The question with these settings; the same bytes where there are none.
    pub fn apply(&self, question: Bytes) -> Bytes {
        if self.0.is_empty() {
            return question;
        }
        let Ok(mut body) = serde_json::from_slice::<Map<String, Value>>(&question) else { return question };
        for ParameterSetting { name, value } in &self.0 {
            // Servers refuse both names of the longest answer at once.
            if let Some(other) = longest_answer(name).filter(|_| value.is_some()) {
                body.shift_remove(other);
            }
            match value {
                Some(value) => drop(body.insert(name.clone(), value.clone())),
                None => drop(body.shift_remove(name)),
            }
        }
        Bytes::from(Value::Object(body).to_string())
    }
}

/// The other name of the longest answer: `max_tokens` is the former one, and some servers know that one alone.
fn longest_answer(name: &str) -> Option<&'static str> {
    match name {
        "max_completion_tokens" => Some("max_tokens"),
        "max_tokens" => Some("max_completion_tokens"),
        _ => None,
    }
}

/// A parameter that an upstream may refuse, with the names by which its errors mean it, lower case.
struct Negotiable {
    name: &'static str,
    meant_by: &'static [&'static str],
}

const LONGEST_ANSWER: &[&str] = &["max_completion_tokens", "max_tokens", "max_output_tokens", "maxoutputtokens"];

/// Taken from errors of `OpenAI`, Azure, Anthropic, Gemini, Mistral, `DeepSeek`, vLLM, llama.cpp, LM Studio and `LiteLLM`.
const NEGOTIABLE: &[Negotiable] = &[
    Negotiable { name: "temperature", meant_by: &["temperature"] },
    Negotiable { name: "seed", meant_by: &["seed"] },
    Negotiable { name: "max_completion_tokens", meant_by: LONGEST_ANSWER },
    Negotiable { name: "max_tokens", meant_by: LONGEST_ANSWER },
    Negotiable {
        name: "response_format",
        meant_by: &[
            "response_format",
            "responseformat",
            "json_schema",
            "json_object",
            "response_schema",
            "responseschema",
            "output_config",
            "structured output",
            "structured outputs",
            "guided decoding",
            "grammar",
        ],
    },
];

/// Words of refusals. An error of the upstream's own (5xx) is one only where it uses one of them.
const REFUSING: &[&str] = &[
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "invalid",
    "deprecated",
    "permitted",
    "allowed",
    "forbidden",
    "unavailable",
];
/// Words of errors about the length of a question: no parameter makes that fit.
const ABOUT_LENGTH: &[&str] =
    &["context length", "context window", "context_length", "context size", "prompt is too long"];

/// What is changed in a question because its upstream refuses a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterChange {
    name: &'static str,
    /// The name under which the same value is given instead; `None` leaves it out.
    instead: Option<&'static str>,
    /// The beginning of the refusal.
    pub refusal: String,
}

impl fmt::Display for ParameterChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instead {
            Some(instead) => write!(out, "{instead} in place of {}", self.name),
            None => write!(out, "without {}", self.name),
        }
    }
}

impl ParameterChange {
    /// Whether it is about the same parameter.
    pub fn is_like(&self, other: &Self) -> bool {
        self.name == other.name
    }

    /// Changes a question.
    pub fn apply(&self, question: &mut Map<String, Value>) {
        if let (Some(value), Some(instead)) = (question.shift_remove(self.name), self.instead) {
            question.insert(instead.to_owned(), value);
        }
    }

    /// What to change in a question that was answered with this error, after other changes; `None` where no parameter is refused
    /// that may be changed. A refusal that names nothing is taken for one of the schema, which many servers do not know.
    pub fn of_refusal(status: u16, reply: &[u8], sent: &Map<String, Value>, before: &[Self]) -> Option<Self> {
        let error = UpstreamRefusal::read(status, reply)?;
        let may = |parameter: &&Negotiable| sent.contains_key(parameter.name);
        let named = NEGOTIABLE
            .iter()
            .filter(may)
            .filter_map(|parameter| Some((error.place_of(parameter.meant_by)?, parameter)));
        let named = named.min_by_key(|(place, _)| *place).map(|(_, parameter)| parameter.name);
        let may_be_schema = || {
            let is_named = |names: &[&str]| error.place_of(names).is_some();
            let names_any = NEGOTIABLE.iter().any(|parameter| is_named(parameter.meant_by))
                || sent.keys().any(|name| !FIXED.contains(&name.as_str()) && is_named(&[name]));
            (error.may_be_unnamed() && !names_any && sent.contains_key("response_format")).then_some("response_format")
        };
        let name = named.or_else(may_be_schema)?;
        let is_new = |other: &&str| before.iter().all(|change| change.name != *other);
        Some(Self { name, instead: longest_answer(name).filter(is_new), refusal: error.quoted() })
    }
}

/// An error that may refuse a parameter.
struct UpstreamRefusal {
    status: u16,
    /// Names that stand where the API names the parameter.
    named: Vec<String>,
    /// All that it says.
    text: String,
    lower: String,
}

impl UpstreamRefusal {
    /// Reads an error: by its status, or by what a reply of success says. `None` where it is no refusal of a question as it was put.
    fn read(status: u16, reply: &[u8]) -> Option<Self> {
        let value = serde_json::from_slice::<Value>(reply).ok();
        let is_error =
            |value: &Value| value.get("error").is_some_and(|error| !error.is_null()) && value.get("choices").is_none();
        let may_refuse = match status {
            401 | 402 | 403 | 408 | 409 | 413 | 429 => false,
            200..300 => value.as_ref().is_some_and(is_error),
            400.. => true,
            _ => false,
        };
        if !may_refuse {
            return None;
        }
        let (mut named, mut texts) = (Vec::new(), Vec::new());
        match &value {
            Some(value) => gather(value, None, &mut named, &mut texts),
            None => texts.push(String::from_utf8_lossy(reply).into_owned()),
        }
        let text = texts.join("\n");
        let error = Self { status, named, lower: text.to_ascii_lowercase(), text };
        let says = |words: &[&str]| words.iter().any(|word| error.lower.contains(word));
        let is_refusal = !says(ABOUT_LENGTH) && (status < 500 || says(REFUSING));
        is_refusal.then_some(error)
    }

    /// Where it first means one of these: before all text where the API names it.
    fn place_of(&self, names: &[&str]) -> Option<usize> {
        if self.named.iter().any(|named| names.contains(&named.as_str())) {
            return Some(0);
        }
        let places = names.iter().filter_map(|name| word(&self.lower, name));
        places.min().map(|place| place + 1)
    }

    /// Whether a parameter may be refused that is not named.
    fn may_be_unnamed(&self) -> bool {
        matches!(self.status, 400 | 404 | 415 | 422)
    }

    fn quoted(&self) -> String {
        let words = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() { format!("status {}", self.status) } else { words.chars().take(QUOTED).collect() }
    }
}

/// The texts of an error, what it says before its codes, and what it names as a parameter.
fn gather(value: &Value, key: Option<&str>, named: &mut Vec<String>, texts: &mut Vec<String>) {
    let is_name = matches!(key, Some("param" | "loc" | "field" | "parameter"));
    match value {
        Value::String(text) if is_name => {
            let head = text.split(['.', '[', '/']).next().unwrap_or_default();
            named.push(head.to_ascii_lowercase());
        }
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| gather(value, key, named, texts)),
        Value::Object(members) => {
            let says = |key: &str| matches!(key, "message" | "msg" | "error" | "detail");
            let (first, then): (Vec<_>, Vec<_>) = members.iter().partition(|(key, _)| says(key));
            first.into_iter().chain(then).for_each(|(key, value)| gather(value, Some(key), named, texts));
        }
        _ => {}
    }
}

/// Where a word stands in a text, not as a part of a longer one.
fn word(text: &str, word: &str) -> Option<usize> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_part(before) && !is_part(bytes.get(at + word.len()))
    })
}

#[cfg(test)]
#[path = "negotiable_tests.rs"]
mod tests;
