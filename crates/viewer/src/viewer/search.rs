//! Words in the texts of runs: the steps that say them first, not all that were told them again. Nothing is indexed: the runs are
//! read, as many at a time as there are processors, and what was read is dropped.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    fresh::{before, fresh},
    listing::RunRow,
    opened::OpenedRun,
    step_view::{StepView, first_words},
};
use crate::{recording::in_threads, trajectory::StepIndex};

/// How much is shown around the words, in characters.
const AROUND: usize = 110;
/// How much of it stands before them.
const AHEAD: usize = 30;
/// So many runs are read before it is asked whether there are enough.
const RUNS_AT_ONCE: usize = 256;

/// A step that holds the words that were looked for.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FoundStep {
    /// The step.
    pub step: StepIndex,
    /// `answered`: its reply holds them; `asked`: what is new in its request.
    pub side: &'static str,
    /// The text around them.
    pub text: String,
}

/// A run that holds the words that were looked for.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FoundRunTexts {
    /// What names the run in its list.
    pub key: String,
    /// The steps.
    pub steps: Vec<FoundStep>,
}

/// What was found in the texts of runs.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct FoundTexts {
    /// The runs that hold the words, in the order of their list.
    pub found: Vec<FoundRunTexts>,
    /// How many runs were read.
    pub searched: usize,
    /// How many could not be read.
    pub unreadable: usize,
    /// How many there are to search.
    pub of: usize,
}

/// When a search in many runs ends early.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimit {
    /// Once so many runs were found.
    pub runs: usize,
    /// Once it took so long.
    pub time: Duration,
}

impl FoundTexts {
    /// Looks for words in the texts of runs, in whatever case. `is_blind`: without what is known about the runs.
    pub fn search(rows: &[&Arc<RunRow>], words: &str, limit: SearchLimit, is_blind: bool) -> Self {
        let began = Instant::now();
        let mut texts = Self { of: rows.len(), ..Self::default() };
        for block in rows.chunks(RUNS_AT_ONCE) {
            if texts.found.len() >= limit.runs || began.elapsed() >= limit.time {
                break;
            }
            let read = in_threads(block, |row| {
                let opened = OpenedRun::read(&row.dir).ok()?;
                let opened = if is_blind { opened.blinded() } else { opened };
                Some(FoundRunTexts { key: row.key.clone(), steps: search(&opened, words) })
            });
            texts.searched += block.len();
            texts.unreadable += read.iter().filter(|run| run.is_none()).count();
            texts.found.extend(read.into_iter().flatten().filter(|run| !run.steps.is_empty()));
        }
        texts
    }
}

/// Steps whose reply, or what is new in whose request, holds some words, in whatever case; each with the text around
/// them.
pub(super) fn search(opened: &OpenedRun, words: &str) -> Vec<FoundStep> {
    let sought = words.to_lowercase();
    let mut found = Vec::new();
    for (at, bare) in opened.steps().iter().enumerate() {
        let Some(step) = opened.at(at) else { continue };
        let told = StepView::new(&step);
        let said = told.reply_text();
        if let Some(text) = around(&said, &sought) {
            found.push(FoundStep { step: bare.step, side: "answered", text });
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
            found.push(FoundStep { step: bare.step, side: "asked", text });
        }
    }
    found
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
