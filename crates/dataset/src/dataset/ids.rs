//! Ids of tool calls, as rows have them. A backend or a program draws new ones in each run; which result answers which call
//! is all that they say. So a row numbers them in the order in which they appear in it, and equal runs make equal rows.

use std::collections::HashMap;

use super::{Sample, SampleMessage};

/// Shortest id that is looked for in the text of a body, in bytes: shorter ones may be any word.
const TELLING: usize = 6;

/// Numbers the ids of a sample's tool calls. Of a sample that was numbered before, all stay.
pub(super) fn number(sample: &mut Sample) {
    let mut numbers = IdNumbers::default();
    for step in &mut sample.steps {
        let asked = step.input.iter_mut().flat_map(|input| &mut input.messages);
        asked.chain(&mut step.output).for_each(|said| numbers.renumber_message(said));
    }
    changed(sample).for_each(|said| numbers.renumber_message(said));
    // What could not be read as messages is a body as it was.
    changed(sample).filter(|said| said.role == "other").for_each(|said| numbers.body(&mut said.text));
}

/// The messages that edits replaced, and those in their place.
fn changed(sample: &mut Sample) -> impl Iterator<Item = &mut SampleMessage> {
    let changes = sample.label.iter_mut().flat_map(|label| &mut label.changes);
    changes.flat_map(|change| change.before.iter_mut().chain(&mut change.after))
}

/// Numbers by ids.
#[derive(Debug, Default)]
struct IdNumbers(HashMap<String, usize>);

impl IdNumbers {
    fn renumber_message(&mut self, said: &mut SampleMessage) {
        let ids = said.calls.iter_mut().map(|call| &mut call.id).chain(&mut said.answers);
        for id in ids.filter(|id| !id.is_empty()) {
            let next = self.0.len();
            let number = *self.0.entry(std::mem::take(id)).or_insert(next);
            *id = name(number);
        }
    }

    /// Ids that stand in quotes in a body.
    fn body(&self, text: &mut String) {
        let known = |part: &&str| part.len() >= TELLING && self.0.contains_key(*part);
        if !text.split('"').any(|part| known(&part)) {
            return;
        }
        let named = |part: &str| match self.0.get(part).filter(|_| known(&part)) {
            Some(number) => name(*number),
            None => part.to_owned(),
        };
        *text = text.split('"').map(named).collect::<Vec<_>>().join("\"");
    }
}

fn name(number: usize) -> String {
    format!("call_{number}")
}
