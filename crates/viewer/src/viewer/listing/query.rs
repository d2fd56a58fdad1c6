//! Which runs of a long list are shown, in which order: the page asks the server where there are more than it gets at once.

use std::sync::Arc;

use serde::Deserialize;

use super::{Listing, row::RunRow};
use crate::{trajectory::Verdict, viewer::data::word};

/// How a list is ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// The newest first.
    #[default]
    #[serde(alias = "")]
    Began,
    /// By outcome.
    Outcome,
    /// Those with most calls first.
    Calls,
    /// The longest first.
    Seconds,
    /// Those with a label first.
    Label,
}

/// What is asked of a list; what is not said asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RunQuery {
    /// Words that a row says, each somewhere, in any case.
    pub q: String,
    /// Words that a text of the run holds: message, tool call, result or reply.
    pub text: String,
    /// An outcome.
    pub outcome: String,
    /// What runs are in an experiment.
    pub kind: String,
    /// Whether anything is said here: only runs with a label.
    pub labelled: String,
    /// The same: runs of traces, too.
    pub trials: String,
    /// A campaign.
    pub campaign: String,
    /// The order.
    pub sort: RunOrder,
}

/// Runs of a list.
#[derive(Debug)]
pub struct ChosenRuns<'a> {
    /// The first of them.
    pub rows: Vec<&'a Arc<RunRow>>,
    /// How many there are.
    pub total: usize,
}

impl Listing {
    /// The runs that a query asks for, at most so many of them.
    pub fn chosen(&self, query: &RunQuery, most: usize) -> ChosenRuns<'_> {
        let words: Vec<String> = query.q.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let is = |asked: &str, own: &str| asked.is_empty() || asked == own;
        let mut rows: Vec<&Arc<RunRow>> = self
            .runs
            .iter()
            .filter(|row| {
                is(&query.outcome, &word(&row.outcome))
                    && is(&query.kind, row.kind.word())
                    && is(&query.campaign, row.campaign.as_deref().unwrap_or_default())
                    && (query.labelled.is_empty() || row.label.is_some())
                    && (!query.trials.is_empty() || row.trial_of.is_none())
                    && has(row, &words)
            })
            .collect();
        match query.sort {
            RunOrder::Began => {}
            RunOrder::Outcome => rows.sort_by_key(|row| match row.outcome {
                Verdict::Failure => 0,
                Verdict::Success => 1,
                Verdict::Unknown => 2,
            }),
            RunOrder::Calls => rows.sort_by_key(|row| std::cmp::Reverse(row.calls)),
            RunOrder::Seconds => {
                rows.sort_by(|a, b| b.seconds.unwrap_or_default().total_cmp(&a.seconds.unwrap_or_default()));
            }
            RunOrder::Label => rows.sort_by_key(|row| row.label.is_none()),
        }
        let total = rows.len();
        rows.truncate(most);
        ChosenRuns { rows, total }
    }
}

/// Whether a row says each of some words, which are in small letters.
fn has(row: &RunRow, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut said = String::new();
    let texts = [&row.program, &row.task, &row.planted, &row.plan, &row.class, &row.campaign, &row.imported];
    let texts = texts.into_iter().flatten().map(AsRef::as_ref).chain([row.run.as_str(), row.kind.word()]);
    let found = [&row.trace, &row.suspected].into_iter().flatten().map(String::as_str);
    for text in texts.chain(found).chain(row.agents.iter().map(String::as_str)) {
        said.push_str(text);
        said.push(' ');
    }
    said.push_str(&word(&row.outcome));
    if let Some(label) = &row.label {
        said.push(' ');
        said.push_str(&label.words());
    }
    let said = said.to_lowercase();
    words.iter().all(|word| said.contains(word.as_str()))
}
