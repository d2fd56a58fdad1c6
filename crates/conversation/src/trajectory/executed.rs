//! What was executed for a claim, and what each execution came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Dependence, Interval, Proportion};

/// How many of some runs solved the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tally {
    /// Runs that solved it.
    pub passed: u32,
    /// Runs.
    pub of: u32,
}

impl From<Tally> for Proportion {
    fn from(Tally { passed, of }: Tally) -> Self {
        Self { hits: passed, of }
    }
}

/// Why an execution says nothing of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Void {
    /// The check could not tell, or could not be run.
    NoVerdict,
    /// The program ran out of time or of calls.
    TimedOut,
    /// The upstream left a step unanswered.
    Unanswered,
    /// The run left the beginning that it was to share.
    Diverged,
    /// The budget ended it.
    Budget,
    /// The program ended by an error of its own.
    Crashed,
}

impl Void {
    /// In words, behind a count.
    pub fn words(self) -> &'static str {
        match self {
            Void::NoVerdict => "without a verdict",
            Void::TimedOut => "timed out",
            Void::Unanswered => "unanswered by the upstream",
            Void::Diverged => "diverged",
            Void::Budget => "ended by the budget",
            Void::Crashed => "crashed",
        }
    }

    /// What to do where most executions say nothing for this reason. `run`: the run's directory, as a shell reads it.
    pub fn remedy(self, run: &str) -> String {
        let next = match self {
            Void::Unanswered => "see that the upstream answers, then start again",
            Void::TimedOut => "a longer --timeout may help",
            Void::Diverged => &format!(
                "the program does not ask again what it asked: aegis replay {run} --again --explain says where"
            ),
            Void::NoVerdict => "the check has to exit with 0 or 1",
            Void::Budget => "a larger budget would tell",
            Void::Crashed => "the program ends by itself, see its standard error with aegis fork",
        };
        format!("most executions say nothing ({}): {next}", self.words())
    }
}

/// What the executions of one arm came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Executions {
    /// Those that solved the task.
    pub passed: u32,
    /// Those that did not.
    pub failed: u32,
    /// Those that say nothing, by why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub void: BTreeMap<Void, u32>,
}

impl Executions {
    /// Why most of them say nothing, where most of them do.
    pub fn most_void(&self) -> Option<Void> {
        let (why, count) = self.void.iter().max_by_key(|(_, count)| **count)?;
        Some(*why).filter(|_| count.saturating_mul(2) > self.all())
    }

    /// Those that say nothing.
    pub fn voids(&self) -> u32 {
        self.void.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// All of them.
    pub fn all(&self) -> u32 {
        self.passed.saturating_add(self.failed).saturating_add(self.voids())
    }

    /// Those that passed, of those that tell.
    pub fn tally(&self) -> Tally {
        Tally::new(self.passed, self.passed.saturating_add(self.failed))
    }
}

/// What was executed for a claim, and what it amounts to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Executed {
    /// Without the treatment.
    #[serde(rename = "null")]
    pub control: Executions,
    /// With it, the same bytes each time.
    pub treated: Executions,
    /// Pairs that the e-value was read from.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pairs: u32,
    /// The e-value; `None` where the system repeats itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e: Option<f64>,
    /// The e-value that shows the claim; `None` where the system repeats itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether the system is declared to repeat itself, and did: all executions of an arm are equal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeatable: bool,
    /// What makes the executions depend on each other; `None` where nothing does. Then they amount to nothing, whatever they came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<Dependence>,
    /// Whether runs of the task fail too often after neutral changes alone: then none of its errors is shown, whatever they came to.
    #[serde(default, skip_serializing_if = "is_false")]
    pub chaotic: bool,
    /// Whether each execution got neutral changes of its own. Without them, as earlier versions
    /// executed, it is shown that bytes decide, and not that these do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub perturbed: bool,
    /// Of runs without the treatment that failed, in order: what their own neutral change came to when it was executed again as the
    /// treatment is. Where one fails each time, the claim amounts to nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shams: Vec<Executions>,
}

impl Executed {
    /// Whether most executions of an arm had no answer of the upstream, or no end in time.
    pub fn is_unserved(&self) -> bool {
        let unserved = |arm: &Executions| matches!(arm.most_void(), Some(Void::Unanswered | Void::TimedOut));
        unserved(&self.treated) || unserved(&self.control)
    }
}

/// Where a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is shown.
    Verified,
    /// The same treatment passed and failed, and it cannot be shown any more.
    Contradicted,
    /// It is not shown, or not yet.
    Unproven,
    /// Too many executions say nothing, or they depend on each other ([`Executed::dependent`] says how), the task is
    /// [chaotic](Executed::chaotic), or the place is fragile ([`Executed::shams`]).
    Void,
}

impl Tally {
    /// So many of so many.
    pub fn new(passed: u32, of: u32) -> Self {
        Self { passed, of }
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.of == 0
    }

    /// Whether there were runs and all of them passed.
    pub fn all(self) -> bool {
        self.of > 0 && self.passed == self.of
    }

    /// The share that passed, 0 to 1; `None` of nothing.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.passed) / f64::from(self.of))
    }

    /// Wilson's 95 % interval of the share; (0, 1) of nothing.
    pub fn interval(self) -> (f64, f64) {
        let Interval { low, high } = Interval::wilson(f64::from(self.passed), f64::from(self.of));
        (low, high)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        // Values of the formula, computed apart.
        for (passed, of, low, high) in
            [(0, 0, 0.0, 1.0), (0, 3, 0.0, 0.561_497), (3, 3, 0.438_503, 1.0), (5, 10, 0.236_593, 0.763_407)]
        {
            let (a, b) = Tally::new(passed, of).interval();
            assert!((a - low).abs() < 1e-5 && (b - high).abs() < 1e-5, "{passed}/{of}: {a} {b}");
        }
    }

    #[test]
    fn nothing_is_not_all() {
        for (passed, of, empty, all, share) in [
            (0, 0, true, false, None),
            (0, 2, false, false, Some(0.0)),
            (1, 2, false, false, Some(0.5)),
            (2, 2, false, true, Some(1.0)),
        ] {
            let tally = Tally::new(passed, of);
            assert_eq!((tally.is_empty(), tally.all(), tally.share()), (empty, all, share), "{passed}/{of}");
        }
    }

    #[test]
    fn why_an_execution_is_void_reads_on_from_a_count() {
        for (why, words) in [
            (Void::NoVerdict, "without a verdict"),
            (Void::TimedOut, "timed out"),
            (Void::Unanswered, "unanswered by the upstream"),
            (Void::Diverged, "diverged"),
            (Void::Budget, "ended by the budget"),
            (Void::Crashed, "crashed"),
        ] {
            assert_eq!(why.words(), words);
        }
    }

    #[test]
    fn void_executions_count_among_all_and_not_among_those_that_tell() {
        let void = BTreeMap::from([(Void::TimedOut, 5), (Void::Crashed, 2)]);
        let executions = Executions { passed: 4, failed: 3, void };
        assert_eq!((executions.voids(), executions.all(), executions.tally()), (7, 14, Tally::new(4, 7)));
    }
}
