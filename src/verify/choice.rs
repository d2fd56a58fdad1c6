//! `choice`: the same letter of a multiple-choice question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Case, UnnamedVerdict,
    answer::{self, GivenAnswer},
    latex,
    normalised::words,
};
use crate::trajectory::patterns;

/// Compares choice letters, A to J. The output's is the one in its last `\boxed{…}`, else after its last `answer:` or
/// `answer is`, else alone on its last line, else the only one that it names as `(C)` or `option C`; a denied letter
/// is none, and two letters are no answer. The words of a choice do for its letter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Choice {
    /// The choices in order, A first; without them they are read from the question (`A) …` or `(A) …`, one a line).
    pub choices: Vec<String>,
}

patterns! {
    /// `A) …`, `(A) …`, `A. …` at the beginning of a line of the question.
    LISTED = r"(?m)^[ \t]*\(?(?P<letter>[A-J])[).:][ \t]+(?P<text>[^\n]+)$";

    /// A letter that stands for itself: `C`, `(C)`, `C.`, `**C**`, `C) Paris`, `option C`.
    ALONE = r"^(?:(?:option|choice|letter|answer)\s+)?[\W_]*(?P<letter>[A-Ja-j])(?:[\W_]*$|[\W_]*[).:\]*][\W_]*(?:\s|$)|\s+(?:because|since|as|is|—|-)\b)";

    /// Two letters in a row: `A or B`.
    SEVERAL = r"^\W*[A-Ja-j]\W*(?:,|/|or|and|&)\W*[A-Ja-j]\b";

    /// A letter that is named in prose: `(C)`, `option C`, `choice C`.
    NAMED = r"\((?P<bracketed>[A-J])\)|\b(?i:option|choice|letter|answer)s?\s+\(?(?P<named>[A-J])\b";

    /// Words that deny what follows or precedes them.
    DENIAL_BEFORE = r"(?i)\b(?:not|isn't|never|neither|nor|rule out|ruled out|eliminate|exclude|reject|rather than|instead of|unlike)\s+(?:the\s+)?(?:option\s+|choice\s+|answer\s+)?$";

    DENIAL_AFTER = r"(?i)^\)?\s*(?:is|are|was|seems|must be|can be)?\s*(?:not\b|n't\b|wrong|incorrect|false|ruled out|excluded|eliminated|impossible|out\b)";
}

impl Choice {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let listed = self.listed(case.question);
        let stated = answer::stated(case.expected).unwrap_or(case.expected);
        let expected = stated_letter(stated).or_else(|| by_words(stated, &listed));
        let Some(expected) = expected else { return UnnamedVerdict::unreadable("choice", case) };
        match given(case.output, &listed) {
            Some(got) => UnnamedVerdict::of(got == expected, format!("expected `{expected}`, got `{got}`")),
            None => UnnamedVerdict::no_answer("single choice", case),
        }
    }

    /// Whether a letter is expected, words are given, and nobody says which words stand for which letter.
    pub(super) fn is_blind(&self, case: &Case<'_>) -> bool {
        letter_in(case.expected).is_some()
            && self.listed(case.question).is_empty()
            && !case.output.trim().is_empty()
            && given(case.output, &[]).is_none()
    }

    fn listed(&self, question: &str) -> Vec<(char, String)> {
        if !self.choices.is_empty() {
            return ('A'..='J').zip(self.choices.iter().cloned()).collect();
        }
        let lines = LISTED.captures_iter(question);
        let choice = |found: regex::Captures<'_>| {
            let letter = found.name("letter")?.as_str().chars().next()?;
            Some((letter, found.name("text")?.as_str().trim().to_owned()))
        };
        lines.filter_map(choice).collect()
    }
}

