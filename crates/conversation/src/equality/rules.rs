//! What in a request may differ from run to run without being another request: declared rules, built in or in TOML.
//!
//! A rule replaces what its pattern finds by its name and a number: equal values get equal numbers within one request,
//! so that a request that mixes two ids up still differs. Times are not numbered: whether two of them fall into one
//! second is chance. Rules are only tried where bytes are not equal.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::{
    built_in::BUILT_IN,
    masked::MaskedValue,
    pointer::{Pointer, at_each, pointer, remove},
    rules_error::{FORMAT, RulesError},
    setting::EqualitySetting,
    tool_results::ToolResults,
    volatile_place::{PLACES_MAX, VolatilePlace},
};
use crate::trajectory::{Pattern, compiled};

/// Lists whose order says nothing, unless a file names others: programs that keep their tools in a set offer them in
/// another order in each run.
const UNORDERED: &[&str] = &["/tools"];

/// Normalisation rules.
#[derive(Debug, Clone)]
pub struct Rules {
    volatile: Vec<Volatile>,
    ignored: Vec<Pointer>,
    unordered: Vec<Pointer>,
    /// Whether any blanks between words, and at the ends of a text, are alike.
    blanks_alike: bool,
    tool_results: ToolResults,
    /// What recorded calls showed to be volatile.
    learned: Vec<VolatilePlace>,
    /// The file that they were read from, whole.
    text: Option<Arc<str>>,
}

/// A rule.
#[derive(Debug, Clone)]
struct Volatile {
    name: String,
    pattern: Regex,
    /// Whether equal values are told from different ones.
    numbered: bool,
    /// Whether a value must hold a letter and a digit.
    mixed: bool,
}

/// The volatile values of a request, each with its number. A reply that is read after its request may repeat them; what
/// it says of its own is not volatile.
#[derive(Debug, Default)]
pub(super) struct SeenValues {
    numbers: HashMap<String, usize>,
    closed: bool,
}

impl SeenValues {
    /// The number of a value; `None` where it has none and gets none.
    fn number(&mut self, value: &str) -> Option<usize> {
        let next = self.numbers.len();
        if self.closed {
            return self.numbers.get(value).copied();
        }
        Some(*self.numbers.entry(value.to_owned()).or_insert(next))
    }

    /// From now on only what was seen counts as volatile.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

/// A rules file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    format: u32,
    /// Names of built-in rules that are to hold; all without it.
    built_in: Option<Vec<String>>,
    #[serde(default)]
    rule: Vec<FileRule>,
    /// JSON pointers into the body that are left out of the comparison.
    #[serde(default)]
    ignore: Vec<String>,
    /// JSON pointers to lists whose order does not count.
    unordered: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRule {
    name: String,
    pattern: String,
}

impl Default for Rules {
    fn default() -> Self {
        static COMPILED: OnceLock<Vec<Volatile>> = OnceLock::new();
        let rules = COMPILED.get_or_init(|| {
            let rules = BUILT_IN.iter().map(|rule| {
                let pattern = compiled(rule.pattern);
                Volatile { name: rule.name.to_owned(), pattern, numbered: !rule.is_time, mixed: rule.is_mixed }
            });
            rules.collect()
        });
        let unordered = UNORDERED.iter().filter_map(|text| pointer(text)).collect();
        Self {
            volatile: rules.clone(),
            ignored: Vec::new(),
            unordered,
            blanks_alike: false,
            tool_results: ToolResults::Exact,
            learned: Vec::new(),
            text: None,
        }
    }
}

impl Rules {
    /// No rule: only the order of keys and blanks between tokens may differ.
    pub fn none() -> Self {
        Self { volatile: Vec::new(), unordered: Vec::new(), ..Self::default() }
    }

    /// The same, with all blanks between words and at the ends of a text alike.
    #[must_use]
    pub fn with_blanks_alike(self) -> Self {
        Self { blanks_alike: true, ..self }
    }

    /// The same, with results of tools that may differ so far.
    #[must_use]
    pub fn with_tool_results(self, tool_results: ToolResults) -> Self {
        Self { tool_results, ..self }
    }

    /// The same, with places of requests that are known to be volatile.
    #[must_use]
    pub fn with_volatile(self, learned: Vec<VolatilePlace>) -> Self {
        Self { learned, ..self }
    }

    /// The same, with further places of requests that are known to be volatile.
    #[must_use]
    pub fn with_more_volatile(self, learned: Vec<VolatilePlace>) -> Self {
        let mut all = self.learned.clone();
        for place in learned {
            if all.len() < PLACES_MAX && !all.iter().any(|known| known.is_same_line(&place)) {
                all.push(place);
            }
        }
        self.with_volatile(all)
    }

