//! The `OpenAPI` document of what Aegis answers over HTTP: made from the tables that lead its requests.

use std::collections::BTreeSet;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::closed::closed;
use crate::{
    cli::reward::{REWARD_CODES, REWARD_ROUTES, reward_error_schema},
    proxy::{
        ATTACHED_PATHS, BodySchema, CONTROL_CODES, CONTROL_ROUTES, ControlRoute, HEALTH_PATHS, HttpRoute, PROXY_CODES,
        RouteAnswer, control_error_schema,
    },
    viewer::{VIEW_ERRORS, VIEW_ROUTES, view_error_schema},
};

/// Below this, the operator names a user whose runs are meant.
const USER: &str = "/aegis/v1/users/{user}/runs";
const RUNS: &str = "/aegis/v1/runs";
/// Methods that pass through the proxy.
const PASSED: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// Where requests to upstreams and servers go, with what the rest of the path is.
const PROXIED: [(&str, &str); 5] = [
    ("/v1/{rest}", "Forwarded below the upstream's base path"),
    ("/r/{run}/v1/{rest}", "The same; the call belongs to this run"),
    ("/r/{run}/a/{agent}/v1/{rest}", "The same; this agent calls"),
    ("/mcp/{name}", "To the server of tools of this name"),
    ("/a2a/{name}", "To the peer of this name"),
];

/// The document.
pub(super) fn document() -> Value {
    let mut replies = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let paths = all_paths(&mut replies);
    let mut components = definitions(replies);
    components.insert("ProxyError".to_owned(), proxy_error());
    components.insert("Ready".to_owned(), ready());
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Aegis",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What Aegis answers over HTTP. Tag `proxy`: the address of `serve`, `run` and other verbs that record. \
                Tag `control`: the address of `serve --control`. Tags `reward`, `view`: those of these verbs. docs/reference/http.md \
                explains them.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [
            {"url": "http://127.0.0.1:8484", "description": "the proxy, as `serve` listens by default"},
            {"url": "http://{control}", "description": "the control listener",
                "variables": {"control": {"default": "127.0.0.1:8486"}}},
            {"url": "http://127.0.0.1:8485", "description": "`reward`, as it listens by default"},
            {"url": "http://{view}", "description": "`view`, which prints its address", "variables": {"view": {"default": "127.0.0.1:0"}}},
        ],
        "tags": [
            {"name": "proxy", "description": "requests of agents"},
            {"name": "control", "description": "requests of whoever keeps the server"},
            {"name": "reward", "description": "requests of a trainer to `aegis reward`"},
            {"name": "view", "description": "requests of the page of `aegis view`; they may change"},
        ],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "control": {"type": "http", "scheme": "bearer", "description": "the control token, or that of a user"},
                "proxy": {"type": "apiKey", "in": "header", "name": "x-aegis-token",
                    "description": "the token, where one is required; also as /t/TOKEN before the path"},
                "view": {"type": "apiKey", "in": "header", "name": "x-aegis-token",
                    "description": "the token behind `#t=` of the address that `aegis view` prints; or the cookie of `/session`"},
            },
        },
    });
    referring(document)
}

/// All that is answered.
fn all_paths(replies: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths = Map::new();
    for route in CONTROL_ROUTES {
        let below = route.path.strip_prefix(RUNS).map(|below| format!("{USER}{below}"));
        for path in [Some(route.path.to_owned()), below].into_iter().flatten() {
            let answered = controlled(route, &path, replies);
            add(&mut paths, &path, &route.method.to_ascii_lowercase(), answered);
        }
    }
    for route in REWARD_ROUTES {
        let answered = listed(route, "reward", coded(REWARD_CODES, "RewardError"), replies);
        add(&mut paths, route.path, &route.method.to_ascii_lowercase(), with_parameters(answered, route.path));
    }
    for route in VIEW_ROUTES {
        let security = if route.path.starts_with("/api/") { json!([{"view": []}]) } else { json!([{}]) };
        let answered = with(listed(route, "view", view_errors(), replies), "security", security);
        add(&mut paths, route.path, &route.method.to_ascii_lowercase(), with_parameters(answered, route.path));
    }
    for schema in [control_error_schema, reward_error_schema, view_error_schema] {
        schema(replies);
    }
    for path in HEALTH_PATHS {
        add(&mut paths, path, "get", health(path));
    }
    for (path, operation) in ATTACHED_PATHS.into_iter().zip([attachment(), attached_reply()]) {
        add(&mut paths, path, "post", with_parameters(operation, path));
    }
    for (path, about) in PROXIED {
        for method in PASSED {
            add(&mut paths, path, method, proxied(path, about));
        }
    }
    paths
}

