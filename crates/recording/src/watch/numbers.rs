//! Rules on numbers: those that are calculated, and those that come from nowhere.

use super::{
    Past, Sighting, WatchedStep,
    notation::{WrittenSum, goes_on, in_text},
    text::hash,
};
use crate::trajectory::patterns;

patterns! {
    /// One operation with its result.
    CALCULATED = r"(\d[\d,]*(?:\.\d+)?)(\s*[*×x/÷+\-−–]\s*)\$?(\d[\d,]*(?:\.\d+)?)\s*=\s*(\$)?(-?\d[\d,]*(?:\.\d+)?)";
    /// A number with the sign before it.
    NUMBER = r"(=\s*\$?)?(\d[\d,]*(?:\.\d+)?)";
}

/// A calculation that is wrong by more than rounding, where it can be read: a sum in another notation is not spoken of.
pub(super) fn calculation(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    CALCULATED.captures_iter(&step.reply).find_map(|calculation| {
        let group = |group: usize| calculation.get(group).map_or("", |part| part.as_str());
        let (whole, said) = (calculation.get(0)?, group(5).trim_end_matches(','));
        // The comma behind a number ends its clause.
        let until = whole.end() - (group(5).len() - said.len());
        let sum = WrittenSum {
            before: step.reply.get(..whole.start())?,
            after: step.reply.get(until..)?,
            one: group(1),
            sign: group(2),
            other: group(3),
            said,
            money: !group(4).is_empty(),
        };
        let right = sum.right()?;
        let quote = step.reply.get(whole.start()..until)?;
        Sighting::new(format!("`{quote}` is wrong: it is {right}"), quote)
    })
}

/// A turn that calculates, and ends with a number that none of its calculations led to.
pub(super) fn other_result(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    if !step.reply.contains('=') {
        return None;
    }
    let mut own: Vec<String> = in_text(&step.given).collect();
    let (mut last, mut continues) = (None, false);
    for number in NUMBER.captures_iter(&step.reply) {
        own.extend(last.take());
        let text = number.get(2).map_or("", |text| text.as_str()).trim_end_matches(',').replace(',', "");
        // The minutes of a result in hours, and what remains of a division, are of that result.
        if number.get(1).is_none() && !continues {
            last = Some(text);
        } else {
            own.push(text);
        }
        let after = number.get(0).and_then(|whole| step.reply.get(whole.end()..)).unwrap_or_default();
        continues = number.get(1).is_some() && goes_on(after);
    }
    let number = last.filter(|number| number.len() > 1 && !own.contains(number) && !has_occurred(past, number))?;
    let seen = format!("it calculates, and ends with `{number}`, which is none of its results");
    Sighting::new(seen, as_written(&step.reply, &number))
}

/// A number that stands neither in the task nor in what the agent was given, and was not computed.
pub(super) fn new_number(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    // What stands beside an `=` was computed there.
    if step.reply.contains('=') {
        return None;
    }
    let given: Vec<String> = in_text(&step.given).collect();
    let is_new = |number: &String| number.len() > 1 && !given.contains(number) && !has_occurred(past, number);
    let number = in_text(&step.reply).filter(is_new).min()?;
    let seen = format!("`{number}` stands in nothing that was said before, and no calculation leads to it");
    Sighting::new(seen, as_written(&step.reply, &number))
}

/// A number of a text as it stands there last: with its commas.
fn as_written(text: &str, number: &str) -> String {
    let written = NUMBER.captures_iter(text).filter_map(|found| Some(found.get(2)?.as_str().trim_end_matches(',')));
    written.filter(|written| written.replace(',', "") == number).last().unwrap_or(number).to_owned()
}

fn has_occurred(past: &Past, number: &str) -> bool {
    past.numbers.get(hash(number)).is_some()
}
