//! What the labels of a data set rest on, and how sure they are all together: the share of wrong rows that it guarantees
//! (e-BH, over every claim that was begun).

use serde::{Deserialize, Serialize};

use super::{Sample, SampleKind, Truth};
use crate::{
    proof, ruling,
    trajectory::{Evidence, LabelStatus},
};

/// The share of wrong rows that is allowed in the mean, where nobody says another.
pub const ALPHA: f64 = 0.01;

/// What a label rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// Pairs of executions, which amount to this e-value.
    Pairs(f64),
    /// The system repeats itself: executions of an arm are equal.
    Repeats,
    /// It was verified before claims were made from pairs of executions.
    FormerRule,
    /// A person's word.
    Word,
    /// Nothing, or not enough: this is where it stands.
    Unproven(LabelStatus),
}

impl Truth {
    /// What the label rests on.
    pub fn ground(&self) -> Ground {
        if self.status != LabelStatus::Verified {
            return Ground::Unproven(self.status);
        }
        match &self.evidence {
            _ if self.definition == "human" => Ground::Word,
            Some(evidence) if evidence.is_repeatable() => Ground::Repeats,
            Some(evidence) if !evidence.is_of_former_rule() => Ground::Pairs(evidence.e().unwrap_or_default()),
            _ => Ground::FormerRule,
        }
    }

    /// Whether it was verified by executions without neutral changes, as earlier versions made them: then it is shown that bytes decide,
    /// and not that this error does.
    pub fn shows_bytes_only(&self) -> bool {
        let evidence = self.evidence.as_ref();
        let is_executed = evidence.is_some_and(|evidence| !evidence.is_of_former_rule());
        let is_claimed = self.definition == ruling::PLANTED || is_executed;
        self.status == LabelStatus::Verified && is_claimed && !evidence.is_some_and(Evidence::is_perturbed)
    }
}

/// What the failures of a data set rest on, counted row by row.
#[derive(Debug, Clone, Default)]
pub struct Grounds {
    /// The e-values of those that have one.
    pub e_values: Vec<f64>,
    /// Those of systems that repeat themselves.
    pub repeatable: usize,
    /// Those verified under a former rule.
    pub former: usize,
    /// Those for which nothing was executed that shows them: imported ones, people's, delivered ones.
    pub unclaimed: usize,
}

impl Grounds {
    /// Counts a row; only failures claim anything.
    pub fn add(&mut self, sample: &Sample) {
        self.count(sample.kind, sample.label.as_ref().map(Truth::ground));
    }

    /// The same of a row of this kind, whose label rests on this.
    pub fn count(&mut self, kind: SampleKind, ground: Option<Ground>) {
        if kind != SampleKind::Failure {
            return;
        }
        match ground {
            Some(Ground::Pairs(e)) => self.e_values.push(e),
            Some(Ground::Repeats) => self.repeatable += 1,
            Some(Ground::FormerRule) => self.former += 1,
            Some(Ground::Word | Ground::Unproven(_)) | None => self.unclaimed += 1,
        }
    }

    /// How sure they are, of so many claims begun.
    pub fn claims(&self, alpha: f64, begun: usize) -> Claims {
        Claims::from_e_values(alpha, begun, &self.e_values, self.repeatable)
    }

    /// How sure they are, in one line. `stated` is what the set's manifest says; without it, nobody knows of claims that
    /// came to nothing.
    pub fn in_words(&self, stated: Option<&Claims>) -> String {
        let Self { e_values, repeatable, former, unclaimed } = self;
        let (alpha, begun) = stated.map_or((ALPHA, e_values.len()), |stated| (stated.alpha, stated.begun));
        let mut parts = Vec::new();
        if !e_values.is_empty() || *repeatable > 0 || stated.is_some() {
            parts.push(self.claims(alpha, begun).in_words());
        }
        if stated.is_none() && !e_values.is_empty() {
            parts.push("of claims that came to nothing nothing is known".to_owned());
        }
        parts.extend(grounds_beside(*former, *unclaimed));
        if parts.is_empty() { "no failures".to_owned() } else { parts.join("; ") }
    }
}

