//! The `ReAct` text protocol: Thought, Action, Action Input, Observation, Final Answer.

use serde_json::json;

use super::super::reading::ReadConversation;
use crate::simulator::{duty::Duty, stated, utterance::Utterance};

/// Acts once where the prompt lists tools in text and a calculator is among them; else states the final answer.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if !(reading.is_instructed("Action Input:") && reading.is_instructed("Action:")) {
        return None;
    }
    let asked = reading
        .spoken
        .iter()
        .rposition(|s| reading.task.as_ref().is_some_and(|t| s.text.contains(&t.text)))
        .unwrap_or(0);
    let said: Vec<&str> = reading.spoken.iter().skip(asked).map(|s| reading.without_task(&s.text)).collect();
    let observed =
        said.iter().rev().find_map(|text| text.rsplit_once("Observation:")).map(|(_, after)| after.trim().to_owned());
    if let Some(answer) = observed.filter(|o| !o.is_empty()).and_then(|o| stated::last_number(&o)) {
        let answer = crate::simulator::language::number_text(answer);
        return Some(Utterance::text(format!("Thought: I now know the final answer\nFinal Answer: {answer}")));
    }
    let calculator =
        ["calculator", "calculate", "Calculator"].into_iter().find(|name| reading.instructions().contains(name));
    let expression = reading.task.as_ref().map(|task| task.solution.expression());
    match (calculator, expression, reading.duty) {
        (Some(name), Some(expression), Duty::Solve | Duty::Open) => {
            let input = json!({ "expression": expression });
            Some(Utterance::text(format!(
                "Thought: I need to compute {expression}\nAction: {name}\nAction Input: {input}"
            )))
        }
        _ => None,
    }
}
