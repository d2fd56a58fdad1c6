//! Rules on the end of a run, and on the end of a model's room.

use super::{Past, Sighting, WatchedStep, text::first};

/// Words in the names of agents that verify what others did.
const VERIFIERS: &[&str] =
    &["verif", "critic", "review", "check", "valid", "tester", "judge", "audit", "evaluat", "inspect", "examin", "qa"];
/// Words of a refusal that says that a request is too long.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "prompt is too long",
    "exceeds the context",
];
/// The part of a window from which on it is nearly full, in percent.
const FULL: u64 = 80;

/// Whether a reply ends the work, by the convention of frameworks.
pub(super) fn is_end(said: &str) -> bool {
    let last = said.trim_end().trim_end_matches(['.', '!', '*', '"', '`']);
    last.ends_with("TERMINATE")
}

/// Somebody is asked again after that.
pub(super) fn after_end(past: &Past, step: &WatchedStep) -> Option<Sighting> {
    let ended = past.ended?;
    Sighting::new(format!("a turn after the work was said to be done, at step {ended}"), first(&step.reply))
}

/// The model's window is nearly full.
pub(super) fn context_full(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    if let Some(refused) = &step.refused {
        let said = refused.to_lowercase();
        let too_long = TOO_LONG.iter().any(|words| said.contains(words));
        return if too_long { Sighting::new("the request was refused as too long", first(refused)) } else { None };
    }
    let (window, input) = (step.window?, step.input_tokens?);
    let share = input.saturating_mul(100) / window.max(1);
    let full = share > FULL;
    if full {
        Sighting::new(format!("{input} tokens were asked, {share} % of the {window} that there are"), "")
    } else {
        None
    }
}

/// Nobody verified anything, though there is somebody for it.
pub(super) fn no_verifier(past: &Past, roster: &[String]) -> Option<Sighting> {
    let verifies = |name: &&String| {
        let name = name.to_lowercase();
        VERIFIERS.iter().any(|word| name.contains(word))
    };
    let verifiers: Vec<&String> = roster.iter().filter(verifies).collect();
    let spoke = |name: &&String| past.spoke.contains(name.as_str());
    if verifiers.is_empty() || past.spoke.is_empty() || verifiers.iter().any(spoke) {
        return None;
    }
    let names = verifiers.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Sighting::new(format!("the run ended, and {names} made no call"), "")
}
