//! What of the draw tells the failure mode without a word being read: how many errors were planted in a run, in which agent, at
//! which end of the log.

use std::collections::BTreeMap;

use crate::dataset::{Sample, SampleKind};

/// Labels below which nothing is said.
const FEWEST: u32 = 40;
/// How many more of the labels a guess has to get right, as a share.
const GAIN: f64 = 0.2;
/// How many standard deviations of a guess at random that has to be.
const DEVIATIONS: f64 = 4.0;

/// What a campaign decides of an error before a word of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DesignAxis {
    Count,
    Agent,
    Place,
}

/// Labels by what was decided of them and by their mode.
#[derive(Debug, Default)]
pub(super) struct PlantedModes(BTreeMap<DesignAxis, BTreeMap<String, BTreeMap<String, u32>>>);

impl PlantedModes {
    pub(super) fn add(&mut self, sample: &Sample) {
        let Some(label) = sample.label.as_ref().filter(|_| sample.kind == SampleKind::Failure) else { return };
        let last = sample.steps.iter().map(|step| step.step).max();
        let count = label.planted().count();
        for error in label.errors.iter().filter(|error| error.planted_by().is_some()) {
            let Some(mode) = &error.failure_mode else { continue };
            let place = match error.step {
                Some(0) => "the first step",
                step if step == last => "the last step",
                _ => "a step between",
            };
            let decided = [
                (DesignAxis::Count, format!("{count} of a run")),
                (DesignAxis::Agent, format!("`{}`", error.agent)),
                (DesignAxis::Place, place.to_owned()),
            ];
            for (axis, value) in decided {
                let modes = self.0.entry(axis).or_default().entry(value).or_default();
                *modes.entry(mode.code.clone()).or_default() += 1;
            }
        }
    }

    /// What tells the mode, in words.
    pub(super) fn findings(&self) -> Vec<String> {
        self.0.iter().filter_map(|(axis, values)| axis_finding(*axis, values)).collect()
    }
}

fn axis_finding(axis: DesignAxis, values: &BTreeMap<String, BTreeMap<String, u32>>) -> Option<String> {
    let mut all: BTreeMap<String, u32> = BTreeMap::new();
    for (mode, count) in values.values().flatten() {
        *all.entry(mode.clone()).or_default() += count;
    }
    let labels: u32 = all.values().sum();
    if labels < FEWEST {
        return None;
    }
    let share = |count: u32| f64::from(count) / f64::from(labels);
    let (guessed, without) = (values.values().map(guessed).sum(), guessed(&all));
    let chance = share(without).clamp(share(1), 1.0 - share(1));
    let spread = (chance * (1.0 - chance) / f64::from(labels)).sqrt();
    let gain = share(guessed) - chance;
    if gain < GAIN || gain < DEVIATIONS * spread {
        return None;
    }
    let what = match axis {
        DesignAxis::Count => "how many errors were planted in a run",
        DesignAxis::Agent => "the agent",
        DesignAxis::Place => "where in the log the error is",
    };
    let most = |(value, modes): (&String, &BTreeMap<String, u32>)| {
        let mode = modes.iter().max_by_key(|(mode, count)| (**count, std::cmp::Reverse(*mode)))?;
        Some(format!("{} at {value}", mode.0))
    };
    let most: Vec<String> = values.iter().filter_map(most).take(3).collect();
    Some(format!(
        "{what} tells the failure mode of {labels} labels: a guess by it is right in {:.0} %, without it in {:.0} % ({})",
        100.0 * share(guessed),
        100.0 * share(without),
        most.join(", ")
    ))
}

/// How many labels the most frequent mode of all others gets right.
fn guessed(modes: &BTreeMap<String, u32>) -> u32 {
    let right = |(mode, count): (&String, &u32)| {
        let others = modes.iter().filter(|(other, _)| *other != mode);
        // The label itself is none of the others; of equal modes the first is guessed.
        let is_most = others.into_iter().all(|(other, of_other)| (count - 1, other) >= (*of_other, mode));
        if is_most { *count } else { 0 }
    };
    modes.iter().map(right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(counts: &[(&str, u32)]) -> BTreeMap<String, u32> {
        counts.iter().map(|(mode, count)| ((*mode).to_owned(), *count)).collect()
    }

    #[test]
    fn the_label_itself_does_not_help_to_guess_it() {
        for (counts, right) in [
            (&[("a", 5)][..], 5),
            (&[("a", 5), ("b", 3)], 5),
            (&[("a", 1), ("b", 1)], 0),
            (&[("a", 3), ("b", 3)], 0),
            (&[("a", 4), ("b", 3)], 4),
        ] {
            assert_eq!(guessed(&modes(counts)), right, "{counts:?}");
        }
    }

    #[test]
    fn a_draw_without_axes_in_step_tells_nothing() {
        let even = modes(&[("a", 20), ("b", 20), ("c", 20)]);
        let values: BTreeMap<_, _> = ["1 of a run", "2 of a run"].map(|value| (value.to_owned(), even.clone())).into();
        assert_eq!(axis_finding(DesignAxis::Count, &values), None);
        let step = [("1 of a run", modes(&[("a", 30)])), ("2 of a run", modes(&[("b", 30)]))];
        let step: BTreeMap<_, _> = step.map(|(value, modes)| (value.to_owned(), modes)).into();
        let said = axis_finding(DesignAxis::Count, &step).expect("told");
        let few: BTreeMap<_, _> = [("1 of a run".to_owned(), modes(&[("a", 1)]))].into();
        assert_eq!(axis_finding(DesignAxis::Count, &few), None, "one label says nothing");
        assert!(said.contains("right in 100 %") && said.contains("a at 1 of a run, b at 2 of a run"), "{said}");
    }
}
