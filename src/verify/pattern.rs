//! A regular expression in a configuration: checked when it is read, bounded in size.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The largest compiled pattern, in bytes.
const SIZE_MAX: usize = 1 << 20;

/// A pattern of the `regex` crate.
#[derive(Debug, Clone)]
pub struct Pattern(::regex::Regex);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the parser.
    pub fn new(text: &str) -> Result<Self, String> {
        let built = ::regex::RegexBuilder::new(text).size_limit(SIZE_MAX).build();
        built.map(Self).map_err(|error| format!("`{text}` is no pattern: {error}"))
    }

    /// The compiled pattern.
    pub fn regex(&self) -> &::regex::Regex {
        &self.0
    }

    /// What the last match says: its group `answer`, else its first group, else all of it.
    pub fn last_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        let found = self.0.captures_iter(text).last()?;
        found.name("answer").or_else(|| found.get(1)).or_else(|| found.get(0)).map(|found| found.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "regex"})
    }
}
