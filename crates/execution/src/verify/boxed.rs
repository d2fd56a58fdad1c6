//! `boxed`: the same mathematics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Case, UnnamedVerdict,
    answer::{self, GivenAnswer},
    latex, value,
};

/// Compares mathematical answers: the content of the last `\boxed{…}`, else the text after the last `answer:`. Ignores
/// layout, spelling of fractions and roots, units in `\text`, and a leading `x =`. Values match within 10⁻⁹; `(1, 2)`
/// is ordered, `{1, 2}` and `1, 2` are not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Boxed {
    /// Whether an output without a box has no answer.
    pub required: bool,
}

/// How near values must be.
const NEAR: f64 = 1e-9;

/// An answer with its parts.
#[derive(Debug, PartialEq)]
struct Parts {
    open: char,
    close: char,
    members: Vec<String>,
}

impl Boxed {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let expected = answer::boxed(case.expected).unwrap_or(case.expected);
        if expected.trim().is_empty() {
            return UnnamedVerdict::unreadable("mathematical answer", case);
        }
        let got = match answer::given_answer(case.output) {
            GivenAnswer::Boxed(boxed) => Some(boxed),
            GivenAnswer::Stated(stated) => Some(stated).filter(|_| !self.required),
            GivenAnswer::Open => last_line(case.output).filter(|_| !self.required),
            GivenAnswer::Denied => None,
        };
        let Some(got) = got else { return UnnamedVerdict::no_answer("boxed answer", case) };
        UnnamedVerdict::compared(is_same_answer(expected, got), got, case)
    }
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| !line.trim().is_empty())
}

fn is_same_answer(expected: &str, got: &str) -> bool {
    let (expected, got) = (parts(expected), parts(got));
    if expected.members.len() != got.members.len() {
        return false;
    }
    let bracketed = |parts: &Parts| parts.open == '(' || parts.open == '[';
    if bracketed(&expected) || bracketed(&got) {
        let brackets = expected.members.len() == 1 || (expected.open, expected.close) == (got.open, got.close);
        return brackets && expected.members.iter().zip(&got.members).all(|(a, b)| equal(a, b));
    }
    let mut left = got.members;
    expected.members.iter().all(|part| {
        let place = left.iter().position(|candidate| equal(part, candidate));
        place.map(|place| left.swap_remove(place)).is_some()
    })
}

/// Splits at the commas that no bracket holds.
fn parts(text: &str) -> Parts {
    let text = answer::without_separators(text);
    let set = text.trim().trim_matches('$').trim().starts_with(r"\{");
    let plain = latex::plain_arithmetic(&text);
    let plain = plain.trim().trim_end_matches('.').trim();
    let ends = (plain.chars().next().unwrap_or(' '), plain.chars().next_back().unwrap_or(' '));
    let inner = plain.get(1..plain.len().saturating_sub(1)).unwrap_or_default();
    let wrapped = matches!(ends, ('(' | '[', ')' | ']')) || (set && ends == ('{', '}'));
    let split = split(if wrapped { inner } else { plain });
    if wrapped && (split.len() > 1 || set) {
        return Parts { open: ends.0, close: ends.1, members: split };
    }
    Parts { open: ' ', close: ' ', members: if wrapped { vec![plain.to_owned()] } else { split } }
}

fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0i32;
    for c in text.replace(" and ", ",").replace(" or ", ",").chars() {
        depth += match c {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Whether two single answers are the same: in letters, or in value.
fn equal(expected: &str, got: &str) -> bool {
    let (expected, got) = (without_name(expected), without_name(got));
    if squeezed(expected) == squeezed(got) {
        return true;
    }
    let values = (value_of(expected), value_of(got));
    matches!(values, (Some(a), Some(b)) if value::close(a, b, NEAR, NEAR * NEAR))
}

/// Without `x =` before it.
fn without_name(text: &str) -> &str {
    let name = |text: &str| text.trim().chars().count() <= 4 && text.trim().starts_with(|c: char| c.is_alphabetic());
    match text.split_once('=') {
        Some((before, after)) if name(before) && !after.contains('=') => after.trim(),
        _ => text,
    }
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '*').collect()
}

/// The value, a unit after it left out.
fn value_of(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('%').trim();
    value::evaluate(text).or_else(|| {
        let number = text.trim_end_matches(|c: char| c.is_alphabetic() || c.is_whitespace());
        let unit = text.get(number.len()..)?;
        let fits = number.ends_with(|c: char| c.is_ascii_digit() || c == ')') && unit.chars().count() < 24;
        // One letter glued to a number is a variable, not a unit.
        let variable = unit.chars().count() == 1 && !unit.starts_with(char::is_whitespace);
        (fits && !variable).then(|| value::evaluate(number)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trajectory::Verdict::{self, Failure, Success, Unknown},
        verify::check_table,
    };

    #[test]
    fn hard_cases() {
        let table: &[(&str, &str, Verdict)] = &[
            (r"\frac{1}{2}", r"so $\boxed{\dfrac{1}{2}}$.", Success),
            (r"\frac{1}{2}", r"\boxed{0.5}", Success),
            (r"\frac{1}{2}", r"\boxed{\frac12}", Success),
            (r"\frac{1}{2}", r"\boxed{1/2}", Success),
            (r"\frac{1}{2}", r"\boxed{\frac{2}{1}}", Failure),
            (r"\frac{\sqrt{3}}{2}", r"\boxed{\frac{\sqrt 3}{2}}", Success),
            (r"2\sqrt{3}", r"\boxed{\sqrt{12}}", Success),
            (r"\boxed{5040}", r"first \boxed{7}, then \boxed{5040}", Success),
            ("5040", r"first \boxed{5040}, then \boxed{7}", Failure),
            ("5040", r"\boxed{5{,}040}", Success),
            ("5", r"\boxed{x = 5}", Success),
            ("x = 5", r"\boxed{5}", Success),
            (r"12\text{ cm}", r"\boxed{12}", Success),
            (r"90^\circ", r"\boxed{90}", Success),
            (r"(1, 2)", r"\boxed{\left(1, 2\right)}", Success),
            (r"(1, 2)", r"\boxed{(2, 1)}", Failure),
            (r"\{1, 2\}", r"\boxed{\{2, 1\}}", Success),
            ("1, 2", r"\boxed{2, 1}", Success),
            ("1, 2", r"\boxed{x = 2 \text{ or } x = 1}", Success),
            ("[0, 1)", r"\boxed{(0, 1]}", Failure),
            ("[0, 1)", r"\boxed{[0,1)}", Success),
            ("3x + 1", r"\boxed{3x+1}", Success),
            ("3x", r"\boxed{3}", Failure),
            (r"3\pi", r"\boxed{3 \pi}", Success),
            (r"3\pi", r"\boxed{9.42}", Failure),
            ("7", "The answer is $7$.", Success),
            ("7", "no box, and 8 at the end", Failure),
            ("7", "", Failure),
            ("7", "The answer is not 7", Failure),
            ("", r"\boxed{7}", Unknown),
            (r"\boxed{}", r"\boxed{7}", Unknown),
            (r"\text{(C)}", r"\boxed{(C)}", Success),
            (r"\frac{a+b}{2}", r"\boxed{\frac{a + b}{2}}", Success),
            (r"\boxed{\boxed{3}}", r"\boxed{\boxed{3}}", Success),
        ];
        check_table(|case| Boxed::default().compare(case), table);
        let strict = Boxed { required: true };
        check_table(|case| strict.compare(case), &[("7", "The answer is 7", Failure), ("7", r"\boxed{7}", Success)]);
    }
}
