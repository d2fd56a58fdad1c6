//! Names experts for a task.

use super::super::reading::ReadConversation;
use crate::simulator::{
    duty::Duty,
    language::{TextToken, tokens},
    utterance::Utterance,
};

/// Who can be had, and what each is good at.
const EXPERTS: [&str; 4] = [
    "a mathematician who computes carefully",
    "an engineer who works step by step",
    "a teacher who explains each step",
    "an analyst who looks for what is given and what is asked",
];
/// How many, where nobody says it.
const USUAL: usize = 2;

/// A numbered list of experts, as many as are wanted. Asked again it begins with another.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    if reading.duty != Duty::Recruit {
        return None;
    }
    let again = reading.spoken.iter().filter(|spoken| reading.is_own(spoken) && !spoken.text.is_empty()).count();
    let experts = EXPERTS.iter().cycle().skip(again % EXPERTS.len()).take(wanted(&reading.prompt));
    let lines: Vec<String> = (1..).zip(experts).map(|(number, expert)| format!("{number}. {expert}")).collect();
    Some(Utterance::text(lines.join("\n")))
}

/// The first number of the prompt that there are so many experts for.
fn wanted(prompt: &str) -> usize {
    let counts = |number: f64| {
        (1..=EXPERTS.len())
            .find(|count| u32::try_from(*count).is_ok_and(|count| (f64::from(count) - number).abs() < 0.5))
    };
    tokens(prompt).iter().filter_map(TextToken::number).find_map(counts).unwrap_or(USUAL)
}
