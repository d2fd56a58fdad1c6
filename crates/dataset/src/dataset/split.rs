//! Which part of a dataset a task belongs to: drawn by the task alone, so that no task is in two parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Split, Task};

/// Shares of the splits; the rest is for training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Splits {
    /// Seed of the draw.
    pub seed: u64,
    /// Share of tasks for selection, 0 to 1.
    pub validation: f64,
    /// Share of tasks for measurement, 0 to 1.
    pub test: f64,
}

impl Default for Splits {
    fn default() -> Self {
        Self { seed: 0, validation: 0.1, test: 0.2 }
    }
}

impl Splits {
    /// The part of a task. The draw is keyed by the words of the question, so that two tasks that ask the same are in
    /// one part whatever their ids; a task set that is added to keeps the parts of its earlier tasks.
    pub fn assign(&self, task: &Task) -> Split {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.seed.to_le_bytes()).update(words(&task.question).as_bytes());
        let mut bytes = [0; 8];
        hash.finalize_xof().fill(&mut bytes);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are kept exactly")]
        let draw = (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64;
        if draw < self.test {
            Split::Test
        } else if draw < self.test + self.validation {
            Split::Validation
        } else {
            Split::Train
        }
    }

    /// What is to be said of parts that were asked for and got no row; `rows` are there by part. Nothing of the shares that hold where
    /// nobody gave any.
    pub fn empty_parts(&self, rows: &BTreeMap<Split, u64>) -> Option<String> {
        let train = 1.0 - self.validation - self.test;
        let parts = [(Split::Train, train), (Split::Validation, self.validation), (Split::Test, self.test)];
        let is_empty = |(part, share): &(Split, f64)| *share > 0.0 && rows.get(part).is_none_or(|rows| *rows == 0);
        let empty: Vec<String> = parts
            .iter()
            .filter(|part| is_empty(part))
            .map(|(part, share)| format!("`{}` ({:.0} %)", part.name(), 100.0 * share))
            .collect();
        let is_asked = *self != Self::default() && !rows.is_empty() && !empty.is_empty();
        is_asked.then(|| {
            format!(
                "no row is in {}: parts are drawn task by task, and these are few; more tasks, or another seed in \
                 `dataset.splits`, give some",
                empty.join(" and ")
            )
        })
    }
}

/// A question without what does not change it: case, blanks, punctuation.
pub(super) fn words(question: &str) -> String {
    let mut words = String::with_capacity(question.len());
    let parts = question.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    for part in parts {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(part.chars().flat_map(char::to_lowercase));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(question: &str) -> Task {
        Task { question: question.to_owned(), ..Task::default() }
    }

    #[test]
    fn shares_are_kept_and_the_same_question_stays_together() {
        let splits = Splits { seed: 3, validation: 0.25, test: 0.25 };
        let count = |split| (0..2000).filter(|n| splits.assign(&task(&format!("question {n}"))) == split).count();
        for (split, about) in [(Split::Train, 1000), (Split::Validation, 500), (Split::Test, 500)] {
            assert!(count(split).abs_diff(about) < 100, "{split:?}: {}", count(split));
        }
        for n in 0..50 {
            let (a, b) = (format!("How many are {n}, all told?"), format!("how many  are {n} all told"));
            assert_eq!(splits.assign(&task(&a)), splits.assign(&task(&b)));
        }
    }

    #[test]
    fn parts_without_a_row_are_named() {
        let splits = Splits { seed: 3, validation: 0.1, test: 0.3 };
        let rows = |parts: &[(Split, u64)]| parts.iter().copied().collect::<BTreeMap<_, _>>();
        let few = splits.empty_parts(&rows(&[(Split::Train, 24)])).expect("said");
        assert!(few.starts_with("no row is in `validation` (10 %) and `test` (30 %): "), "{few}");
        let all = rows(&[(Split::Train, 3), (Split::Validation, 1), (Split::Test, 1)]);
        assert_eq!(splits.empty_parts(&all), None);
        assert_eq!(splits.empty_parts(&rows(&[])), None, "an empty set has other troubles");
        assert_eq!(Splits::default().empty_parts(&rows(&[(Split::Train, 24)])), None, "nobody asked");
    }

    #[test]
    fn whole_shares() {
        let all = |validation, test| Splits { seed: 0, validation, test };
        assert_eq!(all(0.0, 0.0).assign(&task("x")), Split::Train);
        assert_eq!(all(0.0, 1.0).assign(&task("x")), Split::Test);
        assert_eq!(all(1.0, 0.0).assign(&task("x")), Split::Validation);
    }
}
