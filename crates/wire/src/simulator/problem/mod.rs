//! Arithmetic word problems that are known: worked tasks, solved with whatever numbers stand in their places. Expressions
//! (`What is 17 * 23 + 4?`) are read elsewhere.

pub(super) mod solution;

use std::{collections::BTreeMap, sync::LazyLock};

pub(super) use solution::{Arithmetic, Operand, Solution, SolutionStep};

use super::language::{TextToken, tokens};
use solution::Quantity;

/// Each task with its answer, what is counted in it, and the steps to it.
const TABLE: &str = include_str!("worked.toml");

/// The tasks, the longest first.
static WORKED: LazyLock<Vec<WorkedTask>> = LazyLock::new(|| {
    let read: BTreeMap<String, Vec<String>> = toml::from_str(TABLE).unwrap_or_default();
    let mut tasks: Vec<WorkedTask> = read.iter().filter_map(|(text, solved)| WorkedTask::new(text, solved)).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.words.len()));
    tasks
});

/// A task that is known.
struct WorkedTask {
    words: Vec<TextToken>,
    unit: String,
    /// `s1 - c: pencils left`: the result of the first step less the third number of the task, and what that is.
    steps: Vec<String>,
}

/// Solves a text in which a known task stands; `None` where none does, or its numbers have no answer.
pub(super) fn solve(text: &str) -> Option<Solution> {
    let words = tokens(text);
    let (task, numbers) = WORKED.iter().find_map(|task| Some((task, task.numbers(&words)?)))?;
    let mut made: Vec<Quantity> = Vec::new();
    for step in &task.steps {
        let (sum, what) = step.split_once(": ").unwrap_or((step, ""));
        let mut parts = sum.split(' ');
        let left = operand(parts.next()?, &numbers, &made)?;
        let quantity = match parts.next() {
            Some(sign) => {
                let operation = Arithmetic::ALL.into_iter().find(|operation| sign.starts_with(operation.sign()))?;
                Quantity::join(operation, left, operand(parts.next()?, &numbers, &made)?, what)?
            }
            None => left,
        };
        made.push(quantity);
    }
    Some(Solution::from_quantity(made.last()?, &task.unit))
}

/// A letter is a number of the task, `s1` the result of a step, anything else a number.
fn operand(name: &str, numbers: &[f64], made: &[Quantity]) -> Option<Quantity> {
    if let Some(step) = name.strip_prefix('s').and_then(|step| step.parse::<usize>().ok()) {
        return made.get(step.checked_sub(1)?).cloned();
    }
    let letter = ('a'..='z').zip(numbers).find(|(letter, _)| name.chars().eq([*letter]));
    letter.map(|(_, number)| *number).or_else(|| name.parse().ok()).map(Quantity::Given)
}

impl WorkedTask {
    fn new(text: &str, solved: &[String]) -> Option<Self> {
        let [_, unit, steps @ ..] = solved else { return None };
        Some(Self { words: tokens(text), unit: unit.clone(), steps: steps.to_vec() })
    }

    /// The numbers that a text has in the places of the task's own.
    fn numbers(&self, text: &[TextToken]) -> Option<Vec<f64>> {
        let same = |(known, said): (&TextToken, &TextToken)| match (known.number(), said.number()) {
            (None, None) => {
                known.word() == said.word() && std::mem::discriminant(known) == std::mem::discriminant(said)
            }
            (known, said) => known.is_some() && said.is_some(),
        };
        let place = text.windows(self.words.len()).find(|words| self.words.iter().zip(*words).all(same))?;
        Some(place.iter().filter_map(TextToken::number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::language::number_text;

    fn answer(text: &str) -> Option<String> {
        solve(text).map(|solved| number_text(solved.answer))
    }

    #[test]
    fn worked_tasks_have_their_answers() {
        let read: BTreeMap<String, Vec<String>> = toml::from_str(TABLE).expect("TOML");
        assert_eq!((read.len(), WORKED.len()), (82, 82));
        for (text, solved) in &read {
            assert_eq!(answer(text).as_ref(), Some(&solved[0]), "{text}");
            assert_eq!(solve(text).map(|solved| solved.unit).as_ref(), Some(&solved[1]), "{text}");
        }
    }

    #[test]
    fn the_shipped_tasks_are_known() {
        let tasks = include_str!("../../../../../examples/tasks.jsonl").lines();
        for task in tasks.map(|task| serde_json::from_str::<serde_json::Value>(task).expect("JSON")) {
            let text = task["question"].as_str().expect("a question");
            assert_eq!(answer(text).as_deref(), task["answer"].as_str(), "{text}");
        }
    }

    /// Other numbers, words around it, blanks and capitals make no other task of it; another word does.
    #[test]
    fn a_known_task_is_solved_with_the_numbers_that_stand_in_it() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(answer(text).as_deref(), expected, "{text}");
        let pencils =
            "Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?";
        check(pencils, Some("75"));
        check(&pencils.replace("12", "1,200").replace(' ', "  "), Some("8391"));
        check(&pencils.replace("12", "one"), Some("-2"));
        check(&format!("Thank you.\nProblem: {pencils}\nThe agents: 3"), Some("75"));
        check(&pencils.replace("Mia", "Nina"), None);
        check(&pencils.replace("each", "in all"), None);
        check(
            "Anna Lee has 6 boxes with ten pencils each. She gives away 2 pencils. How many pencils does she have left?",
            Some("58"),
        );
        check(
            "4 friends share a bill of 80 dollars and add a tip of 15 percent. How much does each friend pay?",
            Some("23"),
        );
        check("0 friends share a bill of 80 dollars and add a tip of 15 percent. How much does each friend pay?", None);
        for none in ["", "Hello there.", "What is the capital of France?", "How many are there?"] {
            check(none, None);
        }
    }
}
