//! GPQA (Rein et al., 2023): questions of biology, physics and chemistry. A row has `Question`, `Correct Answer` and three
//! `Incorrect Answer`s, so somebody must shuffle them: their order here is drawn by what they say, and is the same
//! wherever and whenever the set is read.

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    letters::{check, letter, question_text},
    row::{id_of, own_id, task},
};
use crate::dataset::Task;

/// The columns of answers, the right one first.
const ANSWERS: [&str; 4] = ["Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"];

/// The set.
#[derive(Debug)]
pub(super) struct Gpqa;

impl TaskSet for Gpqa {
    fn name(&self) -> &'static str {
        "gpqa"
    }
    fn description(&self) -> &'static str {
        "multiple choice; `Question`, `Correct Answer`, `Incorrect Answer 1` to `3`; checked by `choice`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms {
            source: "Rein et al., idavidrein/gpqa",
            licence: "CC-BY-4.0",
            keep_private: Some(
                "GPQA's authors ask that its examples are not shown online, as text or as images: keep files with them private",
            ),
        }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["Question"])?;
        let answers = ANSWERS.map(|name| row.text(&[name]));
        let answers = answers.into_iter().collect::<Result<Vec<&str>, _>>()?;
        let doubled = answers
            .iter()
            .enumerate()
            .any(|(place, answer)| answers.iter().skip(place + 1).any(|other| other == answer));
        if doubled {
            return Err(Unusable::new("two of the answers are the same"));
        }
        let mut order: Vec<usize> = (0..answers.len()).collect();
        order.sort_by_cached_key(|place| draw(question, answers.get(*place).copied().unwrap_or_default()));
        let choices: Vec<&str> = order.iter().filter_map(|place| answers.get(*place).copied()).collect();
        let right = order.iter().position(|place| *place == 0).and_then(letter);
        let right = right.ok_or_else(|| Unusable::new("no right answer"))?;
        let kept = row.extra_fields(&[
            ("High-level domain", "subject"),
            ("Subdomain", "subdomain"),
            ("Writer's Difficulty Estimate", "level"),
            // Whoever filters training data looks for it.
            ("Canary String", "canary"),
        ]);
        let id = match row.text(&["Record ID"]) {
            Ok(own) => own_id(self.name(), own),
            Err(_) => id_of(self.name(), &[question]),
        };
        Ok(task(self.name(), id, question_text(question, &choices), right, check(&choices), kept))
    }
}

/// Where a choice comes: by a hash keyed with the question, which of the two nobody can aim.
fn draw(question: &str, choice: &str) -> [u8; 32] {
    let key = blake3::derive_key("aegis task_sets gpqa choices 1", question.as_bytes());
    *blake3::keyed_hash(&key, choice.as_bytes()).as_bytes()
}
