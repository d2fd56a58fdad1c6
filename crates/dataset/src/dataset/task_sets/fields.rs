//! What the user calls the fields of a set of their own.

use std::collections::BTreeMap;

/// What a row may have.
const KNOWN: [&str; 4] = ["question", "answer", "choices", "id"];

/// What the user calls the fields of rows, by what they hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFields(BTreeMap<String, String>);

impl TaskFields {
    /// Reads `question=prompt`.
    ///
    /// # Errors
    /// What was expected.
    pub fn add(&mut self, pair: &str) -> Result<(), String> {
        let expected =
            || format!("expected FIELD=NAME, FIELD one of {}; for example `question=prompt`", KNOWN.join(", "));
        let (what, name) = pair.split_once('=').ok_or_else(expected)?;
        if !KNOWN.contains(&what) || name.is_empty() {
            return Err(expected());
        }
        if self.is_mapped(what) {
            return Err(format!("`{what}` is named twice"));
        }
        self.0.insert(what.to_owned(), name.to_owned());
        Ok(())
    }

    /// Whether the user names any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of the field that holds this: what the user says, else the same word.
    pub(super) fn name<'a>(&'a self, what: &'a str) -> &'a str {
        self.0.get(what).map_or(what, String::as_str)
    }

    /// Whether the user says which field holds this.
    pub(super) fn is_mapped(&self, what: &str) -> bool {
        self.0.contains_key(what)
    }
}
