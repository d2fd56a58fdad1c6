//! `edit_tool_call`: the agent calls a tool otherwise than its model meant.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Context, Manipulator, ManipulatorError, json_text, not_applicable};
use crate::surface::{Answer, ToolCall};
use crate::trajectory::Side;

/// Changes a tool call of the answer: its arguments, its tool, or how often it is made.
///
/// It edits the first call, or the first call of `tool`. Ids stay; the copy of a duplicated call gets one of its own.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.6"
/// when.call = 0
/// manipulator.edit_tool_call = { tool = "add", set = { "/b" = 31 } }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// reply = "I add twelve and thirty."
/// reply_calls = ['add({"a": 12, "b": 30})']
/// expect_calls = ['add({"a": 12, "b": 31})']
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditToolCall {
    /// Tool whose call is changed. Default: any.
    pub tool: Option<String>,
    /// Arguments to set: JSON pointer = value. The last key of a pointer may be new.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// New arguments, replacing all.
    pub arguments: Option<Map<String, Value>>,
    /// New arguments as raw text, JSON or not.
    pub raw_arguments: Option<String>,
    /// Tool to call instead.
    pub name: Option<String>,
    /// Call a tool that is not offered, with a similar name.
    #[serde(default)]
    pub unknown_tool: bool,
    /// Make the call twice.
    #[serde(default)]
    pub duplicate: bool,
    /// Remove the call. If none is left, the finish reason becomes `stop`.
    #[serde(default)]
    pub drop: bool,
}

