//! What the rows and files of a format look like, declared once: JSON Schemas and the columns of Parquet are both made
//! of it, and the tests hold every writer to it.

use serde_json::{Map, Value, json};

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// Any JSON value; in a column, its text.
    Json,
    /// What it says, or `null`.
    Maybe(&'static Type),
    /// A list.
    List(&'static Type),
    /// An object with these fields and no other.
    Record(&'static [Field]),
    /// An object with these fields, and such as an importer kept; a column takes none of those.
    Open(&'static [Field]),
    /// An object whose keys are free; in a column, its text.
    Map(&'static Type),
}

/// A part of a dataset.
pub(super) const SPLIT: Type = Type::OneOf(&["train", "validation", "test"]);

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub enum Field {
    /// Always there.
    Needed(&'static str, Type),
    /// May be absent.
    May(&'static str, Type),
}

impl Field {
    /// Its name.
    pub fn name(&self) -> &'static str {
        let (Self::Needed(name, _) | Self::May(name, _)) = self;
        name
    }

    /// What it holds.
    pub fn kind(&self) -> &Type {
        let (Self::Needed(_, of) | Self::May(_, of)) = self;
        of
    }

    /// Whether it is always there.
    pub fn is_needed(&self) -> bool {
        matches!(self, Self::Needed(..))
    }
}

/// Agents that spoke after the error, and whether another reply of theirs would have saved the run.
pub(super) const LATER_AGENTS: Field = Field::May(
    "missed_catch",
    Type::List(&Type::Open(&[
        Field::Needed("agent", Type::Text),
        Field::Needed("step", Type::Text),
        Field::Needed("state", Type::Text),
    ])),
);

impl Type {
    /// The JSON Schema (draft 2020-12) of the type, under a title.
    pub fn json_schema(&self, title: &str, about: &str) -> Value {
        let mut schema = Map::new();
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("$id".to_owned(), format!("urn:aegis:schema:{title}").into());
        schema.insert("title".to_owned(), title.into());
        schema.insert("description".to_owned(), about.into());
        if let Value::Object(own) = self.schema() {
            schema.extend(own);
        }
        Value::Object(schema)
    }

    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::OneOf(words) => json!({"enum": words}),
            Self::Whole => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Json => json!({}),
            Self::Maybe(of) => json!({"anyOf": [of.schema(), {"type": "null"}]}),
            Self::List(of) => json!({"type": "array", "items": of.schema()}),
            Self::Record(fields) => object(fields, false),
            Self::Open(fields) => object(fields, true),
            Self::Map(of) => json!({"type": "object", "additionalProperties": of.schema()}),
        }
    }
}

fn object(fields: &[Field], open: bool) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name().to_owned(), field.kind().schema())).collect();
    let needed: Vec<&str> = fields.iter().filter(|field| field.is_needed()).map(Field::name).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": needed});
    if let Some(fields) = schema.as_object_mut().filter(|_| !open) {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
