//! The same figures by length of the run, failure mode and system.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    accuracy::{Judged, accuracy},
    interval::Share,
    names::mode_key,
    sets::{Counts, Figures},
};

/// Upper ends of the length buckets, in steps.
const LENGTHS: [usize; 6] = [5, 10, 20, 50, 100, usize::MAX];

/// One table.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Table {
    /// What the rows are split by.
    pub by: &'static str,
    /// One line each, in order.
    pub rows: Vec<Row>,
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// The bucket, mode or system.
    pub value: String,
    /// How many runs.
    pub runs: usize,
    /// Agent accuracy.
    pub agent: Share,
    /// Step accuracy.
    pub step: Share,
    /// Joint accuracy.
    pub joint: Share,
    /// Precision, recall and F1 of the mode itself; in the table by mode only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Figures>,
}

/// All tables that the data can fill.
pub(super) fn tables(rows: &[Judged<'_>], modes: &[(String, Counts)]) -> Vec<Table> {
    let length = split(rows, |row| {
        let steps = row.gold.speakers.len();
        (steps > 0).then(|| LENGTHS.iter().position(|end| steps <= *end).unwrap_or_default()).into_iter().collect()
    });
    let length = length.into_iter().map(|(bucket, part)| line(bucket_name(bucket), &part, None)).collect();
    let mode = split(rows, |row| {
        let mut modes: Vec<String> =
            row.gold.culprits.iter().filter_map(|culprit| culprit.mode.as_deref()).map(mode_key).collect();
        modes.sort_unstable();
        modes.dedup();
        modes
    });
    let of = |mode: &str| modes.iter().find(|(known, _)| known == mode).map(|(_, counts)| counts.figures());
    let mode = mode.into_iter().map(|(mode, part)| line(mode.clone(), &part, of(&mode))).collect();
    let system = split(rows, |row| Some(row.gold.system.clone()).filter(|name| !name.is_empty()).into_iter().collect());
    let system = system.into_iter().map(|(system, part)| line(system, &part, None)).collect();
    [("steps", length), ("mode", mode), ("system", system)]
        .into_iter()
        .map(|(by, rows): (_, Vec<Row>)| Table { by, rows })
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn split<'a, K: Ord>(rows: &'a [Judged<'a>], keys: impl Fn(&Judged<'a>) -> Vec<K>) -> BTreeMap<K, Vec<Judged<'a>>> {
    let mut parts: BTreeMap<K, Vec<Judged<'a>>> = BTreeMap::new();
    for row in rows {
        for key in keys(row) {
            parts.entry(key).or_default().push(Judged { gold: row.gold, answer: row.answer, base: row.base });
        }
    }
    parts
}

fn line(value: String, part: &[Judged<'_>], mode: Option<Figures>) -> Row {
    let score = accuracy(part);
    Row { value, runs: part.len(), agent: score.agent, step: score.step, joint: score.joint, mode }
}

fn bucket_name(bucket: usize) -> String {
    let end = LENGTHS.get(bucket).copied().unwrap_or(usize::MAX);
    let start = bucket.checked_sub(1).and_then(|before| LENGTHS.get(before)).map_or(1, |before| before + 1);
    if end == usize::MAX { format!("{start}+") } else { format!("{start}-{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Culprit, Gold, Guess, PredictedAnswer};

    #[test]
    fn a_run_is_counted_once_per_bucket_and_once_per_mode() {
        let culprit = |mode: &str| Culprit { agent: Some("A".into()), step: Some(0), mode: Some(mode.into()) };
        let gold = |steps: usize, modes: &[&str], system: &str| Gold {
            culprits: modes.iter().map(|mode| culprit(mode)).collect(),
            speakers: vec!["A".into(); steps],
            system: system.into(),
            ..Gold::default()
        };
        let golds = [
            gold(3, &["FM-1.3", "1.3"], "x"),
            gold(7, &["FM-1.3", "FM-2.6"], "x"),
            gold(101, &[], "y"),
            gold(0, &[], ""),
        ];
        let answer = PredictedAnswer::Set(vec![Guess { agent: Some("A".into()), step: Some(0), mode: None }]);
        let rows: Vec<_> = golds.iter().map(|gold| Judged { gold, answer: Some(&answer), base: 0 }).collect();
        let tables = tables(&rows, &[("FM-1.3".into(), Counts { tp: 1, fp: 0, missed: 1 })]);
        let shape: Vec<_> = tables
            .iter()
            .map(|table| (table.by, table.rows.iter().map(|row| (row.value.as_str(), row.runs)).collect::<Vec<_>>()))
            .collect();
        assert_eq!(
            shape,
            [
                ("steps", vec![("1-5", 1), ("6-10", 1), ("101+", 1)]),
                ("mode", vec![("FM-1.3", 2), ("FM-2.6", 1)]),
                ("system", vec![("x", 2), ("y", 1)]),
            ]
        );
        assert_eq!(tables[1].rows[0].mode.map(|figures| figures.recall), Some(0.5));
    }
}
