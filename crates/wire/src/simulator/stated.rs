//! What other texts state: final answers, opinions of several peers, objections, consent.

use super::{
    function,
    language::{TextToken, number_text, tokens},
};
use crate::trajectory::WrittenNumber;

/// The final answer that a text states, written as the simulator writes answers: a number, a choice letter, or a block
/// of code. The last statement counts.
pub(super) fn answer(text: &str) -> Option<String> {
    concluded(text).or_else(|| bare_answer(text))
}

/// The last answer line of a text; without one its last block of code.
fn concluded(text: &str) -> Option<String> {
    statements(text).pop().or_else(|| function::last_block(text))
}

/// The opinions in a text that quotes several peers, in order: one for each block or answer line.
pub(super) fn opinions(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = vec![String::new()];
    for line in text.lines() {
        if opens_block(line) {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push('\n');
        }
    }
    let by_block: Vec<String> = blocks.iter().filter_map(|block| concluded(block)).collect();
    let lower = text.to_lowercase();
    let several = [
        "other agents",
        "opinions",
        "solutions",
        "responses",
        "debaters",
        "peers",
        "agents said",
        "candidates",
        "answers",
    ];
    if by_block.len() < 2 && several.iter().any(|cue| lower.contains(cue)) {
        return statements(text);
    }
    by_block
}

/// Whether a text says that something is wrong and has to be done again.
pub(super) fn objects(text: &str) -> bool {
    let text = &function::without_blocks(text);
    let words = tokens(text);
    let objecting =
        ["revise", "wrong", "incorrect", "reject", "rejected", "mistake", "error", "redo", "disapprove", "fail"];
    let approving = words.iter().any(|t| t.is(&["approve", "approved", "terminate"]));
    let not = |words: &[&str]| words.iter().any(|phrase| text.to_lowercase().contains(phrase));
    let negated = not(&["no error", "no mistake", "not wrong", "if it is wrong", "without error"]);
    let denied = not(&["not correct", "not right", "does not hold", "should be"]);
    !approving && (denied || (!negated && words.iter().any(|t| t.is(&objecting))))
}

/// The value that an objecting text asks for instead.
pub(super) fn correction(text: &str) -> Option<String> {
    objects(text).then(|| answer(text)).flatten()
}

/// The last number of a text, as in a tool's result.
pub(super) fn last_number(text: &str) -> Option<f64> {
    super::expression::evaluate(text)
        .and_then(|value| match value {
            super::expression::Value::Number(number) => Some(number),
            super::expression::Value::Truth(_) => None,
        })
        .or_else(|| numbers(text).pop())
}

/// All numbers of a text. Other than in prose a minus that stands alone between two numbers is no sign: `12 -3` is a sum.
fn numbers(text: &str) -> Vec<f64> {
    let mut until = None;
    let signed = |number: WrittenNumber<'_>| {
        let between = until.replace(number.place.end).and_then(|end| text.get(end..number.place.start));
        let subtracts = between.is_some_and(|between| between.trim() == "-");
        if number.sign() > 0 && !subtracts { -number.value() } else { number.value() }
    };
    WrittenNumber::all(text).filter(|number| !number.is_piece()).map(signed).collect()
}

/// Every statement of an answer, in order.
fn statements(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    for marker in ["answer", "boxed{", "####"] {
        for (at, _) in lower.match_indices(marker) {
            let after = lower.get(at + marker.len()..).unwrap_or_default();
            let line = after.split(['\n', '?']).next().unwrap_or_default();
            if let Some(value) = value_after(line, marker == "answer") {
                found.push((at, value));
            }
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, value)| value).collect()
}

/// The value that follows a marker; `words_between` allows words such as `is` and `should be` before it.
fn value_after(line: &str, words_between: bool) -> Option<String> {
    const BETWEEN: &str = "is should be was must equals to now still therefore the of number option stays remains final \
        holds correct total in";
    let opened = |text: &str| text.len() - text.trim_start_matches(opening).len();
    let mut rest = line.get(opened(line)..)?;
    loop {
        let (word, after) = rest.split_at_checked(rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()))?;
        if word.is_empty() {
            break;
        }
        if is_choice(word, after) {
            return Some(word.to_uppercase());
        }
        if !words_between || !BETWEEN.split_whitespace().any(|between| between == word) {
            return None;
        }
        rest = after.get(opened(after)..)?;
    }
    let negative = rest.starts_with(['-', '−']);
    let rest = rest.trim_start_matches(['-', '−', '$', '€', ' ']);
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let numbers = numbers(rest);
    let computed = rest.split_once('=').is_some_and(|(left, _)| super::expression::find(left).is_some());
    let value = if computed { numbers.last() } else { numbers.first() };
    value.map(|value| number_text(if negative { -value } else { *value }))
}

/// What may stand before a value: blanks, colons, quotes, brackets.
fn opening(letter: char) -> bool {
    letter.is_whitespace() || ":=*`\"'({$\\>|~≈".contains(letter)
}

