//! Rules of schemas, each with what fits it and what breaks it.

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
        (json!({"verdict": "correct", "score": 3, "notes": null}), SchemaFit::Yes),
        (json!({"verdict": "wrong"}), SchemaFit::No("enum")),
        (json!({"verdict": "correct", "score": 11}), SchemaFit::No("maximum")),
        (json!({"verdict": "correct", "score": 1.5}), SchemaFit::No("type")),
        (json!({"verdict": "correct", "notes": "longer"}), SchemaFit::No("maxLength")),
        (json!({"verdict": "correct", "parts": ["a", 1.0]}), SchemaFit::Yes),
        (json!({"verdict": "correct", "parts": [2]}), SchemaFit::No("anyOf")),
        (json!({"verdict": "correct", "other": 1}), SchemaFit::No("additionalProperties")),
        (json!({"score": 1}), SchemaFit::No("required")),
        (json!([]), SchemaFit::No("type")),
    ] {
        assert_eq!(fits(&schema, None, &value), expected, "{value}");
    }
}

/// A schema, what fits it, and what breaks it.
type Ruled = (Value, Vec<Value>, Vec<Value>);

fn check_table(table: Vec<Ruled>) {
    for (schema, yes, no) in table {
        for value in yes {
            assert_eq!(fits(&schema, None, &value), SchemaFit::Yes, "{schema} {value}");
        }
        for value in no {
            assert!(matches!(fits(&schema, None, &value), SchemaFit::No(_)), "{schema} {value}");
        }
    }
}

#[test]
fn rules_of_values_and_branches() {
    check_table(vec![
        (json!({"pattern": "^[A-Z]{2}-\\d+$"}), vec![json!("AB-1"), json!(1)], vec![json!("AB-1 ")]),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
            vec![json!(1), json!(2.5)],
            vec![json!(3), json!(1.5)],
        ),
        (json!({"anyOf": [{"type": "integer"}, {"minimum": 2}]}), vec![json!(3)], vec![json!(1.5)]),
        (json!({"allOf": [{"type": "integer"}, {"minimum": 2}]}), vec![json!(3)], vec![json!(1), json!(2.5)]),
        (json!({"not": {"type": "null"}}), vec![json!(0)], vec![json!(null)]),
        (
            json!({"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}),
            vec![json!(2), json!("a")],
            vec![json!(1), json!(null)],
        ),
        (json!({"const": [1]}), vec![json!([1.0])], vec![json!([2])]),
    ]);
}

#[test]
fn rules_of_items_members_and_bounds() {
    check_table(vec![
        (json!({"items": false}), vec![json!([]), json!({})], vec![json!([1])]),
        (
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}),
            vec![json!(["a", 1]), json!([])],
            vec![json!([1]), json!(["a", "b"])],
        ),
        (
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            vec![json!(["a"])],
            vec![json!([1]), json!(["a", 1])],
        ),
        (json!({"contains": {"const": 1}, "maxContains": 1}), vec![json!([1, 2])], vec![json!([2]), json!([1, 1])]),
        (json!({"uniqueItems": true}), vec![json!([1, 2])], vec![json!([1, 1.0])]),
        (json!({"minItems": 1, "maxItems": 2}), vec![json!([1])], vec![json!([]), json!([1, 2, 3])]),
        (json!({"minLength": 2}), vec![json!("éé")], vec![json!("é")]),
        (
            json!({"minProperties": 1, "maxProperties": 1}),
            vec![json!({"a": 1})],
            vec![json!({}), json!({"a": 1, "b": 2})],
        ),
        (json!({"additionalProperties": {"type": "integer"}}), vec![json!({"a": 1})], vec![json!({"a": "b"})]),
        (
            json!({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false}),
            vec![json!({"n_a": 1})],
            vec![json!({"n_a": "b"}), json!({"a": 1})],
        ),
        (json!({"propertyNames": {"maxLength": 1}}), vec![json!({"a": 1})], vec![json!({"ab": 1})]),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            vec![json!({"b": 1}), json!({"a": 1, "b": 1})],
            vec![json!({"a": 1})],
        ),
        (json!({"multipleOf": 0.1}), vec![json!(0.3), json!(7)], vec![json!(0.25)]),
        (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), vec![json!(0.5)], vec![json!(0), json!(1)]),
        (json!({"format": "date"}), vec![json!("2025-02-28"), json!(1)], vec![json!("2025-02-30"), json!("soon")]),
        (json!({"format": "date-time"}), vec![json!("2025-02-28T10:00:00Z")], vec![json!("2025-02-28")]),
        (
            json!({"format": "uuid"}),
            vec![json!("123e4567-e89b-12d3-a456-426614174000")],
            vec![json!("123e4567e89b12d3a456426614174000")],
        ),
        (json!({"title": "T", "description": "d", "default": 1, "x-order": 2}), vec![json!("a")], vec![]),
        (json!(true), vec![json!(1)], vec![]),
        (json!(null), vec![json!({"a": 1})], vec![]),
        (json!(false), vec![], vec![json!(1)]),
    ]);
}

