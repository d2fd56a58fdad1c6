//! MMLU (Hendrycks et al., 2021): four choices, 57 subjects. Its own files are CSV without a header (question, four choices,
//! letter), the subject in the file's name; tables of it have `question`, `choices`, `answer` as a number from 0, `subject`.

use serde_json::{Map, Value};

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    letters::{check, letter, place, question_text, usable},
    row::{id_of, task},
};
use crate::dataset::Task;

/// Ends of the names of its own files, behind the subject.
const PARTS: [&str; 4] = ["_test.csv", "_val.csv", "_dev.csv", "_train.csv"];

/// The set.
#[derive(Debug)]
pub(super) struct Mmlu;

impl TaskSet for Mmlu {
    fn name(&self) -> &'static str {
        "mmlu"
    }
    fn description(&self) -> &'static str {
        "multiple choice; CSV without a header, or `question`, `choices`, `answer`; checked by `choice`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "Hendrycks et al., hendrycks/test; cais/mmlu", licence: "MIT", keep_private: None }
    }
    fn columns(&self) -> &'static [&'static str] {
        &["question", "A", "B", "C", "D", "answer"]
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["question", "Question"])?;
        let choices = choices(row)?;
        let answer = answer(row, choices.len())?;
        let mut kept = row.extra_fields(&[("subject", "subject"), ("Subject", "subject")]);
        if kept.is_empty() {
            kept = subject_of(row.file);
        }
        let subject = kept.get("subject").and_then(Value::as_str).unwrap_or_default();
        let id = id_of(self.name(), &[&[subject, question], choices.as_slice()].concat());
        Ok(task(self.name(), id, question_text(question, &choices), answer, check(&choices), kept))
    }
}

fn choices<'a>(row: &TaskSetRow<'a>) -> Result<Vec<&'a str>, Unusable> {
    let listed: Option<Vec<&str>> = match row.field(&["choices"]) {
        Some(Value::Array(choices)) => choices.iter().map(|choice| choice.as_str().map(str::trim)).collect(),
        Some(_) => None,
        None => ["A", "B", "C", "D"].map(|name| row.text(&[name]).ok()).into_iter().collect(),
    };
    listed.and_then(usable).ok_or_else(|| Unusable::new("no list of choices"))
}

/// The letter of the right choice.
fn answer(row: &TaskSetRow<'_>, choices: usize) -> Result<String, Unusable> {
    let place = match row.field(&["answer", "Answer"]) {
        Some(Value::Number(number)) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Some(Value::String(text)) => {
            let text = text.trim();
            let number = text.parse().ok();
            number.or_else(|| self::place(text))
        }
        _ => None,
    };
    let letter = place.filter(|place| *place < choices).and_then(letter);
    letter.ok_or_else(|| Unusable::new("`answer` is none of the choices"))
}

/// The subject of one of the set's own files.
fn subject_of(file: &str) -> Map<String, Value> {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let subject = PARTS.iter().find_map(|end| name.strip_suffix(end));
    subject.map(|subject| ("subject".to_owned(), subject.into())).into_iter().collect()
}
