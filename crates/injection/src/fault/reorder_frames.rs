//! `reorder_frames`: frames overtake each other.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Swaps two consecutive frames of a stream.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.reorder_frames = { frame = 3 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "reorder_frames"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderFrames {
    /// First of the two frames, 0-based.
    pub frame: u32,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for ReorderFrames {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let first = reply.span_of_frames(self.frame, 1)?;
        let second = reply.span_of_frames(self.frame.saturating_add(1), 1)?;
        let swapped = [reply.slice(&second), reply.slice(&(first.end..second.start)), reply.slice(&first)].concat();
        Ok(reply.replaced(&(first.start..second.end), &swapped))
    }

    fn explain(&self) -> String {
        format!("lets frame {} overtake the one before it, {}", self.frame.saturating_add(1), self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn words_change_places() {
        let fault = ReorderFrames { frame: 5, attempts: Attempts::All };
        for (surface, streamed, body, changed) in reshaped(&fault, Some("one two three four five six seven"), None) {
            assert_eq!(changed.is_ok(), streamed, "{surface:?}");
            if let Ok(changed) = changed {
                assert_eq!(changed.len(), body.len());
                let (before, after) = (reply_content(surface, streamed, &body).0, reply_content(surface, streamed, &changed).0);
                let sorted = |text: &str| {
                    let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
                    words.sort();
                    words
                };
                assert_eq!(sorted(&before), sorted(&after), "{surface:?}");
            }
        }
    }
}
