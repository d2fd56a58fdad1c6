//! What a verified label rests on, in numbers.

use serde::{Deserialize, Serialize};

use super::{Interval, RunId, StepIndex};

/// How many of some runs solved the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Runs that solved it.
    pub passed: u32,
    /// Runs.
    pub of: u32,
}

/// The runs that establish that an injection, and nothing else, turned success into failure (design §7).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Clean runs of the task.
    pub clean: Tally,
    /// Runs with the same prefix and no injection; at step 0 the clean runs are the control.
    pub controls: Tally,
    /// The clean run that gave the prefix: the failure's twin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<RunId>,
    /// The step at which the run left the twin's record, 0-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_step: Option<StepIndex>,
    /// Of a plan with several injections: the indices without which the run succeeds again (leave-one-out). Empty
    /// where that was not tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<u32>,
    /// Of a step found by re-execution: runs that took it as recorded, everything after it live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null: Option<Tally>,
    /// The same with the step corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treated: Option<Tally>,
}

impl Tally {
    /// So many of so many.
    pub fn of(passed: u32, of: u32) -> Self {
        Self { passed, of }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        // Values of the formula, computed apart.
        for (passed, of, low, high) in
            [(0, 0, 0.0, 1.0), (0, 3, 0.0, 0.561_497), (3, 3, 0.438_503, 1.0), (5, 10, 0.236_593, 0.763_407)]
        {
            let (a, b) = Tally::of(passed, of).interval();
            assert!((a - low).abs() < 1e-5 && (b - high).abs() < 1e-5, "{passed}/{of}: {a} {b}");
        }
    }

    #[test]
    fn nothing_is_not_all() {
        assert!(!Tally::default().all() && Tally::of(2, 2).all() && !Tally::of(1, 2).all());
    }
}
