//! The rule on what an agent is told of the run so far.

use std::collections::HashSet;

use super::{Past, Sighting, WatchedStep, text::first};

/// Shortest conversation of which something can be lost, in messages.
const SHORTEST: usize = 3;
/// Words by which a message takes the place of others.
const SUMS_UP: &[&str] = &["summar", "so far", "condens", "compact", "recap", "abridged"];

/// Earlier messages are gone from before others that are still there. A conversation that starts over is none: agents that are
/// tools of others, or are handed a second task, begin each time with the same words.
pub(super) fn lost_history(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let own = past.agent(step)?;
    let asked = step.history.as_ref()?;
    let before = &own.history;
    if before.len() < SHORTEST || asked.is_empty() {
        return None;
    }
    let kept: HashSet<u64> = asked.iter().copied().collect();
    let lost = before.iter().filter(|mark| !kept.contains(*mark)).count();
    if lost == 0 {
        return None;
    }
    let first_lost = before.iter().position(|mark| !kept.contains(mark))?;
    let has_hole = before.iter().skip(first_lost).any(|mark| kept.contains(mark));
    let summed_up = || {
        let given = step.given.to_lowercase();
        SUMS_UP.iter().any(|words| given.contains(words))
    };
    if !has_hole || summed_up() {
        return None;
    }
    let all = before.len();
    Sighting::new(
        format!("earlier messages are gone from the request, {lost} of {all}, and nothing sums them up"),
        first(&step.given),
    )
}
