//! `spoil_tool_call`: what the model wants of a tool arrives wrong, or not at all.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use serde_json::Value;

use super::{Answered, Attempts, Disturbance, Fault, words};
use crate::surface::Answer;

/// Spoils the tool calls of the answer. Replies without any are not changed.
///
/// The names are those of the field: `no_arguments` and `lost` are crashes, `dropped` and `truncated` omissions, `symbols`,
/// `unknown_keys`, `stale` and `other_entity` wrong values.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.spoil_tool_call = { how = "no_arguments" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "spoil_tool_call"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpoilToolCall {
    /// How.
    pub how: CallSpoiling,
    /// Share of each text argument that is kept with `truncated`, 0 to 1.
    #[serde(default = "third")]
    pub keep: f64,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

/// How a tool call is spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallSpoiling {
    /// Empty arguments.
    NoArguments,
    /// The answer is lost: a timeout message instead.
    Lost,
    /// Calls removed; the text stays.
    Dropped,
    /// Each text argument cut.
    Truncated,
    /// About a fifth of the characters of text arguments replaced by symbols.
    Symbols,
    /// Argument keys that no tool knows.
    UnknownKeys,
    /// Years and other numbers of an earlier time.
    Stale,
    /// A text argument names something else of its kind.
    OtherEntity,
}

fn third() -> f64 {
    0.3
}

impl SpoilToolCall {
    fn spoil(&self, answer: &mut Answer, draw: u64) -> Result<(), String> {
        if answer.message.tool_calls.is_empty() {
            return Err("the answer makes no tool call".to_owned());
        }
        match self.how {
            CallSpoiling::Lost | CallSpoiling::Dropped => {
                if self.how == CallSpoiling::Lost {
                    answer.message.set_text(words::TIMED_OUT);
                }
                answer.message.tool_calls.clear();
                answer.finish_reason = Some(Answer::STOPPED.to_owned());
            }
            CallSpoiling::NoArguments => {
                for call in &mut answer.message.tool_calls {
                    "{}".clone_into(&mut call.arguments);
                }
            }
            _ => {
                for call in &mut answer.message.tool_calls {
                    let read = serde_json::from_str(&call.arguments);
                    let mut arguments: Value = read.map_err(|_| format!("the arguments of `{}` are no JSON", call.name))?;
                    self.alter(&mut arguments, draw);
                    call.arguments = arguments.to_string();
                }
            }
        }
        Ok(())
    }

    fn alter(&self, arguments: &mut Value, draw: u64) {
        if self.how == CallSpoiling::UnknownKeys
            && let Some(object) = arguments.as_object_mut()
        {
            let renamed = std::mem::take(object).into_iter().map(|(key, value)| (format!("_{key}_v2"), value));
            object.extend(renamed);
            return;
        }
        match arguments {
            Value::Object(members) => members.values_mut().for_each(|value| self.alter(value, draw)),
            Value::Array(values) => values.iter_mut().for_each(|value| self.alter(value, draw)),
            Value::String(text) => *text = self.altered(text, draw),
            Value::Number(number) if self.how == CallSpoiling::Stale => {
                if let Some(old) = number.as_i64() {
                    *arguments = words::earlier(old).into();
                }
            }
            Value::Number(number) if self.how == CallSpoiling::OtherEntity => {
                if let Some(old) = number.as_i64() {
                    *arguments = old.saturating_add(1).into();
                }
            }
            _ => {}
        }
    }

    fn altered(&self, text: &str, draw: u64) -> String {
        match self.how {
            CallSpoiling::Truncated => words::first_share(text, self.keep),
            CallSpoiling::Symbols => words::symbols(text, draw),
            CallSpoiling::Stale => words::stale(text),
            CallSpoiling::OtherEntity => words::other_entity(text, draw),
            _ => text.to_owned(),
        }
    }
}

impl Fault for SpoilToolCall {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, draw: u64) -> Result<Bytes, String> {
        reply.edited(|answer| self.spoil(answer, draw))
    }

    fn check(&self) -> Result<(), String> {
        if (0.0..=1.0).contains(&self.keep) {
            Ok(())
        } else {
            Err(format!("`keep` is {}: expected 0 to 1", self.keep))
        }
    }

    fn rewords(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        let how = match self.how {
            CallSpoiling::NoArguments => "empties the arguments of tool calls",
            CallSpoiling::Lost => "says a time-out instead of calling tools",
            CallSpoiling::Dropped => "strips tool calls",
            CallSpoiling::Truncated => "breaks text arguments of tool calls off",
            CallSpoiling::Symbols => "turns characters of tool arguments into symbols",
            CallSpoiling::UnknownKeys => "gives tool arguments unknown keys",
            CallSpoiling::Stale => "puts earlier years and numbers into tool arguments",
            CallSpoiling::OtherEntity => "names something else in tool arguments",
        };
        format!("{how}, {}", self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn every_way_on_every_surface() {
        for (how, expected) in [
            ("no_arguments", Some("{}")),
            ("lost", None),
            ("dropped", None),
            ("truncated", Some(r#"{"city":"Berl","year":2026}"#)),
            ("unknown_keys", Some(r#"{"_city_v2":"Berlin and Rome","_year_v2":2026}"#)),
            ("stale", Some(r#"{"city":"Berlin and Rome","year":2024}"#)),
            ("symbols", Some("")),
            ("other_entity", Some("")),
        ] {
            let fault: SpoilToolCall = toml::from_str(&format!("how = '{how}'")).expect(how);
            let call = ("weather", r#"{"city": "Berlin and Rome", "year": 2026}"#);
            for (surface, streamed, _, changed) in reshaped(&fault, Some("I look."), Some(call)) {
                let (text, calls, finish) = reply_content(surface, streamed, &changed.expect("changed"));
                assert_eq!(text == words::TIMED_OUT, how == "lost");
                match expected {
                    None => assert_eq!((calls.len(), finish.as_deref()), (0, Some("stop")), "{surface:?} {how}"),
                    Some("") => assert!(calls[0].1.contains("20") && !calls[0].1.contains("Berlin and Rome"), "{calls:?}"),
                    Some(expected) => assert_eq!(calls, [("weather".to_owned(), expected.to_owned())], "{surface:?} {how}"),
                }
            }
            assert!(reshaped(&fault, Some("No call."), None).iter().all(|(.., changed)| changed.is_err()));
        }
    }
}
