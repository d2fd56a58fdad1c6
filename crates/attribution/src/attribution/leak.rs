//! Whether a correction is one: it differs, stays close to what was said, and does not give the answer away.

use similar::{Algorithm, DiffOp};

use crate::trajectory::patterns;

patterns! {
    /// A number, its sign included, or a word. Not as `WrittenNumber` has it: an exponent belongs to it, and it is parted from words.
    TOKEN = r"(?i)([-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[-−]?\d+(?:\.\d+)?)(e[+-]?\d+\b)?|[\p{L}\p{N}_]+";
}

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
    if gold.is_some_and(|gold| gives_away(after, before, gold) && !takes_a_place(before, after, gold)) {
        return Err(UnfitCorrection::Leaks);
    }
    #[expect(clippy::cast_precision_loss, reason = "words of one reply")]
    let share = kept as f64 / old.len().max(1) as f64;
    if old.len() >= SHORT && share < KEPT { Err(UnfitCorrection::NotLocal) } else { Ok(()) }
}

/// Whether a text tells the right answer to somebody who has read `known`, in whatever shape: `ANSWER:84`, `40+44=84`,
/// `84.0` and `84%` all say 84.
pub(super) fn gives_away(text: &str, known: &str, gold: &str) -> bool {
    let gold = tokens(gold);
    !gold.is_empty() && holds(&tokens(text), &gold) && !holds(&tokens(known), &gold)
}

/// What of a text does not tell the right answer to somebody who has read `known`, by sentences.
pub(super) fn without_answer(text: &str, known: &str, gold: &str) -> String {
    let kept: String = sentences(text).into_iter().filter(|sentence| !gives_away(sentence, known, gold)).collect();
    kept.trim().to_owned()
}

/// The sentences and lines of a text, with the blanks behind them.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut ends) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if (ends && c.is_whitespace()) || matches!(c, '\n' | '。' | '！' | '？') {
            let (sentence, _) = text.split_at(at + c.len_utf8());
            found.extend(sentence.get(from..));
            from = at + c.len_utf8();
        }
        // What closes a quotation or a bracket belongs to its sentence.
        ends = matches!(c, '.' | '!' | '?') || (ends && matches!(c, '"' | '\'' | '”' | ')' | '*'));
    }
    found.extend(text.get(from..));
    found
}

/// Whether the gold answer stands where the reply had something of its kind.
fn takes_a_place(before: &str, after: &str, gold: &str) -> bool {
    let (old, new, gold) = (tokens(before), tokens(after), tokens(gold));
    let ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
    ops.iter().any(|op| {
        let (DiffOp::Replace { .. }, Some(was), Some(is)) = (op, old.get(op.old_range()), new.get(op.new_range()))
        else {
            return false;
        };
        let number = gold.iter().all(|word| is_number(word));
        holds(is, &gold)
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

/// The numbers of a text by value, and its words in lower case; every other sign parts them.
fn tokens(text: &str) -> Vec<String> {
    let token = |found: regex::Captures<'_>| {
        let whole = found.get(0)?;
        let Some(number) = found.get(1) else { return Some(whole.as_str().to_lowercase()) };
        let plain = number.as_str().replace('−', "-").replace(',', "");
        // `96-12`: a sign between two numbers is no sign of the second.
        let before = text.get(..whole.start()).and_then(|before| before.chars().next_back());
        let parts = before.is_some_and(|c| c.is_alphanumeric() || c == ')');
        let plain = if parts { plain.trim_start_matches('-') } else { &plain };
        let value = format!("{plain}{}", found.get(2).map_or("", |exponent| exponent.as_str())).parse::<f64>();
        Some(value.map_or_else(|_| plain.to_owned(), |value| value.to_string()))
    };
    TOKEN.captures_iter(text).filter_map(token).collect()
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

    #[test]
    fn an_answer_is_given_away_in_whatever_shape() {
        for (gold, text, gives) in [
            ("84", "ANSWER:84", true),
            ("84", "40+44=84", true),
            ("84", "It is 84.0", true),
            ("84", "It is 84.", true),
            ("84", "84%", true),
            ("84", "$84,", true),
            ("84", "**84**", true),
            ("84", "`84`", true),
            ("84", "(84)", true),
            ("84", "80-84", true),
            ("84", "84km", true),
            ("84", "8.4e1", true),
            ("$84.00", "it is 84", true),
            ("1,200", "x=1200!", true),
            ("1200", "1,200.00", true),
            ("84", "184", false),
            ("84", "8.4", false),
            ("84", "84.5", false),
            ("84", "1984", false),
            ("84", "1,984", false),
            ("84", "840", false),
            ("84", "0.84", false),
            ("84", "84e2", false),
            ("84", "x84", false),
            ("84", "It is -84", false),
            ("-84", "It is −84", true),
            ("Paris", "ANSWER:Paris", true),
            ("Paris", "\"paris\"/Rome", true),
            ("Paris", "Parisian", false),
            ("New York", "new-york", true),
            ("New York", "New Yorkers", false),
            ("", "84", false),
        ] {
            assert_eq!(gives_away(text, "", gold), gives, "{gold}: {text}");
            assert!(!gives_away(text, &format!("We had {gold} of it"), gold), "it was read: {text}");
        }
        assert_eq!(
            check("It was right. ANSWER:94", "It was right. ANSWER:84", Some("84")),
            Ok(()),
            "a number for a number"
        );
        assert_eq!(check("Add both", "Add both: ANSWER:84", Some("84")), Err(UnfitCorrection::Leaks));
    }

    #[test]
    fn only_the_sentences_that_tell_it_are_left_out() {
        for (text, kept) in [
            ("Think again. The total is 84.", "Think again."),
            ("(It is 84.) Think again! Is it 8.4? No.", "Think again! Is it 8.4? No."),
            ("Think again\nANSWER:84\nSlowly", "Think again\nSlowly"),
            ("再想一想。答案是 84。", "再想一想。"),
            ("40+44=84", ""),
            ("", ""),
        ] {
            assert_eq!(without_answer(text, "", "84"), kept, "{text}");
        }
        assert_eq!(without_answer("You had 84.", "There are 84.", "84"), "You had 84.", "it was read");
    }
}
