//! `malformed_chunk`: JSON that breaks off.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Halves the JSON of a frame of a stream, or of a whole reply; the rest is intact.
///
/// SDKs raise their JSON parser's error, which agent programs seldom expect.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.malformed_chunk = { frame = 2 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "malformed_chunk"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MalformedChunk {
    /// Index of the frame in a stream, 0-based.
    #[serde(default)]
    pub frame: u32,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for MalformedChunk {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let json = if reply.streamed { reply.json_of_frame(self.frame)? } else { 0..reply.body.len() };
        let half = json.start + json.len() / 2;
        // A character is not cut: that is another fault.
        let at = (half..json.end).find(|at| reply.slice(&(*at..*at + 1)).first().is_some_and(|byte| byte & 0xc0 != 0x80));
        Ok(reply.replaced(&(at.unwrap_or(half)..json.end), b""))
    }

    fn explain(&self) -> String {
        format!("cuts the JSON of frame {} in half, or of a whole reply, {}", self.frame, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::reshaped;

    #[test]
    fn one_frame_breaks_and_the_others_stay() {
        let fault = MalformedChunk { frame: 1, attempts: Attempts::All };
        for (surface, streamed, body, changed) in reshaped(&fault, Some("It is 42 after all."), None) {
            let changed = changed.expect("changed");
            let read = crate::surface::door::reply(surface, &changed, streamed);
            assert!(read.is_err(), "{surface:?} {streamed}");
            assert!(changed.len() < body.len() && (!streamed || changed.ends_with(&body[body.len() - 20..])));
        }
        let far = MalformedChunk { frame: 999, attempts: Attempts::All };
        assert!(reshaped(&far, Some("x"), None).iter().all(|(_, streamed, _, changed)| changed.is_err() == *streamed));
    }
}