/// An object with one more member.
fn with(mut object: Value, name: &str, member: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), member);
    }
    object
}

/// The closed schemas of all bodies.
fn definitions(mut replies: SchemaGenerator) -> Map<String, Value> {
    let definitions = replies.take_definitions(true);
    let all: Vec<Value> = definitions.keys().map(|name| json!({"$ref": format!("#/$defs/{name}")})).collect();
    let closed = closed(json!({"anyOf": all, "$defs": definitions}));
    let mut definitions = closed.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let codes: Vec<&str> = CONTROL_CODES.iter().map(|(code, _)| *code).collect();
    if let Some(code) = definitions.get_mut("ErrorFacts").and_then(|facts| facts.pointer_mut("/properties/code")) {
        *code = json!({"enum": codes, "description": "for programs; docs/reference/http.md says what to do"});
    }
    definitions
}

/// The same document, whose references lead to its components.
fn referring(document: Value) -> Value {
    match document {
        Value::Object(members) => {
            let refer = |(name, value): (String, Value)| match (name.as_str(), value) {
                ("$ref", Value::String(place)) => (name, place.replace("#/$defs/", "#/components/schemas/").into()),
                (_, value) => (name, referring(value)),
            };
            Value::Object(members.into_iter().map(refer).collect())
        }
        Value::Array(items) => items.into_iter().map(referring).collect(),
        other => other,
    }
}

fn add(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let place = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    if let Some(place) = place.as_object_mut() {
        place.insert(method.to_owned(), operation);
    }
}

/// An operation with the parameters that its path names.
fn with_parameters(mut operation: Value, path: &str) -> Value {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parameters: Vec<Value> =
        names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})).collect();
    if let Some(operation) = operation.as_object_mut().filter(|_| !parameters.is_empty()) {
        operation.insert("parameters".to_owned(), parameters.into());
    }
    operation
}

fn controlled(route: &ControlRoute, path: &str, replies: &mut SchemaGenerator) -> Value {
    let operation = listed(route, "control", coded(CONTROL_CODES, "ErrorReply"), replies);
    with_parameters(with(operation, "security", json!([{"control": []}])), path)
}

/// The operation of a row of a table, with the answers that are errors.
fn listed<A>(route: &HttpRoute<A>, tag: &str, errors: Map<String, Value>, replies: &mut SchemaGenerator) -> Value {
    let (status, answer) = match route.answers {
        RouteAnswer::Json(schema) => ("200", json!({"content": {"application/json": {"schema": schema(replies)}}})),
        RouteAnswer::Other(kind) => ("200", json!({"content": {kind: {"schema": {"type": "string"}}}})),
        RouteAnswer::Nothing => ("204", json!({})),
    };
    let mut responses = Map::new();
    responses.insert(status.to_owned(), with(answer, "description", route.about.into()));
    responses.extend(errors);
    let operation = json!({"tags": [tag], "summary": route.about, "responses": responses});
    let Some(schema) = route.takes else { return operation };
    let content = json!({"application/json": {"schema": standalone_schema(schema)}});
    with(operation, "requestBody", json!({"required": true, "content": content}))
}

/// Errors by their statuses, from a list of codes.
fn coded(codes: &[(&str, u16)], schema: &str) -> Map<String, Value> {
    let statuses: BTreeSet<u16> = codes.iter().map(|(_, status)| *status).collect();
    let error = |status: u16| {
        let codes: Vec<&str> = codes.iter().filter(|(_, of)| *of == status).map(|(code, _)| *code).collect();
        (status.to_string(), refusal(&codes.join(", "), schema))
    };
    statuses.into_iter().map(error).collect()
}

