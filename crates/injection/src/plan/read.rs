//! A plan's text into the entries of [`super::file`]: every entry on its own, and every problem of an entry, because
//! one mistake should not hide the next.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::Problem;
use super::file::{CheckEntry, InjectionEntry, PlanFile};
use super::{FORMATS, INJECTION_LIMIT, SIZE_LIMIT};
use crate::trajectory::nearest;

/// Most problems of one entry that are reported; each costs a reading of the entry.
const PROBLEMS_OF_ENTRY: usize = 20;
/// Most known names that an error lists; beyond that it says where the list is.
const NAMES_SHOWN: usize = 12;

/// A plan file read as far as its types go.
pub(super) struct PlanDocument {
    pub(super) text: String,
    pub(super) head: PlanFile,
    pub(super) injections: Vec<Read<InjectionEntry>>,
    pub(super) checks: Vec<Read<CheckEntry>>,
    /// What was wrong so far.
    pub(super) problems: Vec<Problem>,
}

/// An entry, less what could not be read of it.
pub struct Read<T> {
    /// What was read.
    pub value: T,
    /// Where its header stands.
    pub span: Range<usize>,
    /// The keys that it was written with, readable or not.
    pub present: Vec<String>,
    /// The paths of the keys that could not be read.
    broken: Vec<Vec<String>>,
}

impl<T> Read<T> {
    /// Whether it was written with this key.
    pub fn has(&self, key: &str) -> bool {
        self.present.iter().any(|present| present == key)
    }

    /// Whether something under this key could not be read, and was reported.
    pub(super) fn is_broken(&self, key: &str) -> bool {
        self.broken.iter().any(|path| path.first().is_some_and(|first| first == key))
    }
}

/// Reads the text.
///
/// # Errors
/// The one problem that hides all others: size, syntax, or a format of another version.
pub(super) fn read(text: &str) -> Result<PlanDocument, Vec<Problem>> {
    if text.len() > SIZE_LIMIT {
        let message = format!("the plan has {} bytes: expected at most {SIZE_LIMIT}", text.len());
        return Err(vec![Problem::new(0..0, message)]);
    }
    let mut root = DeTable::parse(text).map_err(|error| vec![syntax_problem(&error)])?.into_inner();
    let mut problems = Vec::new();
    let injections = take_entries(&mut root, "injection", &mut problems);
    let checks = take_entries(&mut root, "check", &mut problems);
    let root = Spanned::new(0..0, DeValue::Table(root));
    let head = read_entry::<PlanFile>(root, &mut problems).map(|read| read.value).unwrap_or_default();
    if let Some(format) = &head.format
        && !FORMATS.contains(format.get_ref())
    {
        let message = format!("plan format {} is not one that this build reads", format.get_ref());
        let reads = if FORMATS.start() == FORMATS.end() {
            format!("this build reads format {}", FORMATS.end())
        } else {
            format!("this build reads formats {} to {}", FORMATS.start(), FORMATS.end())
        };
        return Err(vec![Problem::new(format.span(), message).hint(reads)]);
    }
    if let Some(beyond) = injections.get(INJECTION_LIMIT) {
        let message = format!("the plan has {} injections: expected at most {INJECTION_LIMIT}", injections.len());
        return Err(vec![Problem::new(beyond.span(), message)]);
    }
    let injections = injections.into_iter().filter_map(|entry| read_entry(entry, &mut problems)).collect();
    let checks = checks.into_iter().filter_map(|entry| read_entry(entry, &mut problems)).collect();
    Ok(PlanDocument { text: text.to_owned(), head, injections, checks, problems })
}

/// A syntax error with its place.
pub fn syntax_problem(error: &toml::de::Error) -> Problem {
    let message: Vec<&str> = error.message().lines().collect();
    let span = error.span().unwrap_or(0..0);
    // The parser goes by the first letter of a bare word: it takes `ten` for a misspelt `true`.
    let guesses = ["invalid boolean", "invalid float", "string values must be quoted"];
    if guesses.iter().any(|guess| error.message().starts_with(guess)) {
        let is_missing = span.is_empty();
        let expected =
            if is_missing { "expected a value" } else { "expected a number, `true`, `false` or text in quotes" };
        return Problem::new(span, expected);
    }
    Problem::new(span, message.join(", "))
}

/// Takes a list of tables out of a document.
pub fn take_entries<'a>(root: &mut DeTable<'a>, key: &str, problems: &mut Vec<Problem>) -> Vec<Spanned<DeValue<'a>>> {
    let Some(entries) = root.remove(key) else { return Vec::new() };
    let span = entries.span();
    let DeValue::Array(entries) = entries.into_inner() else {
        let message = format!("`{key}` is not a list of tables");
        problems.push(Problem::new(span, message).hint(format!("write `[[{key}]]`, with two brackets")));
        return Vec::new();
    };
    entries.into_iter().collect()
}