#[test]
fn what_is_not_understood_is_not_let_pass() {
    for (schema, rule) in [
        (json!({"nullable": true}), "nullable"),
        (json!({"unevaluatedProperties": false}), "unevaluatedProperties"),
        (json!({"type": "file"}), "type"),
        (json!({"pattern": "(?=a)"}), "pattern"),
        (json!({"format": "hostname"}), "format"),
        (json!({"$ref": "https://example.org/schema"}), "$ref"),
        (json!({"$ref": "#/$defs/none"}), "$ref"),
        (json!({"$ref": "#"}), "$ref"),
        (json!({"oneOf": [{"type": "string"}, {"nullable": true}]}), "nullable"),
        (json!({"not": {"nullable": true}}), "nullable"),
        (json!({"minLength": "two"}), "minLength"),
        (json!({"enum": "a"}), "enum"),
        (json!("string"), "$schema"),
    ] {
        assert_eq!(fits(&schema, None, &json!("a")), SchemaFit::Unsure(rule), "{schema}");
    }
    // Twice at each step: it ends all the same.
    let twice = json!({"anyOf": [{"allOf": [{"$ref": "#"}, false]}, {"allOf": [{"$ref": "#"}, false]}]});
    assert_eq!(fits(&twice, None, &json!("a")), SchemaFit::Unsure("$ref"));
    // What is known decides alone where it can.
    let any = json!({"anyOf": [{"nullable": true}, {"type": "string"}]});
    assert_eq!(fits(&any, None, &json!("a")), SchemaFit::Yes);
    assert_eq!(fits(&json!({"nullable": true, "type": "integer"}), None, &json!("a")), SchemaFit::No("type"));
}

#[test]
fn what_an_edit_left_alone_needs_no_rule() {
    let schema = json!({"properties": {
        "host": {"format": "hostname"},
        "list": {"items": {"nullable": true}},
        "note": {"type": "string"},
    }});
    let before = json!({"host": "a.example", "list": [1], "note": "x"});
    for (after, expected) in [
        (json!({"host": "a.example", "list": [1], "note": "y"}), SchemaFit::Yes),
        (json!({"host": "b.example", "list": [1], "note": "x"}), SchemaFit::Unsure("format")),
        (json!({"host": "a.example", "list": [1, 2], "note": "x"}), SchemaFit::Unsure("nullable")),
        (json!({"host": "a.example", "list": [1], "note": 1}), SchemaFit::No("type")),
    ] {
        assert_eq!(fits(&schema, Some(&before), &after), expected, "{after}");
    }
    let one = json!({"oneOf": [{"type": "string"}, {"minLength": 1}]});
    assert_eq!(fits(&json!({"allOf": [one]}), Some(&json!(1)), &json!("a")), SchemaFit::No("oneOf"));
    assert_eq!(misfit(&schema, None, &json!({"note": 1})).as_deref(), Some("it breaks the rule `type`"));
}
