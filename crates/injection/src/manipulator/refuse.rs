//! `refuse`: the agent declines.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, quoted, say};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Replaces the answer by a refusal.
///
/// Tool calls of the answer are dropped. An answer that had to be JSON is refused in words all the same, as models do.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.2"
/// when.call = 0
/// manipulator.refuse = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: What is 12 + 30?"]
/// reply = "42"
/// expect = "I'm sorry, but I can't help with that."
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refuse {
    /// Text of the refusal.
    #[serde(default = "sorry")]
    pub text: String,
}

fn sorry() -> String {
    "I'm sorry, but I can't help with that.".to_owned()
}

impl Default for Refuse {
    fn default() -> Self {
        Self { text: sorry() }
    }
}

impl Manipulator for Refuse {
    fn edit_answer(&self, answer: &mut Answer, _: &Context<'_>) -> Result<(), ManipulatorError> {
        say(answer, &self.text);
        Ok(())
    }

    fn breaks_shape(&self) -> bool {
        true
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.text.trim().is_empty() { Err("`text` is empty: expected a refusal".to_owned()) } else { Ok(()) }
    }

    fn explain(&self) -> String {
        format!("replaces the answer by the refusal {}", quoted(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::{Conversation, RequiredFormat};

    #[test]
    fn it_refuses_whatever_was_asked() {
        for (text, format) in [("42", RequiredFormat::Text), ("{\"a\": 1}", RequiredFormat::JsonObject), ("", RequiredFormat::Text)] {
            let refused = answer(&Refuse::default(), text, format, 0).expect("applies");
            assert_eq!(refused.message.text(), sorry());
        }
        let mut calling = reply("").answers.remove(0);
        calling.message.tool_calls.push(call("f", "{}"));
        Refuse::default().edit_answer(&mut calling, &context(&Conversation::default())).expect("applies");
        assert!(calling.message.tool_calls.is_empty() && calling.finish_reason.as_deref() == Some("stop"));
        assert!(answer(&Refuse::default(), &sorry(), RequiredFormat::Text, 0).is_err(), "nothing would change");
    }
}
