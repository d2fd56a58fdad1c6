//! `bad_utf8`: bytes that are no text.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Puts an invalid UTF-8 byte into a frame of a stream, or into a whole reply.
///
/// SDKs raise their decoder's error, or show a replacement character.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.bad_utf8 = { frame = 2 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "bad_utf8"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BadUtf8 {
    /// Index of the frame in a stream, 0-based.
    #[serde(default)]
    pub frame: u32,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for BadUtf8 {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let json = if reply.streamed { reply.json_of_frame(self.frame)? } else { 0..reply.body.len() };
        let quote = reply.slice(&json).iter().rposition(|byte| *byte == b'"').ok_or("the reply has no text")?;
        let at = json.start + quote;
        Ok(reply.replaced(&(at..at), b"\xc3"))
    }

    fn explain(&self) -> String {
        format!("puts a byte that is no UTF-8 into frame {}, or into a whole reply, {}", self.frame, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::reshaped;

    #[test]
    fn the_bytes_are_no_text() {
        let fault = BadUtf8 { frame: 1, attempts: Attempts::All };
        for (surface, _, body, changed) in reshaped(&fault, Some("It is 42."), None) {
            let changed = changed.expect("changed");
            assert!(std::str::from_utf8(&changed).is_err() && changed.len() == body.len() + 1, "{surface:?}");
        }
    }
}
