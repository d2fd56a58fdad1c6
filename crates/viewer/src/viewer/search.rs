//! Words in the texts of a run: the steps that say them first, not all that were told them again.

use serde_json::{Value, json};

use super::{
    fresh::{before, fresh},
    opened::OpenedRun,
    step_view::{StepView, first_words},
};

/// How much is shown around the words, in characters.
const AROUND: usize = 110;
/// How much of it stands before them.
const AHEAD: usize = 30;

/// Steps whose reply, or what is new in whose request, holds some words, in whatever case; each with the text around
/// them.
pub(super) fn search(opened: &OpenedRun, words: &str) -> Value {
    let sought = words.to_lowercase();
    let mut found = Vec::new();
    for (at, bare) in opened.steps().iter().enumerate() {
        let Some(step) = opened.at(at) else { continue };
        let told = StepView::new(&step);
        let said = told.reply_text();
        if let Some(text) = around(&said, &sought) {
            found.push(json!({"step": bare.step, "side": "answered", "text": text}));
            continue;
        }
        let sent = step.request_sent.as_ref().map(|sent| told.request(sent)).unwrap_or_default();
        let asked = told.request(&step.request);
        // Most steps do not hold the words at all: what is new is looked for only in those that do.
        if !asked.iter().chain(&sent).any(|block| block.text.to_lowercase().contains(&sought)) {
            continue;
        }
        let former = before(opened.steps(), bare).and_then(|(at, _)| opened.at(at));
        let new = fresh(asked, former.as_ref()).into_iter().filter(|seen| !seen.known).map(|seen| seen.block);
        if let Some(text) = new.chain(sent).find_map(|block| around(&block.text, &sought)) {
            found.push(json!({"step": bare.step, "side": "asked", "text": text}));
        }
    }
    json!({"words": words, "steps": found})
}

/// The text around words that it holds, in one line.
fn around(text: &str, sought: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(sought)?;
    // Letters can change their number of bytes, but not their order, with their case: places are counted in characters.
    let place = lower.get(..at).map_or(0, |ahead| ahead.chars().count());
    let from = place.saturating_sub(AHEAD);
    let shown: String = text.chars().skip(from).take(AROUND).collect();
    Some(format!("{}{}", if from > 0 { "…" } else { "" }, first_words(&shown, AROUND)))
}

/// A part of an address as it was before it was encoded; `None` where that is no text.
pub(super) fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'%' => bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_around_words_is_found_in_any_case() {
        assert_eq!(around("The SUM is 94.", "sum is").as_deref(), Some("The SUM is 94."));
        assert_eq!(around("nothing", "sum"), None);
        let long = format!("{} the İstanbul sum {}", "x".repeat(200), "y".repeat(200));
        let shown = around(&long, "istanbul sum").or_else(|| around(&long, "sum")).expect("found");
        assert!(shown.starts_with('…') && shown.contains("sum") && shown.chars().count() <= AROUND + 1, "{shown}");
    }

    #[test]
    fn parts_of_addresses_are_decoded() {
        assert_eq!(decoded("a%20b%2Fc").as_deref(), Some("a b/c"));
        assert_eq!(decoded("%C3%A9").as_deref(), Some("é"));
        for wrong in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