/// Reads one entry. What is wrong in it is reported and taken out, and the rest read again, until it reads.
pub fn read_entry<T: DeserializeOwned>(
    mut entry: Spanned<DeValue<'_>>,
    problems: &mut Vec<Problem>,
) -> Option<Read<T>> {
    let span = entry.span();
    let Some(table) = entry.get_ref().as_table() else {
        problems.push(Problem::new(span, "expected a table"));
        return None;
    };
    let present = table.keys().map(|key| key.get_ref().to_string()).collect();
    let mut broken: Vec<Vec<String>> = Vec::new();
    loop {
        let error = match T::deserialize(ValueDeserializer::from(entry.clone())) {
            Ok(value) => return Some(Read { value, span, present, broken }),
            Err(error) => error,
        };
        let at = error.span().unwrap_or_else(|| span.clone());
        let DeValue::Table(table) = entry.get_mut() else { return None };
        let path = path_to(table, &at);
        // What misses something only because it was taken out is no news.
        if !broken.iter().any(|broken| broken.starts_with(&path)) {
            problems.push(type_problem(at, error.message(), &path));
        }
        if broken.len() >= PROBLEMS_OF_ENTRY || remove(table, &path).is_none() {
            return None;
        }
        broken.push(path);
    }
}

/// The keys that lead to a place; none when it is the table's own.
fn path_to(table: &DeTable<'_>, at: &Range<usize>) -> Vec<String> {
    let within = |span: Range<usize>| span.start <= at.start && at.end <= span.end;
    for (key, value) in table {
        let inner = value.get_ref().as_table().map(|table| path_to(table, at)).unwrap_or_default();
        if !inner.is_empty() || within(key.span()) || within(value.span()) {
            return [vec![key.get_ref().to_string()], inner].concat();
        }
    }
    Vec::new()
}

fn remove(table: &mut DeTable<'_>, path: &[String]) -> Option<()> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return table.remove(first.as_str()).map(|_| ());
    }
    let (_, value) = table.iter_mut().find(|(key, _)| key.get_ref() == first)?;
    match value.get_mut() {
        DeValue::Table(table) => remove(table, rest),
        _ => None,
    }
}

/// What serde says, in the words of plans.
fn type_problem(at: Range<usize>, message: &str, path: &[String]) -> Problem {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some((named, known)) = quoted.split_first() else {
        let problem = Problem::new(at, in_words(message));
        return if path.as_slice() == ["when"] { problem.hint(WHEN_FORMS) } else { problem };
    };
    let noun = |kind: &str| match (kind, path.as_slice()) {
        ("variant", ["manipulator", _]) => format!("unknown manipulator `{named}`"),
        ("variant", ["fault", _]) => format!("unknown fault `{named}`"),
        // Of a value that is a table, the place is the name itself.
        ("variant", [.., owner, key]) if key == named => format!("unknown value `{named}` of `{owner}`"),
        ("variant", [.., key]) => format!("unknown value `{named}` of `{key}`"),
        ("field", ["manipulator" | "fault", operator, ..]) => format!("unknown parameter `{named}` of `{operator}`"),
        ("field", ["when", _]) => format!("unknown condition `{named}`"),
        ("missing", [.., owner]) => format!("missing parameter `{named}` of `{owner}`"),
        _ => format!("unknown key `{named}`"),
    };
    if message.starts_with("unknown variant") {
        Problem::new(at, noun("variant")).hint(suggestion(named, known, &path))
    } else if message.starts_with("unknown field") {
        Problem::new(at, noun("field")).hint(suggestion(named, known, &path))
    } else if message.starts_with("missing field") {
        Problem::new(at, noun("missing"))
    } else {
        Problem::new(at, in_words(message))
    }
}

fn suggestion(named: &str, known: &[&str], path: &[&str]) -> String {
    let catalogue = match path {
        ["manipulator" | "fault", _] => format!("`aegis plan list` lists all {}", known.len()),
        _ => String::new(),
    };
    let listed = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (nearest(named, known.iter().copied()), known.len()) {
        (_, 0) => "it has none".to_owned(),
        (Some(near), _) if catalogue.is_empty() => format!("did you mean `{near}`?"),
        (Some(near), _) => format!("did you mean `{near}`? {catalogue}"),
        (None, count) if count <= NAMES_SHOWN => format!("expected one of {listed}"),
        (None, _) => catalogue,
    }
}

/// What a condition looks like, for who wrote none, or wrote it in words.
pub(super) const WHEN_FORMS: &str = "for example `when.call = 0`, its first call, or `when.always = true`";

/// Rust's names of types, and TOML's of shapes, in plain words.
fn in_words(message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    if message.contains("exactly 1 element") || message.contains("unit variant") {
        return "expected exactly one name with a table of parameters, as in `end_early = {}`".to_owned();
    }
    if message == "wanted string or table" {
        return "expected a name".to_owned();
    }
    let Some((got, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" => "a whole number from 0",
        "a nonzero u32" => "a whole number from 1",
        "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        expected if expected.starts_with("struct ") || expected == "a map" => "a table",
        expected => expected,
    };
    format!("{got}: expected {words}")
}
