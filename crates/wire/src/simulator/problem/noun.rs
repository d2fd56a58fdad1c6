//! Nouns and the numbers before them: what is counted, and in what kind of mention.

use std::{collections::HashSet, sync::LazyLock};

use super::verbs;
use crate::simulator::language::{TextToken, singular};

/// What is counted: `red marbles` is the head `marble` with the modifier `red`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CountedUnit {
    /// The noun, singular. Every currency is `money`.
    pub(super) head: String,
    /// Words before it, and what a measure is a measure of.
    pub(super) mods: Vec<String>,
}

impl CountedUnit {
    /// A unit without modifiers.
    pub(super) fn plain(head: &str) -> Self {
        Self { head: head.to_owned(), mods: Vec::new() }
    }

    /// Whether it is money.
    pub(super) fn is_money(&self) -> bool {
        self.head == "money"
    }

    /// Whether it measures (hours, kilograms) rather than counts things.
    pub(super) fn is_measure(&self) -> bool {
        is_time(&self.head) || MEASURES.split(' ').any(|m| m == self.head)
    }

    /// Whether both may count the same things.
    pub(super) fn fits(&self, other: &CountedUnit) -> bool {
        let measured = |a: &CountedUnit, b: &CountedUnit| a.is_measure() && a.mods.contains(&b.head);
        if self.head != other.head {
            return measured(self, other) || measured(other, self);
        }
        self.mods.is_empty() || other.mods.is_empty() || self.mods.iter().any(|word| other.mods.contains(word))
    }

    /// As words, plural for things.
    pub(super) fn words(&self) -> String {
        match self.head.as_str() {
            "money" => "dollars".to_owned(),
            "km" | "kg" | "cm" | "mm" => self.head.clone(),
            head => {
                let mods = if self.is_measure() { String::new() } else { self.mods.join(" ") };
                format!("{mods} {}", plural(head)).trim().to_owned()
            }
        }
    }
}

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    /// So many things.
    Count,
    /// A share: a fraction or a percentage of something. The value is the fraction.
    Share {
        /// Whether it was written as a percentage.
        percent: bool,
    },
    /// So many times as much.
    Times,
    /// So many more.
    More,
    /// So many fewer.
    Fewer,
}

/// A number with what it counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mention {
    /// Where it starts in the clause.
    pub(super) at: usize,
    /// The first token after it and its noun.
    pub(super) end: usize,
    /// The number.
    pub(super) value: f64,
    /// What is counted; `None` where no noun follows.
    pub(super) unit: Option<CountedUnit>,
    /// What the number says.
    pub(super) kind: NumberKind,
}

/// The mentions of a clause, in order.
pub(super) fn mentions(clause: &[TextToken]) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut at = 0;
    while at < clause.len() {
        let mention = clause.get(at..).and_then(|rest| mention(rest, at));
        at = mention.as_ref().map_or(at + 1, |m| m.end.max(at + 1));
        found.extend(mention);
    }
    borrow_heads(clause, &mut found);
    found
}

/// The noun that starts here, and how many tokens it takes. Articles and words such as `of the` are skipped.
pub(super) fn noun(tokens: &[TextToken]) -> Option<(CountedUnit, usize)> {
    let filler =
        ["more", "additional", "extra", "other", "new", "such", "equal", "different", "whole", "identical", "full"];
    let mut at = 0;
    if tokens.get(at).is_some_and(|t| t.is(&["of"])) {
        if tokens.get(at + 1).is_some_and(|t| t.is(&["them", "these", "those", "his", "her", "their", "it"])) {
            return None;
        }
        at += 1;
    }
    while tokens.get(at).is_some_and(|t| t.is(&filler) || t.is(&["the", "a", "an", "his", "her", "their", "its"])) {
        at += 1;
    }
    let mut words: Vec<String> = Vec::new();
    while let Some(TextToken::Word(word)) = tokens.get(at) {
        let first = words.is_empty();
        if stops(&word.text, word.capital, first) {
            break;
        }
        words.push(singular(&word.text));
        at += 1;
        if first && (is_money_word(&word.text) || word.text == "percent") {
            if tokens.get(at).is_some_and(|t| t.is(&["bill", "note", "banknote"])) {
                at += 1;
            }
            break;
        }
    }
    let head = words.pop()?;
    if is_money_word(&head) {
        return Some((CountedUnit::plain("money"), at));
    }
    let mut unit = CountedUnit { head, mods: words };
    let measured = unit.is_measure() && tokens.get(at).is_some_and(|t| t.is(&["of"]));
    if let (true, Some((of, used))) = (measured, tokens.get(at + 1..).and_then(noun)) {
        unit.mods.push(of.head);
        at += 1 + used;
    }
    Some((unit, at))
}

