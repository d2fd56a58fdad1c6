//! A schema that lists every member: what Aegis does not write is no member, so a reader's test finds a member that nobody
//! documented.

use serde_json::{Map, Value};

const DEFINITIONS: &str = "#/$defs/";
/// Keywords whose schemas describe the same value as the schema that they stand in.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Closes each object of a schema that was made from a type.
pub(super) fn closed(mut schema: Value) -> Value {
    let definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let merging = Merging { definitions };
    if let Some(defined) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        defined.values_mut().for_each(|schema| merging.close(schema, Objects::Closed));
    }
    merging.close(&mut schema, Objects::Closed);
    without_unused(&mut schema);
    schema
}

/// Whether a schema describes an object alone, or together with the schema around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Objects {
    /// Alone: what it does not list may not be there.
    Closed,
    /// Together: the schema around it closes the object.
    Open,
}

/// The definitions of a schema as they were made.
struct Merging {
    definitions: Map<String, Value>,
}

impl Merging {
    fn close(&self, schema: &mut Value, objects: Objects) {
        let Some(fields) = schema.as_object_mut() else { return };
        // What a type does in place of a missing member is a reader's affair.
        fields.remove("default");
        let shares = fields.contains_key("properties") || fields.contains_key("allOf") || objects == Objects::Open;
        if shares {
            self.merge_reference(fields);
        }
        refuse_null(fields);
        let is_composed = IN_PLACE.iter().any(|keyword| fields.contains_key(*keyword));
        let within = if shares { Objects::Open } else { objects };
        for (keyword, value) in fields.iter_mut() {
            match (keyword.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(members)) => {
                    members.values_mut().for_each(|member| self.close(member, Objects::Closed));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    for part in parts {
                        self.close(part, within);
                    }
                }
                ("prefixItems", Value::Array(items)) => {
                    for item in items {
                        self.close(item, Objects::Closed);
                    }
                }
                ("items" | "additionalProperties", item) => self.close(item, Objects::Closed),
                _ => {}
            }
        }
        let keyword = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
        if objects == Objects::Closed && shares && !fields.contains_key("additionalProperties") {
            fields.insert(keyword.to_owned(), false.into());
        }
    }

    /// Puts the members of a definition where a schema that has members of its own refers to it: a closed definition would refuse
    /// those.
    fn merge_reference(&self, fields: &mut Map<String, Value>) {
        let name = fields.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix(DEFINITIONS));
        let Some(Value::Object(definition)) = name.and_then(|name| self.definitions.get(name)).cloned() else { return };
        fields.remove("$ref");
        for (keyword, value) in definition {
            match (fields.get_mut(&keyword), value) {
                (Some(Value::Object(own)), Value::Object(more)) => own.extend(more),
                (Some(Value::Array(own)), Value::Array(more)) => own.extend(more),
                (Some(_), _) => {}
                (None, value) => drop(fields.insert(keyword, value)),
            }
        }
        self.merge_reference(fields);
    }
}

/// A member that may be absent is absent where a value would be `null`: it is not both.
fn refuse_null(fields: &mut Map<String, Value>) {
    let required: Vec<String> = fields
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    let Some(members) = fields.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, member) in members.iter_mut().filter(|(name, _)| !required.contains(name)) {
        let Some(member) = member.as_object_mut() else { continue };
        if let Some(Value::Array(kinds)) = member.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [kind] = kinds.as_slice() {
                let kind = kind.clone();
                member.insert("type".to_owned(), kind);
            }
        }
        if let Some(Value::Array(values)) = member.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        let Some(Value::Array(parts)) = member.get_mut("anyOf") else { continue };
        parts.retain(|part| part.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(part)] = parts.as_slice() {
            let part = part.clone();
            member.shift_remove("anyOf");
            part.into_iter().for_each(|(keyword, value)| drop(member.insert(keyword, value)));
        }
    }
}

/// Removes definitions that nothing refers to any more.
fn without_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(defined) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
        let before = defined.len();
        defined.retain(|name, _| text.contains(&format!("\"{DEFINITIONS}{name}\"")));
        if defined.is_empty() {
            schema.as_object_mut().map(|fields| fields.remove("$defs"));
            return;
        }
        if schema.get("$defs").and_then(Value::as_object).is_none_or(|defined| defined.len() == before) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_object_is_closed_once() {
        let tagged = json!({
            "oneOf": [
                {"$ref": "#/$defs/Open", "type": "object", "properties": {"kind": {"const": "open"}}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "stop"}, "of": {"$ref": "#/$defs/Other"}}},
            ],
            "$defs": {
                "Open": {"type": "object", "properties": {"step": {"type": "integer", "default": 1}}, "required": ["step"],
                    "anyOf": [{"$ref": "#/$defs/Other"}, {}]},
                "Other": {"type": "object", "properties": {"more": true}},
            },
        });
        let made = closed(tagged);
        let expected = json!({
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "open"}, "step": {"type": "integer"}},
                    "required": ["kind", "step"],
                    "anyOf": [{"type": "object", "properties": {"more": true}}, {}], "unevaluatedProperties": false},
                {"type": "object", "properties": {"kind": {"const": "stop"}, "of": {"$ref": "#/$defs/Other"}},
                    "additionalProperties": false},
            ],
            "$defs": {"Other": {"type": "object", "properties": {"more": true}, "additionalProperties": false}},
        });
        assert_eq!(made, expected);
        let validator = jsonschema::draft202012::new(&made).expect("a schema");
        for (value, fits) in [
            (json!({"kind": "open", "step": 1}), true),
            (json!({"kind": "open", "step": 1, "more": 1}), true),
            (json!({"kind": "open", "step": 1, "other": 1}), false),
            (json!({"kind": "stop", "of": {}}), true),
            (json!({"kind": "stop", "of": {"less": 1}}), false),
        ] {
            assert_eq!(validator.is_valid(&value), fits, "{value}");
        }
    }

    #[test]
    fn members_with_free_names_stay() {
        let map = json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"a": true}}});
        let made = closed(map);
        assert_eq!(made["additionalProperties"]["additionalProperties"], false);
        assert!(closed(json!({"type": "object"})).get("additionalProperties").is_none());
    }
}
