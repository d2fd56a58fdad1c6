//! Structured output: filled by meaning, and always fitting its schema.

use proptest::prelude::*;

use super::*;

fn filled(lines: &[&str], schema: Value) -> Value {
    serde_json::from_str(&reply_text(&with_schema(lines, schema))).expect("JSON")
}

#[test]
fn properties_are_filled_by_what_they_mean() {
    let task = format!("user: {PENCILS}");
    let solved = filled(
        &["system: You solve.", &task],
        json!({
            "type": "object",
            "properties": {
                "answer": {"type": "integer"}, "explanation": {"type": "string"},
                "steps": {"type": "array", "items": {"type": "string"}}, "confidence": {"type": "number", "maximum": 1},
            },
            "required": ["answer", "explanation", "steps", "confidence"],
        }),
    );
    assert_eq!(solved["answer"], 75);
    assert_eq!(solved["steps"], json!(["Step 1: 12 * 7 = 84 (pencils).", "Step 2: 84 - 9 = 75 (pencils left)."]));
    assert_eq!(solved["confidence"], 0.9);
    let wrapped = |answer: u32| {
        let schema = json!({
            "$defs": {"Verdict": {
                "type": "object",
                "properties": {"verdict": {"enum": ["correct", "incorrect"], "type": "string"}, "feedback": {"type": "string"}},
                "required": ["verdict", "feedback"], "additionalProperties": false,
            }},
            "type": "object", "properties": {"response": {"$ref": "#/$defs/Verdict"}}, "required": ["response"],
        });
        filled(&["system: You verify.", &format!("user: Problem: {PENCILS}\nSolution: ANSWER: {answer}")], schema)
    };
    assert_eq!(wrapped(75)["response"]["verdict"], "correct");
    let caught = (100..140).filter(|answer| wrapped(*answer)["response"]["verdict"] == "incorrect").count();
    assert!((8..=32).contains(&caught), "{caught} of 40");
    let next = filled(
        &["system: You supervise a planner and a solver.", &task, "user/planner: 1. Multiply."],
        json!({"type": "object", "properties": {"next_speaker": {"enum": ["planner", "solver", "FINISH"]}}}),
    );
    assert_eq!(next, json!({"next_speaker": "solver"}));
    let report = filled(
        &["system: You are Reporter.", &format!("user: {PENCILS}\n\nANSWER: 91")],
        json!({"type": "object", "properties": {"answer": {"type": "integer"}}}),
    );
    assert_eq!(report, json!({"answer": 91}));
}

#[test]
fn json_objects_have_the_keys_that_are_asked_for() {
    let mut asked = conversation(&[
        "system: You solve. Reply in JSON: {\"answer\": number, \"reason\": string}",
        &format!("user: {PENCILS}"),
    ]);
    asked.format = RequiredFormat::JsonObject;
    let value: Value = serde_json::from_str(&reply_text(&asked)).expect("JSON");
    assert_eq!(value["answer"], 75);
    assert!(value["reason"].is_string());
}

/// What does not fit, by the rules that the generated schemas use.
fn misfit(value: &Value, schema: &Value, root: &Value) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return misfit(value, root.pointer(reference.trim_start_matches('#'))?, root);
    }
    if let Some(options) = schema["enum"].as_array() {
        return (!options.contains(value)).then(|| format!("{value} is none of {options:?}"));
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let fits = options.iter().any(|option| misfit(value, option, root).is_none());
        return (!fits).then(|| format!("{value} fits no option of {schema}"));
    }
    let wrong = || Some(format!("{value} does not fit {schema}"));
    match schema["type"].as_str()? {
        "string" => {
            let length = value.as_str()?.chars().count() as u64;
            let short = schema["minLength"].as_u64().is_some_and(|least| length < least);
            let long = schema["maxLength"].as_u64().is_some_and(|most| length > most);
            if !value.is_string() || short || long { wrong() } else { None }
        }
        "boolean" if !value.is_boolean() => wrong(),
        kind @ ("integer" | "number") => {
            let Some(number) = value.as_f64() else { return wrong() };
            let low = schema["minimum"].as_f64().is_some_and(|low| number < low);
            let high = schema["maximum"].as_f64().is_some_and(|high| number > high);
            if low || high || (kind == "integer" && value.as_i64().is_none()) { wrong() } else { None }
        }
        "array" => {
            let Some(items) = value.as_array() else { return wrong() };
            let short = schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least);
            if short { wrong() } else { items.iter().find_map(|item| misfit(item, &schema["items"], root)) }
        }
        "object" => {
            let Some(fields) = value.as_object() else { return wrong() };
            let missing =
                schema["required"].as_array()?.iter().any(|name| !fields.contains_key(name.as_str().unwrap_or("")));
            if missing {
                return wrong();
            }
            fields.iter().find_map(|(name, field)| match schema["properties"].get(name) {
                Some(schema) => misfit(field, schema, root),
                None => Some(format!("{name} is not in {schema}")),
            })
        }
        _ => None,
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0u64..40, 40u64..80)
            .prop_map(|(least, most)| json!({"type": "string", "minLength": least, "maxLength": most})),
        Just(json!({"type": "string"})),
        (-50i64..50, 0i64..90)
            .prop_map(|(low, more)| json!({"type": "integer", "minimum": low, "maximum": low + more})),
        (-5i64..5).prop_map(|low| json!({"type": "number", "minimum": low, "maximum": low})),
        Just(json!({"type": "boolean"})),
        Just(json!({"enum": ["yes", "no"]})),
        Just(json!({"enum": ["red", 7, null]})),
    ];
    let name = prop_oneof!["answer|verdict|steps|next_speaker|reason|is_done|score|plan|coworker", "[a-z]{1,6}"];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            (inner.clone(), 0u64..4)
                .prop_map(|(items, least)| json!({"type": "array", "items": items, "minItems": least})),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| json!({"anyOf": [one, two]})),
            proptest::collection::btree_map(name.clone(), inner, 0..4).prop_map(|fields| {
                let required: Vec<&String> = fields.keys().collect();
                json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
            }),
        ]
    })
}

proptest! {
    #[test]
    fn output_always_fits_its_schema(schema in schemas(), solved in any::<bool>()) {
        let task = if solved { PENCILS } else { "Hello." };
        let root = json!({"type": "object", "properties": {"out": schema}, "required": ["out"]});
        let value = filled(&["system: You solve.", &format!("user: {task}")], root.clone());
        prop_assert_eq!(misfit(&value, &root, &root), None);
    }
}

#[test]
fn schemas_that_contain_themselves_end() {
    let schema = json!({
        "$defs": {"Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["name", "next"],
        }},
        "$ref": "#/$defs/Node",
    });
    let value = filled(&["user: Hello."], schema.clone());
    assert_eq!(misfit(&value, &schema, &schema), None);
}
