//! `choice`: the same letter of a multiple-choice question.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Case, UnnamedVerdict,
    answer::{self, GivenAnswer},
    excerpt, latex,
    normalised::words,
};
use crate::trajectory::patterns;

/// Compares choice letters, A to J. The output's letter is in its last `\boxed{…}`, else after its last `answer:` or
/// `answer is`, else alone on its last line, else the only one that its prose names and does not deny: `(C)`, `option
/// C`, `it's C`, or the words of the choice. A choice that is a number or a symbol must be the only one in the output, and
/// in its last sentence. No letter, or several: unknown. The expected letter denied, or no output:
/// failure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Choice {
    /// Choices in order, A first. Default: read from the question (`A) …` or `(A) …`, one per line).
    pub choices: Vec<String>,
}

patterns! {
    /// `A) …`, `(A) …`, `A. …` at the beginning of a line of the question.
    LISTED = r"(?m)^[ \t]*\(?(?P<letter>[A-J])[).:][ \t]+(?P<text>[^\n]+)$";

    /// A letter that stands for itself: `C`, `(C)`, `C.`, `**C**`, `C) Paris`, `option C`.
    ALONE = r"^(?:(?:option|choice|letter|answer)\s+)?[\W_]*(?P<letter>[A-Ja-j])(?:[\W_]*$|[\W_]*[).:\]*][\W_]*(?:\s|$)|\s+(?:because|since|as|is|—|-)\b)";

    /// Two letters in a row: `A or B`.
    SEVERAL = r"^\W*[A-Ja-j]\W*(?:,|/|or|and|&)\W*[A-Ja-j]\b";

    /// A letter that is named in prose: `(C)`, `option C`, `it's C`, `choose C`, `C is right`. A bare letter
    /// counts at the end of a clause alone, and `I was right` speaks of whoever says it.
    NAMED = {
    let chosen = r"(?i:not|is|isn't|it's|that's|be|choose|chose|pick|select|say|prefer|with|answer|option|choice|letter)";
    let right = r"(?i:is|was|seems|looks|must\s+be|has\s+to\s+be)\s+(?i:the\s+)?(?i:right|correct|best|true|only|answer|one\b)";
    format!(
        r"\((?P<bracketed>[A-J])\)|\b(?i:option|choice|letter|answer)s?\s+\(?(?P<named>[A-J])\b|\b{chosen}:?\s+[*`]*(?P<chosen>[A-J])[*`]*(?:[).,;:!\r\n]|$|\s+(?:because|since|as|\())|\b(?P<right>[A-HJ])\)?\s+{right}"
    )
};

    /// Words that deny what follows them, within a clause.
    DENIAL_BEFORE = {
    let denial = r"(?:not|\w+n't|cannot|never|neither|nor|rule\w* out|eliminat\w+|exclud\w+|reject\w*|rather than|instead of|unlike|other than)";
    let between = r"(?:say|choose|pick|select|be|the|a|an|option|choice|answer|letter|in|it's|it|is|go|with|to|either|even)";
    format!(r"(?i)\b{denial}\s+(?:{between}\s+)*[(*`]*$")
};

    /// Words that deny what precedes them.
    DENIAL_AFTER = r"(?i)^[)*`]*\s*(?:is|are|was|seems|must be|can be|would be|could be|can)?\s*(?:clearly |certainly |definitely )?(?:not\b|n't\b|isn't\b|wasn't\b|cannot\b|can't\b|wrong|incorrect|false|ruled out|excluded|eliminated|impossible|out\b)";

    /// A sentence that concludes.
    CONCLUDES = r"(?i)^\W*(?:so|therefore|thus|hence|finally|in conclusion|consequently|overall)\b";

    /// Where a sentence ends.
    SENTENCE_END = r"[.!?](?:\s+|$)|\n+";
}

/// What an output gives as its choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenChoice {
    /// This letter.
    Letter(char),
    /// None but that it denies this one.
    Not(char),
    /// None, or one of several.
    Open,
}

/// A choice that prose names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChoiceMention {
    letter: char,
    span: std::ops::Range<usize>,
    denied: bool,
}