/// Whether a word is a unit of time.
pub(super) fn is_time(word: &str) -> bool {
    TIMES.split(' ').any(|time| time == word)
}

const TIMES: &str = "second minute hour day week month year morning evening night weekday";
const MEASURES: &str = "kg gram g km meter m cm mm liter l ml mile foot inch cup ounce gallon ton pound";
const COMPARATIVES: &str = "older taller longer heavier faster higher wider bigger larger";
const LESSENING: &str = "younger shorter lighter slower lower cheaper smaller";

fn is_money_word(word: &str) -> bool {
    matches!(
        word,
        "dollar"
            | "dollars"
            | "euro"
            | "euros"
            | "cent"
            | "cents"
            | "pounds_sterling"
            | "yuan"
            | "rupee"
            | "rupees"
            | "yen"
    )
}

fn plural(head: &str) -> String {
    match head {
        "child" => "children".to_owned(),
        "person" => "people".to_owned(),
        _ if head.ends_with(['x', 'h']) => format!("{head}es"),
        _ if head.ends_with('y') && !head.ends_with("ay") && !head.ends_with("ey") => {
            format!("{}ies", head.trim_end_matches('y'))
        }
        _ if head.ends_with('s') => head.to_owned(),
        _ => format!("{head}s"),
    }
}

static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOPS.split_whitespace().collect());

/// Words that no noun runs over.
const STOPS: &str = "a an the each every per apiece at for in on of with to from by and or but then than as that which \
    who while when if he she it they them his her their its we you i now left away altogether total remaining today \
    yesterday tomorrow there here also only still how many much does do did can could will would must should so \
    because after before during equally evenly among amongst between into onto again later too not no off out up down \
    more fewer less times percent half twice double together around about over under until since this these those \
    what where equals remain remains be been is are was were am have has had get gets got getting plus minus everyone back daily weekly long wide high old deep tall";

fn stops(word: &str, capital: bool, first: bool) -> bool {
    if STOP_WORDS.contains(word) {
        return true;
    }
    let comparative = COMPARATIVES.split(' ').chain(LESSENING.split(' ')).any(|c| c == word);
    let formed = word.len() > 4 && (word.ends_with("ed") || word.ends_with("ly"));
    comparative
        || (!first && (capital || formed || verbs::deed(word).is_some() || (word.len() > 5 && word.ends_with("ing"))))
}

fn mention(tokens: &[TextToken], at: usize) -> Option<Mention> {
    let first = tokens.first()?;
    let next = |n: usize| tokens.get(n).map(TextToken::word).unwrap_or_default();
    let fraction = |name: &str| match name {
        "half" | "halves" => Some(0.5),
        "third" | "thirds" => Some(1.0 / 3.0),
        "quarter" | "quarters" | "fourth" | "fourths" => Some(0.25),
        "fifth" | "fifths" => Some(0.2),
        "sixth" | "sixths" => Some(1.0 / 6.0),
        "tenth" | "tenths" => Some(0.1),
        _ => None,
    };
    let plain = |value, used, kind| Some(Mention { at, end: at + used, value, unit: None, kind });
    let share = NumberKind::Share { percent: false };
    if let Some(value) = first.number() {
        if next(1) == "percent" {
            return plain(value / 100.0, 2, NumberKind::Share { percent: true });
        }
        if let Some(part) = fraction(next(1)) {
            return plain(value * part, 2, share);
        }
        if next(1) == "times" && !matches!(next(2), "a" | "an" | "per" | "each" | "every") {
            return plain(value, 2, NumberKind::Times);
        }
        if value < 1.0 && value > 0.0 && next(1) == "of" {
            return plain(value, 1, share);
        }
        return Some(count(tokens, at, value));
    }
    match first.word() {
        "half" | "third" | "quarter" | "fifth" | "tenth" => plain(fraction(first.word())?, 1, share),
        "twice" | "double" | "doubles" | "doubled" => plain(2.0, 1, NumberKind::Times),
        "triple" | "triples" | "tripled" | "thrice" => plain(3.0, 1, NumberKind::Times),
        "quadruple" | "quadruples" | "quadrupled" => plain(4.0, 1, NumberKind::Times),
        _ => None,
    }
}

