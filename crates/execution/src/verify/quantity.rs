//! Numbers with units, in a text of any kind.

use regex::Captures;

use super::{
    answer::{self, GivenAnswer},
    latex, value,
};
use crate::trajectory::patterns;

/// A number and, where one is known, its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// As it is written.
    pub(super) value: f64,
    /// The unit.
    pub(super) unit: Option<Unit>,
}

/// A unit: what it measures, and how many of the dimension's base unit it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    dimension: &'static str,
    scale: f64,
}

/// Units by their names: dimension, scale, names.
const UNITS: &[(&str, f64, &[&str])] = &[
    ("share", 0.01, &["%", "percent", "pct"]),
    ("usd", 1.0, &["$", "usd", "dollar", "dollars"]),
    ("usd", 0.01, &["¢", "cent", "cents"]),
    ("eur", 1.0, &["€", "eur", "euro", "euros"]),
    ("gbp", 1.0, &["£", "gbp", "pound sterling", "pounds sterling"]),
    ("length", 1e-3, &["mm", "millimeter", "millimeters", "millimetre", "millimetres"]),
    ("length", 1e-2, &["cm", "centimeter", "centimeters", "centimetre", "centimetres"]),
    ("length", 1.0, &["m", "meter", "meters", "metre", "metres"]),
    ("length", 1e3, &["km", "kilometer", "kilometers", "kilometre", "kilometres"]),
    ("length", 0.0254, &["inch", "inches"]),
    ("length", 0.3048, &["ft", "foot", "feet"]),
    ("length", 1609.344, &["mile", "miles"]),
    ("mass", 1e-6, &["mg", "milligram", "milligrams"]),
    ("mass", 1e-3, &["g", "gram", "grams"]),
    ("mass", 1.0, &["kg", "kilogram", "kilograms"]),
    ("mass", 1e3, &["t", "tonne", "tonnes"]),
    ("mass", 0.453_592_37, &["lb", "lbs", "pound", "pounds"]),
    ("time", 1.0, &["s", "sec", "second", "seconds"]),
    ("time", 60.0, &["min", "mins", "minute", "minutes"]),
    ("time", 3600.0, &["h", "hr", "hrs", "hour", "hours"]),
    ("time", 86400.0, &["day", "days"]),
    ("time", 604_800.0, &["week", "weeks"]),
    ("volume", 1e-3, &["ml", "milliliter", "milliliters", "millilitre", "millilitres"]),
    ("volume", 1.0, &["l", "liter", "liters", "litre", "litres"]),
    ("speed", 1.0, &["m/s"]),
    ("speed", 1.0 / 3.6, &["km/h", "kph", "kmh"]),
];

patterns! {
    /// A number in plain text: currency, sign, fraction or mixed number or decimal, power of ten, unit.
    NUMBER = {
    let plain = r"(?:\d+(?:\.\d+)?|\.\d+)";
    let fraction = r"(?P<whole>\d+)[ \t]+(?P<above>\d+)/(?P<below>\d+)";
    let power = r"(?:[eE](?P<e>[-+]?\d+)|[ ]*[*x][ ]*10[ ]*\^[ ]*\(?(?P<ten>[-+]?\d+)\)?)";
    let value = format!(r"(?:{fraction}|(?P<number>{plain})(?:[ ]*/[ ]*(?P<over>{plain})|{power})?)");
    let unit = r"(?P<unit>km/h|m/s|[%¢€£]|[A-Za-z]+)";
    format!(r"(?P<sign>-[ ]?)?(?P<money>[$€£][ ]?)?(?P<minus>-)?{value}(?:[ ]{{0,4}}{unit})?")
};

    /// Two numbers of which one is to be chosen, before anything is explained.
    HEDGE = r"^[^.,;:=(]*?\d[^.,;:=(]{0,20}?\b(?:or|to)[ \t]+\W{0,3}\d";
}