impl Manipulator for EditToolCall {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let of = self.tool.as_ref().map(|tool| format!(" of `{tool}`")).unwrap_or_default();
        let calls = &mut answer.message.tool_calls;
        let wanted = |call: &ToolCall| self.tool.as_ref().is_none_or(|tool| *tool == call.name);
        let Some((at, call)) = calls.iter_mut().enumerate().find(|(_, call)| wanted(call)) else {
            return not_applicable(format!("the answer makes no tool call{of}"));
        };
        if self.drop {
            calls.remove(at);
            if calls.is_empty() && answer.finish_reason.is_some() {
                answer.finish_reason = Some("stop".to_owned());
            }
            return Ok(());
        }
        self.edit_arguments(call)?;
        if let Some(name) = &self.name {
            call.name.clone_from(name);
        }
        if self.unknown_tool {
            call.name = unknown_name(&call.name, context);
        }
        if self.duplicate {
            let taken: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
            let copy = calls.get(at).map(|call| ToolCall {
                id: unlike(&call.id, context.draw, &taken),
                origin: None,
                ..call.clone()
            });
            calls.extend(copy);
        }
        Ok(())
    }

    fn check(&self, side: Side) -> Result<(), String> {
        let wholes = usize::from(self.arguments.is_some()) + usize::from(self.raw_arguments.is_some());
        let changes = wholes + usize::from(!self.set.is_empty());
        let others = self.name.is_some() || self.unknown_tool || self.duplicate;
        if side == Side::Request && (others || self.drop || self.raw_arguments.is_some()) {
            return Err("a message to a server of tools is one call: expected `set` or `arguments`".to_owned());
        }
        if changes > 1 {
            return Err("expected only one of `set`, `arguments` and `raw_arguments`".to_owned());
        }
        if self.drop && (changes > 0 || others) {
            return Err("`drop` stands alone: a call that is not made cannot be edited".to_owned());
        }
        if self.name.is_some() && self.unknown_tool {
            return Err("both `name` and `unknown_tool` are given: expected one of them".to_owned());
        }
        if let Some(pointer) = self.set.keys().find(|pointer| !pointer.starts_with('/')) {
            return Err(format!("`{pointer}` is not a JSON pointer: expected a leading `/`, as in `/{pointer}`"));
        }
        if changes == 0 && !others && !self.drop {
            return Err("expected an edit: `set`, `arguments`, `raw_arguments`, `name`, `unknown_tool`, `duplicate` or \
                        `drop`"
                .to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let call = match &self.tool {
            Some(tool) => format!("the first call of `{tool}`"),
            None => "the first tool call".to_owned(),
        };
        let mut does = Vec::new();
        if !self.set.is_empty() {
            let set: Vec<String> = self.set.iter().map(|(pointer, value)| format!("`{pointer}` to {value}")).collect();
            does.push(format!("sets {}", set.join(", ")));
        }
        if self.arguments.is_some() || self.raw_arguments.is_some() {
            does.push("replaces the arguments".to_owned());
        }
        if let Some(name) = &self.name {
            does.push(format!("calls `{name}` instead"));
        }
        for (said, text) in [
            (self.unknown_tool, "calls a tool that does not exist"),
            (self.duplicate, "makes it twice"),
            (self.drop, "leaves it out"),
        ] {
            if said {
                does.push(text.to_owned());
            }
        }
        format!("takes {call} of the answer and {}", does.join(" and "))
    }
}

impl EditToolCall {
    fn edit_arguments(&self, call: &mut ToolCall) -> Result<(), ManipulatorError> {
        if let Some(arguments) = &self.arguments {
            call.arguments = Value::Object(arguments.clone()).to_string();
        }
        if let Some(raw) = &self.raw_arguments {
            call.arguments.clone_from(raw);
        }
        for (pointer, value) in &self.set {
            let Some(edited) = json_text::set(&call.arguments, pointer, value) else {
                return not_applicable(format!("the arguments of `{}` have no place for `{pointer}`", call.name));
            };
            call.arguments = edited;
        }
        Ok(())
    }
}

/// A name like `name` that no tool on offer has.
fn unknown_name(name: &str, context: &Context<'_>) -> String {
    let offered = |name: &str| context.conversation.tools.iter().any(|tool| tool.name == name);
    let mut versions = 2_u64..;
    versions.by_ref().map(|version| format!("{name}_v{version}")).find(|name| !offered(name)).unwrap_or_default()
}

/// An id of the same form and length that is not taken: letters and digits after the last `_` or `-` are drawn anew.
fn unlike(id: &str, draw: u64, taken: &[&str]) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let split = id.rfind(['_', '-']).map_or(0, |at| at + 1);
    let (prefix, tail) = id.split_at_checked(split).unwrap_or(("call_", ""));
    let length = tail.chars().count().max(6);
    for round in 0..=u64::MAX {
        let mut state = draw.wrapping_add(round);
        let mut fresh = prefix.to_owned();
        for _ in 0..length {
            // The multiplier of Knuth's MMIX generator: any full-period step does, the upper bits are used.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = usize::try_from((state >> 33) % 36).unwrap_or_default();
            fresh.push(LETTERS.get(place).copied().map_or('0', char::from));
        }
        if !taken.contains(&fresh.as_str()) {
            return fresh;
        }
    }
    id.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manipulator::edited_reply;
    use crate::manipulator::testing::{call, context, reply};
    use crate::surface::{Conversation, Tool};

    fn edited(edit: &EditToolCall, calls: &[ToolCall]) -> Result<Answer, ManipulatorError> {
        let tools = vec![Tool { name: "f_v2".to_owned(), ..Tool::default() }];
        let conversation = Conversation { tools, ..Conversation::default() };
        let mut before = reply("é");
        let answer = before.answers.first_mut().expect("one answer");
        answer.message.tool_calls = calls.to_vec();
        answer.finish_reason = Some("tool_calls".to_owned());
        edited_reply(edit, &before, None, &context(&conversation)).map(|mut reply| reply.answers.remove(0))
    }

    #[test]
    fn each_edit_of_a_call() {
        let set = |pointer: &str, value| BTreeMap::from([(pointer.to_owned(), value)]);
        let arguments = json!({"x": "é"}).as_object().cloned();
        for (edit, expected) in [
            (EditToolCall { set: set("/a", json!("ü")), ..Default::default() }, Some(r#"f {"a": "ü"}|g {}"#)),
            (EditToolCall { set: set("/b", json!(null)), ..Default::default() }, Some(r#"f {"a": 1e2, "b": null}|g {}"#)),
            (EditToolCall { set: set("/a/b", json!(1)), ..Default::default() }, None),
            (EditToolCall { arguments, ..Default::default() }, Some(r#"f {"x":"é"}|g {}"#)),
            (EditToolCall { raw_arguments: Some("{".to_owned()), ..Default::default() }, Some("f {|g {}")),
            (EditToolCall { name: Some("h".to_owned()), tool: Some("g".to_owned()), ..Default::default() }, Some(r#"f {"a": 1e2}|h {}"#)),
            (EditToolCall { unknown_tool: true, ..Default::default() }, Some(r#"f_v3 {"a": 1e2}|g {}"#)),
            (EditToolCall { duplicate: true, tool: Some("g".to_owned()), ..Default::default() }, Some(r#"f {"a": 1e2}|g {}|g {}"#)),
            (EditToolCall { drop: true, ..Default::default() }, Some("g {}")),
            (EditToolCall { drop: true, tool: Some("h".to_owned()), ..Default::default() }, None),
            (EditToolCall { name: Some("f".to_owned()), ..Default::default() }, None),
        ] {
            assert_eq!(edit.check(Side::Response), Ok(()), "{edit:?}");
            let answer = edited(&edit, &[call("f", r#"{"a": 1e2}"#), call("g", "{}")]).ok();
            let calls = answer.map(|answer| {
                assert_eq!(answer.message.text(), "é");
                let mut ids: Vec<_> = answer.message.tool_calls.iter().map(|call| call.id.clone()).collect();
                ids.sort();
                ids.dedup();
                assert_eq!(ids.len(), answer.message.tool_calls.len(), "ids are distinct");
                let calls = answer.message.tool_calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
                calls.collect::<Vec<_>>().join("|")
            });
            assert_eq!(calls.as_deref(), expected, "{edit:?}");
        }
        assert!(edited(&EditToolCall { duplicate: true, ..Default::default() }, &[]).is_err());
    }

    #[test]
    fn the_last_call_dropped_ends_the_answer() {
        let answer = edited(&EditToolCall { drop: true, ..Default::default() }, &[call("f", "{}")]).expect("applies");
        assert_eq!(answer.finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn parameters_that_contradict_are_refused() {
        let set = BTreeMap::from([("a".to_owned(), json!(1))]);
        for edit in [
            EditToolCall::default(),
            EditToolCall { set, ..Default::default() },
            EditToolCall { drop: true, duplicate: true, ..Default::default() },
            EditToolCall { name: Some("x".to_owned()), unknown_tool: true, ..Default::default() },
        ] {
            assert!(edit.check(Side::Response).is_err(), "{edit:?}");
        }
    }
}
