//! What a proof keeps beside its run, so that a later one goes on from it.

use serde::{Deserialize, Serialize};

use crate::proof::{Arm, LeaveOneOut, NeedTerms, ProofSample, Shams};

/// What executions are made of, each as the first 16 hex digits of a blake3: those of another check, program or upstream
/// say nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProofOf {
    /// The command that judges.
    pub check: String,
    /// The program and its arguments.
    pub command: String,
    /// Where live calls go.
    pub upstream: String,
    /// Whether each had neutral changes of its own: earlier versions executed without.
    #[serde(default)]
    pub perturbed: bool,
    /// The user's own neutral sentences; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sentences: String,
}

/// What was executed so far, arm by arm: kept beside the run, so that a later proof goes on from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedProof {
    /// What was executed and how it was judged.
    pub of: ProofOf,
    /// Executions that were begun: one that was ended before its end has a recording too.
    pub begun: u32,
    /// With the injection and without it.
    #[serde(flatten)]
    pub whole: RecordedArms,
    /// Neutral changes of runs without it that failed, executed once more as the injection is.
    #[serde(default, skip_serializing_if = "Shams::is_empty")]
    pub shams: Shams,
    /// For each error of several, in their order: with all and without the one. Earlier versions kept runs without one that were not
    /// made in turn with runs with all: those are not gone on from.
    #[serde(default, with = "without_one")]
    #[schemars(with = "Vec<without_one::ArmsWithoutOne>")]
    pub left_out: Vec<RecordedArms>,
}

impl RecordedProof {
    /// The arms of one question.
    pub(super) fn arms(&mut self, question: ProofQuestion) -> Option<&mut RecordedArms> {
        match question {
            ProofQuestion::Whole => Some(&mut self.whole),
            ProofQuestion::Without(number) => self.left_out.get_mut(number),
        }
    }
}

/// What a proof asks by executing two arms in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofQuestion {
    /// Whether the injection brings the failure about.
    Whole,
    /// Whether the failure needs one of several errors, by its place among them.
    Without(usize),
}

/// The executions of two arms, each in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedArms {
    /// With all that was planted.
    pub treated: Vec<ProofSample>,
    /// Without it, or without one part of it.
    #[serde(rename = "null")]
    pub control: Vec<ProofSample>,
    /// How many executions of each arm that said nothing were made again since, from the first of them.
    #[serde(default, skip_serializing_if = "VoidsMadeAgain::is_empty")]
    pub made_again: VoidsMadeAgain,
}

/// The arms of a question on one error of several, under the names that they have in the file.
mod without_one {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{RecordedArms, VoidsMadeAgain};
    use crate::proof::ProofSample;

    /// What was executed for one of several errors, in turn.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    pub(super) struct ArmsWithoutOne {
        /// Without what one injection did to one agent.
        without: Vec<ProofSample>,
        /// With all.
        with_all: Vec<ProofSample>,
        /// How many executions of each arm that said nothing were made again since, from the first of them.
        #[serde(default, skip_serializing_if = "VoidsMadeAgain::is_empty")]
        made_again: VoidsMadeAgain,
    }

    pub(super) fn serialize<S: Serializer>(all: &[RecordedArms], serializer: S) -> Result<S::Ok, S::Error> {
        let written = all.iter().cloned().map(|RecordedArms { control: without, treated: with_all, made_again }| {
            ArmsWithoutOne { without, with_all, made_again }
        });
        serializer.collect_seq(written)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RecordedArms>, D::Error> {
        let read = Vec::<ArmsWithoutOne>::deserialize(deserializer)?.into_iter();
        let arms = |ArmsWithoutOne { without: control, with_all: treated, made_again }| RecordedArms {
            treated,
            control,
            made_again,
        };
        Ok(read.map(arms).collect())
    }
}

/// How many executions that said nothing were made again, arm by arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VoidsMadeAgain {
    /// With all that was planted.
    pub treated: usize,
    /// Without it, or without one part of it.
    pub control: usize,
}

impl VoidsMadeAgain {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn of_arm(&mut self, arm: Arm) -> &mut usize {
        match arm {
            Arm::Control => &mut self.control,
            Arm::Treated => &mut self.treated,
        }
    }
}

