//! Edits inside a JSON text that leave every byte outside the edited values as it was.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// What kind of value a [`JsonLeaf`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    /// A string; the range lies between its quotes.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// A value that holds no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonLeaf {
    /// Its bytes in the text.
    pub(super) range: Range<usize>,
    /// Its kind.
    pub(super) kind: LeafKind,
    /// The nearest key above it.
    pub(super) key: String,
}

/// The strings, numbers and booleans of a JSON object or array, in order; `None` when the text is neither.
pub(super) fn leaves(text: &str) -> Option<Vec<JsonLeaf>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let mut leaves = Vec::new();
    collect(text, root, "", &mut leaves)?;
    Some(leaves)
}

/// Edits string values; `edit` gets each decoded and returns what it becomes. `None` when none was edited.
pub(super) fn edit_strings(text: &str, mut edit: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut edits = Vec::new();
    for leaf in leaves(text)?.into_iter().filter(|leaf| leaf.kind == LeafKind::String) {
        let raw = text.get(leaf.range.start.checked_sub(1)?..leaf.range.end + 1)?;
        // A lone surrogate has no decoded form; such a string is left alone.
        let Ok(decoded) = serde_json::from_str::<String>(raw) else { continue };
        if let Some(edited) = edit(&decoded) {
            edits.push((leaf.range, encoded(&edited)));
        }
    }
    if edits.is_empty() { None } else { Some(splice(text, edits)) }
}

/// A text as it stands between the quotes of a JSON string.
pub(super) fn encoded(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Replaces ranges that do not overlap, whatever their order.
pub(super) fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut edited, mut from) = (String::with_capacity(text.len()), 0);
    for (range, new) in edits {
        edited.push_str(text.get(from..range.start).unwrap_or_default());
        edited.push_str(&new);
        from = range.end;
    }
    edited.push_str(text.get(from..).unwrap_or_default());
    edited
}

/// Sets the value at a JSON pointer; the last key of the pointer may be new to its object. `None` when there is no
/// such place.
pub(super) fn set(text: &str, pointer: &str, value: &Value) -> Option<String> {
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let keys: Vec<String> = pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect();
    let (last, path) = keys.split_last()?;
    let mut parent = root;
    for key in path {
        parent = child(parent, key)?;
    }
    if let Some(old) = child(parent, last) {
        return Some(splice(text, vec![(range_in(text, old.get())?, value.to_string())]));
    }
    let Members(members) = serde_json::from_str(parent.get()).ok()?;
    let close = range_in(text, parent.get())?.end - 1;
    let comma = if members.is_empty() { "" } else { ", " };
    Some(splice(text, vec![(close..close, format!("{comma}{}: {value}", Value::from(last.as_str())))]))
}

fn child<'a>(parent: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    if let Ok(Members(members)) = serde_json::from_str(parent.get()) {
        // Of equal keys the last one counts, as readers have it.
        return members.into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(parent.get()).ok()?;
    elements.get(key.parse::<usize>().ok()?).copied()
}

fn collect(text: &str, value: &RawValue, key: &str, leaves: &mut Vec<JsonLeaf>) -> Option<()> {
    let range = range_in(text, value.get())?;
    let (range, kind) = match value.get().as_bytes().first()? {
        b'{' => {
            let Members(members) = serde_json::from_str(value.get()).ok()?;
            return members.iter().try_for_each(|(name, member)| collect(text, member, name, leaves));
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            return elements.iter().try_for_each(|element| collect(text, element, key, leaves));
        }
        b'"' => (range.start + 1..range.end - 1, LeafKind::String),
        b't' | b'f' => (range, LeafKind::Boolean),
        b'n' => return Some(()),
        _ => (range, LeafKind::Number),
    };
    leaves.push(JsonLeaf { range, kind, key: key.to_owned() });
    Some(())
}

/// Where a slice of `text` lies in it.
fn range_in(text: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    text.get(start..start + part.len())?;
    Some(start..start + part.len())
}

/// The members of an object in order, duplicates kept, values unparsed.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_in_order_with_their_keys() {
        let text = r#" {"a": "x\n", "b": [1.0, {"c": true}], "d": null}"#;
        let found: Vec<(&str, &str)> = leaves(text)
            .expect("json")
            .iter()
            .map(|leaf| (leaf.key.as_str(), text.get(leaf.range.clone()).expect("in")))
            .map(|(k, v)| (text_of(k), v))
            .collect();
        assert_eq!(found, [("a", "x\\n"), ("b", "1.0"), ("c", "true")]);
        for other in ["", "12", "\"a\"", "{", "{} x", "plain"] {
            assert_eq!(leaves(other), None, "{other}");
        }
    }

    fn text_of(key: &str) -> &'static str {
        ["a", "b", "c", "d"].into_iter().find(|known| *known == key).expect("a known key")
    }

    #[test]
    fn set_touches_only_its_value() {
        for (text, pointer, value, expected) in [
            (r#"{"a": 1e2, "b": "x"}"#, "/b", json!("y"), Some(r#"{"a": 1e2, "b": "y"}"#)),
            (r#"{"a": {"b": [1, 2]}}"#, "/a/b/1", json!(5), Some(r#"{"a": {"b": [1, 5]}}"#)),
            (r#"{"a":1}"#, "/c", json!(true), Some(r#"{"a":1, "c": true}"#)),
            ("{}", "/c", json!(1), Some(r#"{"c": 1}"#)),
            (r#"{"a/b~": 1}"#, "/a~1b~0", json!(2), Some(r#"{"a/b~": 2}"#)),
            (r#"{"a": 1, "a": 2}"#, "/a", json!(3), Some(r#"{"a": 1, "a": 3}"#)),
            (r#"{"a":1}"#, "/b/c", json!(1), None),
            ("[1]", "/1", json!(1), None),
            ("not json", "/a", json!(1), None),
            ("{}", "", json!(1), None),
        ] {
            assert_eq!(set(text, pointer, &value).as_deref(), expected, "{text} {pointer}");
        }
    }

    proptest! {
        #[test]
        fn an_edited_string_reads_back_and_nothing_else_moves(new in ".{0,20}", old in "[a-z \"\\\\\n]{1,10}") {
            let text = format!("{{\"n\": 1e2 , \"s\": {}}}", Value::from(old.as_str()));
            let edited = edit_strings(&text, |_| Some(new.clone())).expect("one string");
            let untouched = "{\"n\": 1e2 , \"s\": \"";
            prop_assert_eq!(edited.get(..untouched.len()), Some(untouched));
            let value: Value = serde_json::from_str(&edited).expect("still json");
            prop_assert_eq!(value.pointer("/s"), Some(&Value::from(new)));
        }
    }
}
