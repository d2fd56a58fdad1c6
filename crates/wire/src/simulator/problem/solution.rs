//! What comes of a word problem: a tree of arithmetic over given quantities, and the steps that it makes.

use std::rc::Rc;

use crate::simulator::language::{number_text, same_number};

/// An arithmetic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Arithmetic {
    /// Each.
    pub(super) const ALL: [Self; 4] = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide];

    /// Its sign.
    pub(crate) fn sign(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Subtract => '-',
            Arithmetic::Multiply => '*',
            Arithmetic::Divide => '/',
        }
    }

    /// Its value; `None` where it has none.
    pub(crate) fn apply(self, left: f64, right: f64) -> Option<f64> {
        let value = match self {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide if right == 0.0 => return None,
            Arithmetic::Divide => left / right,
        };
        value.is_finite().then_some(value)
    }
}

/// A quantity: given in the text, or made from others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Quantity {
    /// Stands in the text.
    Given(f64),
    /// Made by an operation.
    Made(Rc<MadeQuantity>),
}

/// A quantity that was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeQuantity {
    operation: Arithmetic,
    left: Quantity,
    right: Quantity,
    what: String,
    value: f64,
}

impl Quantity {
    /// Its value.
    pub(crate) fn value(&self) -> f64 {
        match self {
            Quantity::Given(value) => *value,
            Quantity::Made(made) => made.value,
        }
    }

    /// Joins two quantities. Steps that change nothing (`+ 0`, `* 1`, `/ 1`) are not made.
    pub(crate) fn join(operation: Arithmetic, left: Quantity, right: Quantity, what: &str) -> Option<Quantity> {
        let value = operation.apply(left.value(), right.value())?;
        let neutral = if matches!(operation, Arithmetic::Add | Arithmetic::Subtract) { 0.0 } else { 1.0 };
        if right == Quantity::Given(neutral) {
            return Some(left);
        }
        if operation == Arithmetic::Add && left == Quantity::Given(0.0) {
            return Some(right);
        }
        if operation == Arithmetic::Multiply && left == Quantity::Given(1.0) {
            return Some(right);
        }
        let what = what.to_owned();
        Some(Quantity::Made(Rc::new(MadeQuantity { operation, left, right, what, value })))
    }
}

/// What a step works on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operand {
    /// A number.
    Number(f64),
    /// The result of an earlier step, 0-based.
    Result(usize),
}

/// One step of a solution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SolutionStep {
    /// What is done.
    pub(crate) operation: Arithmetic,
    /// To what.
    pub(crate) left: Operand,
    /// With what.
    pub(crate) right: Operand,
    /// What the result is, in words; may be empty.
    pub(crate) what: String,
}

/// A way to an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    /// The steps in order; the last one's result is the answer. Empty when the answer is given in the text.
    pub(crate) steps: Vec<SolutionStep>,
    /// The answer.
    pub(crate) answer: f64,
    /// What is counted, in words; may be empty.
    pub(crate) unit: String,
}

impl Solution {
    /// Flattens a quantity into steps; equal sub-quantities become one step.
    pub(crate) fn from_quantity(quantity: &Quantity, unit: &str) -> Self {
        let mut steps = Vec::new();
        let mut made = Vec::new();
        flatten(quantity, &mut steps, &mut made);
        Self { steps, answer: quantity.value(), unit: unit.to_owned() }
    }

    /// The whole as one expression, for example `4 * 12 - 9`.
    pub(crate) fn expression(&self) -> String {
        match self.steps.len().checked_sub(1) {
            None => number_text(self.answer),
            Some(last) => self.written(Operand::Result(last), None, false),
        }
    }

    fn written(&self, operand: Operand, around: Option<Arithmetic>, on_the_right: bool) -> String {
        let step = match operand {
            Operand::Number(value) if value < 0.0 => return format!("({})", number_text(value)),
            Operand::Number(value) => return number_text(value),
            Operand::Result(at) => match self.steps.get(at) {
                Some(step) => step,
                None => return "0".to_owned(),
            },
        };
        let left = self.written(step.left, Some(step.operation), false);
        let right = self.written(step.right, Some(step.operation), true);
        let text = format!("{left} {} {right}", step.operation.sign());
        let weak = |operation| matches!(operation, Arithmetic::Add | Arithmetic::Subtract);
        let bare = match around {
            None => true,
            Some(outer) if weak(outer) => !weak(step.operation) || !on_the_right || outer == Arithmetic::Add,
            Some(outer) => {
                !weak(step.operation) && (!on_the_right || (outer == Arithmetic::Multiply && step.operation == outer))
            }
        };
        if bare { text } else { format!("({text})") }
    }
}

/// The results of steps in order; `None` where one has no value.
pub(crate) fn run(steps: &[SolutionStep]) -> Option<Vec<f64>> {
    let mut results: Vec<f64> = Vec::with_capacity(steps.len());
    for step in steps {
        let value = |operand| match operand {
            Operand::Number(value) => Some(value),
            Operand::Result(at) => results.get(at).copied(),
        };
        let result = step.operation.apply(value(step.left)?, value(step.right)?)?;
        results.push(result);
    }
    Some(results)
}

fn flatten<'a>(quantity: &'a Quantity, steps: &mut Vec<SolutionStep>, made: &mut Vec<&'a MadeQuantity>) -> Operand {
    let Quantity::Made(node) = quantity else {
        return Operand::Number(quantity.value());
    };
    if let Some(known) = made.iter().position(|other| *other == node.as_ref()) {
        return Operand::Result(known);
    }
    let left = flatten(&node.left, steps, made);
    let right = flatten(&node.right, steps, made);
    steps.push(SolutionStep { operation: node.operation, left, right, what: node.what.clone() });
    made.push(node);
    debug_assert!(run(steps).is_some_and(|r| r.last().is_some_and(|last| same_number(*last, node.value))));
    Operand::Result(steps.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_keep_their_meaning() {
        let given = Quantity::Given;
        let join = |operation, left, right| Quantity::join(operation, left, right, "x").expect("has a value");
        let product = join(Arithmetic::Multiply, given(4.0), given(12.0));
        let rest = join(Arithmetic::Subtract, given(100.0), join(Arithmetic::Add, product.clone(), given(5.0)));
        let shared = join(Arithmetic::Divide, rest.clone(), given(2.0));
        let check = |quantity: &Quantity, text: &str| {
            let solution = Solution::from_quantity(quantity, "");
            assert_eq!(solution.expression(), text);
            let value = crate::simulator::expression::evaluate(text);
            assert_eq!(value, Some(crate::simulator::expression::Value::Number(solution.answer)));
        };
        check(&product, "4 * 12");
        check(&rest, "100 - (4 * 12 + 5)");
        check(&shared, "(100 - (4 * 12 + 5)) / 2");
        check(&join(Arithmetic::Add, product.clone(), product), "4 * 12 + 4 * 12");
        check(&given(7.0), "7");
    }
}