/// The letter that the output gives.
fn given(output: &str, listed: &[(char, String)]) -> Option<char> {
    match answer::given(output) {
        GivenAnswer::Boxed(boxed) => {
            let plain = latex::plain(boxed);
            letter_in(&plain).or_else(|| by_words(&plain, listed))
        }
        GivenAnswer::Stated(stated) => stated_letter(stated).or_else(|| by_words(stated, listed)),
        GivenAnswer::Denied => None,
        GivenAnswer::Open => {
            let last = output.lines().rev().find(|line| !line.trim().is_empty())?;
            letter_in(last.trim()).or_else(|| by_words(last, listed)).or_else(|| only_named(output))
        }
    }
}

/// The letter of a text that is a letter, perhaps with its words: `C`, `(C)`, `C) Paris`.
fn letter_in(text: &str) -> Option<char> {
    let found = ALONE.captures(text.trim())?;
    let letter = found.name("letter")?.as_str().chars().next()?;
    let several = SEVERAL.is_match(text);
    (!several).then(|| letter.to_ascii_uppercase())
}

/// The letter of what an announcement says; `C or D` is none.
fn stated_letter(stated: &str) -> Option<char> {
    letter_in(stated).or_else(|| only_named(stated))
}

/// The only letter that a text names and does not deny.
fn only_named(text: &str) -> Option<char> {
    let mut letters = Vec::new();
    for found in NAMED.captures_iter(text) {
        let whole = found.get(0)?;
        let letter = found.name("bracketed").or_else(|| found.name("named"))?.as_str().chars().next()?;
        let (before, after) = (text.get(..whole.start())?, text.get(whole.end()..)?);
        let denied = DENIAL_BEFORE.is_match(before) || DENIAL_AFTER.is_match(after);
        if !denied {
            letters.push(letter);
        }
    }
    letters.sort_unstable();
    letters.dedup();
    match letters.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The letter of the only choice whose words the text is.
fn by_words(text: &str, listed: &[(char, String)]) -> Option<char> {
    let said = words(text);
    let mut same = listed.iter().filter(|(_, choice)| !said.is_empty() && words(choice) == said);
    let first = same.next()?;
    same.next().is_none().then_some(first.0)
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
            ("C", "C", Success),
            ("C", "(c)", Success),
            ("(C)", "**C**", Success),
            ("C) Paris", "C. Paris", Success),
            ("The answer is (D) because of x", "ANSWER: D", Success),
            ("The answer is (D) Paris", "(D) Paris", Success),
            ("C", "Long reasoning about A and B.\n\nC", Success),
            ("C", "The answer is C.", Success),
            ("C", "The correct answer is option C, not A.", Success),
            ("C", "Final answer: (C) Paris", Success),
            ("C", r"$\boxed{C}$", Success),
            ("C", r"\boxed{\text{(C)}}", Success),
            ("B", "A good choice would be hard; (B) fits best.", Success),
            ("A", "A good start is to look at the units.", Failure),
            ("I", "I think that I am lost.", Failure),
            ("A", "It is not (A), so it must be (B).", Failure),
            ("B", "It is not (A), so it must be (B).", Success),
            ("B", "Option A is wrong, so option B.", Success),
            ("B", "Rather than option A, take option B", Success),
            ("A", "Answer: A or B", Failure),
            ("A", "The answer is not A.", Failure),
            ("B", "First I thought the answer is A. But the answer is B.", Success),
            ("A", "(A) or (B), hard to say", Failure),
            ("A", "", Failure),
            ("B", "Answer: b", Success),
            ("42", "B", Unknown),
            ("C", "The answer is C because A is too small.", Success),
        ];
        check_table(|case| Choice::default().compare(case), table);
    }

    #[test]
    fn words_do_for_letters() {
        let capitals = Choice { choices: ["Rome", "Oslo", "Paris"].map(str::to_owned).to_vec() };
        check_table(
            |case| capitals.compare(case),
            &[("C", "The answer is Paris.", Success), ("Paris", "C", Success), ("C", "Oslo", Failure)],
        );
        let question = "Which is a capital of France?\nA) Rome\nB) Oslo\nC) Paris";
        let case = Case { question, expected: "C", output: "Paris" };
        assert_eq!(Choice::default().compare(&case).verdict, Success);
    }
}
