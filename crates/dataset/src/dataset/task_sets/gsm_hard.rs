//! GSM-Hard (Gao et al., 2022): GSM8K's problems with larger numbers. A row has `input`, `target`, a number, and `code`, a
//! solution, which is not taken over.

use serde_json::{Map, Value};

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{id_of, plain_number, task},
};
use crate::{
    dataset::Task,
    verify::{Check, Numeric},
};

/// The set.
#[derive(Debug)]
pub(super) struct GsmHard;

impl TaskSet for GsmHard {
    fn name(&self) -> &'static str {
        "gsm-hard"
    }
    fn description(&self) -> &'static str {
        "word problems with large numbers; `input`, and `target`, a number; checked by `numeric`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "Gao et al., PAL; reasoning-machines/gsm-hard", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["input"])?;
        let answer = match row.field(&["target"]) {
            Some(Value::Number(number)) => plain_number(number),
            Some(Value::String(text)) if text.trim().parse().is_ok_and(f64::is_finite) => text.trim().to_owned(),
            _ => return Err(Unusable::new("no number in `target`")),
        };
        // The margin is that of the set's authors.
        let check = Check::Numeric(Numeric { absolute: 1e-3, ..Numeric::default() });
        Ok(task(self.name(), id_of(self.name(), &[question]), question.to_owned(), answer, check, Map::new()))
    }
}
