//! Numbers in prose: where they are, and how one becomes another of the same format.

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::trajectory::WrittenNumber;

/// Words after which a number names a thing and counts nothing.
const LABELS: &[&str] = &[
    "step", "round", "part", "section", "figure", "table", "line", "example", "question", "problem", "agent", "option",
    "debater", "item", "chapter", "page", "version", "no", "nr",
];

/// How a number is changed; its format stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NumberChange {
    /// Another digit in the whole part.
    #[default]
    Digit,
    /// Two neighbouring digits swapped; if all are equal, another digit.
    Transpose,
    /// Opposite sign.
    Sign,
    /// Ten times as large.
    Scale,
}

/// Which of several numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// The first.
    First,
    /// The last.
    #[default]
    Last,
    /// All; equal numbers stay equal.
    All,
    /// The one with this index, 0-based.
    Nth(u32),
}

impl<'de> Deserialize<'de> for Which {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChangeVisitor;
        impl Visitor<'_> for ChangeVisitor {
            type Value = Which;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("`first`, `last`, `all` or a number from 0")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<Which, E> {
                match word {
                    "first" => Ok(Which::First),
                    "last" => Ok(Which::Last),
                    "all" => Ok(Which::All),
                    _ => Err(E::unknown_variant(word, &["first", "last", "all"])),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Which, E> {
                u32::try_from(number)
                    .map(Which::Nth)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
        }
        deserializer.deserialize_any(ChangeVisitor)
    }
}

impl JsonSchema for Which {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Which".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Which of several: `first`, `last`, `all`, or a number from 0.",
            "anyOf": [{"enum": ["first", "last", "all"]}, {"type": "integer", "minimum": 0}]
        })
    }
}

/// The numbers of a text, in order: not those inside words, identifiers, versions, dates or times, not list markers,
/// not the `2` of `step 2`.
pub(super) fn numbers(text: &str) -> Vec<Range<usize>> {
    let counts = |number: WrittenNumber<'_>| {
        let Range { start, end } = number.place;
        let signed = start - number.sign();
        (stands_alone(text, signed, end) && !is_label(text, signed, end)).then_some(signed..end)
    };
    WrittenNumber::all(text).filter_map(counts).collect()
}

/// The number changed by `how`, decided by `draw`; `None` when it cannot be, for example the sign of 0.
pub(super) fn altered(number: &str, how: NumberChange, draw: u64) -> Option<String> {
    match how {
        NumberChange::Digit => other_digit(number, draw),
        NumberChange::Transpose => transposed(number, draw).or_else(|| other_digit(number, draw)),
        NumberChange::Sign if number.bytes().all(|byte| !(b'1'..=b'9').contains(&byte)) => None,
        NumberChange::Sign => {
            Some(number.strip_prefix(['-', '\u{2212}']).map_or_else(|| format!("-{number}"), str::to_owned))
        }
        NumberChange::Scale => Decimal::read(number)?.times_ten().map(|decimal| decimal.write()),
    }
    .filter(|altered| altered != number)
}

/// The number plus `by`, in its own format; `None` when that is the same number.
pub(super) fn added(number: &str, by: f64) -> Option<String> {
    Decimal::read(number)?.plus(by).map(|decimal| decimal.write()).filter(|sum| sum != number)
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let mut before = text.get(..start).unwrap_or_default().chars().rev();
    let mut after = text.get(end..).unwrap_or_default().chars();
    let (previous, next) = (before.next(), after.next());
    let (before_that, after_that) = (before.next(), after.next());
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '@');
    let joins = |joint: Option<char>, beyond: Option<char>| match (joint, beyond) {
        (Some('.' | ':' | ',' | '\''), Some(c)) => c.is_ascii_digit(),
        (Some('-' | '/' | '\\'), Some(c)) => c.is_alphabetic(),
        _ => false,
    };
    let hyphened = |joint: Option<char>, beyond: Option<char>| {
        matches!(joint, Some('-' | '\u{2013}')) && beyond.is_some_and(|c| c.is_ascii_digit())
    };
    !previous.is_some_and(|c| part_of_word(c) || c == '.')
        && !next.is_some_and(part_of_word)
        && !joins(previous, before_that)
        && !joins(next, after_that)
        && !hyphened(previous, before_that)
        && !hyphened(next, after_that)
}

