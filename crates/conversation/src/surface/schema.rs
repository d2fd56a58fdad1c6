//! Whether an edited value fits a JSON schema, in three answers: it does, it does not, or the schema holds a rule that is
//! not understood here, and then nobody can tell. An edit stands only where the answer is yes.
//!
//! Rules are those of draft 2020-12 that APIs take for structured output and tools, and `items` as a list of older
//! drafts. What an edit left as it was needs no rule: it passed before.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::trajectory::Pattern;

/// Deepest nesting that is looked at, so that a schema that refers to itself ends.
const DEPTH_MAX: usize = 64;
/// Most pairs of a schema and a value that are looked at: a schema that refers to itself twice would double at each step.
const PAIRS_MAX: u32 = 100_000;

/// Rules that say nothing of a value by themselves: words for people, and what other rules look up.
const SILENT: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "additionalItems",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "example",
    "examples",
    "id",
    "maxContains",
    "minContains",
    "readOnly",
    "then",
    "title",
    "writeOnly",
];

/// What a schema says of a value; the rule that decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaFit<'s> {
    /// It fits.
    Yes,
    /// It breaks this rule.
    No(&'s str),
    /// This rule is not understood.
    Unsure(&'s str),
}

impl<'s> SchemaFit<'s> {
    fn from_bool(holds: bool, rule: &'s str) -> Self {
        if holds { Self::Yes } else { Self::No(rule) }
    }

    /// All must hold: one that does not decides, and only then one that is not understood.
    fn all(fits: impl Iterator<Item = Self>) -> Self {
        let mut unsure = Self::Yes;
        for fit in fits {
            match fit {
                Self::No(_) => return fit,
                Self::Unsure(_) if unsure == Self::Yes => unsure = fit,
                Self::Yes | Self::Unsure(_) => {}
            }
        }
        unsure
    }

    /// How many hold, and what was not understood, if anything was.
    fn count(fits: impl Iterator<Item = Self>) -> (usize, Option<Self>) {
        let (mut hold, mut unsure) = (0, None);
        for fit in fits {
            match fit {
                Self::Yes => hold += 1,
                Self::Unsure(_) => unsure = unsure.or(Some(fit)),
                Self::No(_) => {}
            }
        }
        (hold, unsure)
    }
}

/// Why an edit cannot stand, for whoever reads that it was refused; `None`: `after` fits.
pub fn misfit(schema: &Value, before: Option<&Value>, after: &Value) -> Option<String> {
    match fits(schema, before, after) {
        SchemaFit::Yes => None,
        SchemaFit::No(rule) => Some(format!("it breaks the rule `{rule}`")),
        SchemaFit::Unsure(rule) => Some(format!("the rule `{rule}` is not understood, so nobody can tell")),
    }
}

/// Whether `after`, edited from `before`, fits `schema`.
pub fn fits<'s>(schema: &'s Value, before: Option<&Value>, after: &Value) -> SchemaFit<'s> {
    Schema { root: schema, pairs: &Cell::new(0), depth: 0 }.fits(schema, before, after)
}

/// A schema on the way through it.
#[derive(Clone, Copy)]
struct Schema<'s, 'c> {
    root: &'s Value,
    pairs: &'c Cell<u32>,
    depth: usize,
}

