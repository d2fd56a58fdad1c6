//! Calculators: what is to be computed goes to the tool, and its result counts.

use serde_json::{Value, json};

use super::super::reading::{ReadConversation, StatedTask};
use crate::{
    simulator::{
        duty::Duty,
        expression,
        language::number_text,
        problem::{Arithmetic, Operand, Solution, SolutionStep},
        stated,
        utterance::Utterance,
    },
    surface::{Tool, ToolChoice},
};

/// Calls a calculator where one is offered, the agent is to solve, and no result is there yet.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let choice = &reading.conversation.tool_choice;
    let forced = matches!(choice, ToolChoice::Required | ToolChoice::Named(_));
    if *choice == ToolChoice::None || (!forced && !matches!(reading.duty, Duty::Solve | Duty::Open)) {
        return None;
    }
    if !forced && reading.task.as_ref().is_some_and(StatedTask::wants_code) {
        return None;
    }
    let allowed = |tool: &&Tool| !matches!(choice, ToolChoice::Named(name) if *name != tool.name);
    let tools: Vec<&Tool> = reading.conversation.tools.iter().filter(allowed).collect();
    let results = results(reading, &tools);
    if let Some((tool, property)) = tools.iter().find_map(|tool| Some((*tool, expression_property(tool)?))) {
        if !results.is_empty() && !forced {
            return None;
        }
        return Some(Utterance::call(&tool.name, json!({ property: expression(reading)? })));
    }
    if results.iter().any(Option::is_none) {
        return None;
    }
    let steps = reading.steps()?;
    let done: Vec<f64> = results.into_iter().flatten().collect();
    binary(&tools, &steps, &done)
}

/// Whether a tool computes: its property for an expression, or two numbers for one operation.
pub(super) fn is_calculator(tool: &Tool) -> bool {
    expression_property(tool).is_some() || operation(tool).is_some()
}

/// The results that calculators have given since somebody last spoke; `None` for one that is no number.
fn results(reading: &ReadConversation<'_>, tools: &[&Tool]) -> Vec<Option<f64>> {
    let fresh = reading.fresh_results();
    let ours =
        fresh.into_iter().filter(|(call, _)| tools.iter().any(|tool| tool.name == call.name && is_calculator(tool)));
    ours.map(|(_, text)| stated::last_number(&text)).collect()
}

fn properties(tool: &Tool) -> Vec<(&String, &Value)> {
    tool.parameters.get("properties").and_then(Value::as_object).map(|map| map.iter().collect()).unwrap_or_default()
}

fn described(tool: &Tool, stems: &[&str]) -> bool {
    let text = format!("{} {}", tool.name, tool.description).to_lowercase();
    stems.iter().any(|stem| text.contains(stem))
}

/// The property that takes an expression.
fn expression_property(tool: &Tool) -> Option<String> {
    let takes_text = |value: &Value| value.get("type").is_none_or(|kind| kind == "string");
    let named =
        ["expression", "expr", "formula", "equation", "calculation", "operation", "query", "input", "code", "text"];
    let found = properties(tool)
        .into_iter()
        .find(|(name, value)| takes_text(value) && named.contains(&name.to_lowercase().as_str()));
    let computes = described(tool, &["calc", "math", "arith", "evaluat", "comput"]);
    found
        .filter(|(name, _)| computes || matches!(name.as_str(), "expression" | "formula" | "equation"))
        .map(|(name, _)| name.clone())
}

/// What is to be computed, as one expression.
fn expression(reading: &ReadConversation<'_>) -> Option<String> {
    let steps = reading.steps().filter(|steps| !steps.is_empty());
    let Some(mut steps) = steps else {
        let task = reading.task.as_ref()?;
        let found = expression::find(&task.text);
        return Some(found.map_or_else(|| number_text(task.solution.answer), |(written, _)| written));
    };
    if reading.orders.skip_last && steps.len() > 1 {
        steps.pop();
    }
    Some(Solution { steps, answer: 0.0, unit: String::new() }.expression())
}

/// The operation of a tool that takes two numbers.
fn operation(tool: &Tool) -> Option<Arithmetic> {
    let numeric = |value: &Value| value.get("type").is_some_and(|kind| kind == "number" || kind == "integer");
    if properties(tool).into_iter().filter(|(_, value)| numeric(value)).count() != 2 {
        return None;
    }
    let table: [(Arithmetic, &[&str]); 4] = [
        (Arithmetic::Multiply, &["multipl", "product", "times", "mul"]),
        (Arithmetic::Subtract, &["subtract", "minus", "difference", "sub"]),
        (Arithmetic::Divide, &["divi", "quotient"]),
        (Arithmetic::Add, &["add", "sum", "plus"]),
    ];
    table.into_iter().find(|(_, stems)| described(tool, stems)).map(|(operation, _)| operation)
}

/// The next step by a tool for its operation; steps without a tool are done by heart.
fn binary(tools: &[&Tool], steps: &[SolutionStep], done: &[f64]) -> Option<Utterance> {
    let mut results: Vec<f64> = Vec::new();
    let mut given = done.iter();
    for step in steps {
        let value = |operand| match operand {
            Operand::Number(value) => Some(value),
            Operand::Result(at) => results.get(at).copied(),
        };
        let (left, right) = (value(step.left)?, value(step.right)?);
        let tool = tools.iter().find(|tool| operation(tool) == Some(step.operation));
        let result = match (tool, given.next()) {
            (Some(_), Some(result)) => *result,
            (Some(tool), None) => {
                let mut arguments = serde_json::Map::new();
                for ((name, kind), value) in properties(tool).into_iter().zip([left, right]) {
                    arguments.insert(name.clone(), number(kind, value));
                }
                return Some(Utterance::call(&tool.name, Value::Object(arguments)));
            }
            (None, _) => step.operation.apply(left, right)?,
        };
        results.push(result);
    }
    None
}

fn number(kind: &Value, value: f64) -> Value {
    let whole = kind.get("type").is_some_and(|kind| kind == "integer") || value.fract() == 0.0;
    let text = if whole { format!("{:.0}", value.round()) } else { number_text(value) };
    serde_json::from_str(&text).unwrap_or(Value::Null)
}
