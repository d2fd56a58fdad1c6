//! Refusals as servers write them, and settings as users write them.

use serde_json::json;

use super::*;

fn question() -> Map<String, Value> {
    let body = json!({"model": "m", "messages": [], "temperature": 0.0, "max_completion_tokens": 9, "seed": 0,
        "response_format": {"type": "json_object"}});
    serde_json::from_value(body).expect("an object")
}

/// Errors as servers write them, with what is changed.
const REFUSALS: &[(u16, &str, &str)] = &[
    // OpenAI, Azure.
    (
        400,
        r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
        "without temperature",
    ),
    (
        400,
        r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature","code":"unsupported_parameter"}}"#,
        "without temperature",
    ),
    (
        400,
        r#"{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens","type":"invalid_request_error","param":null,"code":null}}"#,
        "max_tokens in place of max_completion_tokens",
    ),
    (
        400,
        r#"{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","param":"response_format"}}"#,
        "without response_format",
    ),
    (
        400,
        r#"{"error":{"message":"Model incompatible request argument supplied: temperature","param":null}}"#,
        "without temperature",
    ),
    // Anthropic, itself and behind gateways.
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."}}"#,
        "without temperature",
    ),
    (
        400,
        r#"{"error":{"message":"litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"message\":\"`temperature` is deprecated for this model.\"}}'","code":"400"}}"#,
        "without temperature",
    ),
    (
        400,
        r#"{"error":{"message":"max_tokens: Field required","type":"invalid_request_error"}}"#,
        "max_tokens in place of max_completion_tokens",
    ),
    // vLLM, Mistral.
    (
        400,
        r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 800}]","type":"BadRequestError","param":null,"code":400}"#,
        "max_tokens in place of max_completion_tokens",
    ),
    (
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":0}]},"type":"invalid_request_error"}"#,
        "without seed",
    ),
    // Gemini, which answers with a list.
    (
        400,
        r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field."}]}]}}]"#,
        "without seed",
    ),
    // DeepSeek, LM Studio, llama.cpp.
    (
        400,
        r#"{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        "without response_format",
    ),
    (400, r#"{"error":"'response_format.type' must be 'json_schema' or 'text'"}"#, "without response_format"),
    (
        500,
        r#"{"error":{"code":500,"message":"response_format type is not supported","type":"server_error"}}"#,
        "without response_format",
    ),
    // An error inside a reply of success, a text, and one that names nothing.
    (200, r#"{"error":{"message":"temperature is not supported","code":400}}"#, "without temperature"),
    (400, "seed: unknown field", "without seed"),
    (400, r#"{"error":{"message":"Bad Request"}}"#, "without response_format"),
    (422, "", "without response_format"),
];

#[test]
fn a_refusal_is_read_as_servers_write_it() {
    for (status, body, expected) in REFUSALS {
        let change = ParameterChange::of_refusal(*status, body.as_bytes(), &question(), &[]);
        assert_eq!(change.map(|change| change.to_string()).as_deref(), Some(*expected), "{body}");
    }
}

#[test]
fn what_no_parameter_mends_is_no_refusal_of_one() {
    for (status, body) in [
        (200, r#"{"choices":[{"message":{"content":"temperature is not supported"}}]}"#),
        (401, r#"{"error":{"message":"invalid key"}}"#),
        (403, r#"{"error":{"message":"seed is not allowed"}}"#),
        (429, r#"{"error":{"message":"Rate limit reached for max_tokens"}}"#),
        (500, r#"{"error":{"message":"oops"}}"#),
        (500, r#"{"error":{"message":"the seed could not be drawn"}}"#),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens: 512 in max_completion_tokens","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"'temperatures' and 'max_tokens_to_sample' are the parameters","param":"reasoning_effort"}}"#,
        ),
    ] {
        let mut sent = question();
        sent.insert("reasoning_effort".to_owned(), "low".into());
        assert_eq!(ParameterChange::of_refusal(status, body.as_bytes(), &sent, &[]), None, "{status} {body}");
    }
}

/// Either name of the longest answer is exchanged for the other once, and left out where that is refused too.
#[test]
fn the_longest_answer_has_two_names() {
    for (first, second) in [("max_completion_tokens", "max_tokens"), ("max_tokens", "max_completion_tokens")] {
        let mut sent = question();
        let most = sent.shift_remove("max_completion_tokens").expect("a number");
        sent.insert(first.to_owned(), most.clone());
        let refused = |name: &str| {
            json!({"error": {"message": format!("Unsupported parameter: '{name}'"), "param": name}}).to_string()
        };
        let mut changes: Vec<ParameterChange> = Vec::new();
        for (name, left) in [(first, Some(&most)), (second, None)] {
            let change = ParameterChange::of_refusal(400, refused(name).as_bytes(), &sent, &changes).expect("a change");
            change.apply(&mut sent);
            changes.push(change);
            assert_eq!((sent.get(first), sent.get(second)), (None, left), "{changes:?}");
        }
        assert_eq!(ParameterChange::of_refusal(400, refused(first).as_bytes(), &sent, &changes), None);
    }
}

#[test]
fn a_parameter_is_set_by_hand() {
    let body = Bytes::from(Value::Object(question()).to_string());
    assert_eq!(ParameterSettings::default().apply(body.clone()), body);
    for (settings, key, expected) in [
        (&["temperature=1"][..], "temperature", Some(json!(1))),
        (&["temperature=none"], "temperature", None),
        (&["temperature=none", "temperature=0.5"], "temperature", Some(json!(0.5))),
        (&["max_tokens=7"], "max_completion_tokens", None),
        (&["max_tokens=none"], "max_completion_tokens", Some(json!(9))),
        (&["response_format={\"type\": \"text\"}"], "response_format", Some(json!({"type": "text"}))),
        (&["reasoning_effort = low"], "reasoning_effort", Some(json!("low"))),
    ] {
        let read: Vec<ParameterSetting> = settings.iter().map(|text| text.parse().expect("a setting")).collect();
        let again: Vec<ParameterSetting> =
            read.iter().map(|one| String::from(one.clone()).parse().expect("a setting")).collect();
        assert_eq!(read, again);
        let set: Map<String, Value> =
            serde_json::from_slice(&ParameterSettings::from(read).apply(body.clone())).expect("an object");
        assert_eq!(set.get(key), expected.as_ref(), "{settings:?}");
    }
    for (text, why) in [
        ("temperature", "expected NAME=VALUE"),
        ("=1", "expected NAME=VALUE"),
        ("temperature=", "expected NAME=VALUE"),
        ("a b=1", "expected NAME=VALUE"),
        ("model=other", "`model` is what the question is"),
    ] {
        let error = text.parse::<ParameterSetting>().expect_err(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}