impl Choice {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let listed = self.listed(case.question);
        let stated = answer::stated(case.expected).unwrap_or(case.expected);
        let expected = stated_letter(stated).or_else(|| by_words(stated, &listed));
        let Some(expected) = expected else { return UnnamedVerdict::unreadable("choice", case) };
        match given_choice(case.output, &listed) {
            GivenChoice::Letter(got) => UnnamedVerdict::new(got == expected, format!("expected `{expected}`, got `{got}`")),
            GivenChoice::Not(denied) if denied == expected => {
                UnnamedVerdict::new(false, format!("expected `{expected}`, which the output denies"))
            }
            _ if case.output.trim().is_empty() => UnnamedVerdict::no_answer("choice", case),
            _ => UnnamedVerdict::unknown(format!("no single choice can be read in the output {}", excerpt(case.output))),
        }
    }

    /// Whether a letter is expected, words are given, and nobody says which words stand for which letter.
    pub(super) fn is_blind(&self, case: &Case<'_>) -> bool {
        letter_in(case.expected).is_some()
            && self.listed(case.question).is_empty()
            && !case.output.trim().is_empty()
            && !matches!(given_choice(case.output, &[]), GivenChoice::Letter(_))
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

/// What the output gives.
fn given_choice(output: &str, listed: &[(char, String)]) -> GivenChoice {
    let letter = |letter: Option<char>| letter.map_or(GivenChoice::Open, GivenChoice::Letter);
    match answer::given_answer(output) {
        GivenAnswer::Boxed(boxed) => {
            let plain = latex::plain_arithmetic(boxed);
            letter(letter_in(&plain).or_else(|| by_words(&plain, listed)))
        }
        GivenAnswer::Stated(stated) => match letter_in(stated).or_else(|| by_words(stated, listed)) {
            Some(stated) => GivenChoice::Letter(stated),
            None => in_prose(stated, listed),
        },
        GivenAnswer::Denied => in_prose(output, listed),
        GivenAnswer::Open => {
            let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            match letter_in(last.trim()).or_else(|| by_words(last, listed)) {
                Some(alone) => GivenChoice::Letter(alone),
                None => in_prose(output, listed),
            }
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
    let named = || match in_prose(stated, &[]) {
        GivenChoice::Letter(letter) => Some(letter),
        _ => None,
    };
    letter_in(stated).or_else(named)
}

/// The only choice that prose names and does not deny; that of its last conclusion, where it names several.
fn in_prose(text: &str, listed: &[(char, String)]) -> GivenChoice {
    let mentions = mentions(text, listed);
    if mentions.is_empty() {
        return in_last_sentence(text, listed);
    }
    let all = single(&mentions);
    let ends: Vec<usize> = SENTENCE_END.find_iter(text).map(|end| end.end()).chain([text.len()]).collect();
    let begins = [0].into_iter().chain(ends.iter().copied());
    let concluding = begins.zip(ends.iter().copied()).filter_map(|(begin, end)| {
        let sentence = text.get(begin..end).filter(|sentence| CONCLUDES.is_match(sentence))?;
        let within: Vec<_> = mentions.iter().filter(|one| begin <= one.span.start && one.span.end <= end).cloned().collect();
        (!sentence.is_empty() && !within.is_empty()).then(|| single(&within))
    });
    match (all, concluding.last()) {
        (GivenChoice::Open, Some(concluded)) => concluded,
        (all, _) => all,
    }
}

/// The only choice that is a number or a symbol and that prose names, where its last sentence does: before it, such words stand for other
/// reasons.
fn in_last_sentence(text: &str, listed: &[(char, String)]) -> GivenChoice {
    let of_choice = |(letter, choice): &(char, String)| {
        let spans = bare_choice_pattern(choice).into_iter().flat_map(|pattern| {
            let alone = pattern.find_iter(text).map(|found| found.range()).filter(|span| stands_alone(text, span));
            alone.collect::<Vec<_>>()
        });
        spans.map(|span| (*letter, span)).collect::<Vec<_>>()
    };
    let mentions = with_denials(text, listed.iter().flat_map(of_choice).collect());
    let ends = SENTENCE_END.find_iter(text.trim_end()).map(|end| end.end());
    let begin = ends.filter(|end| *end < text.trim_end().len()).last().unwrap_or_default();
    match single(&mentions) {
        GivenChoice::Letter(_) if !mentions.iter().any(|one| !one.denied && begin <= one.span.start) => GivenChoice::Open,
        choice => choice,
    }
}

fn single(mentions: &[ChoiceMention]) -> GivenChoice {
    let letters = |denied: bool| {
        let letters = mentions.iter().filter(|one| one.denied == denied).map(|one| one.letter);
        letters.collect::<BTreeSet<char>>()
    };
    let only = |letters: BTreeSet<char>| letters.first().copied().filter(|_| letters.len() == 1);
    match (letters(false).is_empty(), only(letters(false)), only(letters(true))) {
        (false, Some(named), _) => GivenChoice::Letter(named),
        (true, _, Some(denied)) => GivenChoice::Not(denied),
        _ => GivenChoice::Open,
    }
}

/// The choices that prose names, by letter or by words.
fn mentions(text: &str, listed: &[(char, String)]) -> Vec<ChoiceMention> {
    let letters = NAMED.captures_iter(text).filter_map(|found| {
        let names = ["bracketed", "named", "chosen", "right"];
        let letter = names.into_iter().find_map(|name| found.name(name))?;
        Some((letter.as_str().chars().next()?, letter.range()))
    });
    let worded = listed.iter().flat_map(|(letter, choice)| {
        worded(choice).into_iter().flat_map(|pattern| {
            pattern.find_iter(text).map(|found| (*letter, found.range())).collect::<Vec<_>>()
        })
    });
    with_denials(text, letters.chain(worded).collect())
}

/// What is named at these places, each with whether it is denied there.
fn with_denials(text: &str, mut found: Vec<(char, std::ops::Range<usize>)>) -> Vec<ChoiceMention> {
    let whole = found.clone();
    // `Paris` in `Paris, Texas` names the longer of two choices.
    found.retain(|(_, span)| {
        whole.iter().all(|(_, other)| other == span || !(other.start <= span.start && span.end <= other.end))
    });
    let mention = |(letter, span): (char, std::ops::Range<usize>)| {
        let before = text.get(..span.start).unwrap_or_default().trim_end_matches('(');
        let after = text.get(span.end..).unwrap_or_default();
        let denied = DENIAL_BEFORE.is_match(before) || DENIAL_AFTER.is_match(after);
        ChoiceMention { letter, span, denied }
    };
    found.into_iter().map(mention).collect()
}

/// What finds the words of a choice in prose. Numbers are none: prose has them for other reasons.
fn worded(choice: &str) -> Option<regex::Regex> {
    let words: Vec<String> = words(choice).iter().map(|word| regex::escape(word)).collect();
    let pattern = || regex::Regex::new(&format!(r"(?i)\b{}\b", words.join(r"\W+(?:(?:a|an|the)\W+)?"))).ok();
    has_word(choice).then(pattern).flatten()
}

/// What finds a choice that is a number or a symbol (`42`, `3.5 kg`, `Au`). A single letter is none: it may be that of another choice.
fn bare_choice_pattern(choice: &str) -> Option<regex::Regex> {
    let parts: Vec<String> = choice.split_whitespace().map(regex::escape).collect();
    let is_letter = choice.trim().chars().count() < 2 && !choice.contains(|c: char| c.is_ascii_digit());
    let pattern = || regex::Regex::new(&parts.join(r"\s+")).ok();
    (!is_letter && !has_word(choice)).then(pattern).flatten()
}

fn has_word(choice: &str) -> bool {
    words(choice).iter().any(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 2)
}

/// Whether nothing before or behind makes another number or word of it: `42` in `142`, `4.42`, `42.5`, `-42` and `42,000`.
fn stands_alone(text: &str, span: &std::ops::Range<usize>) -> bool {
    let mut before = text.get(..span.start).unwrap_or_default().chars().rev();
    let mut after = text.get(span.end..).unwrap_or_default().chars();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (left, right) = (before.next(), after.next());
    let joins = |c: Option<char>| matches!(c, Some('.' | ',' | '/' | '-' | '−'));
    let is_joined_left = is_part(left) || matches!(left, Some('-' | '−')) || (joins(left) && is_part(before.next()));
    let is_joined_right = is_part(right) || (joins(right) && is_part(after.next()));
    !is_joined_left && !is_joined_right
}

/// The letter of the only choice whose words the text is.
fn by_words(text: &str, listed: &[(char, String)]) -> Option<char> {
    let said = words(text);
    let mut same = listed.iter().filter(|(_, choice)| !said.is_empty() && words(choice) == said);
    let first = same.next()?;
    same.next().is_none().then_some(first.0)
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