/// A list marker (`1. Add …` at the start of a line) or the number of a named thing (`step 2`). It looks no further than the
/// numbers before and after it: a text may be one line of millions of them.
fn is_label(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let leads = |c: char| c != '\n' && (c.is_whitespace() || matches!(c, '*' | '#' | '>' | '-'));
    let line_start = before.trim_end_matches(leads);
    let starts_line = line_start.is_empty() || line_start.ends_with('\n');
    let goes_on = |rest: &str| rest.chars().find(|c| !c.is_whitespace() || *c == '\n').is_some_and(|c| c != '\n');
    let marks = after.strip_prefix(['.', ')']).is_some_and(|rest| rest.starts_with(' ') && goes_on(rest));
    let word = || {
        let words = before.trim_end_matches([' ', '*']).rsplit(|c: char| !c.is_alphanumeric());
        words.take(1).collect::<String>().to_lowercase()
    };
    starts_line && marks || (before.ends_with([' ', '*']) && LABELS.contains(&word().as_str()))
}

fn other_digit(number: &str, draw: u64) -> Option<String> {
    let whole = number.split('.').next().unwrap_or_default();
    let places: Vec<usize> = digit_places(whole);
    let lone_zero = places.len() == 1 && whole.ends_with('0') && number.contains('.');
    let places = if lone_zero { digit_places(number).split_off(1) } else { places };
    let count = u64::try_from(places.len()).ok().filter(|count| *count > 0)?;
    let place = *places.get(usize::try_from(draw % count).ok()?)?;
    let old = u64::from(number.as_bytes().get(place)?.wrapping_sub(b'0'));
    let leads = places.first() == Some(&place) && places.len() > 1 && !lone_zero;
    // A number of several digits does not start with 0; nine steps reach every other digit.
    let step = (draw / count) % if leads && old != 0 { 8 } else { 9 };
    let new =
        (1..10).map(|add| (old + add) % 10).filter(|new| !(leads && *new == 0)).nth(usize::try_from(step).ok()?)?;
    replaced(number, place, new)
}

fn transposed(number: &str, draw: u64) -> Option<String> {
    let places = digit_places(number.split('.').next().unwrap_or_default());
    let bytes = number.as_bytes();
    let first = *places.first()?;
    let swaps: Vec<(usize, usize)> = places
        .iter()
        .copied()
        .zip(places.iter().copied().skip(1))
        .filter(|(a, b)| bytes.get(*a) != bytes.get(*b) && !(*a == first && bytes.get(*b) == Some(&b'0')))
        .collect();
    let count = u64::try_from(swaps.len()).ok().filter(|count| *count > 0)?;
    let (a, b) = *swaps.get(usize::try_from(draw % count).ok()?)?;
    let (left, right) = (u64::from(bytes.get(a)? - b'0'), u64::from(bytes.get(b)? - b'0'));
    replaced(&replaced(number, a, right)?, b, left)
}

fn digit_places(text: &str) -> Vec<usize> {
    text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).map(|(place, _)| place).collect()
}

fn replaced(number: &str, place: usize, digit: u64) -> Option<String> {
    let mut text = number.to_owned();
    text.get(place..=place)?;
    text.replace_range(place..=place, &digit.to_string());
    Some(text)
}

/// A number as a whole count of its last decimal, with its format.
struct Decimal {
    units: i128,
    decimals: usize,
    grouped: bool,
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let plain = text.replace(['.', ','], "").replace('\u{2212}', "-");
        // 30 digits leave room for the arithmetic below.
        let units = (plain.len() <= 30).then(|| plain.parse().ok()).flatten()?;
        Some(Self { units, decimals, grouped: text.contains(',') })
    }

    fn times_ten(self) -> Option<Self> {
        Some(Self { units: self.units.checked_mul(10)?, ..self })
    }

    fn plus(self, by: f64) -> Option<Self> {
        let scaled = by * 10f64.powi(i32::try_from(self.decimals).ok()?);
        #[expect(clippy::cast_possible_truncation, reason = "checked to lie far inside the range just before")]
        let add = (scaled.is_finite() && scaled.abs() < 1e30).then(|| scaled.round() as i128)?;
        Some(Self { units: self.units.checked_add(add)?, ..self })
    }

    fn write(&self) -> String {
        let digits = format!("{:0>width$}", self.units.unsigned_abs(), width = self.decimals + 1);
        let (whole, decimals) = digits.split_at(digits.len() - self.decimals);
        let mut text = String::new();
        for (place, digit) in whole.chars().enumerate() {
            if self.grouped && place > 0 && (whole.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        let sign = if self.units < 0 { "-" } else { "" };
        if decimals.is_empty() { format!("{sign}{text}") } else { format!("{sign}{text}.{decimals}") }
    }
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
