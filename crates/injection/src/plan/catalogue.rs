//! The catalogue of manipulators and faults, and the JSON schema of plans: both read off the types, so that neither
//! can disagree with what a plan may say.

use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::file::PlanFile;
use crate::trajectory::Side;
use crate::{fault, manipulator};

/// Whether an entry edits content or disturbs the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It stands under `manipulator`.
    Manipulator,
    /// It stands under `fault`.
    Fault,
}

/// A manipulator or a fault as a plan's author sees it.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct CatalogueEntry {
    /// Which of the two.
    pub operation: Operation,
    /// The name that plans use.
    pub name: &'static str,
    /// The sides that it edits; none for a fault.
    pub sides: Vec<Side>,
    /// What it does: the first line of its documentation.
    pub summary: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// A plan that uses it, with a check that passes.
    pub example: String,
}

/// A parameter of a manipulator or a fault.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it takes, in words.
    pub takes: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it is when left out, where that is one value.
    pub default: Option<Value>,
    /// What it means.
    pub summary: String,
}

/// Every manipulator, then every fault, in the order of their lists.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let manipulators = manipulator::listed().into_iter();
    let manipulators =
        manipulators.map(|(name, sides, schema)| entry(Operation::Manipulator, name, sides.to_vec(), &schema));
    let faults = fault::listed().into_iter().map(|(name, schema)| entry(Operation::Fault, name, Vec::new(), &schema));
    manipulators.chain(faults).collect()
}

/// The JSON schema of plans.
pub fn schema() -> Schema {
    schemars::schema_for!(PlanFile)
}

fn entry(operation: Operation, name: &'static str, sides: Vec<Side>, schema: &Schema) -> CatalogueEntry {
    let nothing = Map::new();
    let object = schema.as_object().unwrap_or(&nothing);
    let docs = object.get("description").and_then(Value::as_str).unwrap_or_default();
    let required: Vec<&str> = strings(object.get("required")).collect();
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    let parameters = properties.iter().map(|(name, property)| Parameter {
        name: name.clone(),
        takes: accepted_values(property, object),
        required: required.contains(&name.as_str()),
        default: property.get("default").filter(|default| !default.is_null()).cloned(),
        summary: property.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " "),
    });
    let (summary, example) = (first_line(docs), example(docs));
    CatalogueEntry { operation, name, sides, summary, parameters: parameters.collect(), example }
}

fn first_line(docs: &str) -> String {
    docs.split("\n\n").next().unwrap_or_default().replace('\n', " ")
}

/// The block fenced as `toml` in a documentation text.
fn example(docs: &str) -> String {
    let block = docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_default().trim().to_owned()
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// What a property takes, in words.
fn accepted_values(property: &Value, root: &Map<String, Value>) -> String {
    if let Some(name) = property.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/")) {
        return root
            .get("$defs")
            .and_then(|defs| defs.get(name))
            .map(|inner| accepted_values(inner, root))
            .unwrap_or_default();
    }
    if let Some(word) = property.get("const").and_then(Value::as_str) {
        return format!("`{word}`");
    }
    let words: Vec<String> = strings(property.get("enum")).map(|word| format!("`{word}`")).collect();
    if !words.is_empty() {
        return words.join(" | ");
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(options) = property.get(union).and_then(Value::as_array) {
            let options = options.iter().filter(|option| option.get("type").is_none_or(|kind| kind != "null"));
            let words: Vec<String> = options.map(|option| accepted_values(option, root)).collect();
            return words.join(" | ");
        }
    }
    let kind = property.get("type");
    let kind = kind.and_then(Value::as_str).or_else(|| strings(kind).find(|word| *word != "null"));
    match kind {
        Some("object") => match property.get("properties").and_then(Value::as_object) {
            Some(keys) => {
                format!("{{ {} }}", keys.keys().map(|key| format!("{key} = …")).collect::<Vec<_>>().join(", "))
            }
            None => "table".to_owned(),
        },
        Some("boolean") => "`true` | `false`".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("string") => "text".to_owned(),
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
