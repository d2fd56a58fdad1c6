//! How each weakness shows in what an agent answered.

use super::{
    RewriteQuestion,
    wording::{closes, lines, numbers, sentences, stating, with_first_number, with_last_number, written},
};
use crate::{simulator::stated, trajectory::FailureMode};

/// The answer with the weakness.
pub(super) fn rewritten(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    match wanted.mode {
        FailureMode::DisobeyTaskSpecification => other_quantity(wanted, text),
        FailureMode::DisobeyRoleSpecification => {
            format!("I settle this for all of us; nobody else has to look at it.\n{text}")
        }
        FailureMode::StepRepetition => repeated(text),
        FailureMode::LossOfConversationHistory => {
            format!("So far there is only the statement to go by.\n{}", from_the_first_line(wanted, text))
        }
        FailureMode::UnawareOfTermination => open_ended(text),
        FailureMode::ConversationReset => started_over(wanted.task),
        FailureMode::FailToAskForClarification => {
            format!("I take the amounts as they first appear, each as a total.\n{}", from_the_first_line(wanted, text))
        }
        FailureMode::TaskDerailment => derailed(wanted, text),
        FailureMode::InformationWithholding => withheld(text),
        FailureMode::IgnoredInput => own_view(wanted, text),
        FailureMode::ReasoningActionMismatch => mismatched(wanted, text),
        FailureMode::PrematureTermination => ended(text),
        FailureMode::IncompleteVerification => unchecked(text),
        FailureMode::IncorrectVerification => opposite(wanted, text),
    }
}

/// An intermediate value takes the place of the one that was asked for; where nothing is stated, another quantity is
/// worked with.
fn other_quantity(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    if !lines(text).iter().any(|line| closes(line)) {
        return with_first_number(text, |value| written(value + by(wanted, text))).unwrap_or_else(|| text.to_owned());
    }
    let found = numbers(text);
    let last = found.last().map(|(_, value)| *value);
    let other = found.iter().rev().map(|(_, value)| *value).find(|value| Some(*value) != last);
    other.map_or_else(|| text.to_owned(), |other| stating(text, other))
}

/// How far off a number is, 1 to 9.
#[expect(clippy::cast_precision_loss, reason = "a draw below ten")]
fn by(wanted: &RewriteQuestion<'_>, text: &str) -> f64 {
    wanted.draw(text, 9) as f64
}

fn repeated(text: &str) -> String {
    let body: Vec<&str> = lines(text).into_iter().filter(|line| !closes(line)).collect();
    let body = if body.is_empty() { text.to_owned() } else { body.join("\n") };
    format!("{body}\nOnce more from the top:\n{body}")
}

/// The result of the first line stands as the result of all.
fn from_the_first_line(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    let all = lines(text);
    let first = all.first().copied().unwrap_or_default();
    match numbers(first).pop() {
        Some((_, value)) if all.iter().skip(1).any(|line| closes(line)) => stating(first, value),
        _ => other_quantity(wanted, text),
    }
}

fn open_ended(text: &str) -> String {
    let body: Vec<&str> = lines(text).into_iter().filter(|line| !closes(line)).collect();
    let next = "Next I go over this by another method and look at further cases before anything is stated.";
    [body.as_slice(), &[next]].concat().join("\n")
}

fn started_over(task: &str) -> String {
    let task: String = task.trim().chars().take(300).collect();
    format!(
        "Thank you, here is how I understand the task: {task}\nFirst one lists what is given, then one decides on the steps. \
         Where would you like to begin?"
    )
}

fn derailed(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    let found = numbers(text);
    let pair = found.first().zip(found.get(1)).map(|((_, one), (_, other))| (*one, *other));
    let first = lines(text).first().copied().unwrap_or_default().to_owned();
    let Some((one, other)) = pair else {
        let topic = wanted.task.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
        return format!(
            "{first}\nThe background of “{topic}” deserves a word of its own, and I would rather begin there."
        );
    };
    let (side_by_side, one, other) = (written(one * 10.0 + other), written(one), written(other));
    format!(
        "{first}\nMore interesting is how {one} and {other} relate: side by side they make {side_by_side}.\n\
         ANSWER: {side_by_side}"
    )
}

/// The line, or the sentence, with most figures is gone.
fn withheld(text: &str) -> String {
    let all: Vec<&str> = text.lines().collect();
    let (pieces, glue) = if lines(text).len() > 1 { (all, "\n") } else { (sentences(text), "") };
    let weight = |piece: &str| numbers(piece).len() * 1000 + piece.len();
    let Some(most) = pieces.iter().enumerate().max_by_key(|(_, piece)| weight(piece)).map(|(at, _)| at) else {
        return text.to_owned();
    };
    let rest: Vec<&str> = pieces.iter().enumerate().filter(|(at, _)| *at != most).map(|(_, piece)| *piece).collect();
    let rest = rest.join(glue);
    if rest.trim().is_empty() { "The essential points are in hand.".to_owned() } else { rest }
}

fn own_view(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    let found = numbers(wanted.task);
    let by_task = found.first().zip(found.get(1)).map(|((_, one), (_, other))| one + other);
    let now = stated::answer(text).and_then(|answer| answer.parse::<f64>().ok());
    match by_task.filter(|value| Some(*value) != now) {
        Some(value) => format!("By my own reckoning the amounts simply add up.\n{}", stating("", value).trim_start()),
        None => other_quantity(wanted, text),
    }
}

/// All of the reasoning stays; only the last number is another.
fn mismatched(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    with_last_number(text, |value| value + by(wanted, text)).unwrap_or_else(|| opposite(wanted, text))
}

fn ended(text: &str) -> String {
    let all = lines(text);
    let first = all.first().copied().unwrap_or_default();
    let ending = if text.contains("TERMINATE") { "\nTERMINATE" } else { "" };
    match numbers(first).pop() {
        Some((_, value)) if all.len() > 1 => format!("{first}\nANSWER: {}{ending}", written(value)),
        _ => {
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            format!("{}. That completes the task.{ending}", half.trim_end_matches(['.', ' ', '\n']))
        }
    }
}

fn unchecked(text: &str) -> String {
    let checks = ["check", "verif", "confirm", "recomput", "test", "because", "should be", "correct"];
    let is_check = |piece: &&str| {
        let lower = piece.to_lowercase();
        checks.iter().any(|word| lower.contains(word))
    };
    if stated::objects(text) {
        return "APPROVE\nIt is clearly laid out and reads well.".to_owned();
    }
    let rest: String = sentences(text).into_iter().filter(|piece| !is_check(piece)).collect();
    let rest = rest.trim();
    if rest == text.trim() || rest.is_empty() {
        return format!(
            "{}\nThe layout is clean, so it can be passed on.",
            lines(text).last().copied().unwrap_or_default()
        );
    }
    format!("{rest}\nThe layout is clean, so it can be passed on.")
}

/// The opposite verdict, with particulars.
fn opposite(wanted: &RewriteQuestion<'_>, text: &str) -> String {
    let result = numbers(text).pop().or_else(|| numbers(wanted.task).pop()).map(|(_, value)| value);
    if stated::objects(text) {
        let held = result.map(|value| format!(" It comes to {} by another way, too.", written(value)));
        return format!("APPROVE\nI went through each step again and all of them hold.{}", held.unwrap_or_default());
    }
    match result {
        Some(value) => format!(
            "REVISE: I recomputed the last step and it comes to {}, not {}.",
            written(value + by(wanted, text)),
            written(value)
        ),
        None => "REVISE: the first step does not follow from what is given.".to_owned(),
    }
}
