//! Whether two runs are one as data: the same words at each step, and the same done to them.

use super::{LabelledError, Sample, SampleStep, Truth};
use crate::trajectory::{AgentName, Side, StepIndex};

/// Where an edit is, what was there before it, and after.
type EditPlace<'a> = (&'a AgentName, u32, Option<StepIndex>, Option<Side>, &'a str, &'a str);

impl Sample {
    /// Whether another run holds the same: two plans may do the same to a task, under one mode or several. Ids, and which
    /// injection of its plan did it, do not count.
    pub fn is_same_run(&self, other: &Sample) -> bool {
        let words = |sample: &Sample, step: &SampleStep| -> Vec<String> {
            let input = sample.input(step.step).unwrap_or_default();
            input.into_iter().chain(&step.output).flat_map(super::SampleMessage::texts).map(str::to_owned).collect()
        };
        let same = |(one, other_step): (&SampleStep, &SampleStep)| {
            one.agent == other_step.agent && words(self, one) == words(other, other_step)
        };
        (&self.kind, &self.system, &self.task.id) == (&other.kind, &other.system, &other.task.id)
            && self.steps.len() == other.steps.len()
            && planted(self) == planted(other)
            && self.steps.iter().zip(&other.steps).all(same)
    }
}

fn planted(sample: &Sample) -> Vec<EditPlace<'_>> {
    let mut planted: Vec<EditPlace<'_>> = sample.label.iter().flat_map(Truth::planted).map(place).collect();
    planted.sort();
    planted
}

fn place(error: &LabelledError) -> EditPlace<'_> {
    (&error.agent, error.instance, error.step, error.side, &error.before, &error.after)
}

#[cfg(test)]
mod tests {
    use crate::dataset::samples::{benign, message};

    #[test]
    fn ids_modes_and_numbers_of_injections_do_not_count_and_words_and_edits_do() {
        type Change = fn(&mut crate::dataset::Sample);
        let cases: [(&str, bool, Change); 6] = [
            ("another id", true, |sample| sample.id = "c-other".to_owned()),
            ("another injection", true, |sample| sample.label.as_mut().expect("a label").errors[0].injection = Some(3)),
            ("another mode", true, |sample| sample.label.as_mut().expect("a label").errors[0].failure_mode = None),
            ("another reply", false, |sample| sample.steps[2].output = Some(message("assistant", "No."))),
            ("another edit", false, |sample| sample.label.as_mut().expect("a label").errors[0].after = "x".to_owned()),
            ("a step less", false, |sample| drop(sample.steps.pop())),
        ];
        for (what, same, change) in cases {
            let mut other = benign(3);
            change(&mut other);
            assert_eq!(benign(3).is_same_run(&other), same, "{what}");
        }
    }
}