impl<'s> Schema<'s, '_> {
    fn fits(self, schema: &'s Value, before: Option<&Value>, after: &Value) -> SchemaFit<'s> {
        if before == Some(after) {
            return SchemaFit::Yes;
        }
        self.pairs.set(self.pairs.get().saturating_add(1));
        if self.depth > DEPTH_MAX || self.pairs.get() > PAIRS_MAX {
            return SchemaFit::Unsure("$ref");
        }
        let inner = Self { depth: self.depth + 1, ..self };
        match schema {
            Value::Bool(holds) => SchemaFit::from_bool(*holds, "false"),
            // A tool may be offered without one: nothing is said of its arguments.
            Value::Null => SchemaFit::Yes,
            Value::Object(rules) => {
                SchemaFit::all(rules.iter().map(|(rule, wanted)| inner.rule(rules, rule, wanted, before, after)))
            }
            _ => SchemaFit::Unsure("$schema"),
        }
    }

    fn rule(
        self,
        rules: &'s Map<String, Value>,
        rule: &'s str,
        wanted: &'s Value,
        before: Option<&Value>,
        value: &Value,
    ) -> SchemaFit<'s> {
        match (rule, wanted) {
            (rule, _) if SILENT.contains(&rule) || rule.starts_with("x-") => SchemaFit::Yes,
            ("$ref", Value::String(path)) => match path.strip_prefix('#').and_then(|path| self.root.pointer(path)) {
                Some(schema) => self.fits(schema, before, value),
                None => SchemaFit::Unsure(rule),
            },
            ("type", wanted) => {
                is_of(wanted, value).map_or(SchemaFit::Unsure(rule), |is| SchemaFit::from_bool(is, rule))
            }
            ("enum", Value::Array(allowed)) => {
                SchemaFit::from_bool(allowed.iter().any(|one| is_equal_value(one, value)), rule)
            }
            ("const", wanted) => SchemaFit::from_bool(is_equal_value(wanted, value), rule),
            ("allOf", Value::Array(all)) => SchemaFit::all(all.iter().map(|schema| self.fits(schema, before, value))),
            ("anyOf" | "oneOf" | "not" | "if", wanted) => self.branches(rules, rule, wanted, value),
            ("pattern", Value::String(pattern)) => has_pattern(rule, pattern, value),
            ("format", Value::String(format)) => has_format(rule, format, value),
            (
                "items"
                | "prefixItems"
                | "contains"
                | "uniqueItems"
                | "additionalProperties"
                | "properties"
                | "patternProperties"
                | "propertyNames"
                | "required"
                | "dependentRequired",
                wanted,
            ) => match value {
                Value::Array(items) => self.array(rules, rule, wanted, before, items),
                Value::Object(members) => self.object(rules, rule, wanted, before, members),
                _ => SchemaFit::Yes,
            },
            _ => bound(rule, wanted, value),
        }
    }

    /// Rules of which parts may fail: what was there before proves nothing of a part.
    fn branches(self, rules: &'s Map<String, Value>, rule: &'s str, wanted: &'s Value, value: &Value) -> SchemaFit<'s> {
        match (rule, wanted) {
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                match (rule, SchemaFit::count(branches.iter().map(|schema| self.fits(schema, None, value)))) {
                    ("anyOf", (1.., _)) | ("oneOf", (1, None)) => SchemaFit::Yes,
                    ("oneOf", (2.., _)) | (_, (_, None)) => SchemaFit::No(rule),
                    (_, (_, Some(unsure))) => unsure,
                }
            }
            ("not", schema) => match self.fits(schema, None, value) {
                SchemaFit::Yes => SchemaFit::No(rule),
                SchemaFit::No(_) => SchemaFit::Yes,
                unsure @ SchemaFit::Unsure(_) => unsure,
            },
            ("if", schema) => {
                let then = match self.fits(schema, None, value) {
                    SchemaFit::Yes => rules.get("then"),
                    SchemaFit::No(_) => rules.get("else"),
                    unsure @ SchemaFit::Unsure(_) => return unsure,
                };
                then.map_or(SchemaFit::Yes, |schema| self.fits(schema, None, value))
            }
            _ => SchemaFit::Unsure(rule),
        }
    }

    fn array(
        self,
        rules: &'s Map<String, Value>,
        rule: &'s str,
        wanted: &'s Value,
        before: Option<&Value>,
        items: &[Value],
    ) -> SchemaFit<'s> {
        let was = |at: usize| before.and_then(|before| before.get(at));
        let each = |schema: &'s Value, from: usize| {
            let rest = items.iter().enumerate().skip(from);
            SchemaFit::all(rest.map(|(at, item)| self.fits(schema, was(at), item)))
        };
        let ahead = |schemas: &'s Vec<Value>| {
            let pairs = schemas.iter().zip(items).enumerate();
            SchemaFit::all(pairs.map(|(at, (schema, item))| self.fits(schema, was(at), item)))
        };
        match (rule, wanted) {
            ("prefixItems", Value::Array(schemas)) => ahead(schemas),
            ("items", Value::Array(schemas)) => {
                let rest = rules.get("additionalItems").map(|schema| each(schema, schemas.len()));
                SchemaFit::all([ahead(schemas)].into_iter().chain(rest))
            }
            ("items", schema) => each(schema, rules.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len)),
            ("uniqueItems", Value::Bool(wanted)) => {
                let twice =
                    |(at, item): (usize, &Value)| items.iter().take(at).any(|earlier| is_equal_value(earlier, item));
                SchemaFit::from_bool(!wanted || !items.iter().enumerate().any(twice), rule)
            }
            ("contains", schema) => {
                let (hold, unsure) = SchemaFit::count(items.iter().map(|item| self.fits(schema, None, item)));
                let bound = |name: &str| rules.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
                let fits =
                    hold >= bound("minContains").unwrap_or(1) && bound("maxContains").is_none_or(|most| hold <= most);
                unsure.unwrap_or(SchemaFit::from_bool(fits, rule))
            }
            ("prefixItems" | "uniqueItems", _) => SchemaFit::Unsure(rule),
            _ => SchemaFit::Yes,
        }
    }

    fn object(
        self,
        rules: &'s Map<String, Value>,
        rule: &'s str,
        wanted: &'s Value,
        before: Option<&Value>,
        members: &Map<String, Value>,
    ) -> SchemaFit<'s> {
        let was = |name: &str| before.and_then(|before| before.get(name));
        match (rule, wanted) {
            ("properties", Value::Object(properties)) => SchemaFit::all(
                properties
                    .iter()
                    .filter_map(|(name, schema)| members.get(name).map(|member| self.fits(schema, was(name), member))),
            ),
            ("patternProperties", Value::Object(patterns)) => {
                SchemaFit::all(patterns.iter().map(|(pattern, schema)| {
                    let Ok(pattern) = Pattern::new(pattern) else { return SchemaFit::Unsure(rule) };
                    let named = members.iter().filter(|(name, _)| pattern.regex().is_match(name));
                    SchemaFit::all(named.map(|(name, member)| self.fits(schema, was(name), member)))
                }))
            }
            ("additionalProperties", schema) => {
                let names = rules.get("properties").and_then(Value::as_object);
                let patterns = rules.get("patternProperties").and_then(Value::as_object);
                let patterns: Option<Vec<Pattern>> =
                    patterns.into_iter().flatten().map(|(pattern, _)| Pattern::new(pattern).ok()).collect();
                let Some(patterns) = patterns else { return SchemaFit::Unsure("patternProperties") };
                let more = members.iter().filter(|(name, _)| {
                    !names.is_some_and(|names| names.contains_key(*name))
                        && !patterns.iter().any(|pattern| pattern.regex().is_match(name))
                });
                SchemaFit::all(more.map(|(name, member)| match self.fits(schema, was(name), member) {
                    SchemaFit::No(_) => SchemaFit::No(rule),
                    fit => fit,
                }))
            }
            ("propertyNames", schema) => {
                SchemaFit::all(members.keys().map(|name| self.fits(schema, None, &Value::from(name.as_str()))))
            }
            ("required", Value::Array(names)) => SchemaFit::from_bool(has(members, names), rule),
            ("dependentRequired", Value::Object(needs)) => {
                SchemaFit::all(needs.iter().map(|(name, names)| match names {
                    Value::Array(names) => {
                        SchemaFit::from_bool(!members.contains_key(name) || has(members, names), rule)
                    }
                    _ => SchemaFit::Unsure(rule),
                }))
            }
            ("items" | "prefixItems" | "contains" | "uniqueItems", _) => SchemaFit::Yes,
            _ => SchemaFit::Unsure(rule),
        }
    }
}

