//! JSON Schemas of every file that Aegis writes and of what each verb prints with `--format json`, made from the types that are
//! written. `aegis reference --schemas DIR` writes them all, and the `OpenAPI` document.

mod closed;
mod files;
mod openapi;
mod page;
mod verbs;

pub(super) use self::page::page;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::dataset::formats::{self, DiskLayout};

/// One schema.
pub(super) struct WrittenSchema {
    /// Its file below the directory of schemas, without `.schema.json`.
    pub(super) name: &'static str,
    /// The files that it describes, or the verb whose output it does.
    pub(super) describes: &'static str,
    /// What those are, in a sentence without its full stop.
    pub(super) about: &'static str,
    make: fn(&mut SchemaGenerator) -> Schema,
    /// Whether the file, or each line of it, ends with a hash of itself.
    has_own_hash: bool,
}

/// Makes the schema of a type: a row of a list names it.
fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<T>()
}

impl WrittenSchema {
    const fn new(
        name: &'static str,
        describes: &'static str,
        about: &'static str,
        make: fn(&mut SchemaGenerator) -> Schema,
    ) -> Self {
        Self { name, describes, about, make, has_own_hash: false }
    }

    /// The same of a file, or of lines, with a hash of their own.
    const fn hashed(self) -> Self {
        Self { has_own_hash: true, ..self }
    }

    /// The schema.
    fn schema(&self) -> Value {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut made = closed::closed((self.make)(&mut generator).into());
        if self.has_own_hash {
            add_own_hash(&mut made);
        }
        let mut schema = Map::new();
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("$id".to_owned(), format!("urn:aegis:schema:{}", self.name.replace('/', ":")).into());
        schema.insert("title".to_owned(), self.name.into());
        schema.insert("description".to_owned(), format!("{}: {}.", self.describes, self.about).into());
        if let Value::Object(made) = made {
            for (keyword, value) in made {
                schema.entry(keyword).or_insert(value);
            }
        }
        Value::Object(schema)
    }
}

/// The hash that a file ends with is a member of it, and of no type.
fn add_own_hash(made: &mut Value) {
    let name = made.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    let defined = name.and_then(|name| made.get("$defs")?.get(name)?.as_object()).cloned();
    if let (Some(defined), Some(root)) = (defined, made.as_object_mut()) {
        root.remove("$ref");
        root.extend(defined);
    }
    if let Some(members) = made.get_mut("properties").and_then(Value::as_object_mut) {
        let about = "A hash of the rest; in lines, of the line before as well. Earlier versions wrote none.";
        members.insert("blake3".to_owned(), serde_json::json!({"type": "string", "description": about}));
    }
}

/// Every schema of files, and then of verbs.
pub(super) fn all() -> impl Iterator<Item = &'static WrittenSchema> {
    files::FILES.iter().chain(verbs::VERBS)
}

/// The files of a directory of schemas: names and texts.
pub(super) fn written() -> Vec<(String, String)> {
    let text = |schema: &Value| serde_json::to_string_pretty(schema).unwrap_or_default() + "\n";
    let own = all().map(|one| (format!("{}.schema.json", one.name), text(&one.schema())));
    let names = formats::ALL
        .iter()
        .filter(|format| format.shape() != DiskLayout::Folder)
        .map(|format| format.name())
        .chain(["dataset"]);
    let rows = names.filter_map(|name| {
        let schema = formats::json_schema(name).ok()?;
        Some((format!("{name}.schema.json"), String::from_utf8(schema).ok()?))
    });
    let http = ("openapi.json".to_owned(), text(&openapi::document()));
    own.chain(rows).chain([http]).collect()
}
