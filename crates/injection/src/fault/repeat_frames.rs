//! `repeat_frames`: frames come twice.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Sends frames of a stream twice.
///
/// A client that adds up what it gets says those words twice.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.repeat_frames = { frame = 3 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "repeat_frames"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatFrames {
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

impl Fault for RepeatFrames {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let span = reply.span_of_frames(self.frame, self.count)?;
        Ok(reply.replaced(&(span.end..span.end), reply.slice(&span)))
    }

    fn explain(&self) -> String {
        format!("sends {} frame(s) from frame {} twice, {}", self.count, self.frame, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn words_are_said_twice() {
        let fault = RepeatFrames { frame: 5, count: 1, attempts: Attempts::All };
        for (surface, streamed, _, changed) in reshaped(&fault, Some("one two three four five six"), None) {
            match (streamed, changed) {
                (true, Ok(changed)) => {
                    let text = reply_content(surface, streamed, &changed).0;
                    assert_eq!(text.split(' ').count(), 7, "{surface:?}: {text}");
                }
                (false, Err(why)) => assert_eq!(why, "the reply is no event stream"),
                other => panic!("{surface:?}: {other:?}"),
            }
        }
    }
}