fn has(members: &Map<String, Value>, names: &[Value]) -> bool {
    names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name))
}

/// Whether a value is of a type, or of one of some; `None` where one has no such name.
fn is_of(wanted: &Value, value: &Value) -> Option<bool> {
    let is = |name: &str| match name {
        "object" => Some(value.is_object()),
        "array" => Some(value.is_array()),
        "string" => Some(value.is_string()),
        "boolean" => Some(value.is_boolean()),
        "null" => Some(value.is_null()),
        "number" => Some(value.is_number()),
        "integer" => {
            Some(value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0))
        }
        _ => None,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => {
            let all: Option<Vec<bool>> = names.iter().map(|name| is(name.as_str()?)).collect();
            all.map(|all| all.contains(&true))
        }
        _ => None,
    }
}

/// Whether two values are equal; numbers by what they are worth, `1` and `1.0` alike.
fn is_equal_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_equal_value(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| is_equal_value(left, right)))
        }
        _ => left == right,
    }
}

fn has_pattern<'s>(rule: &'s str, pattern: &str, value: &Value) -> SchemaFit<'s> {
    let Some(text) = value.as_str() else { return SchemaFit::Yes };
    Pattern::new(pattern)
        .map_or(SchemaFit::Unsure(rule), |pattern| SchemaFit::from_bool(pattern.regex().is_match(text), rule))
}

/// The formats that can be told here; those of numbers say nothing of a text.
fn has_format<'s>(rule: &'s str, format: &str, value: &Value) -> SchemaFit<'s> {
    let Some(text) = value.as_str() else { return SchemaFit::Yes };
    let uuid = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
            && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match format {
        "date-time" => SchemaFit::from_bool(text.parse::<jiff::Timestamp>().is_ok(), rule),
        "date" => SchemaFit::from_bool(text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(), rule),
        "uuid" => SchemaFit::from_bool(uuid(text), rule),
        _ => SchemaFit::Unsure(rule),
    }
}

fn bound<'s>(rule: &'s str, wanted: &Value, value: &Value) -> SchemaFit<'s> {
    #[expect(clippy::cast_precision_loss, reason = "lengths of a text are far below 2^52")]
    let size = match (rule, value) {
        ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", Value::Number(number)) => {
            number.as_f64()
        }
        ("minLength" | "maxLength", Value::String(text)) => Some(text.chars().count() as f64),
        ("minItems" | "maxItems", Value::Array(items)) => Some(items.len() as f64),
        ("minProperties" | "maxProperties", Value::Object(members)) => Some(members.len() as f64),
        (
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength"
            | "minItems" | "maxItems" | "minProperties" | "maxProperties",
            _,
        ) => return SchemaFit::Yes,
        _ => return SchemaFit::Unsure(rule),
    };
    let (Some(size), Some(bound)) = (size, wanted.as_f64()) else { return SchemaFit::Unsure(rule) };
    let multiple = |ratio: f64| (ratio - ratio.round()).abs() <= 1e-9 * ratio.abs().max(1.0);
    let holds = match rule {
        "minimum" | "minLength" | "minItems" | "minProperties" => size >= bound,
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => size <= bound,
        "exclusiveMinimum" => size > bound,
        "exclusiveMaximum" => size < bound,
        _ => bound > 0.0 && multiple(size / bound),
    };
    SchemaFit::from_bool(holds, rule)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
