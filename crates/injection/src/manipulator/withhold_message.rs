//! `withhold_message`: what another agent said does not arrive.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, Message, Role};
use crate::trajectory::Side;

/// Shortest answer that is looked for inside a longer text; shorter ones occur by chance.
const QUOTE_MIN: usize = 16;
/// What stands in for a withheld tool result, which cannot be left out.
const EMPTY_RESULT: &str = "No output.";

/// Removes another agent's messages from a request.
///
/// A message is that agent's if it bears its name, or if its text is an earlier answer of that agent. Where such an
/// answer is quoted inside a longer text, only the quote goes.
///
/// ```toml
/// [[injection]]
/// agent = "critic"
/// failure_mode = "FM-2.5"
/// when.call = 0
/// manipulator.withhold_message = { from = "solver" }
///
/// [[check]]
/// agent = "critic"
/// messages = ["system: judge", "user(solver): It is 12.", "user: Your verdict?"]
/// expect = ["system: judge", "user: Your verdict?"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithholdMessage {
    /// The other agent.
    pub from: String,
}

impl Manipulator for WithholdMessage {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let said: Vec<&str> =
            context.earlier.iter().filter(|(agent, _)| *agent == self.from).map(|(_, text)| text.trim()).collect();
        let hit = |message: &Message| {
            let text = message.text();
            let speaks = message.role != Role::System && message.role != Role::Developer;
            let its_name = message.name.as_deref() == Some(self.from.as_str());
            speaks && (its_name || (!text.trim().is_empty() && said.contains(&text.trim())))
        };
        let orphans: Vec<String> = conversation
            .messages
            .iter()
            .filter(|message| hit(message))
            .flat_map(|message| message.tool_calls.iter().map(|call| call.id.clone()))
            .collect();
        let before = conversation.clone();
        conversation.messages.retain_mut(|message| {
            if message.answers_call.as_ref().is_some_and(|id| orphans.contains(id)) {
                return false;
            }
            if !hit(message) {
                cut_quotes(message, &said);
                return true;
            }
            if message.role == Role::Tool {
                message.set_text(EMPTY_RESULT);
            }
            message.role == Role::Tool
        });
        let answerable = |message: &Message| matches!(message.role, Role::User | Role::Tool | Role::Assistant);
        if *conversation == before {
            not_applicable(format!("nothing that `{}` said is in the request", self.from))
        } else if !conversation.messages.iter().any(answerable) {
            not_applicable(format!("without the words of `{}` there is nothing to answer", self.from))
        } else {
            Ok(())
        }
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.from.trim().is_empty() { Err("`from` is empty: expected an agent's name".to_owned()) } else { Ok(()) }
    }

    fn explain(&self) -> String {
        format!("takes out what `{}` said", self.from)
    }
}

fn cut_quotes(message: &mut Message, said: &[&str]) {
    for text in message.texts_mut() {
        for quote in said.iter().filter(|quote| quote.chars().count() >= QUOTE_MIN) {
            if text.contains(quote) {
                *text = text.replace(quote, "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{context, edit, request};

    #[test]
    fn finds_words_by_name_by_text_and_by_quote() {
        let from_solver = WithholdMessage { from: "solver".to_owned() };
        let earlier = [("planner", "Add both."), ("solver", "The sum is 12, so 12."), ("solver", "")];
        for (messages, expected) in [
            ("user: Q|user: The sum is 12, so 12. |user: And?", Some("user: Q|user: And?")),
            ("user: Q: Add both.\nA: The sum is 12, so 12.\nOk?", Some("user: Q: Add both.\nA: \nOk?")),
            ("user: Q|assistant: calls ask|tool: ask= The sum is 12, so 12.", Some("user: Q|assistant: calls ask|tool: ask= No output.")),
            ("user: Add both.|assistant: é", None),
            ("system: s|user: The sum is 12, so 12.", None),
            ("", None),
        ] {
            assert_eq!(edit(&from_solver, messages, &earlier).ok().as_deref(), expected, "{messages}");
        }
    }

    #[test]
    fn a_withheld_tool_call_takes_its_result_along() {
        let mut conversation = request("user: Q|assistant: calls f|tool: f= 1|user: go on");
        let before = conversation.clone();
        conversation.messages.get_mut(1).expect("the call").name = Some("solver".to_owned());
        let withhold = WithholdMessage { from: "solver".to_owned() };
        withhold.edit_request(&mut conversation, &context(&before)).expect("applies");
        assert_eq!(crate::manipulator::testing::lines(&conversation), "user: Q|user: go on");
    }
}
