//! Plans: written from a solution, read from a message, followed with the values that the message gives.

use super::{
    language::{TextToken, number_text, same_number, tokens, with_blanks_alike},
    problem::{Arithmetic, Operand, Solution, SolutionStep},
};

/// Writes the steps of a solution as a numbered plan: operations and quantities, nothing computed.
pub(super) fn write(solution: &Solution) -> String {
    let operand = |operand: Operand| match operand {
        Operand::Number(value) => number_text(value),
        Operand::Result(at) => format!("the result of step {}", at + 1),
    };
    let line = |(at, step): (usize, &SolutionStep)| {
        let (left, right) = (operand(step.left), operand(step.right));
        let what = if step.what.is_empty() { String::new() } else { format!(" to get the {}", step.what) };
        let todo = match step.operation {
            Arithmetic::Add => format!("Add {right} to {left}"),
            Arithmetic::Subtract => format!("Subtract {right} from {left}"),
            Arithmetic::Multiply => format!("Multiply {left} by {right}"),
            Arithmetic::Divide => format!("Divide {left} by {right}"),
        };
        format!("{}. {todo}{what}.", at + 1)
    };
    if solution.steps.is_empty() {
        return format!("1. Take {} from the text: it is the answer.", number_text(solution.answer));
    }
    solution.steps.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads the steps of a plan. Lines that cannot be carried out are passed over; `None` where no line can.
/// Numbers are taken as they stand, right or wrong.
pub(super) fn read(text: &str) -> Option<Vec<SolutionStep>> {
    let mut steps: Vec<SolutionStep> = Vec::new();
    let mut numbers: Vec<f64> = Vec::new();
    for line in text.lines() {
        let Some((number, todo)) = listed(line) else { continue };
        let references = StepReferences { numbers: &numbers, known: steps.len() };
        if let Some(step) = step(todo, &references) {
            steps.push(step);
            numbers.push(number);
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// A listed line without its marker, and its number (0 for a bullet).
fn listed(line: &str) -> Option<(f64, &str)> {
    let line = line.trim().trim_start_matches(['*', '#', ' ']);
    let lower = line.to_lowercase();
    let after_step = if lower.starts_with("step ") { line.get(5..)? } else { line };
    let digits = after_step.find(|c: char| !c.is_ascii_digit()).unwrap_or(after_step.len());
    let (number, rest) = after_step.split_at_checked(digits)?;
    if let (Ok(number), true) = (number.parse(), rest.starts_with(['.', ')', ':'])) {
        return Some((number, rest.get(1..)?));
    }
    line.strip_prefix("- ").map(|rest| (0.0, rest))
}

struct StepReferences<'a> {
    numbers: &'a [f64],
    known: usize,
}

impl StepReferences<'_> {
    fn last(&self) -> Option<Operand> {
        self.known.checked_sub(1).map(Operand::Result)
    }

    fn named(&self, number: f64) -> Option<Operand> {
        self.numbers.iter().position(|known| same_number(*known, number)).map(Operand::Result)
    }

    /// What a stretch of words names: a number, `the result of step 2`, `it`.
    fn operand(&self, tokens: &[TextToken]) -> Option<Operand> {
        if let Some(at) = tokens.iter().position(|t| t.is(&["step"])) {
            let number = tokens.get(at + 1).and_then(TextToken::number);
            return number.and_then(|number| self.named(number)).or_else(|| self.last());
        }
        let number = tokens.iter().find_map(TextToken::number).map(Operand::Number);
        let pointing =
            ["it", "that", "this", "result", "product", "sum", "difference", "quotient", "total", "previous"];
        number.or_else(|| tokens.iter().any(|t| t.is(&pointing)).then(|| self.last()).flatten())
    }
}

fn step(todo: &str, references: &StepReferences<'_>) -> Option<SolutionStep> {
    let words = tokens(todo);
    let verbs: [(&[&str], Arithmetic, &[&str]); 4] = [
        (&["multiply", "times"], Arithmetic::Multiply, &["by", "with", "and", "times"]),
        (&["divide", "split", "share"], Arithmetic::Divide, &["by", "into", "among"]),
        (&["subtract", "deduct", "take"], Arithmetic::Subtract, &["from"]),
        (&["add", "sum"], Arithmetic::Add, &["to", "and", "with"]),
    ];
    for (names, operation, links) in verbs {
        let Some(verb) = words.iter().position(|t| t.is(names)) else { continue };
        let after = words.get(verb + 1..)?;
        let Some(link) = after.iter().position(|t| t.is(links)) else { continue };
        let end = after
            .iter()
            .skip(link + 1)
            .position(|t| t.is(&["to", "which", "gives", "so"]) || *t == TextToken::Comma)
            .map_or(after.len(), |at| at + link + 1);
        let first = references.operand(after.get(..link)?);
        let second = references.operand(after.get(link + 1..end)?);
        let (Some(first), Some(second)) = (first, second) else { continue };
        let (left, right) =
            if matches!(operation, Arithmetic::Subtract | Arithmetic::Add) { (second, first) } else { (first, second) };
        return Some(SolutionStep { operation, left, right, what: goal(todo) });
    }
    written(todo)
}

/// `4 * 12 = 48`: one operation on two numbers.
fn written(todo: &str) -> Option<SolutionStep> {
    let (expression, _) = super::expression::find(todo)?;
    let left_side = expression.split('=').next()?.trim();
    let at = left_side.char_indices().skip(1).find(|(_, c)| "+-*/×÷x−".contains(*c))?;
    let operation = match at.1 {
        '+' => Arithmetic::Add,
        '-' | '−' => Arithmetic::Subtract,
        '/' | '÷' => Arithmetic::Divide,
        _ => Arithmetic::Multiply,
    };
    let left = left_side.get(..at.0)?.trim().replace(',', "").parse().ok()?;
    let right = left_side.get(at.0 + at.1.len_utf8()..)?.trim().replace(',', "").parse().ok()?;
    Some(SolutionStep { operation, left: Operand::Number(left), right: Operand::Number(right), what: String::new() })
}

fn goal(todo: &str) -> String {
    let todo = with_blanks_alike(todo);
    let after = todo.split_once(" to get the ").map(|(_, after)| after).unwrap_or_default();
    after.split(['.', ',', ':', '\n']).next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::problem::{self, solution};

    #[test]
    fn a_plan_that_was_written_can_be_followed() {
        for text in [
            "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?",
            "Notebooks cost 4 dollars each and pens cost 2 dollars each. Tom buys 3 notebooks and 5 pens. How much does he pay?",
            "A jacket costs 80 dollars. It is sold with a discount of 25 percent. What is the price?",
        ] {
            let solution = problem::solve(text).expect("can be solved");
            let steps = read(&write(&solution)).expect("can be read");
            assert_eq!(Some(&steps), read(&write(&solution).replace(' ', "  ")).as_ref(), "blanks mean nothing");
            let results = solution::run(&steps).expect("can be run");
            assert_eq!(results.last(), Some(&solution.answer), "{}", write(&solution));
        }
    }

    #[test]
    fn plans_of_others_are_read() {
        let check = |text: &str, expected: Option<f64>| {
            let result = read(text).and_then(|steps| solution::run(&steps)).and_then(|results| results.last().copied());
            assert_eq!(result, expected, "{text}");
        };
        check("1. Multiply 4 boxes by 13 pencils.\n2. Subtract 9 pencils from that.", Some(43.0));
        check("Step 1: 4 * 12 = 48\nStep 2: Add 5 to the result of step 1", Some(53.0));
        check("- Divide 60 by 4", Some(15.0));
        check("1. Multiply.\n2. Subtract.", None);
        check("Multiply 4 by 12.", None);
    }
}
