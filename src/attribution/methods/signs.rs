//! Signs of trouble that need no judge: each a function over the turns, with its mode and the words that show it.

use std::collections::{BTreeMap, BTreeSet};

use super::{LoggedRun, LoggedTurn, aligned::bare};
use crate::trajectory::patterns;

/// Shortest reply whose repetition means anything, in words.
const REPEATED_WORDS: usize = 20;
/// How often the same tool is called the same way before that is a sign.
const REPEATED_CALLS: usize = 3;

/// Something that a rule saw.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sign {
    pub(super) step: u32,
    pub(super) rule: &'static str,
    /// The failure mode that it is a sign of, where there is one.
    pub(super) mode: Option<&'static str>,
    /// How much it says, 0 to 1: an order of the rules among each other, measured by nobody.
    pub(super) weight: f64,
    pub(super) why: String,
    pub(super) quote: String,
}

/// All that all rules see.
pub(super) fn signs(run: &LoggedRun) -> Vec<Sign> {
    let rules: [fn(&LoggedRun) -> Vec<Sign>; 9] =
        [unanswered, cut, refused, self_told, repeated, same_call, miscalculated, departed, invented];
    rules.iter().flat_map(|rule| rule(run)).collect()
}

fn sign(turn: &LoggedTurn, rule: &'static str, mode: Option<&'static str>, weight: f64, why: &str) -> Sign {
    let quote = turn.whole().split_whitespace().take(16).collect::<Vec<_>>().join(" ");
    Sign { step: turn.step, rule, mode, weight, why: why.to_owned(), quote }
}

fn unanswered(run: &LoggedRun) -> Vec<Sign> {
    let failed = |turn: &&LoggedTurn| turn.status.is_some() || turn.whole().trim().is_empty();
    let told = |turn: &LoggedTurn| {
        let why = match turn.status {
            Some(0) => "got no answer from the model".to_owned(),
            Some(status) => format!("got status {status} from the model"),
            None => "the reply is empty".to_owned(),
        };
        sign(turn, "no-answer", None, 0.9, &why)
    };
    run.turns.iter().filter(failed).map(told).collect()
}

fn cut(run: &LoggedRun) -> Vec<Sign> {
    let is_cut =
        |turn: &&LoggedTurn| matches!(turn.finish.as_deref(), Some("length" | "max_tokens" | "content_filter"));
    run.turns
        .iter()
        .filter(is_cut)
        .map(|turn| sign(turn, "cut", Some("FM-1.1"), 0.8, "the reply was cut short"))
        .collect()
}

fn refused(run: &LoggedRun) -> Vec<Sign> {
    let opens =
        ["i'm sorry, but i can", "i cannot help", "i can't help", "i am unable to", "i'm unable to", "as an ai"];
    let refuses = |turn: &&LoggedTurn| {
        let said = bare(&turn.said).replace('’', "'");
        opens.iter().any(|open| said.starts_with(open))
    };
    run.turns
        .iter()
        .filter(refuses)
        .map(|turn| sign(turn, "refusal", Some("FM-1.1"), 0.7, "the agent would not do it"))
        .collect()
}

/// An agent that says itself that it is wrong, or whose code ended with an error.
fn self_told(run: &LoggedRun) -> Vec<Sign> {
    let marks =
        ["traceback (most recent call last)", "exitcode: 1", "i made a mistake", "my mistake", "that was incorrect"];
    let found = |turn: &LoggedTurn| {
        let said = bare(&turn.said);
        let mark = marks.iter().find(|mark| said.contains(**mark))?;
        // The error shows here; it was made by whoever spoke before.
        Some(sign(turn, "error-shown", None, 0.3, &format!("`{mark}` stands in it")))
    };
    run.turns.iter().filter_map(found).collect()
}

fn repeated(run: &LoggedRun) -> Vec<Sign> {
    let mut said: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut found = Vec::new();
    for turn in &run.turns {
        let words = bare(&turn.said);
        if words.split(' ').count() >= REPEATED_WORDS && !said.insert((&turn.agent, words)) {
            let why = "the agent says again word for word what it said before";
            found.push(sign(turn, "repetition", Some("FM-1.3"), 0.5, why));
        }
    }
    found
}

fn same_call(run: &LoggedRun) -> Vec<Sign> {
    let mut called: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for turn in &run.turns {
        for call in &turn.calls {
            let times = called.entry((&turn.agent, &call.tool, &call.arguments)).or_default();
            *times += 1;
            if *times == REPEATED_CALLS {
                let why = format!("the agent calls `{}` the same way for the third time", call.tool);
                found.push(sign(turn, "same-call", Some("FM-1.3"), 0.6, &why));
            }
        }
    }
    found
}

