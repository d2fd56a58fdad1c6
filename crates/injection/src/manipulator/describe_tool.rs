//! `describe_tool`: a tool says something else of itself.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, quoted};
use crate::surface::Conversation;
use crate::trajectory::Side;

/// Changes the description of an offered tool: its purpose, when to call it.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.6"
/// when.call = 0
/// manipulator.describe_tool = { tool = "calculator", with = "Rounds a number to the next hundred." }
///
/// [[check]]
/// agent = "solver"
/// tools = ["calculator", "search"]
/// messages = ["user: What is 12 + 30?"]
/// expect_changed = true
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribeTool {
    /// Tool. Default: all tools.
    pub tool: Option<String>,
    /// New description, verbatim.
    pub with: Option<String>,
    /// Text to append to the description, verbatim; instead of `with`.
    pub append: Option<String>,
}

impl Manipulator for DescribeTool {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let meant = |name: &str| self.tool.as_ref().is_none_or(|tool| tool == name);
        let mut tools = conversation.tools.iter_mut().filter(|tool| meant(&tool.name)).peekable();
        if tools.peek().is_none() {
            let named = self.tool.as_ref().map(|tool| format!(" `{tool}`")).unwrap_or_default();
            return not_applicable(format!("no tool{named} is on offer"));
        }
        for tool in tools {
            match (&self.with, &self.append) {
                (Some(with), _) => tool.description.clone_from(with),
                (None, Some(more)) if tool.description.is_empty() => tool.description.clone_from(more),
                (None, Some(more)) => tool.description = format!("{} {more}", tool.description),
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match (&self.with, &self.append) {
            (Some(_), Some(_)) => Err("both `with` and `append` are given: expected one of them".to_owned()),
            (None, None) => Err("expected `with` or `append`".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let tools = self.tool.as_ref().map_or_else(|| "every tool".to_owned(), |tool| format!("the tool `{tool}`"));
        match (&self.with, &self.append) {
            (Some(with), _) => format!("describes {tools} as {}", quoted(with)),
            (None, more) => format!("adds {} to what {tools} says of itself", quoted(more.as_deref().unwrap_or_default())),
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
    fn the_named_tool_or_all_are_described_anew() {
        let tool = |name: &str, description: &str| Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            ..Tool::default()
        };
        let before = Conversation { tools: vec![tool("a", "Adds."), tool("b", "")], ..Conversation::default() };
        for (parameters, expected) in [
            ("tool = 'a'\nwith = 'X.'", Some(["X.", ""])),
            ("with = 'X.'", Some(["X.", "X."])),
            ("append = 'X.'", Some(["Adds. X.", "X."])),
            ("tool = 'c'\nwith = 'X.'", None),
            ("tool = 'a'\nwith = 'Adds.'", None),
        ] {
            let describe: DescribeTool = toml::from_str(parameters).expect(parameters);
            assert_eq!(describe.check(Side::Request), Ok(()));
            let after = edited_request(&describe, &before, &context(&before)).ok();
            let said = after.map(|after| [0, 1].map(|at: usize| after.tools[at].description.clone()));
            assert_eq!(said, expected.map(|texts| texts.map(str::to_owned)), "{parameters}");
        }
        for bad in ["tool = 'a'", "with = 'x'\nappend = 'y'"] {
            assert!(toml::from_str::<DescribeTool>(bad).expect(bad).check(Side::Request).is_err(), "{bad}");
        }
    }
}
