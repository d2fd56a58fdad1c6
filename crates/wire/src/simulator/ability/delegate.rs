//! Delegation: tools that put another agent to work and bring its answer back.

use serde_json::Value;

use super::{super::reading::ReadConversation, calculator, structured};
use crate::{
    simulator::{duty::Duty, tool_name::is_hand_off, utterance::Utterance},
    surface::{Tool, ToolChoice},
};

/// Gives the task to each coworker in turn, with what the others found; then the last result is the answer.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if reading.conversation.tool_choice == ToolChoice::None {
        return None;
    }
    let tools = &reading.conversation.tools;
    if let Some((tool, property, coworkers)) = tools.iter().find_map(|tool| coworkers(tool, &reading.prompt)) {
        let given = |name: &String| {
            reading.spoken.iter().flat_map(|s| &s.calls).any(|call| call.arguments.contains(name.as_str()))
        };
        let next = coworkers.iter().find(|name| !given(name))?;
        return Some(Utterance::call(
            &tool.name,
            structured::arguments(reading, &tool.parameters, &[(&property, next.clone())]),
        ));
    }
    if reading.duty != Duty::Supervise {
        return None;
    }
    let prompt = reading.prompt.to_lowercase();
    let mut agents: Vec<&Tool> = tools.iter().filter(|tool| is_agent(tool)).collect();
    agents.sort_by_key(|tool| prompt.find(&tool.name.to_lowercase()).unwrap_or(usize::MAX));
    let called = |tool: &Tool| reading.spoken.iter().flat_map(|s| &s.calls).any(|call| call.name == tool.name);
    let next = agents.into_iter().find(|tool| !called(tool))?;
    Some(Utterance::call(&next.name, structured::arguments(reading, &next.parameters, &[])))
}

/// A tool that names coworkers: the tool, the property for the name, and the names.
fn coworkers<'t>(tool: &'t Tool, prompt: &str) -> Option<(&'t Tool, String, Vec<String>)> {
    let properties = tool.parameters.get("properties").and_then(Value::as_object)?;
    let named = ["coworker", "member_id", "member", "agent", "agent_name", "to_agent", "assignee"];
    let (property, schema) = properties.iter().find(|(name, _)| named.contains(&name.as_str()))?;
    if is_hand_off(&tool.name) && properties.len() < 2 || tool.name.contains("question") {
        return None;
    }
    let listed: Vec<String> = if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        options.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    } else if let Some((_, after)) = tool.description.split_once("coworkers:") {
        let clean = |name: &str| name.trim().trim_matches(['.', '\'', '"', '[', ']']).to_owned();
        after.lines().next()?.split(',').map(clean).collect()
    } else if let Some((_, after)) = tool.description.split_once("available agents:") {
        // As a dictionary: `{'solver': 'Computes.', …}`.
        let key = |part: &str| Some(part.trim().strip_prefix('\'')?.split_once("': ")?.0.to_owned());
        after.split(['{', ',']).filter_map(key).collect()
    } else {
        // As a list in the prompt: `<member id="solver" …>`.
        let member = |rest: &str| rest.split('"').next().map(str::to_owned);
        prompt.split("<member id=\"").skip(1).filter_map(member).collect()
    };
    let names: Vec<String> = listed.into_iter().filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| (tool, property.clone(), names))
}

/// A tool with one text for somebody else to work on.
fn is_agent(tool: &Tool) -> bool {
    if calculator::is_calculator(tool) || is_hand_off(&tool.name) {
        return false;
    }
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let work = ["input", "task", "request", "prompt", "message", "instructions", "question", "query", "problem"];
    properties.is_some_and(|map| map.keys().next().is_some_and(|name| work.contains(&name.as_str())) && map.len() <= 2)
}
