//! `error_event`: a stream that fails under way.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};
use crate::surface::{answering_as, is_of_server};

/// Ends a stream with the provider's error event after some frames, or replaces a whole reply by its error; the status
/// stays.
///
/// The head has said 200 by then, so no SDK tries again by itself.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.error_event = { after_frames = 3, code = "rate_limit_exceeded" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "error_event"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorEvent {
    /// Frames of the stream before the event.
    #[serde(default)]
    pub after_frames: u32,
    /// HTTP status that selects the provider's error.
    #[serde(default = "overloaded")]
    pub status: u16,
    /// Error code, instead of the provider's.
    pub code: Option<String>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn overloaded() -> u16 {
    503
}

impl Fault for ErrorEvent {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let mut error = reply.surface.refusal(self.status, self.code.as_deref());
        error.code = self.code.as_deref().or(error.code);
        let failed = if reply.streamed {
            let start = match self.after_frames {
                0 => 0,
                frames => reply.span_of_frames(frames - 1, 1)?.end,
            };
            reply.replaced(&(start..reply.body.len()), &reply.surface.error_frame(&error))
        } else {
            reply.surface.error_body(&error)
        };
        let is_of_tools = is_of_server(reply.surface.name());
        Ok(if is_of_tools { answering_as(reply.body, &failed, reply.streamed) } else { failed })
    }

    fn explain(&self) -> String {
        format!("ends a stream with an error event after {} frames, {}", self.after_frames, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::reshaped;

    #[test]
    fn the_error_is_the_providers_own() {
        let fault: ErrorEvent = toml::from_str("after_frames = 2").expect("reads");
        for (surface, streamed, body, changed) in reshaped(&fault, Some("It is 42."), None) {
            let changed = String::from_utf8(changed.expect("changed").to_vec()).expect("utf-8");
            let shown = match surface.name() {
                "anthropic_messages" => "overloaded_error",
                "gemini_generate" => "UNAVAILABLE",
                "gemini_interactions" => "unavailable",
                _ => "currently overloaded",
            };
            assert!(changed.contains(shown), "{surface:?}: {changed}");
            assert!(!streamed || body.starts_with(&changed.as_bytes()[..20]), "{surface:?}: {changed}");
            assert!(!streamed || surface.name() != "anthropic_messages" || changed.contains("event: error\n"));
        }
    }
}
