//! `corrupt_tool_result`: a tool seems to have said something else.

use schemars::JsonSchema;
use serde::Deserialize;

use super::number::{altered, numbers};
use super::shape::{shape, visible};
use super::{Context, NumberChange, Manipulator, ManipulatorError, not_applicable, quoted};
use crate::surface::{Conversation, RequiredFormat, Message, Role};
use crate::trajectory::Side;

/// What a failed tool says where results are plain text, and where they are JSON.
const ERROR_TEXT: &str = "Error: the request timed out";
const ERROR_JSON: &str = r#"{"error": "the request timed out"}"#;

/// Changes the last tool result of a request.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.6"
/// when = { tool = "search", max_times = 1 }
/// manipulator.corrupt_tool_result = { how = "error" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: How high?", "assistant calls search({})", "tool(search): 324 m"]
/// expect = ["user: How high?", "assistant calls search({})", "tool(search): Error: the request timed out"]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorruptToolResult {
    /// Tool whose result is changed. Default: any.
    pub tool: Option<String>,
    /// New result, verbatim.
    pub with: Option<String>,
    /// Text to append to the result, verbatim, as a poisoned source does.
    pub append: Option<String>,
    /// How the result is changed, instead of `with` and `append`.
    pub how: Option<Corruption>,
}

/// A change of a tool result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Corruption {
    /// A plausible error message instead.
    Error,
    /// Without its second half.
    Truncate,
    /// The previous, different result of the same tool.
    Stale,
    /// With another last number.
    Number,
    /// Stated twice, the second time with another last number.
    Contradict,
}

impl Manipulator for CorruptToolResult {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let results: Vec<(usize, String)> = results(conversation)
            .into_iter()
            .filter(|(_, tool)| self.tool.as_ref().is_none_or(|wanted| wanted == tool))
            .collect();
        let of = self.tool.as_ref().map(|tool| format!(" of `{tool}`")).unwrap_or_default();
        let Some((at, tool)) = results.last() else {
            return not_applicable(format!("the request carries no tool result{of}"));
        };
        let old = conversation.messages.get(*at).map(Message::text).unwrap_or_default();
        let new = match (self.verbatim(&old), self.how) {
            (Some(text), _) => Some(text),
            (None, Some(Corruption::Truncate)) => halved(&old),
            (None, Some(Corruption::Number)) => other_number(&old, context.draw),
            (None, Some(Corruption::Contradict)) => other_number(&old, context.draw).map(|other| both_versions(&old, &other)),
            (None, Some(Corruption::Stale)) => results
                .iter()
                .rev()
                .filter(|(_, other)| other == tool)
                .filter_map(|(at, _)| conversation.messages.get(*at).map(Message::text))
                .find(|text| *text != old),
            (None, Some(Corruption::Error) | None) => {
                Some(if is_json(&old) { ERROR_JSON } else { ERROR_TEXT }.to_owned())
            }
        };
        let Some(new) = new else {
            return not_applicable(format!("the last tool result{of} cannot be changed in this way"));
        };
        if let Some(message) = conversation.messages.get_mut(*at) {
            message.set_text(new);
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match [self.with.is_some(), self.append.is_some(), self.how.is_some()].into_iter().filter(|given| *given).count() {
            0 => Err("expected `with`, `append` or `how`".to_owned()),
            1 => Ok(()),
            _ => Err("several of `with`, `append` and `how` are given: expected one of them".to_owned()),
        }
    }

    fn explain(&self) -> String {
        let of = self.tool.as_ref().map(|tool| format!(" of `{tool}`")).unwrap_or_default();
        if let Some(more) = &self.append {
            return format!("adds {} to the last tool result{of}", quoted(more));
        }
        match (&self.with, self.how) {
            (Some(text), _) => format!("replaces the last tool result{of} by {}", quoted(text)),
            (None, Some(Corruption::Truncate)) => format!("cuts the last tool result{of} in half"),
            (None, Some(Corruption::Stale)) => format!("replaces the last tool result{of} by an earlier one"),
            (None, Some(Corruption::Contradict)) => format!("makes the last tool result{of} contradict itself"),
            (None, Some(Corruption::Number)) => format!("changes a number in the last tool result{of}"),
            (None, _) => format!("replaces the last tool result{of} by an error message"),
        }
    }
}

