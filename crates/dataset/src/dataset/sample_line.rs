//! A sample as its line in a data set, with what is counted of it: it can be kept, and put into a set later, without the
//! recording that it was made from.

use serde::{Deserialize, Serialize};

use super::{Ground, Sample, SampleKind, Split, Truth};

/// A sample as its line in a data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SampleLine {
    /// Its kind.
    pub kind: SampleKind,
    /// Its part of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// What its label rests on, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ground: Option<Ground>,
    /// The sample as JSON, in one line without its end. Kept beside, not within, what is written of the rest.
    #[serde(skip)]
    pub text: Vec<u8>,
}

impl SampleLine {
    /// The line of a sample.
    ///
    /// # Errors
    /// It cannot be put into words.
    pub fn from_sample(sample: &Sample) -> Result<Self, serde_json::Error> {
        let ground = sample.label.as_ref().map(Truth::ground);
        Ok(Self { kind: sample.kind, split: sample.split, ground, text: serde_json::to_vec(sample)? })
    }
}
