//! `empty`: the agent says nothing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, say};
use crate::surface::Answer;

/// Empties the answer.
///
/// Tool calls are dropped too, unless `keep_calls`; the finish reason is then that of an answer that ended by itself.
/// An answer that had to be JSON is empty all the same.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.4"
/// when.call = 0
/// manipulator.empty = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// reply = "42"
/// expect = ""
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {
    /// Whether tool calls are kept.
    #[serde(default)]
    pub keep_calls: bool,
}

impl Manipulator for Empty {
    fn edit_answer(&self, answer: &mut Answer, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let has_text = !answer.message.text().is_empty();
        if !has_text && (self.keep_calls || answer.message.tool_calls.is_empty()) {
            return not_applicable("the answer is empty already");
        }
        if self.keep_calls {
            answer.message.set_text("");
        } else {
            say(answer, "");
        }
        Ok(())
    }

    fn breaks_shape(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        let calls = if self.keep_calls { "" } else { " and drops its tool calls" };
        format!("empties the answer{calls}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::{Conversation, RequiredFormat};

    #[test]
    fn nothing_is_left() {
        for (text, format) in [("42 é", RequiredFormat::Text), ("{\"a\": 1}", RequiredFormat::JsonObject)] {
            assert_eq!(answer(&Empty::default(), text, format, 0).expect("applies").message.text(), "");
        }
        assert!(answer(&Empty::default(), "", RequiredFormat::Text, 0).is_err());
        for keep_calls in [false, true] {
            let mut calling = reply("I add.").answers.remove(0);
            calling.message.tool_calls.push(call("f", "{}"));
            Empty { keep_calls }.edit_answer(&mut calling, &context(&Conversation::default())).expect("applies");
            assert_eq!((calling.message.text().as_str(), calling.message.tool_calls.len()), ("", usize::from(keep_calls)));
        }
    }
}
