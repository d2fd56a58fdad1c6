//! A row of a public set, and why one cannot be used.

use serde_json::{Map, Number, Value};

use crate::{dataset::Task, verify::Check};

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct TaskSetRow<'a> {
    /// Its fields.
    pub(super) fields: &'a Map<String, Value>,
    /// The name of its file.
    pub(super) file: &'a str,
}

/// Why a row cannot be used: few words, by which such rows are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(pub String);

impl Unusable {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl<'a> TaskSetRow<'a> {
    /// A field, by the first of its names that is there.
    pub(super) fn field(&self, names: &[&str]) -> Option<&'a Value> {
        names.iter().find_map(|name| self.fields.get(*name)).filter(|value| !value.is_null())
    }

    /// A text that says something, blanks at its ends taken off; by the first of its names that is there.
    pub(super) fn text(&self, names: &[&str]) -> Result<&'a str, Unusable> {
        let text = self.field(names).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        text.ok_or_else(|| Unusable::new(format!("no text in `{}`", names.first().copied().unwrap_or_default())))
    }

    /// A text or a number that names the row.
    pub(super) fn word(&self, name: &str) -> Result<String, Unusable> {
        match self.field(&[name]) {
            Some(Value::Number(number)) => Ok(plain_number(number)),
            _ => self.text(&[name]).map(str::to_owned),
        }
    }

    /// The text as it stands, blanks included: code means by them.
    pub(super) fn verbatim(&self, name: &str) -> Result<&'a str, Unusable> {
        self.text(&[name]).map(|_| self.fields.get(name).and_then(Value::as_str).unwrap_or_default())
    }

    /// Fields that go with the task as they are, under names of ours.
    pub(super) fn extra_fields(&self, names: &[(&str, &str)]) -> Map<String, Value> {
        let said = |value: &&Value| value.as_str().is_none_or(|text| !text.trim().is_empty());
        let kept =
            |(theirs, ours): &(&str, &str)| Some(((*ours).to_owned(), self.field(&[theirs]).filter(said)?.clone()));
        names.iter().filter_map(kept).collect()
    }
}

/// An id that stays the same wherever in whatever file the row stands: the set's name and a hash of what is asked.
pub(super) fn id_of(set: &str, asked: &[&str]) -> String {
    let mut hash = blake3::Hasher::new();
    for text in asked {
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let hash = hash.finalize().to_hex();
    format!("{set}-{}", hash.get(..12).unwrap_or_default())
}

/// An id of the set's own, as a plain word: `HumanEval/0` is `humaneval-0`.
pub(super) fn own_id(set: &str, own: &str) -> String {
    own_id_after(set, set, own)
}

/// The same where ids begin with the name of another set: `HumanEval/0` of HumanEval+ is `humanevalplus-0`.
pub(super) fn own_id_after(set: &str, prefix: &str, own: &str) -> String {
    let own = own.to_lowercase();
    let own = own.strip_prefix(prefix).unwrap_or(&own);
    let words: Vec<&str> = own.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{set}-{}", words.join("-"))
}

/// A number in plain digits: a whole one without `.0`.
pub(super) fn plain_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// A task of a set.
pub(super) fn task(
    set: &str,
    id: String,
    question: String,
    answer: String,
    check: Check,
    kept: Map<String, Value>,
) -> Task {
    let mut extra = Map::new();
    extra.insert("benchmark".to_owned(), set.into());
    extra.extend(kept);
    Task { id, question, answer, check: Some(check), extra }
}
