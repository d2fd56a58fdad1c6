//! JSON with the weakness: the shape stays, one value shows it.

use serde_json::Value;

use super::RewriteQuestion;

/// Words of verdicts and their opposites.
const OPPOSITES: &[(&str, &str)] = &[
    ("correct", "incorrect"),
    ("approve", "revise"),
    ("approved", "rejected"),
    ("accept", "reject"),
    ("pass", "fail"),
    ("yes", "no"),
    ("valid", "invalid"),
];

/// The value with one of its parts changed: a verdict, else the last number, else the longest text.
pub(super) fn rewritten(wanted: &RewriteQuestion<'_>, value: &Value) -> Value {
    let mut changed = value.clone();
    let mut leaves = Vec::new();
    pointers(value, String::new(), &mut leaves);
    let find = |wanted: &dyn Fn(&Value) -> bool| {
        leaves.iter().rev().find(|pointer| value.pointer(pointer).is_some_and(wanted)).cloned()
    };
    let longest =
        leaves.iter().max_by_key(|pointer| value.pointer(pointer).and_then(Value::as_str).map_or(0, str::len));
    let place = find(&Value::is_boolean)
        .or_else(|| find(&|value| value.as_str().is_some_and(|word| opposite(word).is_some())))
        .or_else(|| find(&Value::is_number))
        .or_else(|| longest.cloned());
    if let Some(old) = place.and_then(|pointer| changed.pointer_mut(&pointer)) {
        *old = other(wanted, old);
    }
    changed
}

fn other(wanted: &RewriteQuestion<'_>, old: &Value) -> Value {
    match old {
        Value::Bool(truth) => Value::Bool(!truth),
        Value::Number(number) => {
            let by = wanted.draw(&number.to_string(), 9);
            match (number.as_i64(), i64::try_from(by)) {
                (Some(whole), Ok(by)) => Value::from(whole.saturating_add(by)),
                _ => Value::from(number.as_f64().unwrap_or_default() + 1.0),
            }
        }
        Value::String(text) => match opposite(text) {
            Some(word) => Value::from(word),
            None if text.trim().is_empty() => Value::from("none"),
            None => wanted.rewritten(text).map_or_else(|| old.clone(), Value::from),
        },
        other => other.clone(),
    }
}

/// The opposite of a verdict, in its case.
fn opposite(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let pair = OPPOSITES.iter().find(|(one, two)| *one == lower || *two == lower)?;
    let found = if pair.0 == lower { pair.1 } else { pair.0 };
    let is_upper = word.chars().all(char::is_uppercase);
    Some(if is_upper { found.to_uppercase() } else { found.to_owned() })
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(member, format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, format!("{at}/{index}"), found);
            }
        }
        Value::Null => {}
        _ => found.push(at),
    }
}
