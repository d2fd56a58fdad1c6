//! Whether a correction is one: it differs, stays close to what was said, and does not give the answer away.

use similar::{Algorithm, DiffOp};

/// Share of words that a correction must keep of a longer reply: more change is another reply, not a local correction.
const KEPT: f64 = 0.25;
/// Replies of fewer words may be replaced whole.
const SHORT: usize = 12;

/// Why a correction is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnfitCorrection {
    #[error("it is empty")]
    Empty,
    #[error("it changes nothing")]
    Unchanged,
    #[error("it is not local: it keeps too little of the reply")]
    NotLocal,
    #[error("it gives the final result away in a step that did not state one")]
    Leaks,
}

/// Checks a correction. The right answer may stand in it only where the reply had an answer of the same kind in its
/// place (a number for a number), or had it anyway.
pub(super) fn check(before: &str, after: &str, gold: Option<&str>) -> Result<(), UnfitCorrection> {
    let (old, new) = (words(before), words(after));
    if new.is_empty() {
        return Err(UnfitCorrection::Empty);
    }
    if old == new {
        return Err(UnfitCorrection::Unchanged);
    }
    let ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
    let kept: usize = ops.iter().filter(|op| matches!(op, DiffOp::Equal { .. })).map(|op| op.old_range().len()).sum();
    let gold = words(gold.unwrap_or_default());
    if !gold.is_empty() && !holds(&old, &gold) && holds(&new, &gold) && !takes_a_place(&ops, &old, &new, &gold) {
        return Err(UnfitCorrection::Leaks);
    }
    #[expect(clippy::cast_precision_loss, reason = "words of one reply")]
    let share = kept as f64 / old.len().max(1) as f64;
    if old.len() >= SHORT && share < KEPT { Err(UnfitCorrection::NotLocal) } else { Ok(()) }
}

/// Whether a text tells the right answer to somebody who has read `known`.
pub(super) fn gives_away(text: &str, known: &str, gold: &str) -> bool {
    let gold = words(gold);
    !gold.is_empty() && holds(&words(text), &gold) && !holds(&words(known), &gold)
}

/// Whether the gold answer stands where the reply had something of its kind.
fn takes_a_place(ops: &[DiffOp], old: &[String], new: &[String], gold: &[String]) -> bool {
    ops.iter().any(|op| {
        let (DiffOp::Replace { .. }, Some(was), Some(is)) = (op, old.get(op.old_range()), new.get(op.new_range()))
        else {
            return false;
        };
        let number = gold.iter().all(|word| is_number(word));
        holds(is, gold)
            && if number {
                was.iter().any(|word| is_number(word))
            } else {
                was.len() == is.len() && is.len() == gold.len()
            }
    })
}

fn holds(words: &[String], sought: &[String]) -> bool {
    words.windows(sought.len()).any(|window| window == sought)
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// Words in lower case, without the signs around them; `1,200` is `1200`.
fn words(text: &str) -> Vec<String> {
    let clean = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-');
        let plain = word.replace(',', "");
        if is_number(&plain) { plain } else { word.to_lowercase() }
    };
    text.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_local_and_gives_nothing_away() {
        let solution = "Step 1: 12 * 8 = 96 pencils. Step 2: 96 - 12 = 94 pencils left. ANSWER: 94";
        let plan = "1. Multiply 12 by 8 to get the pencils. 2. Add 12 to the result of step 1.";
        for (before, after, expected) in [
            (solution, "Step 1: 12 * 8 = 96 pencils. Step 2: 96 - 12 = 84 pencils left. ANSWER: 84", Ok(())),
            (plan, "1. Multiply 12 by 8 to get the pencils. 2. Subtract 12 from the result of step 1.", Ok(())),
            (
                plan,
                "1. Multiply 12 by 8 to get the pencils. 2. Add 12 to the result of step 1. The answer is 84.",
                Err(UnfitCorrection::Leaks),
            ),
            (
                plan,
                "Just answer what your teacher told you yesterday and be done with all of it",
                Err(UnfitCorrection::NotLocal),
            ),
            (plan, plan, Err(UnfitCorrection::Unchanged)),
            (plan, "  ", Err(UnfitCorrection::Empty)),
            ("APPROVE", "REVISE", Ok(())),
            ("The result is 94.", "The result is 84.", Ok(())),
            ("It was Paris.", "It was 84", Err(UnfitCorrection::Leaks)),
        ] {
            assert_eq!(check(before, after, Some("84")), expected, "{after}");
        }
        assert_eq!(check("The capital is Rome", "The capital is Paris", Some("Paris")), Ok(()));
        assert_eq!(
            check("Look the capital up", "Look the capital up: Paris", Some("Paris")),
            Err(UnfitCorrection::Leaks)
        );
        assert_eq!(check(plan, &format!("{plan} The answer is 84."), None), Ok(()), "nothing to give away");
    }
}
