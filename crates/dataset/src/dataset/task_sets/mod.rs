//! Public task sets, one file each: rows as their authors publish them become tasks of ours, each with the checker that
//! fits. [`ALL`] is the list; a set is one file and one line of it. [`import()`] writes a task file, and beside it what was
//! read, from whom, on what terms, and which rows could not be used.

mod evalplus;
mod fields;
mod gaia;
mod generic;
mod gpqa;
mod gsm8k;
mod gsm_hard;
mod humaneval;
mod import;
mod letters;
mod math;
mod mbpp;
mod mmlu;
mod mmlu_pro;
mod row;
mod scibench;
mod unit_tests;

#[cfg(test)]
mod further_tests;
#[cfg(test)]
mod tests;

pub use fields::TaskFields;
pub use import::{ImportedTasks, LeftOutRows, Options, TasksError, import};
pub use row::{TaskSetRow, Unusable};

use super::Task;

/// Every task set that is read.
pub const ALL: &[&dyn TaskSet] = &[
    &gsm8k::Gsm8k,
    &math::Math,
    &mmlu::Mmlu,
    &gpqa::Gpqa,
    &humaneval::HumanEval,
    &gaia::Gaia,
    &gsm_hard::GsmHard,
    &scibench::SciBench,
    &mmlu_pro::MmluPro,
    &humaneval::HumanEvalPlus,
    &mbpp::Mbpp,
    &mbpp::MbppPlus,
    &generic::Generic,
];

/// The set of a task whose authors ask that it stays out of crawled and published text, and what they ask.
pub fn keep_private(task: &Task) -> Option<(&'static str, &'static str)> {
    let benchmark = task.extra.get("benchmark").and_then(serde_json::Value::as_str)?;
    let set = ALL.iter().find(|set| set.name() == benchmark)?;
    Some((set.name(), set.terms().keep_private?))
}

/// A public set of tasks.
pub trait TaskSet: std::fmt::Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what is asked, and how answers are checked.
    fn description(&self) -> &'static str;
    /// Where it is from, and on what terms.
    fn terms(&self) -> SetTerms;
    /// The columns of its CSV files, where they do not name them themselves.
    fn columns(&self) -> &'static [&'static str] {
        &[]
    }
    /// What one row becomes.
    ///
    /// # Errors
    /// [`Unusable`] where it cannot be asked or checked; it is counted, and the import goes on.
    fn task(&self, row: &TaskSetRow<'_>, options: &Options) -> Result<Task, Unusable>;
}

/// Where a set is from, and on what terms, as its authors state them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SetTerms {
    /// Whose it is, and where it lies.
    pub source: &'static str,
    /// Its licence, by its short name.
    pub licence: &'static str,
    /// What its authors ask of those who use it, where they ask that it stays out of crawled and published text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_private: Option<&'static str>,
}