impl Measured {
    /// Reads a text that is a quantity and nothing else but perhaps words for what is counted.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = prepared(text);
        if let Some(value) = value::evaluate(&text) {
            return Some(Self { value, unit: None });
        }
        let mut found = Self::all_in(&text);
        let first = found.next()?;
        // `3 of 4` is two numbers: nobody knows which is meant.
        found.next().is_none().then_some(first)
    }

    /// The quantity that a text gives as its answer: that in its last box, else after its last announcement of an
    /// answer, else the last one.
    pub(super) fn answer_in(text: &str) -> Option<Self> {
        match answer::given_answer(text) {
            GivenAnswer::Boxed(said) | GivenAnswer::Stated(said) => Self::stated_by(said),
            GivenAnswer::Denied => None,
            GivenAnswer::Open => {
                let text = prepared(text);
                let whole = value::evaluate(text.trim()).map(|value| Self { value, unit: None });
                whole.or_else(|| Self::all_in(&text).last())
            }
        }
    }

    /// `84`, `84 because 7 * 12 = 84`, `7 * 12 = 84 pencils`; `84 or 85` is no answer.
    fn stated_by(text: &str) -> Option<Self> {
        let text = prepared(text);
        if HEDGE.is_match(&text) {
            return None;
        }
        if let Some(value) = value::evaluate(text.trim().trim_end_matches('.')) {
            return Some(Self { value, unit: None });
        }
        let begins = text.split_once('=').filter(|(before, _)| before.chars().any(char::is_alphabetic));
        let equation = begins.is_none() || text.trim_start().starts_with(|c: char| c.is_alphabetic());
        let result = text.rsplit_once('=').filter(|_| equation).map_or(text.as_str(), |(_, result)| result);
        if let Some(value) = value::evaluate(result.trim().trim_end_matches('.')) {
            return Some(Self { value, unit: None });
        }
        Self::all_in(result).next()
    }

    fn all_in(text: &str) -> impl Iterator<Item = Self> {
        NUMBER.captures_iter(text).filter_map(move |found| Self::read(text, &found))
    }

    fn read(text: &str, found: &Captures<'_>) -> Option<Self> {
        let get = |name: &str| found.name(name).map(|part| part.as_str());
        let number = |name: &str| get(name).and_then(|text| text.parse::<f64>().ok());
        let start = found.get(0)?.start();
        let before = text.get(..start)?.chars().next_back();
        // Part of a word, as in `step3` or `v1.2`.
        let glued = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        if glued && get("sign").is_none() {
            return None;
        }
        let value = match (number("whole"), number("number")) {
            (Some(whole), _) => whole + number("above")? / number("below").filter(|below| *below != 0.0)?,
            (None, Some(value)) => {
                let power = number("e").or_else(|| number("ten")).unwrap_or_default();
                value / number("over").unwrap_or(1.0) * 10f64.powf(power)
            }
            (None, None) => return None,
        };
        // A dash between two numbers is a range or a difference.
        let negative = get("minus").is_some() || (get("sign").is_some() && !glued && before != Some(')'));
        let value = if negative { -value } else { value };
        let named = get("money").or_else(|| get("unit"));
        value.is_finite().then(|| Self { value, unit: named.and_then(Unit::named) })
    }
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        let known = UNITS.iter().find(|(_, _, names)| names.contains(&name.as_str()));
        known.map(|(dimension, scale, _)| Self { dimension, scale: *scale })
    }
}

/// LaTeX to plain arithmetic, thousands separators out.
fn prepared(text: &str) -> String {
    // Dollar signs of money stay, those of mathematics go: a pair around a text without money is mathematics.
    let money = text.contains('$') && !text.contains('\\') && text.matches('$').count() % 2 == 1;
    let kept = if money { text.replace('$', "\u{1}") } else { text.replace(r"\$", "\u{1}") };
    latex::plain_arithmetic(&answer::without_separators(&kept)).replace('\u{1}', "$")
}

/// How the units of two quantities relate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Related {
    /// The values as they are to be compared: expected, got; any one of the pairs will do.
    Comparable([(f64, f64); 2]),
    /// They measure different things.
    Different,
}

/// Brings two quantities to one unit. A number without a unit is taken to be in the other's; a percentage is also its
/// share of one.
pub(super) fn relate(expected: Measured, got: Measured) -> Related {
    let plain = (expected.value, got.value);
    match (expected.unit, got.unit) {
        (Some(a), Some(b)) if a.dimension != b.dimension => Related::Different,
        (Some(a), Some(b)) => {
            let pair = (expected.value * a.scale, got.value * b.scale);
            Related::Comparable([pair, pair])
        }
        (Some(unit), None) if unit.dimension == "share" => {
            Related::Comparable([plain, (expected.value * unit.scale, got.value)])
        }
        (None, Some(unit)) if unit.dimension == "share" => {
            Related::Comparable([plain, (expected.value, got.value * unit.scale)])
        }
        _ => Related::Comparable([plain, plain]),
    }
}
