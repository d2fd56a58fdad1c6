//! Rules on tools: their errors, and calls that cannot work.

use serde_json::Value;

use super::{
    Past, Sighting, WatchedStep,
    past::{RESULTS, outcomes},
    text::first,
    tool_error::is_error,
};
use crate::surface::schema;

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

/// Nothing but errors, and not a word about them.
pub(super) fn ignored_error(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let failed = step.results.iter().all(|result| is_error(&result.text));
    if step.results.is_empty() || !failed || !step.calls.is_empty() || step.reply.trim().is_empty() {
        return None;
    }
    let said = step.reply.to_lowercase().replace('’', "'");
    if MINDED.iter().any(|words| said.contains(words)) {
        return None;
    }
    let shown = step.results.last().map(|result| first(&result.text)).unwrap_or_default();
    Sighting::new(format!("the agent goes on as if its tool had not answered `{shown}`"), first(&step.reply))
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
        Sighting::new(
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
    Sighting::new(format!("`{}` was not offered{near}", call.tool), call.quote())
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
        Sighting::new(format!("the arguments for `{}` {why}", call.tool), call.quote())
    })
}
