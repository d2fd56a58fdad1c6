//! A request: reading it.

use serde_json::{Map, Value};

use super::{
    part::{NumberedCalls, read_all},
    reply::role_of,
    spelling::{listed, named, present},
};
use crate::surface::{
    Conversation, RequiredFormat, Role, Sampling, SurfaceError, Tool, ToolChoice, blocks,
    fields::{self, entries, owned, string, text, unreadable},
    splice::{Member, Node, member},
};

/// What a request is called.
pub(super) const EXPECTED: &str = "a request of generateContent";

/// Reads the whole view. Model and stream stand in the path.
pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let list = member(&members, "contents").filter(|list| list.is_array() || list.is_object());
    let list = list.ok_or_else(|| unreadable(EXPECTED, "`contents` is missing or is no list"))?;
    let (mut messages, mut numbers) = (Vec::new(), NumberedCalls::default());
    if let Some(system) = present(&members, "systemInstruction") {
        let parts = system.get("parts").map(|parts| read_all(&parts)).unwrap_or_default();
        messages.push(blocks::message(Role::System, parts.iter(), 0));
    }
    for content in listed(&list) {
        let members = content.members();
        let role = role_of(&members);
        let parts = member(&members, "parts").map(|parts| numbers.numbered(&parts)).unwrap_or_default();
        for group in blocks::groups(&parts) {
            let said = parts.get(group).unwrap_or_default();
            messages.push(blocks::message(role, said.iter(), messages.len()));
        }
    }
    let config = present(&members, "generationConfig").map(|config| config.members()).unwrap_or_default();
    Ok(Conversation {
        quotes: numbers.ids,
        messages,
        tools: declarations(&members).iter().enumerate().map(|(at, place)| tool(at, &place.node)).collect(),
        stream_usage: true,
        choices: number(&config, "candidateCount").unwrap_or(1),
        format: format(&config).unwrap_or_default(),
        tool_choice: tool_choice(&members).unwrap_or_default(),
        max_tokens: number(&config, "maxOutputTokens"),
        stop: named(&config, "stopSequences").map(|stop| fields::strings(&stop)).unwrap_or_default(),
        sampling: Sampling {
            temperature: number(&config, "temperature"),
            top_p: number(&config, "topP"),
            seed: number(&config, "seed"),
        },
        metadata: member(&members, "labels").map(|labels| owned(entries(&labels))).unwrap_or_default(),
        ..Conversation::default()
    })
}

fn number<'a, T: serde::Deserialize<'a>>(members: &[Member<'a>], key: &str) -> Option<T> {
    named(members, key)?.value()
}

/// A declared function, and the tool that it is listed in.
#[derive(Debug)]
pub(super) struct Declaration<'a> {
    /// The number of the tool.
    pub(super) tool: usize,
    /// The declaration.
    pub(super) node: Node<'a>,
}

/// All declared functions, in order.
pub(super) fn declarations<'a>(members: &[Member<'a>]) -> Vec<Declaration<'a>> {
    let tools = present(members, "tools").map(|tools| listed(&tools)).unwrap_or_default();
    let of = |(number, tool): (usize, &Node<'a>)| {
        let list = named(&tool.members(), "functionDeclarations").map(|list| listed(&list)).unwrap_or_default();
        list.into_iter().map(move |node| Declaration { tool: number, node })
    };
    tools.iter().enumerate().flat_map(of).collect()
}

fn tool(origin: usize, node: &Node<'_>) -> Tool {
    let members = node.members();
    let schema = ["parametersJsonSchema", "parameters"].iter().find_map(|key| present(&members, key)?.value());
    Tool {
        name: text(&members, "name"),
        description: text(&members, "description"),
        parameters: schema.map(json_schema).unwrap_or_default(),
        origin: Some(origin),
    }
}

/// A schema in this API's words as a JSON schema: types in small letters, bounds that are texts as numbers.
fn json_schema(schema: Value) -> Value {
    match schema {
        Value::Object(rules) => {
            let is_nullable = rules.get("nullable").and_then(Value::as_bool).unwrap_or_default();
            let rules = rules.into_iter().filter(|(rule, _)| !matches!(rule.as_str(), "nullable" | "propertyOrdering"));
            let rules = rules.map(|(rule, value)| {
                let value = rule_value(&rule, value, is_nullable);
                (rule, value)
            });
            Value::Object(rules.filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

fn rule_value(rule: &str, value: Value, is_nullable: bool) -> Value {
    match (rule, value) {
        ("type", Value::String(name)) if is_nullable => Value::from(vec![name.to_lowercase(), "null".to_owned()]),
        ("type", Value::String(name)) => Value::from(name.to_lowercase()),
        // Of the formats only this one says something of a text; `enum` says that there is a list.
        ("format", Value::String(format)) if format != "date-time" => Value::Null,
        (
            "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties",
            Value::String(bound),
        ) => bound.parse::<u64>().map_or(Value::Null, Value::from),
        ("properties" | "$defs" | "defs", Value::Object(inner)) => {
            Value::Object(inner.into_iter().map(|(name, schema)| (name, json_schema(schema))).collect::<Map<_, _>>())
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
            Value::Array(schemas.into_iter().map(json_schema).collect())
        }
        ("items" | "additionalProperties", schema) => json_schema(schema),
        (_, value) => value,
    }
}

/// The required shape of the answer.
fn format(config: &[Member<'_>]) -> Option<RequiredFormat> {
    let schema = ["responseJsonSchema", "responseSchema"].iter().find_map(|key| present(config, key)?.value());
    if let Some(schema) = schema {
        return Some(RequiredFormat::JsonSchema { name: String::new(), schema: json_schema(schema) });
    }
    let kind = named(config, "responseMimeType")?.string()?;
    (kind == "application/json").then_some(RequiredFormat::JsonObject)
}

fn tool_choice(members: &[Member<'_>]) -> Option<ToolChoice> {
    let config = named(&present(members, "toolConfig")?.members(), "functionCallingConfig")?.members();
    let allowed = named(&config, "allowedFunctionNames").map(|names| fields::strings(&names)).unwrap_or_default();
    Some(match (string(&config, "mode").unwrap_or_default().to_uppercase().as_str(), allowed.as_slice()) {
        ("NONE", _) => ToolChoice::None,
        ("ANY", [only]) => ToolChoice::Named(only.clone()),
        ("ANY", _) => ToolChoice::Required,
        _ => ToolChoice::Auto,
    })
}
