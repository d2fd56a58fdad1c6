//! MATH (Hendrycks et al., 2021): competition problems. A row, or a file, has `problem`, `solution` with the answer in its
//! last `\boxed{…}`, `level` and `type`; the subset of 500 has `answer`, `subject` and `unique_id` too.

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{id_of, task},
};
use crate::{
    dataset::Task,
    verify::{self, Boxed, Check},
};

/// The set.
#[derive(Debug)]
pub(super) struct Math;

impl TaskSet for Math {
    fn name(&self) -> &'static str {
        "math"
    }
    fn description(&self) -> &'static str {
        "competition problems; `problem`, and `solution` with `\\boxed{…}`; checked by `boxed`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "Hendrycks et al., hendrycks/math", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let problem = row.text(&["problem"])?;
        let solution = row.text(&["solution"]).unwrap_or_default();
        let answer = match verify::boxed(solution).or_else(|| unbraced_answer(solution)) {
            Some(boxed) => boxed,
            None => row.text(&["answer"]).map_err(|_| Unusable::new("no `\\boxed{…}` in `solution`"))?,
        };
        if answer.trim().is_empty() {
            return Err(Unusable::new("the `\\boxed{…}` in `solution` is empty"));
        }
        let kept = row.extra_fields(&[("level", "level"), ("type", "subject"), ("subject", "subject")]);
        let id = id_of(self.name(), &[problem]);
        let check = Check::Boxed(Boxed::default());
        Ok(task(self.name(), id, problem.to_owned(), answer.trim().to_owned(), check, kept))
    }
}

/// The answer of `\boxed 5`, as some solutions have it.
fn unbraced_answer(solution: &str) -> Option<&str> {
    let (_, after) = solution.rsplit_once(r"\boxed ")?;
    after.split(|c: char| c == '$' || c.is_whitespace()).find(|word| !word.is_empty())
}
