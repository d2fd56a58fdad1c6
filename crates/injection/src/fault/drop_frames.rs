//! `drop_frames`: frames are lost.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Omits frames of a stream.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.drop_frames = { frame = 3, count = 2 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "drop_frames"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropFrames {
    /// First of these frames, 0-based.
    pub frame: u32,
    /// Number of frames, at least 1.
    #[serde(default = "one")]
    pub count: u32,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn one() -> u32 {
    1
}

impl Fault for DropFrames {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let span = reply.span_of_frames(self.frame, self.count)?;
        Ok(reply.replaced(&span, b""))
    }

    fn explain(&self) -> String {
        format!("leaves {} frame(s) from frame {} out, {}", self.count, self.frame, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn words_are_lost() {
        let fault = DropFrames { frame: 4, count: 2, attempts: Attempts::All };
        for (surface, streamed, _, changed) in reshaped(&fault, Some("one two three four five six"), None) {
            assert_eq!(changed.is_ok(), streamed, "{surface:?}");
            if let Ok(changed) = changed {
                let text = reply_content(surface, streamed, &changed).0;
                assert!(text.split(' ').count() < 6, "{surface:?}: {text}");
            }
        }
    }
}