patterns! {
    /// One operation with its result.
    CALCULATED = r"(\d[\d,]*(?:\.\d+)?)\s*([*×x/÷+\-−–])\s*\$?(\d[\d,]*(?:\.\d+)?)\s*=\s*\$?(-?\d[\d,]*(?:\.\d+)?)";
    /// A number with the sign before it.
    NUMBER = r"(=\s*\$?)?(\d[\d,]*(?:\.\d+)?)";
}

/// A calculation that is wrong by more than rounding.
fn miscalculated(run: &LoggedRun) -> Vec<Sign> {
    let mut found = Vec::new();
    for turn in &run.turns {
        for calculation in CALCULATED.captures_iter(&turn.said) {
            let at = calculation.get(0).map_or(0, |whole| whole.start());
            // The end of a longer one: what stands before it belongs to it.
            let before = turn.said.get(..at).unwrap_or_default().trim_end().chars().next_back();
            if before.is_some_and(|before| "*×x/÷+-−–^(.0123456789".contains(before)) {
                continue;
            }
            let number = |group: usize| calculation.get(group)?.as_str().replace(',', "").parse::<f64>().ok();
            let (Some(a), Some(b), Some(said)) = (number(1), number(3), number(4)) else { continue };
            let right = match calculation.get(2).map_or("", |sign| sign.as_str()) {
                "+" => a + b,
                "-" | "−" | "–" => a - b,
                "/" | "÷" => a / b,
                _ => a * b,
            };
            if (right - said).abs() > 0.01 * right.abs().max(1.0) {
                let quote = calculation.get(0).map_or("", |whole| whole.as_str()).to_owned();
                let why = format!("`{quote}` is wrong: it is {right}");
                found.push(Sign { quote, ..sign(turn, "calculation", Some("FM-2.6"), 0.85, &why) });
                break;
            }
        }
    }
    found
}

/// A turn that calculates, and ends with a number that none of its calculations led to.
fn departed(run: &LoggedRun) -> Vec<Sign> {
    let mut known: BTreeSet<String> = numbers(&run.problem);
    let mut found = Vec::new();
    for turn in &run.turns {
        known.extend(numbers(&turn.given));
        let mut own = known.clone();
        let mut last = None;
        for number in NUMBER.captures_iter(&turn.said) {
            own.extend(last.take());
            let text = number.get(2).map_or("", |text| text.as_str()).trim_end_matches(',').replace(',', "");
            if number.get(1).is_none() {
                last = Some(text);
            } else {
                own.insert(text);
            }
        }
        if let Some(number) = last.filter(|number| number.len() > 1 && turn.said.contains('=') && !own.contains(number))
        {
            let why = format!("it calculates, and ends with `{number}`, which is none of its results");
            let quote = as_written(&turn.said, &number);
            found.push(Sign { quote, ..sign(turn, "other-result", Some("FM-2.6"), 0.75, &why) });
        }
        known.extend(numbers(&turn.said));
    }
    found
}

/// A number that the next steps use, and that stands neither in the task nor in what the agent was given.
fn invented(run: &LoggedRun) -> Vec<Sign> {
    let mut known: BTreeSet<String> = numbers(&run.problem);
    let mut found = Vec::new();
    for turn in &run.turns {
        known.extend(numbers(&turn.given));
        let own = numbers(&turn.said);
        // What stands beside an `=` was computed there.
        let computed = turn.said.contains('=');
        let new: Vec<&String> = own.iter().filter(|number| number.len() > 1 && !known.contains(*number)).collect();
        if let (Some(number), false) = (new.first(), computed) {
            let why = format!("`{number}` stands in nothing that was said before, and no calculation leads to it");
            let quote = as_written(&turn.said, number);
            found.push(Sign { quote, ..sign(turn, "new-number", Some("FM-2.6"), 0.4, &why) });
        }
        known.extend(own);
    }
    found
}

/// A number of a text as it stands there last: with its commas.
fn as_written(text: &str, number: &str) -> String {
    let written = NUMBER.captures_iter(text).filter_map(|found| Some(found.get(2)?.as_str().trim_end_matches(',')));
    written.filter(|written| written.replace(',', "") == number).last().unwrap_or(number).to_owned()
}

fn numbers(text: &str) -> BTreeSet<String> {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).replace(',', "");
    text.split(|c: char| c.is_whitespace() || matches!(c, '$' | '(' | ')' | '=' | '*' | '/' | '+'))
        .map(plain)
        .filter(|word| !word.is_empty())
        .collect()
}
