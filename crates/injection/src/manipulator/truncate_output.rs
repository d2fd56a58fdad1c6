//! `truncate_output`: the answer stops in the middle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::json_text::{self, encoded};
use super::shape::{TextShape, shape};
use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Truncates the answer, like an output limit.
///
/// The finish reason becomes `length`, and tool calls, which come after the text, are lost. A JSON answer stays JSON:
/// its longest string is cut and the finish reason stays.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-3.1"
/// when.call = 0
/// manipulator.truncate_output = { keep = 0.5 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// reply = "12 + 30 = 42."
/// expect = "12 + 3"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TruncateOutput {
    /// Share of the text to keep, from 0 to less than 1.
    pub keep: Option<Fraction>,
    /// Number of characters to keep, instead of `keep`.
    pub chars: Option<u32>,
}

/// A number from 0 to less than 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Fraction(f64);

impl TryFrom<f64> for Fraction {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("`{value}` is out of range: expected a number from 0 to less than 1"))
        }
    }
}

impl From<Fraction> for f64 {
    fn from(fraction: Fraction) -> f64 {
        fraction.0
    }
}

impl Manipulator for TruncateOutput {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let text = answer.message.text();
        if text.is_empty() {
            return not_applicable("the answer has no text");
        }
        match shape(&text, &context.conversation.format)? {
            TextShape::Json => {
                let Some(cut) = self.cut_longest_string(&text) else {
                    return not_applicable("the JSON answer has no string that could be cut");
                };
                answer.message.set_text(cut);
            }
            TextShape::Text => {
                let Some(mut left) = self.kept_length(&text) else {
                    return not_applicable(format!("the answer has only {} characters", text.chars().count()));
                };
                for part in answer.message.texts_mut() {
                    let kept: String = part.chars().take(left).collect();
                    left = left.saturating_sub(part.chars().count() + 1);
                    *part = kept;
                }
                answer.message.tool_calls.clear();
                answer.finish_reason = Some("length".to_owned());
            }
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match (self.keep, self.chars) {
            (Some(_), Some(_)) => Err("both `keep` and `chars` are given: expected one of them".to_owned()),
            (None, None) => Err("expected `keep` or `chars`".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        match (self.keep, self.chars) {
            (Some(keep), _) => format!("cuts the answer to {:.0} % of its text", keep.0 * 100.0),
            (None, chars) => format!("cuts the answer to its first {} characters", chars.unwrap_or_default()),
        }
    }
}

impl TruncateOutput {
    /// How many characters of the text stay; `None` when that is all of them.
    fn kept_length(&self, text: &str) -> Option<usize> {
        let count = text.chars().count();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a fraction of a length lies between 0 and that length"
        )]
        let kept = match (self.keep, self.chars) {
            (Some(keep), _) => (count as f64 * keep.0) as usize,
            (None, chars) => usize::try_from(chars?).ok()?,
        };
        (kept < count).then_some(kept)
    }

    fn cut_longest_string(&self, text: &str) -> Option<String> {
        let mut longest = String::new();
        json_text::edit_strings(text, |string| {
            if string.chars().count() > longest.chars().count() {
                string.clone_into(&mut longest);
            }
            None
        });
        let kept: String = longest.chars().take(self.kept_length(&longest)?).collect();
        let mut first = true;
        let cut = json_text::edit_strings(text, |string| {
            (string == longest && std::mem::take(&mut first)).then(|| kept.clone())
        });
        debug_assert!(cut.as_ref().is_none_or(|cut| cut.contains(&encoded(&kept))), "the cut text holds what was kept");
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::{Conversation, RequiredFormat, Part};

    #[test]
    fn cuts_at_characters_and_says_so() {
        let length = Some("length");
        for (keep, chars, text, format, expected) in [
            (Some(0.5), None, "éèàü", RequiredFormat::Text, Some(("éè", length))),
            (Some(0.0), None, "ab", RequiredFormat::Text, Some(("", length))),
            (None, Some(1), "ab", RequiredFormat::Text, Some(("a", length))),
            (None, Some(2), "ab", RequiredFormat::Text, None),
            (None, Some(2), "", RequiredFormat::Text, None),
            (None, Some(1), r#"{"a":"é\"x","b":"y"}"#, RequiredFormat::JsonObject, Some((r#"{"a":"é","b":"y"}"#, Some("stop")))),
            (None, Some(1), r#"{"a":12345}"#, RequiredFormat::JsonObject, None),
            (None, Some(1), "{ no", RequiredFormat::JsonObject, None),
        ] {
            let keep = keep.map(|keep| Fraction::try_from(keep).expect("in range"));
            let cut = answer(&TruncateOutput { keep, chars }, text, format, 0).ok();
            let cut = cut.as_ref().map(|cut| (cut.message.text(), cut.finish_reason.as_deref()));
            assert_eq!(cut.as_ref().map(|(text, reason)| (text.as_str(), *reason)), expected, "{text}");
        }
        assert!(Fraction::try_from(1.0).is_err() && Fraction::try_from(f64::NAN).is_err());
    }

    #[test]
    fn parts_are_cut_in_order_and_tool_calls_are_lost() {
        let mut answer = reply("abc").answers.remove(0);
        answer.message.parts.push(Part::Text("def".to_owned()));
        answer.message.tool_calls.push(call("f", "{}"));
        let cut = TruncateOutput { keep: None, chars: Some(5) };
        cut.edit_answer(&mut answer, &context(&Conversation::default())).expect("applies");
        assert_eq!(answer.message.parts, [Part::Text("abc".to_owned()), Part::Text("d".to_owned())]);
        assert!(answer.message.tool_calls.is_empty());
    }
}