impl CorruptToolResult {
    /// The result that the plan gives verbatim, or adds to.
    fn verbatim(&self, old: &str) -> Option<String> {
        self.with.clone().or_else(|| self.append.as_ref().map(|more| format!("{old}\n{more}")))
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Two versions of a result, one after the other.
fn both_versions(old: &str, other: &str) -> String {
    if is_json(old) { format!("[{old}, {other}]") } else { format!("{old}\n{other}") }
}

/// Where tool results stand, and of which tool each is.
fn results(conversation: &Conversation) -> Vec<(usize, String)> {
    let calls: Vec<_> = conversation.messages.iter().flat_map(|message| &message.tool_calls).collect();
    let tool_of = |message: &Message| {
        let call = calls.iter().rev().find(|call| Some(&call.id) == message.answers_call.as_ref());
        call.map(|call| call.name.clone()).or_else(|| message.name.clone()).unwrap_or_default()
    };
    let messages = conversation.messages.iter().enumerate();
    messages.filter(|(_, message)| message.role == Role::Tool).map(|(at, message)| (at, tool_of(message))).collect()
}

fn halved(text: &str) -> Option<String> {
    let half = text.chars().count().div_ceil(2);
    (half < text.chars().count()).then(|| text.chars().take(half).collect())
}

fn other_number(text: &str, draw: u64) -> Option<String> {
    let shape = shape(text, &RequiredFormat::Text).ok()?;
    let range = numbers(&visible(text, shape)).pop()?;
    let number = altered(text.get(range.clone())?, NumberChange::Digit, draw)?;
    let mut text = text.to_owned();
    text.replace_range(range, &number);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::edit;

    #[test]
    fn changes_the_last_result_of_the_tool() {
        let two = "assistant: calls f|tool: f= old 1|assistant: calls g|tool: g= é 2";
        for (tool, how, messages, expected) in [
            (None, Corruption::Error, two, Some("assistant: calls f|tool: f= old 1|assistant: calls g|tool: g= Error: the request timed out")),
            (Some("f"), Corruption::Truncate, two, Some("assistant: calls f|tool: f= old|assistant: calls g|tool: g= é 2")),
            (None, Corruption::Number, two, Some("assistant: calls f|tool: f= old 1|assistant: calls g|tool: g= é 3")),
            (None, Corruption::Error, "assistant: calls f|tool: f= {\"a\": 1}", Some("assistant: calls f|tool: f= {\"error\": \"the request timed out\"}")),
            (None, Corruption::Stale, "assistant: calls f|tool: f= a|assistant: calls f|tool: f= b", Some("assistant: calls f|tool: f= a|assistant: calls f|tool: f= a")),
            (None, Corruption::Contradict, "assistant: calls f|tool: f= 5 m", Some("assistant: calls f|tool: f= 5 m\n6 m")),
            (None, Corruption::Contradict, "assistant: calls f|tool: f= [5]", Some("assistant: calls f|tool: f= [[5], [6]]")),
            (None, Corruption::Contradict, "assistant: calls f|tool: f= none", None),
            (None, Corruption::Stale, two, None),
            (Some("h"), Corruption::Error, two, None),
            (None, Corruption::Number, "assistant: calls f|tool: f= none", None),
            (None, Corruption::Truncate, "assistant: calls f|tool: f= ", None),
            (None, Corruption::Error, "user: no tool", None),
        ] {
            let edit_it = CorruptToolResult { tool: tool.map(str::to_owned), with: None, append: None, how: Some(how) };
            assert_eq!(edit(&edit_it, messages, &[]).ok().as_deref(), expected, "{messages}");
        }
        let add = CorruptToolResult { tool: None, with: None, append: Some("Say x.".to_owned()), how: None };
        assert_eq!(edit(&add, "assistant: calls f|tool: f= 1", &[]).as_deref(), Ok("assistant: calls f|tool: f= 1\nSay x."));
        let with = CorruptToolResult { tool: None, with: Some("old 1".to_owned()), append: None, how: None };
        assert_eq!(edit(&with, "assistant: calls f|tool: f= old 1", &[]), Err(ManipulatorError::Unchanged));
        assert!(with.check(Side::Request).is_ok());
        assert!(CorruptToolResult { tool: None, with: None, append: None, how: None }.check(Side::Request).is_err());
    }
}
