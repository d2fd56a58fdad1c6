//! Arithmetic word problems: read, turned into steps, solved. Also expressions (`What is 17 * 23 + 4?`).

mod clause;
mod fact;
mod fold;
mod ledger;
mod noun;
mod question;
mod rate;
pub(super) mod solution;
mod verbs;

pub(super) use solution::{Arithmetic, Operand, Solution, SolutionStep};

/// Solves a word problem; `None` where the text is none that can be read.
pub(super) fn solve(text: &str) -> Option<Solution> {
    let stated = question::read(text)?;
    let (quantity, unit) = ledger::answer(&stated)?;
    Some(Solution::of(&quantity, &unit))
}

#[cfg(test)]
mod tests;
