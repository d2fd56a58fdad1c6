//! English as the simulator reads it: tokens and number words. No meaning here.

use crate::trajectory::WrittenNumber;

/// One token of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TextToken {
    /// A word.
    Word(Word),
    /// A number, in digits or words; percent and money signs follow as words of their own.
    Number(f64),
    /// A comma or colon: a weak boundary.
    Comma,
    /// A full stop, exclamation mark, semicolon or line end.
    Stop,
    /// A question mark.
    Question,
}

/// A word: lower case, and whether it was written with a capital.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Lower case.
    pub(super) text: String,
    /// Whether its first letter was upper case.
    pub(super) capital: bool,
}

impl TextToken {
    /// The word, or the empty string.
    pub(super) fn word(&self) -> &str {
        match self {
            TextToken::Word(word) => &word.text,
            _ => "",
        }
    }

    /// The number, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            TextToken::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is one of these words.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.word())
    }
}

/// Splits a text into tokens. Number words, fractions such as `3/4`, `$3`, `25%` and `1,200` are read as numbers.
pub(super) fn tokens(text: &str) -> Vec<TextToken> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    let mut money: Option<&'static str> = None;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied().unwrap_or(' ');
        at += 1;
        match letter {
            '$' => money = Some("dollars"),
            '€' => money = Some("euros"),
            '£' => money = Some("pounds_sterling"),
            '0'..='9' => {
                let (value, end) = digits(&letters, at - 1);
                at = end;
                found.push(TextToken::Number(value));
                if let Some(unit) = money.take() {
                    found.push(word(unit));
                }
            }
            '%' => found.push(word("percent")),
            ',' | ':' => found.push(TextToken::Comma),
            '?' => found.push(TextToken::Question),
            '.' | '!' | ';' if !next.is_alphanumeric() => found.push(TextToken::Stop),
            ';' => found.push(TextToken::Stop),
            '\n' if found.last() != Some(&TextToken::Stop) => found.push(TextToken::Stop),
            _ if letter.is_alphabetic() => {
                let start = at - 1;
                while letters.get(at).is_some_and(|c| c.is_alphanumeric() || matches!(c, '\'' | '’' | '_')) {
                    at += 1;
                }
                push_word(&mut found, letters.get(start..at).unwrap_or_default());
            }
            _ => {}
        }
    }
    found
}

/// A number as a person writes it: whole numbers without a point, others with at most four decimals.
pub(super) fn number_text(value: f64) -> String {
    let rounded = (value * 10_000.0).round() / 10_000.0;
    let text = format!("{rounded:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Whether two numbers are the same to the precision that [`number_text`] writes.
pub(super) fn same_number(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.000_05_f64.max(a.abs() * 1e-12)
}

fn word(text: &str) -> TextToken {
    TextToken::Word(Word { text: text.to_owned(), capital: false })
}

fn push_word(found: &mut Vec<TextToken>, letters: &[char]) {
    let written: String = letters.iter().collect();
    let capital = written.chars().next().is_some_and(char::is_uppercase);
    let lower = written.to_lowercase().replace('’', "'");
    let lower = lower.strip_suffix("'s").or_else(|| lower.strip_suffix('\'')).unwrap_or(&lower).to_owned();
    let Some(value) = number_word(&lower) else {
        found.push(TextToken::Word(Word { text: lower, capital }));
        return;
    };
    let pronoun = lower == "one" && found.last().is_some_and(|t| t.is(&["each", "this", "that"]));
    match found.last_mut() {
        Some(TextToken::Number(before)) if matches!(lower.as_str(), "hundred" | "thousand" | "million" | "dozen") => {
            *before *= value;
        }
        Some(TextToken::Number(tens)) if *tens >= 20.0 && *tens < 100.0 && *tens % 10.0 == 0.0 && value < 10.0 => {
            *tens += value;
        }
        Some(TextToken::Word(article)) if matches!(article.text.as_str(), "a" | "an") && value > 10.0 => {
            found.pop();
            found.push(TextToken::Number(value));
        }
        _ if pronoun => found.push(word(&lower)),
        _ => found.push(TextToken::Number(value)),
    }
}

/// The longest number that is read as one, in characters.
const LONGEST: usize = 400;

/// The number that begins at a digit, or the fraction: `3/4`.
fn digits(letters: &[char], start: usize) -> (f64, usize) {
    let belongs = |letter: &&char| letter.is_ascii_digit() || matches!(letter, ',' | '.');
    let written: String = letters.iter().skip(start).take(LONGEST).take_while(belongs).collect();
    let Some(number) = WrittenNumber::all(&written).next() else { return (0.0, start + 1) };
    let (value, end) = (number.value(), start + number.place.end);
    if letters.get(end) == Some(&'/') && letters.get(end + 1).is_some_and(char::is_ascii_digit) {
        let (below, after) = digits(letters, end + 1);
        if below != 0.0 {
            return (value / below, after);
        }
    }
    (value, end)
}

fn number_word(word: &str) -> Option<f64> {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let place = |list: &[&str]| list.iter().position(|w| *w == word).and_then(|p| u32::try_from(p).ok());
    if let Some(small) = place(&SMALL) {
        return Some(f64::from(small));
    }
    if let Some(tens) = place(&TENS) {
        return Some(f64::from((tens + 2) * 10));
    }
    match word {
        "dozen" => Some(12.0),
        "hundred" => Some(100.0),
        "thousand" => Some(1000.0),
        "million" => Some(1_000_000.0),
        _ => None,
    }
}

/// A text without its paths and addresses: their words and numbers say nothing of a task.
pub(super) fn without_paths(text: &str) -> String {
    let is_path = |word: &str| {
        let below = word.split('/').skip(1).filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '.'));
        below.count() > 1 || word.contains("://")
    };
    text.split_inclusive(char::is_whitespace).filter(|word| !is_path(word)).collect()
}

/// A text without the blanks and empty lines that are one too many.
pub(super) fn with_blanks_alike(text: &str) -> String {
    let mut alike = text.to_owned();
    for (more, fewer) in [("  ", " "), (" \n", "\n"), ("\n\n\n", "\n\n")] {
        while alike.contains(more) {
            alike = alike.replace(more, fewer);
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_way_of_writing() {
        let check = |text: &str, expected: &[f64]| {
            let numbers: Vec<f64> = tokens(text).iter().filter_map(TextToken::number).collect();
            assert_eq!(numbers, expected, "{text}");
        };
        check("12 boxes, 1,200 nails and 2.5 kg.", &[12.0, 1200.0, 2.5]);
        check("$3.50 or 25% of 3/4", &[3.5, 25.0, 0.75]);
        check("twenty five pens and a dozen eggs", &[25.0, 12.0]);
        check("three hundred cups, two dozen rolls", &[300.0, 24.0]);
        check("a 20-dollar bill. 7 left.", &[20.0, 7.0]);
        check("each one of 4", &[4.0]);
    }

    #[test]
    fn numbers_are_written_as_people_write_them() {
        for (value, text) in [(84.0, "84"), (2.5, "2.5"), (-0.0, "0"), (1.0 / 3.0, "0.3333"), (100.0, "100")] {
            assert_eq!(number_text(value), text);
        }
    }
}