fn view_errors() -> Map<String, Value> {
    VIEW_ERRORS.iter().map(|(status, words)| (status.to_string(), refusal(words, "PageError"))).collect()
}

fn refusal(words: &str, schema: &str) -> Value {
    let schema = json!({"$ref": format!("#/$defs/{schema}")});
    json!({"description": words, "content": {"application/json": {"schema": schema}}})
}

/// The schema of a body that is read, as it stands alone.
fn standalone_schema(schema: BodySchema) -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut reader = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    schema(&mut reader).into()
}

fn health(path: &str) -> Value {
    let json = |schema: &str| json!({"application/json": {"schema": {"$ref": format!("#/$defs/{schema}")}}});
    let mut responses = json!({"200": {"description": "yes", "content": json("Ready")}});
    let about = if path == "/healthz" { "Whether the process lives" } else { "Whether it can record" };
    if let Some(responses) = responses.as_object_mut().filter(|_| path != "/healthz") {
        let refused = json!({"description": "stopping, recording_failed", "content": json("ProxyError")});
        responses.insert("503".to_owned(), refused);
    }
    json!({"tags": ["proxy"], "summary": format!("{about}; `serve` answers, without a token"), "responses": responses})
}

fn attachment() -> Value {
    let lines = json!({"application/x-ndjson": {"schema": {"oneOf": [
        {"type": "object", "description": "the first line", "properties": {"attachment": {"type": "string"}},
            "required": ["attachment"], "additionalProperties": false},
        {"type": "object", "description": "a message that the server is to get",
            "properties": {"n": {"type": "integer", "minimum": 0}, "message": {"type": "string"}},
            "required": ["n", "message"], "additionalProperties": false},
    ]}}});
    json!({
        "tags": ["proxy"], "security": [{}, {"proxy": []}],
        "summary": "Attaches a server of tools: lines of JSON stream back. `aegis mcp` speaks this; it may change",
        "responses": {"200": {"description": "a line for each message", "content": lines}, "default": refused()},
    })
}

fn attached_reply() -> Value {
    json!({
        "tags": ["proxy"], "security": [{}, {"proxy": []}],
        "summary": "Takes the reply to a message; `aegis mcp` speaks this, and it may change",
        "requestBody": {"content": {"*/*": {}}},
        "responses": {"204": {"description": "it was handed over"}, "default": refused()},
    })
}

fn proxied(path: &str, about: &str) -> Value {
    let operation = json!({
        "tags": ["proxy"], "summary": format!("{about}; `rest` may hold `/`"), "security": [{}, {"proxy": []}],
        "responses": {
            "2XX": {"description": "as the upstream answers, byte for byte where no plan edits it", "content": {"*/*": {}}},
            "default": refused(),
        },
    });
    with_parameters(operation, path)
}

/// An error of the upstream's, or one of the proxy's own, which `x-aegis-error` marks.
fn refused() -> Value {
    let codes: Vec<&str> = PROXY_CODES.iter().map(|(code, _)| *code).collect();
    json!({
        "description": "an error of the upstream, as it is; or of the proxy itself, marked by `x-aegis-error`, in the form of the \
            API that was called",
        "headers": {"x-aegis-error": {"description": "the code of an error of the proxy itself", "schema": {"enum": codes}}},
        "content": {"application/json": {}},
    })
}

fn proxy_error() -> Value {
    let codes: Vec<&str> = PROXY_CODES.iter().map(|(code, _)| *code).collect();
    let text = json!({"type": "string"});
    json!({
        "type": "object", "required": ["error"], "additionalProperties": false,
        "properties": {"error": {
            "type": "object", "required": ["code", "message", "hint"], "additionalProperties": false,
            "properties": {"code": {"enum": codes}, "message": text, "hint": text},
        }},
    })
}

fn ready() -> Value {
    json!({"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}, "additionalProperties": false})
}
