//! Requests that ask nearly the same: equal words with another clock, id or number, or other parameters beside them.

use twox_hash::XxHash3_64;

use super::{Mark, fingerprint::join, mask};
use crate::{
    equality::Rules,
    surface::{Role, Surface, door},
};

/// What a request asks, marked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NearMarks {
    /// Equal for the same words to the same model; times, dates, ids and what else may differ aside.
    pub(super) words: Mark,
    /// The same with every word that holds a digit aside: a short nonce counts as one, and so does a figure of the task.
    pub(super) figures: Mark,
}

/// The marks of a request; `None` where nothing reads it. Parameters and metadata do not count.
pub(super) fn near_marks(surface: &dyn Surface, body: &[u8], rules: &Rules) -> Option<NearMarks> {
    let outline = door::outline(surface, body).ok()?;
    let mark = |text: &str| XxHash3_64::oneshot(text.as_bytes());
    let (mut words, mut figures) = (vec![mark(&outline.model)], vec![mark(&outline.model)]);
    let mut masked = String::new();
    // What a model or a tool said before stands as it was: a retry does not ask for it again.
    let (history, asked): (Vec<_>, Vec<_>) =
        outline.messages.iter().partition(|said| matches!(said.role, Role::Assistant | Role::Tool));
    for said in history {
        let is_free = said.role == Role::Tool && !rules.tool_results().is_exact();
        let said = if is_free { mark(&rules.tool_results().reduce(&said.text())) } else { said.mark() };
        words.push(said);
        figures.push(said);
    }
    let prompts = outline.prompts.iter().map(|prompt| (0, prompt.to_string()));
    for (kind, text) in prompts.chain(asked.iter().map(|said| (1, said.text().to_string()))) {
        masked.clear();
        mask::moments(&rules.apply_text(&text), &mut masked);
        words.extend([kind, mark(&masked)]);
        figures.push(kind);
        for word in masked.split_whitespace() {
            let is_figure = word.bytes().any(|byte| byte.is_ascii_digit() || byte == b'#');
            figures.push(if is_figure { 0 } else { mark(word) });
        }
    }
    Some(NearMarks { words: join(&words), figures: join(&figures) })
}
