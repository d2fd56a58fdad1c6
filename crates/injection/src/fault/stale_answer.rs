//! `stale_answer`: an answer of an earlier call, as a cache gives it.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};
use crate::surface::Answer;

/// Replaces the answer by an earlier one of the same agent, else of another.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.stale_answer = { attempts = "all" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "stale_answer"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaleAnswer {
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for StaleAnswer {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let own = reply.earlier.iter().rev().find(|(agent, _)| agent == reply.agent);
        let (_, text) = own.or(reply.earlier.last()).ok_or("nothing was answered before")?;
        reply.edited(|answer| {
            answer.message.set_text(text.clone());
            answer.message.tool_calls.clear();
            answer.finish_reason = Some(Answer::STOPPED.to_owned());
            Ok(())
        })
    }

    fn rewords(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        format!("gives an earlier answer once more, {}", self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn the_earlier_answer_comes_again() {
        let fault = StaleAnswer { attempts: Attempts::All };
        for call in [None, Some(("add", "{}"))] {
            for (surface, streamed, _, changed) in reshaped(&fault, Some("It is 42."), call) {
                let seen = reply_content(surface, streamed, &changed.expect("changed"));
                assert_eq!(seen, ("An earlier answer.".to_owned(), Vec::new(), Some("stop".to_owned())), "{surface:?}");
            }
        }
    }
}
