//! Rules on numbers: those that are calculated, and those that come from nowhere.

use super::{Past, Sighting, WatchedStep, past::hash};
use crate::trajectory::patterns;

patterns! {
    /// One operation with its result.
    CALCULATED = r"(\d[\d,]*(?:\.\d+)?)\s*([*×x/÷+\-−–])\s*\$?(\d[\d,]*(?:\.\d+)?)\s*=\s*\$?(-?\d[\d,]*(?:\.\d+)?)";
    /// A number with the sign before it.
    NUMBER = r"(=\s*\$?)?(\d[\d,]*(?:\.\d+)?)";
}

/// A calculation that is wrong by more than rounding.
pub(super) fn calculation(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    CALCULATED.captures_iter(&step.said).find_map(|calculation| {
        let at = calculation.get(0).map_or(0, |whole| whole.start());
        // The end of a longer one: what stands before it belongs to it.
        let before = step.said.get(..at).unwrap_or_default().trim_end().chars().next_back();
        if before.is_some_and(|before| "*×x/÷+-−–^(.0123456789".contains(before)) {
            return None;
        }
        let number = |group: usize| calculation.get(group)?.as_str().replace(',', "").parse::<f64>().ok();
        let (a, b, said) = (number(1)?, number(3)?, number(4)?);
        let right = match calculation.get(2).map_or("", |sign| sign.as_str()) {
            "+" => a + b,
            "-" | "−" | "–" => a - b,
            "/" | "÷" => a / b,
            _ => a * b,
        };
        let quote = calculation.get(0).map_or("", |whole| whole.as_str());
        let wrong = (right - said).abs() > 0.01 * right.abs().max(1.0);
        if wrong { Sighting::of(format!("`{quote}` is wrong: it is {right}"), quote) } else { None }
    })
}

/// A turn that calculates, and ends with a number that none of its calculations led to.
pub(super) fn other_result(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    if !step.said.contains('=') {
        return None;
    }
    let mut own: Vec<String> = in_text(&step.given).collect();
    let mut last = None;
    for number in NUMBER.captures_iter(&step.said) {
        own.extend(last.take());
        let text = number.get(2).map_or("", |text| text.as_str()).trim_end_matches(',').replace(',', "");
        if number.get(1).is_none() {
            last = Some(text);
        } else {
            own.push(text);
        }
    }
    let number = last.filter(|number| number.len() > 1 && !own.contains(number) && !is_known(past, number))?;
    Sighting::of(format!("it calculates, and ends with `{number}`, which is none of its results"), number)
}

/// A number that stands neither in the task nor in what the agent was given, and was not computed.
pub(super) fn new_number(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    // What stands beside an `=` was computed there.
    if step.said.contains('=') {
        return None;
    }
    let given: Vec<String> = in_text(&step.given).collect();
    let is_new = |number: &String| number.len() > 1 && !given.contains(number) && !is_known(past, number);
    let number = in_text(&step.said).filter(is_new).min()?;
    let seen = format!("`{number}` stands in nothing that was said before, and no calculation leads to it");
    Sighting::of(seen, number)
}

fn is_known(past: &Past, number: &str) -> bool {
    past.known.get(hash(number)).is_some()
}

/// The numbers of a text, without thousands' commas.
pub(super) fn in_text(text: &str) -> impl Iterator<Item = String> {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).replace(',', "");
    text.split(|c: char| c.is_whitespace() || matches!(c, '$' | '(' | ')' | '=' | '*' | '/' | '+'))
        .map(plain)
        .filter(|word| !word.is_empty())
}
