//! The first place where two requests differ.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use super::Rules;
use crate::equality::Form;

/// Characters of either side that are shown, before and behind the place.
const BEFORE: usize = 24;
const BEHIND: usize = 56;

/// Where two requests first differ, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The place in the body, for example `messages[2].content`.
    pub place: String,
    /// What the record holds there; an excerpt.
    pub recorded: String,
    /// What was asked; an excerpt.
    pub asked: String,
    /// Whether both hold the same words there, in another order.
    pub reordered: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, recorded, asked, .. } = self;
        write!(formatter, "`{place}` was {recorded}, now {asked}")
    }
}

/// The first difference of two bodies of one API shape under the rules; `None` when they are the same request.
pub(super) fn first(surface: &str, recorded: &[u8], asked: &[u8], rules: &Rules) -> Option<Difference> {
    match (Form::from_body(surface, recorded, rules), Form::from_body(surface, asked, rules)) {
        (Form::Json(recorded), Form::Json(asked)) => in_values(&recorded, &asked, &mut String::new()),
        (recorded, asked) => in_texts(&recorded.text(), &asked.text(), "the body"),
    }
}

/// How much of two bodies differs, in bytes.
pub(super) fn size(surface: &str, recorded: &[u8], asked: &[u8], rules: &Rules) -> usize {
    match (Form::from_body(surface, recorded, rules), Form::from_body(surface, asked, rules)) {
        (Form::Json(recorded), Form::Json(asked)) => size_of(Some(&recorded), Some(&asked)),
        (recorded, asked) => middle(recorded.text().as_bytes(), asked.text().as_bytes()),
    }
}

fn size_of(old: Option<&Value>, new: Option<&Value>) -> usize {
    match (old, new) {
        (Some(old), Some(new)) if old == new => 0,
        (Some(Value::String(old)), Some(Value::String(new))) => middle(old.as_bytes(), new.as_bytes()),
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            (0..old.len().max(new.len())).map(|index| size_of(old.get(index), new.get(index))).sum()
        }
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added =
                new.iter().filter(|(key, _)| !old.contains_key(*key)).map(|(_, value)| size_of(None, Some(value)));
            old.iter().map(|(key, value)| size_of(Some(value), new.get(key))).chain(added).sum()
        }
        (old, new) => [old, new].into_iter().flatten().map(|value| value.to_string().len()).sum::<usize>().max(1),
    }
}

/// What stands between the common beginning and the common end of the longer text.
fn middle(old: &[u8], new: &[u8]) -> usize {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    old.len().max(new.len()) - start - end
}

fn in_values(recorded: &Value, asked: &Value, place: &mut String) -> Option<Difference> {
    let length = place.len();
    match (recorded, asked) {
        (Value::Object(old), Value::Object(new)) => {
            let added =
                new.iter().filter(|(key, _)| !old.contains_key(*key)).map(|(key, value)| (key, None, Some(value)));
            for (key, old, new) in old.iter().map(|(key, value)| (key, Some(value), new.get(key))).chain(added) {
                if length > 0 {
                    place.push('.');
                }
                place.push_str(key);
                if let Some(found) = in_places(old, new, place) {
                    return Some(found);
                }
                place.truncate(length);
            }
            None
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let _ = write!(place, "[{index}]");
                if let Some(found) = in_places(old.get(index), new.get(index), place) {
                    return Some(found);
                }
                place.truncate(length);
            }
            None
        }
        (Value::String(old), Value::String(new)) => in_texts(old, new, place),
        (old, new) if old == new => None,
        (old, new) => Some(at(place, &shown(old), &shown(new))),
    }
}

fn in_places(old: Option<&Value>, new: Option<&Value>, place: &mut String) -> Option<Difference> {
    match (old, new) {
        (Some(old), Some(new)) => in_values(old, new, place),
        (Some(old), None) => Some(at(place, &shown(old), "absent")),
        (None, Some(new)) => Some(at(place, "absent", &shown(new))),
        (None, None) => None,
    }
}

fn at(place: &str, recorded: &str, asked: &str) -> Difference {
    let place = if place.is_empty() { "the body" } else { place };
    Difference { place: place.to_owned(), recorded: recorded.to_owned(), asked: asked.to_owned(), reordered: false }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(BEFORE + BEHIND) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn in_texts(old: &str, new: &str, place: &str) -> Option<Difference> {
    if old == new {
        return None;
    }
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let reordered = is_reordered(old, new);
    Some(Difference { reordered, ..at(place, &excerpt(old, same), &excerpt(new, same)) })
}

/// The text around a place, in characters.
fn excerpt(text: &str, place: usize) -> String {
    let from = place.saturating_sub(BEFORE);
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(BEFORE + BEHIND).collect();
    let (before, behind) = (if from > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    format!("{:?}", format!("{before}{shown}{behind}"))
}

/// Whether two texts hold the same words in another order, as of a set that each process orders anew.
fn is_reordered(old: &str, new: &str) -> bool {
    let words = |text: &str| {
        let mut words: Vec<String> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    old.len() == new.len() && words(old) == words(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(recorded: &str, asked: &str, expected: Option<&str>) {
        let found = first("", recorded.as_bytes(), asked.as_bytes(), &Rules::default());
        assert_eq!(found.map(|found| found.to_string()).as_deref(), expected, "{recorded} {asked}");
    }

    #[test]
    fn names_the_first_place() {
        check(r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, None);
        check(r#"{"a":[{"b":"x"}]}"#, r#"{"a":[{"b":"y"}]}"#, Some(r#"`a[0].b` was "x", now "y""#));
        check(r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, Some("`a[1]` was absent, now 2"));
        check(r#"{"a":1,"t":0.5}"#, r#"{"a":1}"#, Some("`t` was 0.5, now absent"));
        check(r#"{"a":1}"#, r#"{"a":"1"}"#, Some(r#"`a` was 1, now "1""#));
        check(r#"{"a":"on 2026-01-01"}"#, r#"{"a":"on 2025-02-02"}"#, None);
        check("[1", "[2", Some(r#"`the body` was "[1", now "[2""#));
        let long = |end: &str| format!("{}{end}", "é".repeat(100));
        let found = first("", long("x").as_bytes(), long("y").as_bytes(), &Rules::none()).expect("differs");
        assert!(found.recorded.starts_with("\"…é") && found.recorded.ends_with("éx\""), "{}", found.recorded);
    }

    #[test]
    fn the_same_words_in_another_order_are_seen() {
        assert!(is_reordered("{'pear', 'plum', 'fig'}", "{'plum', 'pear', 'fig'}"));
        assert!(!is_reordered("{'pear', 'plum'}", "{'pear', 'figs'}"));
    }
}