impl RecordedArms {
    /// What counts of them: all but the executions that said nothing and were made again.
    pub(super) fn counted(&self) -> CountedArms {
        let but = |samples: &[ProofSample], mut made_again: usize| {
            let counts = |sample: &&ProofSample| {
                let counts = sample.verdict().is_some() || made_again == 0;
                made_again -= usize::from(!counts);
                counts
            };
            samples.iter().filter(counts).copied().collect()
        };
        CountedArms {
            control: but(&self.control, self.made_again.control),
            treated: but(&self.treated, self.made_again.treated),
        }
    }

    /// How many executions an arm had: the number of its next one.
    pub(super) fn next_number(&self, arm: Arm) -> usize {
        match arm {
            Arm::Control => self.control.len(),
            Arm::Treated => self.treated.len(),
        }
    }

    /// Whether an execution of an arm said nothing and was not made again.
    pub(super) fn has_void(&self, arm: Arm) -> bool {
        let CountedArms { control, treated } = self.counted();
        let counted = if arm == Arm::Control { control } else { treated };
        counted.iter().any(|sample| sample.verdict().is_none())
    }

    /// Adds what an execution says.
    pub(super) fn add(&mut self, arm: Arm, sample: ProofSample) {
        match arm {
            Arm::Control => self.control.push(sample),
            Arm::Treated => self.treated.push(sample),
        }
    }

    /// Adds what an execution says that was made in place of the first that said nothing, which counts no more where this one says
    /// something. It stands behind all others: the pairs that were made before stay as they are.
    pub(super) fn add_again(&mut self, arm: Arm, sample: ProofSample) {
        if sample.verdict().is_some() {
            *self.made_again.of_arm(arm) += 1;
            self.add(arm, sample);
        }
    }
}

/// The executions of two arms that count, each in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountedArms {
    /// Without what was planted, or without one part of it.
    pub(super) control: Vec<ProofSample>,
    /// With all of it.
    pub(super) treated: Vec<ProofSample>,
}

impl CountedArms {
    /// What is asked of one of several errors.
    pub(super) fn without_one(&self, terms: NeedTerms) -> LeaveOneOut<'_> {
        LeaveOneOut { without: &self.control, with_all: &self.treated, terms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Void;

    const VOID: ProofSample = ProofSample::Void(Void::Unanswered);

    #[test]
    fn what_is_made_again_stands_behind_the_pairs_that_were_made() {
        let (pass, fail) = (ProofSample::Passed, ProofSample::Failed);
        let mut arms = RecordedArms {
            treated: vec![fail, VOID, VOID, fail],
            control: vec![pass, pass],
            ..RecordedArms::default()
        };
        arms.add_again(Arm::Treated, pass);
        assert_eq!(arms.counted().treated, [fail, VOID, fail, pass]);
        // What says nothing again changes nothing.
        arms.add_again(Arm::Treated, VOID);
        assert_eq!((arms.counted().treated, arms.has_void(Arm::Treated)), (vec![fail, VOID, fail, pass], true));
        arms.add_again(Arm::Treated, fail);
        assert_eq!((arms.counted().treated, arms.has_void(Arm::Treated)), (vec![fail, fail, pass, fail], false));
        assert_eq!((arms.next_number(Arm::Treated), arms.next_number(Arm::Control)), (6, 2));
        // A later execution that says nothing counts.
        arms.add(Arm::Treated, VOID);
        assert!(arms.has_void(Arm::Treated) && !arms.has_void(Arm::Control));
        let read: RecordedArms = serde_json::from_value(serde_json::to_value(&arms).expect("written")).expect("read");
        assert_eq!(read, arms);
    }

    #[test]
    fn what_earlier_versions_kept_is_read() {
        let text = r#"{"of": {"check": "a", "command": "b", "upstream": "c"}, "begun": 3, "treated": ["failed"], "null": ["passed"],
            "left_out": [{"without": ["passed"], "with_all": ["failed", {"void": "unanswered"}]}]}"#;
        let read: RecordedProof = serde_json::from_str(text).expect("read");
        assert_eq!(read.whole.control, [ProofSample::Passed]);
        assert_eq!(read.left_out[0].counted().treated, [ProofSample::Failed, VOID]);
        let again: RecordedProof = serde_json::from_value(serde_json::to_value(&read).expect("written")).expect("read");
        assert_eq!(again, read);
    }
}
