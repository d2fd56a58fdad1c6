//! `rename_tool`: a tool goes by another name.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, ToolChoice};
use crate::trajectory::Side;

/// Offers a tool under another name, so that the agent calls one that its program does not know.
///
/// Calls of the past keep the name that they were made by.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.2"
/// when.call = 0
/// manipulator.rename_tool = { tool = "calculator", to = "calculate" }
///
/// [[check]]
/// agent = "solver"
/// tools = ["calculator", "search"]
/// messages = ["user: What is 12 + 30?"]
/// expect_tools = ["calculate", "search"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameTool {
    /// Tool.
    pub tool: String,
    /// New name.
    pub to: String,
}

impl Manipulator for RenameTool {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        if conversation.tools.iter().any(|tool| tool.name == self.to) {
            return not_applicable(format!("a tool `{}` is on offer already", self.to));
        }
        let Some(tool) = conversation.tools.iter_mut().find(|tool| tool.name == self.tool) else {
            return not_applicable(format!("no tool `{}` is on offer", self.tool));
        };
        tool.name.clone_from(&self.to);
        if conversation.tool_choice == ToolChoice::Named(self.tool.clone()) {
            conversation.tool_choice = ToolChoice::Named(self.to.clone());
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        let legal = |name: &str| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        if self.tool == self.to {
            return Err("`tool` and `to` are equal".to_owned());
        }
        if legal(&self.to) {
            return Ok(());
        }
        Err(format!("`{}` is not a tool's name: expected 1 to 64 letters, digits, `_` and `-`", self.to))
    }

    fn explain(&self) -> String {
        format!("offers the tool `{}` as `{}`", self.tool, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_request;
    use crate::manipulator::testing::context;
    use crate::surface::Tool;

    #[test]
    fn the_offer_and_the_choice_are_renamed() {
        let on_offer = ["a", "b"].map(|name| Tool { name: name.to_owned(), ..Tool::default() });
        let tool_choice = ToolChoice::Named("a".to_owned());
        let before = Conversation { tools: on_offer.to_vec(), tool_choice, ..Conversation::default() };
        let rename = |tool: &str, to: &str| RenameTool { tool: tool.to_owned(), to: to.to_owned() };
        let after = edited_request(&rename("a", "c"), &before, &context(&before)).expect("applies");
        assert_eq!(after.tools.first().map(|tool| tool.name.as_str()), Some("c"));
        assert_eq!(after.tool_choice, ToolChoice::Named("c".to_owned()));
        for (tool, to) in [("x", "c"), ("a", "b")] {
            assert!(edited_request(&rename(tool, to), &before, &context(&before)).is_err(), "{tool} {to}");
        }
        for to in ["", "a b", "a", &"x".repeat(65)] {
            assert!(rename("a", to).check(Side::Request).is_err(), "{to}");
        }
    }
}