    /// The same, with what others take for equal beside it.
    #[must_use]
    pub fn joined_with(&self, others: &Self) -> Self {
        let tool_results = self.tool_results.max(others.tool_results);
        self.clone().with_tool_results(tool_results).with_more_volatile(others.learned.clone())
    }

    /// The places of requests that are known to be volatile.
    pub fn volatile(&self) -> &[VolatilePlace] {
        &self.learned
    }

    /// How far results of tools may differ.
    pub fn tool_results(&self) -> ToolResults {
        self.tool_results
    }

    /// What a run's files keep of them.
    pub fn setting(&self) -> EqualitySetting {
        let (rules, volatile) = (self.text.as_deref().map(str::to_owned), self.learned.clone());
        EqualitySetting { rules, tool_results: self.tool_results, volatile }
    }

    /// The rules of a setting. `file` is only named in errors.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn from_setting(setting: &EqualitySetting, file: &str) -> Result<Self, RulesError> {
        let rules = setting.rules.as_deref().map(|text| Self::parse(text, file)).transpose()?;
        let volatile = setting.volatile.clone();
        Ok(rules.unwrap_or_default().with_tool_results(setting.tool_results).with_volatile(volatile))
    }

    /// Reads a rules file. `file` is only named in errors. Own rules come before the built-in ones.
    ///
    /// # Errors
    /// [`RulesError`] with the place and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Self, RulesError> {
        let named = || file.to_owned();
        let read: RulesFile =
            toml::from_str(text).map_err(|error| RulesError::Form { file: named(), error: Box::new(error) })?;
        if read.format == 0 || read.format > FORMAT {
            return Err(RulesError::Future { file: named(), found: read.format });
        }
        let built_in = read.built_in.unwrap_or_else(|| BUILT_IN.iter().map(|rule| rule.name.to_owned()).collect());
        let mut rules = Vec::new();
        for rule in read.rule {
            let pattern = Pattern::new(&rule.pattern).map_err(|error| RulesError::Pattern {
                file: named(),
                rule: rule.name.clone(),
                error,
            })?;
            rules.push(Volatile { name: rule.name, pattern: pattern.regex().clone(), numbered: true, mixed: false });
        }
        let Rules { volatile: known, .. } = Rules::default();
        for name in built_in {
            let found = known.iter().find(|known| known.name == name);
            rules.push(found.cloned().ok_or(RulesError::Unknown { file: named(), name })?);
        }
        let pointers = |texts: Vec<String>| -> Result<Vec<Pointer>, RulesError> {
            let read = |text: String| pointer(&text).ok_or(RulesError::Pointer { file: named(), pointer: text });
            texts.into_iter().map(read).collect()
        };
        let unordered = read.unordered.map_or_else(|| Ok(Rules::default().unordered), pointers)?;
        let ignored = pointers(read.ignore)?;
        Ok(Self { volatile: rules, ignored, unordered, text: Some(text.into()), ..Self::default() })
    }

    /// Whether the ids that calls of tools and stored replies have are volatile: where the rule `id` holds.
    pub(super) fn pair_ids(&self) -> bool {
        self.volatile.iter().any(|rule| rule.name == "id")
    }

    /// Normalises a body's value: ignored places go, strings are masked.
    pub(super) fn apply(&self, value: &mut Value, seen: &mut SeenValues) {
        for pointer in &self.ignored {
            remove(value, pointer);
        }
        for pointer in &self.unordered {
            at_each(value, pointer, &mut |value| {
                if let Value::Array(list) = value {
                    list.sort_by_cached_key(Value::to_string);
                }
            });
        }
        self.mask_strings(value, seen);
    }

    /// Normalises a body that is no JSON.
    pub fn apply_text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        self.mask(&mut masked, &mut SeenValues::default());
        masked
    }

    /// The values that built-in rules mask in a text, by rule, in order. What a rule of the user masks is declared to be volatile.
    pub fn masked_values(&self, text: &str) -> Vec<MaskedValue> {
        let (mut text, mut values) = (text.to_owned(), Vec::new());
        for Volatile { name, pattern, numbered, mixed } in &self.volatile {
            let masked = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
                let whole = found.get(0).map(|found| found.as_str()).unwrap_or_default();
                let kept = found.name("keep").map(|kept| kept.as_str()).unwrap_or_default();
                let value = whole.strip_prefix(kept).unwrap_or(whole);
                if *mixed && !is_mixed(value) {
                    return whole.to_owned();
                }
                if BUILT_IN.iter().any(|rule| rule.name == name) {
                    values.push(MaskedValue { rule: name.clone(), value: value.to_owned(), is_time: !numbered });
                }
                format!("{kept}<{name}>")
            });
            text = masked.into_owned();
        }
        values
    }

    /// Normalises what a model said: only values that its request holds too are volatile there. What it says of its own, a date or an
    /// id among it, is its answer.
    pub fn apply_reply(&self, text: &str, request: &str) -> String {
        let (mut asked, mut answered) = (request.to_owned(), text.to_owned());
        let mut seen = SeenValues::default();
        self.mask(&mut asked, &mut seen);
        seen.close();
        self.mask(&mut answered, &mut seen);
        answered
    }

    /// Masks the strings of a value, and leaves its places as they are.
    pub(super) fn mask_strings(&self, value: &mut Value, seen: &mut SeenValues) {
        match value {
            Value::String(text) => self.mask(text, seen),
            Value::Array(list) => list.iter_mut().for_each(|value| self.mask_strings(value, seen)),
            Value::Object(map) => map.values_mut().for_each(|value| self.mask_strings(value, seen)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces what is volatile in a text. A pattern's group `keep` is left standing.
    fn mask(&self, text: &mut String, seen: &mut SeenValues) {
        // No reply repeats them, and they are known by their lines.
        for place in self.learned.iter().filter(|_| !seen.closed) {
            place.mask(text);
        }
        if self.blanks_alike {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        for Volatile { name, pattern, numbered, mixed } in &self.volatile {
            if !pattern.is_match(text) {
                continue;
            }
            let masked = pattern.replace_all(text, |found: &regex::Captures<'_>| {
                let whole = found.get(0).map(|found| found.as_str()).unwrap_or_default();
                let kept = found.name("keep").map(|kept| kept.as_str()).unwrap_or_default();
                let value = whole.strip_prefix(kept).unwrap_or(whole);
                if *mixed && !is_mixed(value) {
                    return whole.to_owned();
                }
                match seen.number(value) {
                    None => whole.to_owned(),
                    Some(number) if *numbered => format!("{kept}<{name}:{number}>"),
                    Some(_) => format!("{kept}<{name}>"),
                }
            });
            *text = masked.into_owned();
        }
    }
}

/// Whether a value holds a letter and a digit.
fn is_mixed(value: &str) -> bool {
    let has = |kind: fn(&char) -> bool| value.chars().any(|c| kind(&c));
    has(char::is_ascii_alphabetic) && has(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(text: &str) -> String {
        Rules::default().apply_text(text)
    }

    #[test]
    fn equal_values_stay_equal_and_different_ones_different() {
        let text = |first: &str, second: &str| masked(&format!("call_{first} then call_{second}"));
        assert_eq!(text("aaaaaaaa", "aaaaaaaa"), text("bbbbbbbb", "bbbbbbbb"));
        assert_eq!(text("aaaaaaaa", "bbbbbbbb"), text("cccccccc", "dddddddd"));
        assert_ne!(text("aaaaaaaa", "aaaaaaaa"), text("aaaaaaaa", "bbbbbbbb"));
    }

    #[test]
    fn tools_may_be_offered_in_any_order_and_messages_may_not() {
        let form = |tools: &[&str], messages: &[&str]| {
            let mut value = json!({"tools": tools, "messages": messages});
            Rules::default().apply(&mut value, &mut SeenValues::default());
            value
        };
        assert_eq!(form(&["b", "a"], &["x", "y"]), form(&["a", "b"], &["x", "y"]));
        assert_ne!(form(&["a", "b"], &["y", "x"]), form(&["a", "b"], &["x", "y"]));
        let rules = Rules::parse("format = 1\nunordered = []", "r.toml").expect("reads");
        let mut value = json!({"tools": ["b", "a"]});
        rules.apply(&mut value, &mut SeenValues::default());
        assert_eq!(value, json!({"tools": ["b", "a"]}));
    }

    #[test]
    fn a_file_adds_switches_off_and_ignores() {
        let text = "format = 1\nbuilt_in = [\"uuid\"]\nignore = [\"/user\", \"/messages/*/id\"]\n\
                    [[rule]]\nname = \"ticket\"\npattern = 'T-\\d+'\n";
        let rules = Rules::parse(text, "r.toml").expect("reads");
        let mut value = json!({"user": "u", "messages": [{"id": 1, "text": "T-17 on 2026-01-01"}]});
        rules.apply(&mut value, &mut SeenValues::default());
        assert_eq!(value, json!({"messages": [{"text": "<ticket:0> on 2026-01-01"}]}));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        for (text, expected) in [
            ("format = 2", "r.toml: format 2 is not known: expected at most 1"),
            ("format = 1\nbuilt_in = [\"uid\"]", "did you mean `uuid`?"),
            ("format = 1\nignore = [\"user\"]", "`user` is not a JSON pointer"),
            (
                "format = 1\n[[rule]]\nname = \"x\"\npattern = \"(\"",
                "the pattern of rule `x` is not a regular expression: unclosed group",
            ),
            ("format = 1\nrules = 1", "line 2, column 1"),
        ] {
            let error = Rules::parse(text, "r.toml").expect_err("wrong").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
