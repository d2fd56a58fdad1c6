//! `wrong_finish`: the reply ended for another reason than it says.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};
use crate::surface::Answer;

/// Changes the finish reason of the answer, not its text.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.wrong_finish = { reason = "length" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "wrong_finish"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongFinish {
    /// New finish reason.
    pub reason: FinishReason,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

/// Why an answer ended, in the words of chat completions; other APIs say it in their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// By itself.
    Stop,
    /// At its longest.
    Length,
    /// To wait for tools.
    ToolCalls,
    /// It was filtered.
    ContentFilter,
}

impl FinishReason {
    fn word(self) -> &'static str {
        match self {
            FinishReason::Stop => Answer::STOPPED,
            FinishReason::Length => Answer::CUT,
            FinishReason::ToolCalls => Answer::CALLS,
            FinishReason::ContentFilter => Answer::FILTERED,
        }
    }
}

impl Fault for WrongFinish {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        reply.edited(|answer| {
            answer.finish_reason = Some(self.reason.word().to_owned());
            Ok(())
        })
    }

    fn rewords(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        format!("says that the answer ended for `{}`, {}", self.reason.word(), self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn the_reason_changes_and_the_text_stays() {
        let fault = WrongFinish { reason: FinishReason::Length, attempts: Attempts::All };
        for (surface, streamed, _, changed) in reshaped(&fault, Some("It is 42."), None) {
            let (text, _, finish) = reply_content(surface, streamed, &changed.expect("changed"));
            assert_eq!((text.as_str(), finish.as_deref()), ("It is 42.", Some("length")), "{surface:?} {streamed}");
        }
    }
}
