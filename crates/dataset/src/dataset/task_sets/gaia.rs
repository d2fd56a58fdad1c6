//! GAIA (Mialon et al., 2023): questions for assistants with tools. A row of `metadata.jsonl` has `task_id`, `Question`,
//! `Level`, `Final answer` (`?` where it is kept back) and `file_name`, a file that the question is about.

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{own_id, task},
};
use crate::{
    dataset::Task,
    verify::{self, Check, Normalised, Numeric, Units},
};

/// The set.
#[derive(Debug)]
pub(super) struct Gaia;

impl TaskSet for Gaia {
    fn name(&self) -> &'static str {
        "gaia"
    }
    fn description(&self) -> &'static str {
        "questions for assistants; `Question`, `Final answer`; checked by `numeric` or `normalised`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms {
            source: "Mialon et al., gaia-benchmark/GAIA",
            licence: "none stated; access is granted on terms",
            keep_private: Some(
                "GAIA's authors ask that it is not shared again where it can be crawled: keep files with it private or gated",
            ),
        }
    }
    fn task(&self, row: &TaskSetRow<'_>, options: &Options) -> Result<Task, Unusable> {
        let question = row.text(&["Question"])?;
        let answer = row.text(&["Final answer"])?;
        if answer == "?" {
            return Err(Unusable::new("the answer is kept back (`?`)"));
        }
        let file = row.text(&["file_name"]).ok();
        if file.is_some() && !options.with_files {
            return Err(Unusable::new(
                "it asks about a file: `--with-files` takes it, for programs that fetch the file themselves",
            ));
        }
        // How its annotators went about it would give the answer away, and is not taken over.
        let kept = row.extra_fields(&[("Level", "level"), ("file_name", "file_name")]);
        let asked = match file {
            Some(file) => format!("{question}\n\nThe file: {file}"),
            None => question.to_owned(),
        };
        let check = if verify::is_number(answer) {
            Check::Numeric(Numeric { relative: 1e-9, units: Units::Ignore, ..Numeric::default() })
        } else {
            Check::Normalised(Normalised::default())
        };
        let id = own_id(self.name(), row.text(&["task_id"])?);
        Ok(task(self.name(), id, asked, answer.to_owned(), check, kept))
    }
}
