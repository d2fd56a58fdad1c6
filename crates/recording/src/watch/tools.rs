//! Rules on tools: their errors, and calls that cannot work.

use serde_json::Value;

use super::{
    Past, Sighting, WatchedStep,
    past::{AgentPast, RESULTS, first},
};
use crate::surface::schema;

/// Words of an error that a second try may well not meet.
const PASSING: &[&str] =
    &["timed out", "timeout", "rate limit", "temporar", "try again", "unavailable", "429", "502", "503", "504"];
/// Words by which an agent says that something went wrong.
const MINDED: &[&str] = &[
    "error",
    "fail",
    "unable",
    "could not",
    "couldn't",
    "cannot",
    "can't",
    "not found",
    "unavailable",
    "invalid",
    "unknown",
    "missing",
    "retry",
    "try again",
    "sorry",
    "problem",
    "issue",
    "not able",
    "did not",
    "didn't",
    "no result",
    "unfortunately",
    "instead",
    "not possible",
    "without",
    "wrong",
    "exception",
];

/// What the results of a request say of the calls that they answer: the call, and, where it failed, whether the error lasts.
pub(super) fn outcomes(own: &AgentPast, step: &WatchedStep) -> Vec<(Option<u64>, Option<bool>)> {
    let told = |result: &super::WatchedResult| {
        let call = result.call.as_ref().map(super::WatchedCall::key);
        let call = call.or_else(|| own.open_calls.iter().find(|(id, ..)| *id == result.id).map(|(_, key, _)| *key));
        let failed = is_error(&result.text).then(|| {
            let text = result.text.to_lowercase();
            !PASSING.iter().any(|words| text.contains(words))
        });
        (call, failed)
    };
    step.results.iter().map(told).collect()
}

/// Whether a tool's result is an error, by its form: nothing that merely talks of errors.
pub(super) fn is_error(text: &str) -> bool {
    let text = text.trim();
    if let Ok(Value::Object(fields)) = serde_json::from_str(text) {
        let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value != "";
        let says = |name: &str, words: &[&str]| {
            fields.get(name).and_then(Value::as_str).is_some_and(|value| words.contains(&value.to_lowercase().as_str()))
        };
        return fields.get("error").is_some_and(is_set)
            || fields.get("isError") == Some(&Value::Bool(true))
            || fields.get("success") == Some(&Value::Bool(false))
            || says("status", &["error", "failed", "failure"]);
    }
    let start: String = text.chars().take(64).flat_map(char::to_lowercase).collect();
    let named = start.split([':', ' ', '\n', '(']).next().unwrap_or_default();
    let begins = ["error", "exception", "traceback", "failed", "toolerror", "fatal"].contains(&named)
        || (named.len() > 5 && named.ends_with("error") && start.starts_with(&format!("{named}:")));
    begins || start.starts_with("error executing") || text.contains("Traceback (most recent call last)")
}

/// Nothing but errors, and not a word about them.
pub(super) fn ignored_error(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let failed = step.results.iter().all(|result| is_error(&result.text));
    if step.results.is_empty() || !failed || !step.calls.is_empty() || step.said.trim().is_empty() {
        return None;
    }
    let said = step.said.to_lowercase().replace('’', "'");
    if MINDED.iter().any(|words| said.contains(words)) {
        return None;
    }
    let shown = step.results.last().map(|result| first(&result.text)).unwrap_or_default();
    Sighting::of(format!("the agent goes on as if its tool had not answered `{shown}`"), first(&step.said))
}

/// Tools that mostly fail.
pub(super) fn tool_errors(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let own = past.agent(step)?;
    let here = outcomes(own, step);
    if here.is_empty() {
        return None;
    }
    let all: Vec<bool> = own.results.iter().copied().chain(here.iter().map(|(_, failed)| failed.is_some())).collect();
    let last = all.get(all.len().checked_sub(RESULTS)?..)?;
    let errors = last.iter().filter(|failed| **failed).count();
    let quote = step.results.iter().rev().find(|result| is_error(&result.text)).map(|result| first(&result.text));
    if 2 * errors < RESULTS {
        None
    } else {
        Sighting::of(
            format!("{errors} of the agent's last {RESULTS} tool results are errors"),
            quote.unwrap_or_default(),
        )
    }
}

/// A tool that nobody offered.
pub(super) fn unknown_tool(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let tools = step.tools.as_ref().filter(|tools| !tools.is_empty())?;
    let call = step.calls.iter().find(|call| tools.iter().all(|tool| tool.name != call.tool))?;
    let near = crate::trajectory::nearest(&call.tool, tools.iter().map(|tool| tool.name.as_str()));
    let near = near.map(|near| format!("; `{near}` was")).unwrap_or_default();
    Sighting::of(format!("`{}` was not offered{near}", call.tool), call.quote())
}

/// Arguments that the tool cannot take.
pub(super) fn bad_arguments(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let tools = step.tools.as_ref()?;
    step.calls.iter().find_map(|call| {
        let tool = tools.iter().find(|tool| tool.name == call.tool)?;
        // A tool whose input is free text has no schema, and some APIs write no arguments as nothing.
        if !tool.parameters.is_object() || call.arguments.trim().is_empty() {
            return None;
        }
        let why = match serde_json::from_str::<Value>(&call.arguments) {
            Err(_) => "are no JSON".to_owned(),
            Ok(value) => match schema::fits(&tool.parameters, None, &value) {
                schema::SchemaFit::No(rule) => format!("do not fit its schema: they break the rule `{rule}`"),
                schema::SchemaFit::Yes | schema::SchemaFit::Unsure(_) => return None,
            },
        };
        Sighting::of(format!("the arguments for `{}` {why}", call.tool), call.quote())
    })
}
