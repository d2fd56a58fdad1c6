//! Whether what an edit put into a request stands in what a tracer is shown: an order that no agent of the system gave.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{NotedFindings, Rule, fold::folded, leak::place_name, quoted};
use crate::{
    dataset::{Change, Place, Sample, SampleMessage, Truth},
    trajectory::{Side, StepIndex},
};

/// Shortest added text that counts as an instruction, in characters of its new words.
const INSTRUCTION_MIN: usize = 20;
/// Most sentences of one message that are looked for.
const SENTENCES_MAX: usize = 256;
/// Edits of a request that say again what it says.
const REPEATING: [&str; 3] = ["duplicate_message", "reorder_history", "swap_role"];

impl Sample {
    /// Whether what a tracer is shown of it holds an order that an edit planted.
    pub fn repeats_an_order(&self) -> bool {
        !repeated(self).is_empty()
    }
}

/// Looks for what edits added to requests.
pub(super) fn check(sample: &Sample, noted: &mut NotedFindings<'_>) {
    for (order, place) in repeated(sample) {
        noted.note(Rule::LeakedInstruction, format!("{} stands in {}", quoted(&order), place_name(place)));
    }
}

/// The orders that stand in what a tracer is shown, each with the first place of it.
fn repeated(sample: &Sample) -> Vec<(String, Place)> {
    let mut repeated = Vec::new();
    let changes = || sample.label.iter().flat_map(|label| &label.changes).filter(|change| change.side == Side::Request);
    for change in changes() {
        // An order that is quoted whole is one finding, not one a sentence.
        let mut found: Vec<String> = Vec::new();
        for added in added(change) {
            let again = |change: &&Change| change.after.iter().any(|after| folded(&after.text).contains(&added));
            let first = changes().filter(again).map(|change| change.step).min().unwrap_or(change.step);
            if found.iter().any(|whole| whole.contains(&added)) {
                continue;
            }
            if let Some(place) = leaked(sample, &added, first) {
                found.push(added.clone());
                repeated.push((added, place));
            }
        }
    }
    repeated
}

/// The first place that shows the added text, where the run did not say it by itself before.
fn leaked(sample: &Sample, added: &str, first: StepIndex) -> Option<Place> {
    // Inputs are what the agent asked, before the edit: an edit that repeats finds its words there. Any other's stand
    // there only by a leak.
    let repeats = repeats(sample, first);
    let mut leaked = None;
    for (place, _) in sample.shown().filter(|(_, text)| folded(text).contains(added)) {
        let own = match place {
            Place::Task => true,
            Place::Input(step) => step < first || (repeats && step == first),
            Place::Output(step) => step < first,
            _ => false,
        };
        if own {
            return None;
        }
        leaked = leaked.or(Some(place));
    }
    leaked
}

/// Whether all that was done to a request only says again what it says.
fn repeats(sample: &Sample, step: StepIndex) -> bool {
    let planted = sample.label.iter().flat_map(Truth::planted);
    let mut edits = planted.filter(|error| error.step == Some(step) && error.side == Some(Side::Request)).peekable();
    edits.peek().is_some()
        && edits.all(|error| error.operator.as_deref().is_some_and(|operator| REPEATING.contains(&operator)))
}

/// What was added to messages, or as messages of their own: each whole, then sentence by sentence, for an agent may
/// quote one of several. What stood in the messages before is not among it.
fn added(change: &Change) -> Vec<String> {
    let before: Vec<_> = change.before.iter().map(|said| folded(&said.text)).collect();
    let known: HashSet<_> = before.iter().flat_map(|text| neighbours(text)).collect();
    let mut added = Vec::new();
    let mut met = BTreeSet::new();
    let mut nth = HashMap::<&str, usize>::new();
    for after in &change.after {
        let number = nth.entry(&after.role).or_default();
        let (text, place) = (folded(&after.text), *number);
        *number += 1;
        let Some(new) = new_text(&text, counterpart(change, &after.role, place), &after.role) else { continue };
        let pieces = std::iter::once(new).chain(sentences(new).take(SENTENCES_MAX)).map(str::trim);
        for piece in pieces.filter(|piece| new_characters(piece, &known) >= INSTRUCTION_MIN) {
            let stood = before.iter().any(|before| before.contains(piece));
            if !stood && met.insert(piece.to_owned()) {
                added.push(piece.to_owned());
            }
        }
    }
    added
}

/// Each two words of a text that stand beside each other.
fn neighbours(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().zip(text.split_whitespace().skip(1))
}

/// How long a text is without the words that stood in the message before, beside the same word: where single words of a message
/// were replaced, what lies between them is no order, and an agent may say it.
fn new_characters(text: &str, known: &HashSet<(&str, &str)>) -> usize {
    let words: Vec<_> = text.split_whitespace().collect();
    let stood: Vec<_> =
        words.windows(2).map(|two| matches!(two, [one, other] if known.contains(&(*one, *other)))).collect();
    let with_next = |at: usize| stood.get(at).is_some_and(|&stood| stood);
    let is_old = |at: usize| with_next(at) || at.checked_sub(1).is_some_and(with_next);
    let new = words.iter().enumerate().filter(|(at, _)| !is_old(*at)).map(|(_, word)| word.chars().count() + 1);
    new.sum::<usize>().saturating_sub(1)
}

/// The message that stood in the place of the n-th of its role, or the last of the role.
fn counterpart<'a>(change: &'a Change, role: &str, number: usize) -> Option<&'a SampleMessage> {
    let of_role = || change.before.iter().filter(|before| before.role == role);
    of_role().nth(number).or_else(|| of_role().next_back())
}

/// The part of a message that is not in the one before: what was put in, or what was put in the place of something.
fn new_text<'a>(after: &'a str, before: Option<&SampleMessage>, role: &str) -> Option<&'a str> {
    let Some(before) = before else { return Some(after) };
    let before = folded(&before.text);
    if before.is_empty() {
        return None;
    }
    let (gone, new) = differing(&before, after);
    // A tool's result is no order: where another stands in its place, the agent speaks of that, and it is its error.
    (gone.trim().is_empty() || role != "tool").then_some(new)
}

/// The parts of two texts between their common beginning and their common end.
fn differing<'a, 'b>(before: &'a str, after: &'b str) -> (&'a str, &'b str) {
    let length = |same: &mut dyn Iterator<Item = (char, char)>| -> usize {
        same.take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
    };
    let head = length(&mut before.chars().zip(after.chars()));
    let (before, after) = (before.get(head..).unwrap_or_default(), after.get(head..).unwrap_or_default());
    let tail = length(&mut before.chars().rev().zip(after.chars().rev()));
    let front = |text: &'_ str| text.len() - tail;
    (before.get(..front(before)).unwrap_or_default(), after.get(..front(after)).unwrap_or_default())
}

/// The sentences and lines of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.split_inclusive(". ").flat_map(|part| part.split_inclusive(['!', '?', ';'])))
}
