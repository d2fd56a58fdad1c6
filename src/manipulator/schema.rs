//! Whether a value fits a JSON schema, as far as strict structured output uses schemas: types, enums, constants,
//! objects, arrays, unions, local references, bounds. What it does not know it lets pass.

use serde_json::Value;

/// Deepest nesting that is looked at, so that a schema that refers to itself ends.
const DEPTH_LIMIT: usize = 64;

/// Whether `value` fits `schema`.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    fits_within(schema, schema, value, 0)
}

fn fits_within(root: &Value, schema: &Value, value: &Value, depth: usize) -> bool {
    let Some(rules) = schema.as_object() else { return schema.as_bool().unwrap_or(true) };
    depth > DEPTH_LIMIT
        || rules.iter().all(|(rule, wanted)| {
            let inner = |schema: &Value, value: &Value| fits_within(root, schema, value, depth + 1);
            match rule.as_str() {
                "$ref" => match wanted.as_str().and_then(|path| path.strip_prefix('#')) {
                    Some(pointer) => root.pointer(pointer).is_none_or(|schema| inner(schema, value)),
                    None => true,
                },
                "type" => fits_type(wanted, value),
                "enum" => wanted.as_array().is_none_or(|allowed| allowed.contains(value)),
                "const" => wanted == value,
                "anyOf" | "oneOf" => wanted.as_array().is_none_or(|any| any.iter().any(|schema| inner(schema, value))),
                "allOf" => wanted.as_array().is_none_or(|all| all.iter().all(|schema| inner(schema, value))),
                "items" => value.as_array().is_none_or(|items| items.iter().all(|item| inner(wanted, item))),
                "properties" => fits_properties(wanted, value, inner),
                "required" | "additionalProperties" => fits_keys(rule, wanted, rules.get("properties"), value),
                _ => fits_bound(rule, wanted, value),
            }
        })
}

fn fits_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn fits_properties(wanted: &Value, value: &Value, inner: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Some(properties), Some(members)) = (wanted.as_object(), value.as_object()) else { return true };
    properties.iter().all(|(name, schema)| members.get(name).is_none_or(|member| inner(schema, member)))
}

fn fits_keys(rule: &str, wanted: &Value, properties: Option<&Value>, value: &Value) -> bool {
    let Some(members) = value.as_object() else { return true };
    if rule == "required" {
        let names = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
        return names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name));
    }
    wanted != &Value::Bool(false)
        || members.keys().all(|name| properties.is_some_and(|properties| properties.get(name).is_some()))
}

fn fits_bound(rule: &str, wanted: &Value, value: &Value) -> bool {
    let Some(bound) = wanted.as_f64() else { return true };
    #[expect(clippy::cast_precision_loss, reason = "lengths of a text are far below 2^52")]
    let size = match value {
        Value::Number(number) if !rule.contains("Length") && !rule.contains("Items") => number.as_f64(),
        Value::String(text) if rule.contains("Length") => Some(text.chars().count() as f64),
        Value::Array(items) if rule.contains("Items") => Some(items.len() as f64),
        _ => None,
    };
    let Some(size) = size else { return true };
    match rule {
        "minimum" | "minLength" | "minItems" => size >= bound,
        "maximum" | "maxLength" | "maxItems" => size <= bound,
        "exclusiveMinimum" => size > bound,
        "exclusiveMaximum" => size < bound,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdict_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "verdict": {"enum": ["correct", "incorrect"]},
                "score": {"type": "integer", "minimum": 0, "maximum": 10},
                "notes": {"type": ["string", "null"], "maxLength": 5},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            },
            "required": ["verdict"],
            "additionalProperties": false,
            "$defs": {"part": {"anyOf": [{"type": "string"}, {"const": 1}]}},
        });
        for (value, expected) in [
            (json!({"verdict": "correct", "score": 3, "notes": null}), true),
            (json!({"verdict": "wrong"}), false),
            (json!({"verdict": "correct", "score": 11}), false),
            (json!({"verdict": "correct", "score": 1.5}), false),
            (json!({"verdict": "correct", "notes": "longer"}), false),
            (json!({"verdict": "correct", "parts": ["a", 1]}), true),
            (json!({"verdict": "correct", "parts": [2]}), false),
            (json!({"verdict": "correct", "other": 1}), false),
            (json!({"score": 1}), false),
            (json!([]), false),
        ] {
            assert_eq!(fits(&schema, &value), expected, "{value}");
        }
        let endless = json!({"$ref": "#"});
        assert!(fits(&endless, &json!(1)));
    }
}