fn count(tokens: &[TextToken], at: usize, value: f64) -> Mention {
    let word = |n: usize| tokens.get(n).map(TextToken::word).unwrap_or_default();
    let rest = tokens.get(1..).unwrap_or_default();
    let has_than = rest.iter().any(|t| t.is(&["than"]));
    let (unit, used) = noun(rest).map_or((None, 0), |(unit, used)| (Some(unit), used));
    let after = word(1 + used);
    let kind = match (word(1), after) {
        ("more" | "extra", _) | (_, "more") if has_than => NumberKind::More,
        ("fewer" | "less", _) | (_, "fewer" | "less") => NumberKind::Fewer,
        (a, b) if COMPARATIVES.split(' ').any(|c| c == a || c == b) => NumberKind::More,
        (a, b) if LESSENING.split(' ').any(|c| c == a || c == b) => NumberKind::Fewer,
        _ => NumberKind::Count,
    };
    let mut unit = unit;
    if unit.is_none() && matches!(kind, NumberKind::More | NumberKind::Fewer) {
        unit = tokens.get(2..).and_then(noun).map(|(unit, _)| unit);
    }
    Mention { at, end: at + 1 + used, value, unit, kind }
}

/// `8 red and 5 blue marbles`: the first number counts marbles too.
fn borrow_heads(clause: &[TextToken], found: &mut [Mention]) {
    for later in (1..found.len()).rev() {
        let Some((before, after)) = found.split_at_mut_checked(later) else { continue };
        let (Some(one), Some(two)) = (before.last_mut(), after.first()) else { continue };
        let between = clause.get(one.end..two.at).unwrap_or_default();
        let joined =
            between.iter().all(|t| matches!(t, TextToken::Comma) || t.is(&["and", "or"])) && !between.is_empty();
        if !joined || one.kind != NumberKind::Count || two.kind != NumberKind::Count {
            continue;
        }
        let last = clause.get(one.end - 1).map(TextToken::word).unwrap_or_default();
        let adjective =
            one.unit.as_ref().is_some_and(|u| u.mods.is_empty() && last == u.head && !u.is_money() && !u.is_measure());
        if let (Some(unit), Some(lender)) = (one.unit.as_mut(), two.unit.as_ref()) {
            if adjective && one.value > 1.0 && !lender.mods.is_empty() {
                *unit = CountedUnit { head: lender.head.clone(), mods: vec![unit.head.clone()] };
            }
        } else if one.unit.is_none() {
            one.unit.clone_from(&two.unit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::language::tokens;

    #[test]
    fn numbers_name_what_they_count() {
        let check = |text: &str, expected: &[(f64, &str)]| {
            let found = mentions(&tokens(text));
            let found: Vec<(f64, String)> =
                found.iter().map(|m| (m.value, m.unit.as_ref().map(CountedUnit::words).unwrap_or_default())).collect();
            let expected: Vec<(f64, String)> = expected.iter().map(|(v, u)| (*v, (*u).to_owned())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("6 rows with 14 apple trees each", &[(6.0, "rows"), (14.0, "apple trees")]);
        check("She gives away 9 of the pencils", &[(9.0, "pencils")]);
        check("8 red and 5 blue marbles", &[(8.0, "red marbles"), (5.0, "blue marbles")]);
        check("a 20 dollar bill", &[(20.0, "dollars")]);
        check("60 km per hour", &[(60.0, "km")]);
        check("25 percent of the students", &[(0.25, "")]);
        check("twice as many", &[(2.0, "")]);
        check("27 books are lent out", &[(27.0, "books")]);
        check("48 of her friends", &[(48.0, "")]);
    }
}