/// Whether a word is the letter of a choice: alone, before a bracket or at the end.
fn is_choice(word: &str, after: &str) -> bool {
    let letter = word.len() == 1 && word.starts_with(|c: char| ('a'..='e').contains(&c));
    let ending = after.trim_start_matches([')', '*', '.', '`', '"', '}']).trim_start();
    letter && (ending.is_empty() || ending.starts_with(['(', ',', ':']))
}

/// A text that is nothing but an answer: `75`, `75 pencils.`
fn bare_answer(text: &str) -> Option<String> {
    let words = tokens(text);
    let said: Vec<&TextToken> = words.iter().filter(|t| !matches!(t, TextToken::Stop | TextToken::Comma)).collect();
    let number = match said.as_slice() {
        [TextToken::Number(number)] | [TextToken::Number(number), TextToken::Word(_)] => Some(number),
        _ => None,
    };
    let letter = text.trim().trim_matches(['(', ')', '.']);
    if letter.len() == 1 && letter.starts_with(|c: char| ('A'..='E').contains(&c)) {
        return Some(letter.to_owned());
    }
    number?;
    numbers(text).first().map(|value| number_text(*value))
}

/// `Solution 2:`, `One agent response:`, `Debater A:`: a line that starts another's words.
fn opens_block(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '#', '*', '-', '[', '>']);
    let Some((label, _)) = line.split_once([':', ']']) else { return false };
    let words = label.split_whitespace().count();
    let lower = label.to_lowercase();
    if words == 0
        || words > 5
        || lower.contains("final")
        || matches!(lower.as_str(), "answer" | "ratings")
        || lower.starts_with("the answer")
    {
        return false;
    }
    let named = [
        "solution",
        "agent",
        "debater",
        "response",
        "peer",
        "opinion",
        "student",
        "expert",
        "candidate",
        "answer",
        "solver",
        "participant",
        "model",
    ];
    named.iter().any(|name| lower.contains(name))
        || (words <= 2 && label.starts_with(char::is_uppercase) && !lower.starts_with("step"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(answer(text).as_deref(), expected, "{text}");
        check("12 * 7 = 84\nANSWER: 84", Some("84"));
        check("The calculator gives 75.\nANSWER: 75", Some("75"));
        check("The final answer is 1,200.", Some("1200"));
        check("So we get \\boxed{-3.5}", Some("-3.5"));
        check("#### 42", Some("42"));
        check("**Final Answer:** 39 pencils", Some("39"));
        check("ANSWER: B", Some("B"));
        check("The answer is (C).", Some("C"));
        check("REVISE: the answer should be 39, not 41.", Some("39"));
        check("end with a line `ANSWER: <number>`", None);
        check("75", Some("75"));
        check("The answer is -3.", Some("-3"));
        check("ANSWER: 12 * 7 = 84", Some("84"));
        check("Answer: a plan with 2 steps", None);
        check("1. Multiply.\n2. Subtract.", None);
        check("Answer the question in 2 sentences.", None);
        check("Here:\n```python\ndef f():\n    return 3\n```", Some("```python\ndef f():\n    return 3\n```"));
        check("```python\nprint(3)\n```\nANSWER: 3", Some("3"));
    }

    #[test]
    fn results_of_tools_are_numbers() {
        for (text, expected) in [("75", 75.0), ("-4.5", -4.5), ("12 - 3", 9.0), ("The result is -7.", -7.0)] {
            assert_eq!(last_number(text), Some(expected), "{text}");
        }
        assert_eq!(last_number("Error: unknown tool"), None);
    }

    #[test]
    fn several_opinions_are_told_apart() {
        let check = |text: &str, expected: &[&str]| assert_eq!(opinions(text), expected, "{text}");
        check("Solution 1:\nx\nANSWER: 4\n\nSolution 2:\nANSWER: 5\n\nSolution 3:\nANSWER: 4", &["4", "5", "4"]);
        check("One agent response: ```The answer is 4```\n\n One agent response: ```The answer is 6```", &["4", "6"]);
        check("Other agents said:\n2+2=4\nANSWER: 4\nANSWER: 5\nUpdate your answer.", &["4", "5"]);
        check("Step 1: 4 * 12 = 48.\nANSWER: 48", &["48"]);
        check("Peer A:\nI keep my answer: 4.\nRATINGS: 5\nANSWER: 4\n\nPeer B:\nANSWER: 5", &["4", "5"]);
    }

    #[test]
    fn objections_are_told_from_consent() {
        for (text, expected) in [
            ("REVISE: the answer should be 39.", true),
            ("APPROVE\nANSWER: 39", false),
            ("This is incorrect.", true),
            ("I found no error.", false),
            ("The plan has two steps.", false),
            ("```python\nraise Wrong\n```", false),
        ] {
            assert_eq!(objects(text), expected, "{text}");
        }
    }
}
