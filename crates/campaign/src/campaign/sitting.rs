//! Sittings: what a campaign makes in one go. Between two of them everything may have changed, the model behind a name first of
//! all, so an execution of one sitting says nothing beside one of another. A campaign that was cut and goes on soon, as it was, is still
//! in the same sitting.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    proof::{Arm, ProofSample},
    trajectory::RunId,
};

/// The longest pause within a sitting.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// What a campaign makes in one go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sitting {
    /// When it began: RFC 3339 UTC, always to the microsecond, so that its order is that of the texts.
    at: String,
    /// The digest of all that rows of the campaign depend on, its plans included.
    campaign: String,
}

impl Sitting {
    /// The sitting of a start. `newest`: the sitting in which a run of the campaign's directory ended last, and when. The start belongs to it
    /// where it goes on as the same campaign and soon after that run; else a sitting begins now.
    pub(super) fn of_start(newest: Option<(Self, Timestamp)>, campaign: &str) -> Self {
        let now = Timestamp::now();
        let same = newest.filter(|(sitting, ended)| is_soon(*ended, now) && sitting.campaign == campaign);
        let begun = same.map(|(sitting, _)| sitting);
        begun.unwrap_or_else(|| Self { at: format!("{now:.6}"), campaign: campaign.to_owned() })
    }
}

/// Whether what goes on now goes on soon after a moment.
fn is_soon(ended: Timestamp, now: Timestamp) -> bool {
    let pause = now.duration_since(ended);
    !pause.is_negative() && pause <= LONGEST_PAUSE
}

/// An execution of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArmExecution {
    /// The run.
    pub(super) run: RunId,
    /// What it says.
    pub(super) sample: ProofSample,
    /// When it was made; `None` in cells of earlier versions, which came before all others.
    pub(super) sitting: Option<Sitting>,
}

/// Two arms of which executions face each other in pairs, each pair made in one sitting. Where the two that would face each other
/// were not, the older one is left out: by when it was made alone, whatever it came to.
#[derive(Debug, Clone, Default)]
pub(super) struct PairedArms {
    control: ArmUnderWay,
    treated: ArmUnderWay,
}

#[derive(Debug, Clone, Default)]
struct ArmUnderWay {
    executions: Vec<ArmExecution>,
    /// How many more were asked for, those included that were left out.
    planned: u32,
}

impl PairedArms {
    /// The number of the next execution of an arm that is to be made, 0-based.
    pub(super) fn ask(&mut self, arm: Arm) -> u32 {
        let asked = match arm {
            Arm::Control => &mut self.control.planned,
            Arm::Treated => &mut self.treated.planned,
        };
        let number = *asked;
        *asked = asked.saturating_add(1);
        number
    }

    /// Adds an execution, unless it is older than what it would face, and leaves out what is older than it. The executions of the null
    /// arm that are left out.
    pub(super) fn add(&mut self, arm: Arm, made: ArmExecution) -> Vec<RunId> {
        let mut older = Vec::new();
        let (own, other) = match arm {
            Arm::Control => (&mut self.control.executions, &mut self.treated.executions),
            Arm::Treated => (&mut self.treated.executions, &mut self.control.executions),
        };
        if made.sample.verdict().is_some() {
            let place = own.iter().filter(|one| one.sample.verdict().is_some()).count();
            while let Some(at) = nth_verdict(other, place) {
                match other.get(at).map(|facing| facing.sitting.cmp(&made.sitting)) {
                    Some(Ordering::Less) => {
                        let left = other.remove(at).run;
                        older.extend((arm == Arm::Treated).then_some(left));
                    }
                    Some(Ordering::Greater) => return if arm == Arm::Control { vec![made.run] } else { Vec::new() },
                    Some(Ordering::Equal) | None => break,
                }
            }
        }
        own.push(made);
        older
    }

    /// The executions of an arm, in order.
    pub(super) fn executions(&self, arm: Arm) -> &[ArmExecution] {
        match arm {
            Arm::Control => &self.control.executions,
            Arm::Treated => &self.treated.executions,
        }
    }

    /// What an arm says.
    pub(super) fn samples(&self, arm: Arm) -> Vec<ProofSample> {
        self.executions(arm).iter().map(|one| one.sample).collect()
    }
}

/// Where the verdict of a number is, 0-based.
fn nth_verdict(arm: &[ArmExecution], number: usize) -> Option<usize> {
    let mut verdicts = arm.iter().enumerate().filter(|(_, one)| one.sample.verdict().is_some());
    verdicts.nth(number).map(|(at, _)| at)
}

/// Runs without the injection that do not count beside later runs, and what such runs came to since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OlderControls {
    /// Those that are left out.
    pub runs: usize,
    /// Those of them that solved the task.
    pub passed: usize,
    /// Those that were made at the last start.
    pub later_runs: usize,
    /// Those of them that solved the task.
    pub later_passed: usize,
}

