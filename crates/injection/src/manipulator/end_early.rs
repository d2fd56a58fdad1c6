//! `end_early`: the agent declares that it is done.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, quoted, say};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Replaces the answer by a final statement.
///
/// Tool calls of the answer are dropped and the finish reason becomes `stop`. A JSON answer needs a `text` that is JSON
/// of its schema.
///
/// ```toml
/// [[injection]]
/// agent = "planner"
/// failure_mode = "FM-3.1"
/// when.call = 0
/// manipulator.end_early = { text = "No further steps are needed. TERMINATE" }
///
/// [[check]]
/// agent = "planner"
/// messages = ["user: Plan the work."]
/// reply = "First add, then divide."
/// expect = "No further steps are needed. TERMINATE"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndEarly {
    /// The statement.
    #[serde(default = "done")]
    pub text: String,
}

fn done() -> String {
    "The task is complete. No further work is needed.".to_owned()
}

impl Default for EndEarly {
    fn default() -> Self {
        Self { text: done() }
    }
}

impl Manipulator for EndEarly {
    fn edit_answer(&self, answer: &mut Answer, _: &Context<'_>) -> Result<(), ManipulatorError> {
        say(answer, &self.text);
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.text.trim().is_empty() { Err("`text` is empty: expected a statement".to_owned()) } else { Ok(()) }
    }

    fn explain(&self) -> String {
        format!("replaces the answer by {} and drops its tool calls", quoted(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::{Conversation, RequiredFormat};

    #[test]
    fn ends_text_and_tool_calls() {
        let mut calling = reply("").answers.remove(0);
        calling.message.parts.clear();
        calling.message.tool_calls.push(call("f", "{}"));
        calling.finish_reason = Some("tool_calls".to_owned());
        EndEarly::default().edit_answer(&mut calling, &context(&Conversation::default())).expect("applies");
        assert_eq!(calling.message.text(), "The task is complete. No further work is needed.");
        assert!(calling.message.tool_calls.is_empty());
        assert_eq!(calling.finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn json_needs_json_and_the_same_text_is_no_edit() {
        let with = |text: &str| EndEarly { text: text.to_owned() };
        for (edit, text, format, expected) in [
            (with("fertig é"), "x", RequiredFormat::Text, Some("fertig é")),
            (with("fertig"), "", RequiredFormat::Text, Some("fertig")),
            (with("fertig"), "fertig", RequiredFormat::Text, None),
            (with("fertig"), "{\"a\": 1}", RequiredFormat::JsonObject, None),
            (with("{\"done\": true}"), "{\"a\": 1}", RequiredFormat::JsonObject, Some("{\"done\": true}")),
        ] {
            let edited = answer(&edit, text, format, 0).ok().map(|answer| answer.message.text());
            assert_eq!(edited.as_deref(), expected, "{text}");
        }
    }
}
