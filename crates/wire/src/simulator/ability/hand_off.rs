//! Hand-offs: `transfer_to_x`, `handoff_to_x` and the like pass the conversation on.

use serde_json::{Value, json};

use super::{super::reading::ReadConversation, structured, text};
use crate::{
    simulator::{duty::Duty, reading::SpokenBy, stated, tool_name::is_hand_off, utterance::Utterance},
    surface::{Tool, ToolChoice},
};

/// Hands over to the next agent that fits and has not been heard; workers first say their part.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let targets: Vec<&Tool> = reading.conversation.tools.iter().filter(|tool| is_hand_off(&tool.name)).collect();
    if targets.is_empty() || reading.conversation.tool_choice == ToolChoice::None {
        return None;
    }
    let worker = matches!(reading.duty, Duty::Plan | Duty::Solve | Duty::Check);
    let words = if worker { text::own_part(reading) } else { None };
    let objected = words.as_ref().is_some_and(|said| reading.duty == Duty::Check && stated::objects(&said.text));
    let done = worker && reading.duty == Duty::Check && !objected;
    let next = if done { back(reading, &targets) } else { next(reading, &targets, worker, objected) };
    let forced = matches!(reading.conversation.tool_choice, ToolChoice::Required);
    let next = next.or_else(|| if forced { targets.first().copied() } else { None });
    match (next, words) {
        (Some(tool), words) => {
            let mut said = Utterance::call(&tool.name, arguments(reading, tool));
            said.text = words.map(|words| words.text).unwrap_or_default();
            Some(said)
        }
        (None, words) => words.or_else(|| text::closing(reading)),
    }
}

/// The agent that a hand-off tool names.
pub(super) fn target(name: &str) -> String {
    let lower = name.to_lowercase();
    let after = lower.rsplit_once("_to_").map_or(lower.as_str(), |(_, after)| after);
    after.replace('_', " ")
}

fn next<'t>(reading: &ReadConversation<'_>, tools: &[&'t Tool], worker: bool, objected: bool) -> Option<&'t Tool> {
    let instructions = reading.prompt.to_lowercase();
    let place = |tool: &Tool| {
        instructions.find(&target(&tool.name)).or_else(|| instructions.find(&target(&tool.name).replace(' ', "_")))
    };
    let relevant = |tool: &&&Tool| place(tool).is_some() || fits(tool);
    let any = tools.iter().any(|tool| relevant(&tool));
    let mut open: Vec<&&Tool> = tools.iter().filter(|tool| !any || relevant(tool)).collect();
    open.sort_by_key(|tool| place(tool).unwrap_or(usize::MAX));
    let solves = |tool: &&&&Tool| target(&tool.name).contains("solv") && turns_taken(reading, tool) < 3;
    let again = objected || (!worker && objection_stands(reading));
    if let (true, Some(tool)) = (again, open.iter().find(solves)) {
        return Some(tool);
    }
    open.into_iter().find(|tool| turns_taken(reading, tool) == 0).copied()
}

/// The tool that leads back to who is in charge.
fn back<'t>(reading: &ReadConversation<'_>, tools: &[&'t Tool]) -> Option<&'t Tool> {
    let charged = |tool: &&&Tool| {
        let name = target(&tool.name);
        tool.name.contains("back")
            || ["superv", "manager", "coordinat", "triage", "lead"].iter().any(|stem| name.contains(stem))
    };
    tools.iter().find(charged).filter(|tool| turns_taken(reading, tool) < 2).copied()
}

fn fits(tool: &Tool) -> bool {
    let text = format!("{} {}", tool.name, tool.description).to_lowercase();
    let stems = ["plan", "solv", "math", "arith", "calc", "comput", "critic", "review", "check", "verif", "problem"];
    stems.iter().any(|stem| text.contains(stem))
}

/// How often an agent was handed to or has spoken.
fn turns_taken(reading: &ReadConversation<'_>, tool: &Tool) -> usize {
    let name = target(&tool.name);
    let called = reading.spoken.iter().flat_map(|s| &s.calls).filter(|call| call.name == tool.name).count();
    let spoke = |s: &&crate::simulator::reading::SpokenMessage| {
        let named = s.name.as_ref().is_some_and(|n| n.to_lowercase().replace('_', " ") == name);
        named && !s.text.trim().is_empty()
    };
    let announced = |s: &&crate::simulator::reading::SpokenMessage| {
        let text = s.text.to_lowercase().replace('_', " ");
        s.who == SpokenBy::Caller && text.starts_with("transferred to") && text.contains(&name)
    };
    called.max(reading.spoken.iter().filter(spoke).count()).max(reading.spoken.iter().filter(announced).count())
}

/// Whether the last words of anybody object.
fn objection_stands(reading: &ReadConversation<'_>) -> bool {
    let words = reading.spoken.iter().rev().filter(|s| !matches!(s.who, SpokenBy::Tool(_)) && s.calls.is_empty());
    words.map(|s| &s.text).find(|text| !text.trim().is_empty()).is_some_and(|text| stated::objects(text))
}

fn arguments(reading: &ReadConversation<'_>, tool: &Tool) -> Value {
    if tool.parameters.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
        return json!({});
    }
    structured::arguments(reading, &tool.parameters, &[])
}
