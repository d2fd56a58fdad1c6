//! What the view of a reply holds, asked for each piece of its body: the texts are gone through once, however many pieces there are.

use std::collections::{HashMap, HashSet};

use super::{PieceOf, ReadKind};
use crate::surface::{Answer, Part, Reply, ToolCall};

/// The texts of a view.
#[derive(Debug)]
pub(super) struct HeldTexts<'v> {
    answers: HashMap<u32, &'v Answer>,
    /// Those of the answers that were asked about.
    texts: HashMap<u32, HeldAnswer<'v>>,
}

/// The texts of one answer.
#[derive(Debug)]
struct HeldAnswer<'v> {
    /// Its parts, one a line.
    lines: HeldText<'v>,
    /// Its parts, joined.
    parts: HeldText<'v>,
    ids: HashSet<&'v str>,
    names: HeldText<'v>,
    arguments: HeldText<'v>,
}

/// Texts and what they are together.
#[derive(Debug, Default)]
struct HeldText<'v> {
    whole: HashSet<&'v str>,
    joined: String,
    /// Where the last piece that was found ends: the next one as a rule follows it.
    from: usize,
}

impl<'v> HeldTexts<'v> {
    /// Those of a reply. In a stream pieces name an answer by its index, in a whole reply by its place.
    pub(super) fn from_reply(view: &'v Reply, is_stream: bool) -> Self {
        let mut answers = HashMap::with_capacity(view.answers.len());
        for (place, answer) in (0..).zip(&view.answers) {
            answers.entry(if is_stream { answer.index } else { place }).or_insert(answer);
        }
        Self { answers, texts: HashMap::new() }
    }

    /// Whether the view holds what a piece says.
    pub(super) fn hold(&mut self, of: &PieceOf, said: &str) -> bool {
        let Some(answer) = self.answers.get(&of.answer) else { return false };
        let held = self.texts.entry(of.answer).or_insert_with(|| HeldAnswer::from_answer(answer));
        match of.kind {
            ReadKind::Text => held.lines.holds(said) || held.parts.holds(said),
            ReadKind::Id => held.ids.contains(said),
            ReadKind::Name => held.names.holds(said),
            ReadKind::Arguments => held.arguments.holds(said),
        }
    }
}

impl<'v> HeldAnswer<'v> {
    fn from_answer(answer: &'v Answer) -> Self {
        let parts = || answer.message.parts.iter().filter_map(Part::as_text);
        let calls = &answer.message.tool_calls;
        let in_calls = |text: fn(&ToolCall) -> &str| HeldText::joined(calls.iter().map(text), "");
        Self {
            lines: HeldText::joined(parts(), "\n"),
            parts: HeldText::joined(parts(), ""),
            ids: calls.iter().map(|call| call.id.as_str()).collect(),
            names: in_calls(|call| &call.name),
            arguments: in_calls(|call| &call.arguments),
        }
    }
}

impl<'v> HeldText<'v> {
    fn joined(texts: impl Iterator<Item = &'v str>, between: &str) -> Self {
        let mut held = Self::default();
        for (number, text) in texts.enumerate() {
            if number > 0 {
                held.joined.push_str(between);
            }
            held.joined.push_str(text);
            held.whole.insert(text);
        }
        held
    }

    fn holds(&mut self, said: &str) -> bool {
        if self.whole.contains(said) {
            return true;
        }
        let find = |from: usize| {
            let found = memchr::memmem::find(self.joined.as_bytes().get(from..)?, said.as_bytes())?;
            Some(from + found + said.len())
        };
        let Some(end) = find(self.from).or_else(|| find(0).filter(|_| self.from > 0)) else { return false };
        self.from = end;
        true
    }
}