/// How sure the labels of a data set are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Claims {
    /// Claims that were begun, those that never flipped included; less those of systems that repeat themselves.
    pub begun: usize,
    /// Failures that are claimed with an e-value.
    pub rows: usize,
    /// How many of them are kept at `alpha`.
    pub kept: usize,
    /// The share of wrong rows that is allowed in the mean.
    pub alpha: f64,
    /// The lowest such share at which all rows are kept; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// Failures of systems that repeat themselves: outside this count, nothing about them is chance.
    #[serde(default)]
    pub repeatable: usize,
}

impl Claims {
    /// What e-values of rows amount to, of so many claims begun.
    pub fn from_e_values(alpha: f64, begun: usize, e_values: &[f64], repeatable: usize) -> Self {
        let kept = proof::selected_count(e_values, begun, alpha);
        Self { begun, rows: e_values.len(), kept, alpha, level: proof::lowest_level(e_values, begun), repeatable }
    }

    /// In one line.
    pub fn in_words(&self) -> String {
        let Self { begun, rows, kept, alpha, level, repeatable } = self;
        let repeated = format!("{} of systems that repeat themselves", failures(*repeatable as u64));
        let level = level.map_or(String::new(), |level| format!("; all of them at {}", percent(level)));
        let by_pairs = format!(
            "{kept} of {rows} failures stand with at most {} wrong in the mean, of {begun} claims begun{level}",
            percent(*alpha)
        );
        match (repeatable, rows) {
            (0, 0) => "no failure is shown".to_owned(),
            (_, 0) => repeated,
            (0, _) => by_pairs,
            _ => format!("{repeated}; {by_pairs}"),
        }
    }
}

/// What states no share, in words.
pub(super) fn grounds_beside(former: usize, unclaimed: usize) -> impl Iterator<Item = String> {
    let former = (former > 0).then(|| format!("{} by a former rule, which states no share", failures(former as u64)));
    let shown = if unclaimed == 1 { "it" } else { "them" };
    let unclaimed = (unclaimed > 0)
        .then(|| format!("{} for which nothing was executed that shows {shown}", failures(unclaimed as u64)));
    former.into_iter().chain(unclaimed)
}

/// So many failures.
pub fn failures(count: u64) -> String {
    format!("{count} failure{}", if count == 1 { "" } else { "s" })
}

/// A share as it is read.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 100_000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grounds_in_words() {
        let mut grounds = Grounds::default();
        assert_eq!(grounds.in_words(None), "no failures");
        grounds.former = 2;
        assert_eq!(grounds.in_words(None), "2 failures by a former rule, which states no share");
        grounds.e_values = vec![2000.0, 50.0];
        let alone = grounds.in_words(None);
        assert!(
            alone.starts_with("1 of 2 failures stand with at most 1 % wrong in the mean, of 2 claims begun"),
            "{alone}"
        );
        assert!(alone.contains("nothing is known; 2 failures by a former rule"), "{alone}");
        let stated = grounds.in_words(Some(&Claims::from_e_values(0.05, 100, &[], 0)));
        assert!(
            stated.starts_with("1 of 2 failures stand with at most 5 % wrong in the mean, of 100 claims"),
            "{stated}"
        );
    }

    #[test]
    fn in_words() {
        let line =
            |begun, e_values: &[f64], repeatable| Claims::from_e_values(0.01, begun, e_values, repeatable).in_words();
        assert_eq!(
            line(10, &[2000.0], 0),
            "1 of 1 failures stand with at most 1 % wrong in the mean, of 10 claims begun; all of them at 0.5 %"
        );
        assert_eq!(line(0, &[], 16), "16 failures of systems that repeat themselves");
        assert_eq!(line(5, &[], 0), "no failure is shown");
    }
}