impl OlderControls {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs == 0
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.passed += other.passed;
        self.later_runs += other.later_runs;
        self.later_passed += other.later_passed;
    }

    /// In words; `None` where there is none.
    pub(super) fn in_words(&self) -> Option<String> {
        let Self { runs, passed, later_runs, later_passed } = self;
        // Shares, compared without dividing.
        let changed = passed * later_runs != later_passed * runs;
        let more = if changed { ": what answers may have changed in between" } else { "" };
        (!self.is_empty()).then(|| {
            format!(
                "{runs} runs without the injection, made at an earlier start, do not count beside later ones: {passed} of {runs} \
                 passed then, {later_passed} of {later_runs} since{more}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    /// `p1` passed at the first start, `f2` failed at the second, `v1` says nothing.
    fn execution(text: &str) -> ArmExecution {
        let sample = match text.as_bytes()[0] {
            b'p' => ProofSample::Passed,
            b'f' => ProofSample::Failed,
            _ => ProofSample::Void(Void::Crashed),
        };
        let sitting = text
            .get(1..)
            .filter(|number| *number != "0")
            .map(|number| Sitting { at: number.to_owned(), campaign: String::new() });
        let run = RunId::parse("c-0").expect("an id");
        ArmExecution { run, sample, sitting }
    }

    fn letters(arms: &PairedArms, arm: Arm) -> String {
        let letter = |sample: ProofSample| match sample.verdict() {
            Some(true) => 'p',
            Some(false) => 'f',
            None => 'v',
        };
        arms.samples(arm).into_iter().map(letter).collect()
    }

    #[test]
    fn executions_of_different_sittings_never_face_each_other() {
        for (first, added, control, treated) in [
            // One sitting: nothing is left out.
            ("f1", "n:p1 t:f1 n:p1", "pp", "ff"),
            // What was executed before the second start is older than what faces it now.
            ("f2", "n:p1 n:p1 n:f2", "f", "f"),
            ("f1 f1", "n:p2 t:f2", "p", "f"),
            // Cut in the middle of a pair.
            ("f1", "t:f1 n:p1 n:p1 t:f1 t:f1 n:p2 t:f2", "ppp", "fff"),
            ("f1", "n:p1 n:p1 t:f2 n:p2", "pp", "ff"),
            // Of an earlier version: older than all that is made now, and of one sitting among themselves.
            ("f0", "n:p0 t:f0 n:p0", "pp", "ff"),
            ("f0", "n:p0 n:p0 t:f1 n:p1", "pp", "ff"),
            // What says nothing faces nothing.
            ("f2", "n:v1 n:p1 n:p2", "vp", "f"),
            ("f1 v1", "t:f2 n:p2 n:p2", "pp", "vf"),
        ] {
            let mut arms = PairedArms::default();
            for one in first.split(' ') {
                arms.add(Arm::Treated, execution(one));
            }
            for one in added.split(' ') {
                let (arm, one) = one.split_once(':').expect("arm and execution");
                arms.add(if arm == "n" { Arm::Control } else { Arm::Treated }, execution(one));
            }
            assert_eq!(
                (letters(&arms, Arm::Control), letters(&arms, Arm::Treated)),
                (control.into(), treated.into()),
                "{added}"
            );
        }
    }

    #[test]
    fn a_start_goes_on_with_a_sitting_only_soon_after_its_last_run() {
        let now: Timestamp = "2026-03-01T12:00:00.5Z".parse().expect("a time");
        for (ended, soon) in [
            ("2026-03-01T12:00:00.5Z", true),
            ("2026-03-01T11:50:01Z", true),
            ("2026-03-01T11:49:59Z", false),
            ("2026-02-01T12:00:00Z", false),
            // A clock that went back says nothing.
            ("2026-03-01T12:00:01Z", false),
        ] {
            assert_eq!(is_soon(ended.parse().expect("a time"), now), soon, "{ended}");
        }
        let at = |time: &str| format!("{:.6}", time.parse::<Timestamp>().expect("a time"));
        assert!(
            at("2026-03-01T12:00:00Z") < at("2026-03-01T12:00:00.1Z"),
            "their texts are in the order of their times"
        );
    }

    #[test]
    fn what_is_left_out_is_told_with_what_came_since() {
        let of = |runs, passed, later_runs, later_passed| OlderControls { runs, passed, later_runs, later_passed };
        assert_eq!(of(0, 0, 3, 3).in_words(), None);
        for (controls, changed) in [(of(6, 6, 2, 2), false), (of(6, 6, 2, 0), true), (of(6, 3, 2, 1), false)] {
            let words = controls.in_words().expect("words");
            assert!(words.contains("passed then") && words.ends_with("in between") == changed, "{words}");
        }
    }
}
