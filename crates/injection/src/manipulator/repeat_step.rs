//! `repeat_step`: the agent says again what was already said.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, say};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Replaces the answer by an earlier one, of the same agent or another.
///
/// It is the latest earlier answer that has text and differs from this one in more than blanks. Tool calls of the answer are lost.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.3"
/// when.call = 1
/// manipulator.repeat_step = {}
///
/// [[check]]
/// agent = "solver"
/// call = 1
/// messages = ["user: And the second part?"]
/// earlier = ["solver: The first part is 12."]
/// reply = "The second part is 30."
/// expect = "The first part is 12."
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatStep {
    /// Agent of the earlier answer. Default: the same.
    pub from: Option<String>,
}

impl Manipulator for RepeatStep {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let now = answer.message.text();
        let from = self.from.as_deref().unwrap_or(context.agent);
        let mut earlier = context.earlier.iter().rev().filter(|(agent, _)| agent == from).map(|(_, text)| text);
        let Some(text) = earlier.find(|text| !text.trim().is_empty() && !has_same_words(text, &now)) else {
            return not_applicable(format!("there is no earlier, different answer of `{from}` to repeat"));
        };
        say(answer, text);
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match &self.from {
            Some(from) if from.trim().is_empty() => Err("`from` is empty: expected an agent's name".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        match &self.from {
            Some(from) => format!("replaces the answer by the latest earlier one of `{from}`"),
            None => "replaces the answer by the agent's own latest earlier one".to_owned(),
        }
    }
}

/// Whether two texts differ in blanks at most.
fn has_same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_reply;
    use crate::manipulator::testing::{call, context, reply};
    use crate::surface::{Conversation, RequiredFormat, Part};

    fn check(from: Option<&str>, text: &str, earlier: &[(&str, &str)], format: RequiredFormat, expected: Option<&str>) {
        let conversation = Conversation { format, ..Conversation::default() };
        let earlier: Vec<_> = earlier.iter().map(|(agent, text)| ((*agent).to_owned(), (*text).to_owned())).collect();
        let context = Context { earlier: &earlier, ..context(&conversation) };
        let mut before = reply(text);
        before.answers.first_mut().expect("one").message.tool_calls.push(call("f", "{}"));
        let edited = edited_reply(&RepeatStep { from: from.map(str::to_owned) }, &before, None, &context);
        let edited = edited.ok().map(|mut reply| reply.answers.remove(0).message);
        assert_eq!(edited.as_ref().map(crate::surface::Message::text).as_deref(), expected, "{text}");
        assert!(edited.is_none_or(|message| message.tool_calls.is_empty()));
    }

    #[test]
    fn repeats_the_latest_different_answer() {
        let earlier = [("solver", "é1"), ("planner", "plan"), ("solver", "2"), ("solver", " ")];
        check(None, "3", &earlier, RequiredFormat::Text, Some("2"));
        check(None, "2", &earlier, RequiredFormat::Text, Some("é1"));
        check(Some("planner"), "3", &earlier, RequiredFormat::Text, Some("plan"));
        check(Some("judge"), "3", &earlier, RequiredFormat::Text, None);
        check(None, "", &earlier, RequiredFormat::Text, Some("2"));
        // Other blanks make no other answer: executions of a proof change them, and must plant the same error.
        let spaced = [("planner", "1. Add both."), ("planner", "I  keep\n my plan. ")];
        check(Some("planner"), "I keep my plan.", &spaced, RequiredFormat::Text, Some("1. Add both."));
        check(None, "3", &[], RequiredFormat::Text, None);
        check(None, "{\"a\": 1}", &[("solver", "{\"a\": 0}")], RequiredFormat::JsonObject, Some("{\"a\": 0}"));
        check(None, "{\"a\": 1}", &[("solver", "prose")], RequiredFormat::JsonObject, None);
    }

    #[test]
    fn content_parts_hold_the_text_once() {
        let earlier = [("solver".to_owned(), "old".to_owned())];
        let conversation = Conversation::default();
        let mut answer = reply("a").answers.remove(0);
        answer.message.parts.push(Part::Text("b".to_owned()));
        let context = Context { earlier: &earlier, ..context(&conversation) };
        RepeatStep::default().edit_answer(&mut answer, &context).expect("applies");
        assert_eq!(answer.message.parts, [Part::Text("old".to_owned()), Part::Text(String::new())]);
    }
}
