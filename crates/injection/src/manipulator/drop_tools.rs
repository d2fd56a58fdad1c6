//! `drop_tools`: the agent lacks a tool.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::{Conversation, ToolChoice};
use crate::trajectory::Side;

/// Removes offered tools from the request.
///
/// Where none is left, or the one that had to be called is gone, the agent is free to answer in words.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.1"
/// when.call = 0
/// manipulator.drop_tools = { tools = ["calculator"] }
///
/// [[check]]
/// agent = "solver"
/// tools = ["calculator", "search"]
/// messages = ["user: What is 12 + 30?"]
/// expect_tools = ["search"]
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTools {
    /// Names of the tools. Default: all.
    pub tools: Option<Vec<String>>,
}

impl Manipulator for DropTools {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let before = conversation.tools.len();
        let goes = |name: &String| self.tools.as_ref().is_none_or(|tools| tools.contains(name));
        conversation.tools.retain(|tool| !goes(&tool.name));
        if conversation.tools.len() == before {
            return not_applicable("no such tool is on offer");
        }
        let gone = match &conversation.tool_choice {
            ToolChoice::Named(name) => goes(name),
            ToolChoice::Required | ToolChoice::None => conversation.tools.is_empty(),
            ToolChoice::Auto => false,
        };
        if gone {
            conversation.tool_choice = ToolChoice::Auto;
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match &self.tools {
            Some(tools) if tools.is_empty() => Err("`tools` is empty: expected a name".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        match &self.tools {
            Some(tools) => format!("takes off the offer: {}", tools.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", ")),
            None => "takes all tools off the offer".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_request;
    use crate::manipulator::testing::context;
    use crate::surface::Tool;

    #[test]
    fn tools_go_and_the_choice_follows() {
        let named = |name: &str| ToolChoice::Named(name.to_owned());
        for (tools, choice, expected) in [
            (Some(vec!["a"]), ToolChoice::Auto, Some((vec!["b"], ToolChoice::Auto))),
            (Some(vec!["a"]), named("a"), Some((vec!["b"], ToolChoice::Auto))),
            (Some(vec!["a"]), named("b"), Some((vec!["b"], named("b")))),
            (Some(vec!["a"]), ToolChoice::Required, Some((vec!["b"], ToolChoice::Required))),
            (None, ToolChoice::Required, Some((vec![], ToolChoice::Auto))),
            (Some(vec!["c"]), ToolChoice::Auto, None),
        ] {
            let on_offer = ["a", "b"].map(|name| Tool { name: name.to_owned(), ..Tool::default() });
            let before = Conversation { tools: on_offer.to_vec(), tool_choice: choice, ..Conversation::default() };
            let drop = DropTools { tools: tools.map(|tools| tools.into_iter().map(str::to_owned).collect()) };
            let after = edited_request(&drop, &before, &context(&before)).ok();
            let found = after.as_ref().map(|after| {
                (after.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), after.tool_choice.clone())
            });
            assert_eq!(found, expected);
        }
    }
}
