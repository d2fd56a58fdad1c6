//! The keys of a file, from its JSON schema.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Map, Value};

use super::{MADE, line};

/// What a page of keys says beside them.
pub(super) struct KeyPage {
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// Keys that another page describes.
    pub(super) elsewhere: &'static [(&'static str, &'static str)],
    /// What keys are where they are left out and the schema does not say it, by their paths.
    pub(super) defaults: Vec<(&'static str, String)>,
}

/// A table that is yet to be written: its heading, its schema.
type PendingTable<'a> = (String, &'a Value);

impl KeyPage {
    /// The page: the file's own keys, then a section for each table in it.
    pub(super) fn text(&self, root: &Value) -> String {
        let mut text = format!("{MADE}# {}\n\n{}\n", self.title, self.description);
        let mut ahead: Vec<PendingTable<'_>> = vec![(String::new(), root)];
        let mut done = BTreeSet::new();
        while !ahead.is_empty() {
            let (heading, table) = ahead.remove(0);
            if !heading.is_empty() {
                if !done.insert(heading.clone()) {
                    continue;
                }
                let _ = write!(text, "\n## `{heading}`\n");
                let about = one_line_description(table.get("description"));
                if !about.is_empty() && !about.starts_with('`') {
                    let _ = write!(text, "\n{about}\n");
                }
            }
            text.push('\n');
            let mut below = self.table(&mut text, table, &heading, root);
            // Depth first: what belongs to a table stands behind it.
            below.append(&mut ahead);
            ahead = below;
        }
        text
    }

    /// The keys of a table; gives the tables within it.
    fn table<'a>(&self, text: &mut String, table: &'a Value, heading: &str, root: &'a Value) -> Vec<PendingTable<'a>> {
        let mut below = Vec::new();
        let required: Vec<&str> = table.get("required").into_iter().flat_map(strings).collect();
        for (key, property) in properties(table) {
            let whole = resolved(property, root);
            let about = [property, whole].map(|schema| one_line_description(schema.get("description")));
            let about = about.into_iter().find(|about| !about.is_empty()).unwrap_or_default();
            let path = [heading.trim_matches(['[', ']']), key].join(".");
            let known = self.defaults.iter().find(|(name, _)| *name == path.trim_start_matches('.'));
            let default = match property.get("default").or_else(|| whole.get("default")) {
                _ if required.contains(&key.as_str()) => ", required".to_owned(),
                _ if known.is_some() => known.map(|(_, value)| format!(", default `{value}`")).unwrap_or_default(),
                Some(Value::Null | Value::Object(_)) | None => String::new(),
                Some(Value::Array(items)) if items.is_empty() => String::new(),
                Some(value) => format!(", default `{value}`"),
            };
            let takes = match self.elsewhere.iter().find(|(name, _)| name == key) {
                Some((name, place)) => format!("a [{name}]({place})"),
                None => accepted_values(property, root),
            };
            if !self.elsewhere.iter().any(|(name, _)| name == key) {
                below.extend(nested_tables(key, heading, whole, root));
            }
            let _ = writeln!(text, "- `{key}` ({}{default}): {}", line(&takes), line(&about));
        }
        below
    }
}

/// The tables that a key holds: itself, each of a list, or one for each of its variants.
fn nested_tables<'a>(key: &str, heading: &str, property: &'a Value, root: &'a Value) -> Vec<PendingTable<'a>> {
    let path = match heading.trim_matches(['[', ']']) {
        "" => key.to_owned(),
        above => format!("{above}.{key}"),
    };
    if property.get("properties").is_some() {
        return vec![(format!("[{path}]"), property)];
    }
    if let Some(items) = property.get("items").map(|items| resolved(items, root)) {
        if items.get("properties").is_some() {
            return vec![(format!("[[{path}]]"), items)];
        }
        return variants(&path, items, root);
    }
    variants(&path, property, root)
}

/// Tables of one key each, of which one stands for the choice: `{ numeric = { … } }`.
fn variants<'a>(path: &str, choice: &'a Value, root: &'a Value) -> Vec<PendingTable<'a>> {
    let options = ["oneOf", "anyOf"].into_iter().filter_map(|union| choice.get(union)?.as_array()).flatten();
    let table = |option: &'a Value| -> Option<PendingTable<'a>> {
        let properties = resolved(option, root).get("properties")?.as_object()?;
        let (name, inner) = properties.iter().next().filter(|_| properties.len() == 1)?;
        let inner = resolved(inner, root);
        inner.get("properties")?.as_object().filter(|keys| !keys.is_empty())?;
        Some((format!("{path}: {name}"), inner))
    };
    options.filter_map(table).collect()
}

/// What a key takes, in words.
fn accepted_values(property: &Value, root: &Value) -> String {
    if property.get("$ref").is_some() {
        return accepted_values(resolved(property, root), root);
    }
    if let Some(word) = property.get("const") {
        return format!("`{word}`");
    }
    if let Some(words) = property.get("enum") {
        return strings(words).map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" or ");
    }
    for union in ["oneOf", "anyOf"] {
        if let Some(options) = property.get(union).and_then(Value::as_array) {
            let options = options.iter().filter(|option| option.get("type").is_none_or(|kind| kind != "null"));
            let mut words: Vec<String> = options.map(|option| accepted_values(option, root)).collect();
            words.dedup();
            return words.join(" or ");
        }
    }
    let kind = property.get("type");
    let kind = kind.and_then(Value::as_str).or_else(|| kind.into_iter().flat_map(strings).find(|word| *word != "null"));
    match kind {
        Some("object") => match property.get("properties").and_then(Value::as_object) {
            Some(keys) if keys.len() == 1 => {
                keys.keys().next().map(|key| format!("`{{ {key} = … }}`")).unwrap_or_default()
            }
            _ => "table".to_owned(),
        },
        Some("array") => match property.get("items") {
            Some(items) => match accepted_values(items, root) {
                one if matches!(one.as_str(), "table" | "text" | "whole number") => format!("list of {one}s"),
                other => format!("list of {other}"),
            },
            None => "list".to_owned(),
        },
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("string") if property.get("format").is_some_and(|format| format == "regex") => {
            "regular expression".to_owned()
        }
        Some("string") => "text".to_owned(),
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

/// The schema that is meant: behind references, and behind "this or nothing".
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    if let Some(meant) = named.and_then(|path| root.pointer(path)) {
        return resolved(meant, root);
    }
    let options = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match options {
        [one, null] if null.get("type").is_some_and(|kind| kind == "null") => resolved(one, root),
        _ => schema,
    }
}

fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A description on one line; links of the code's own documentation are words here.
fn one_line_description(description: Option<&Value>) -> String {
    let text = description.and_then(Value::as_str).unwrap_or_default();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.replace('\n', " ").replace("[`", "`").replace("`]", "`")
}
