//! `corrupt_number`: a number of the answer becomes another one.

use schemars::JsonSchema;
use serde::Deserialize;
use twox_hash::XxHash3_64;

use super::number::{added, altered, numbers};
use super::shape::{shape, visible};
use super::{Context, NumberChange, Manipulator, ManipulatorError, Which, json_text, not_applicable};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Changes a number of the answer and keeps its format.
///
/// Thousands separators, decimals and sign stay. Numbers inside words, identifiers, versions, dates and times, list
/// markers and the `2` of `step 2` are not looked at. In a JSON answer only values are.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.6"
/// when.call = 0
/// manipulator.corrupt_number = { which = "last", by = 10 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// reply = "12 + 30 = 42. The answer is 42."
/// expect = "12 + 30 = 42. The answer is 52."
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorruptNumber {
    /// Which number of the answer.
    #[serde(default)]
    pub which: Which,
    /// How it is changed; digits are drawn by the plan's seed.
    pub how: Option<NumberChange>,
    /// Amount to add, instead of `how`.
    pub by: Option<f64>,
}

impl Manipulator for CorruptNumber {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let found: Vec<_> = answer.message.texts_mut().map(|text| numbers_in(text, context)).collect::<Result<_, _>>()?;
        let total: usize = found.iter().map(Vec::len).sum();
        let wanted = match self.which {
            Which::First => 0..1.min(total),
            Which::Last => total.saturating_sub(1)..total,
            Which::All => 0..total,
            Which::Nth(number) => {
                let number = usize::try_from(number).unwrap_or(usize::MAX).min(total);
                number..number.saturating_add(1).min(total)
            }
        };
        if wanted.is_empty() {
            return not_applicable(format!("the answer has {total} numbers, and not the one that is asked for"));
        }
        let mut number = 0..;
        for (text, ranges) in answer.message.texts_mut().zip(found) {
            let mut edits = Vec::new();
            for range in ranges {
                let old = text.get(range.clone()).unwrap_or_default();
                if number.next().is_some_and(|number| wanted.contains(&number)) {
                    let Some(new) = self.changed(old, context.draw) else {
                        return not_applicable(format!("`{old}` cannot be changed in this way"));
                    };
                    edits.push((range, new));
                }
            }
            *text = json_text::splice(text, edits);
        }
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match (self.by, self.how) {
            (Some(_), Some(_)) => Err("both `by` and `how` are given: expected one of them".to_owned()),
            (Some(by), None) if by == 0.0 || !by.is_finite() => Err(format!("`by` is {by}: expected a number but 0")),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        let which = match self.which {
            Which::First => "the first number".to_owned(),
            Which::Last => "the last number".to_owned(),
            Which::All => "every number".to_owned(),
            Which::Nth(number) => format!("number {number} (from 0)"),
        };
        match (self.by, self.how.unwrap_or_default()) {
            (Some(by), _) => format!("adds {by} to {which} of the answer"),
            (None, NumberChange::Digit) => format!("changes a digit of {which} of the answer"),
            (None, NumberChange::Transpose) => format!("swaps two digits of {which} of the answer"),
            (None, NumberChange::Sign) => format!("changes the sign of {which} of the answer"),
            (None, NumberChange::Scale) => format!("multiplies {which} of the answer by ten"),
        }
    }
}

impl CorruptNumber {
    fn changed(&self, old: &str, draw: u64) -> Option<String> {
        match self.by {
            Some(by) => added(old, by),
            // Of several numbers, equal ones must become equal ones and different ones should not change alike.
            None if self.which == Which::All => altered(old, self.how.unwrap_or_default(), XxHash3_64::oneshot_with_seed(draw, old.as_bytes())),
            None => altered(old, self.how.unwrap_or_default(), draw),
        }
    }
}

fn numbers_in(text: &str, context: &Context<'_>) -> Result<Vec<std::ops::Range<usize>>, ManipulatorError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(numbers(&visible(text, shape(text, &context.conversation.format)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::{Conversation, RequiredFormat, Part};

    fn check(which: Which, text: &str, format: RequiredFormat, expected: Option<&str>) {
        let edit = CorruptNumber { which, how: None, by: Some(1.0) };
        let edited = answer(&edit, text, format, 0).ok().map(|answer| answer.message.text());
        assert_eq!(edited.as_deref(), expected, "{text}");
    }

    #[test]
    fn changes_the_chosen_number() {
        check(Which::Last, "12 + 30 = 42é.", RequiredFormat::Text, Some("12 + 31 = 42é."));
        check(Which::First, "12 + 30", RequiredFormat::Text, Some("13 + 30"));
        check(Which::Nth(1), "12 + 30", RequiredFormat::Text, Some("12 + 31"));
        check(Which::Nth(2), "12 + 30", RequiredFormat::Text, None);
        check(Which::All, "1 and 1,999.5", RequiredFormat::Text, Some("2 and 2,000.5"));
        check(Which::Last, "no number", RequiredFormat::Text, None);
        check(Which::Last, "", RequiredFormat::Text, None);
        check(Which::Last, "", RequiredFormat::JsonObject, None);
        check(Which::Last, r#"{"n1": 4, "k": "is 5\n"}"#, RequiredFormat::JsonObject, Some(r#"{"n1": 4, "k": "is 6\n"}"#));
        check(Which::First, r#"{"n1": 4, "k": "is 5"}"#, RequiredFormat::Text, Some(r#"{"n1": 5, "k": "is 5"}"#));
        check(Which::First, r#"{"n1": 4"#, RequiredFormat::JsonObject, None);
    }

    #[test]
    fn equal_numbers_stay_equal_and_the_draw_decides() {
        let every = CorruptNumber { which: Which::All, ..CorruptNumber::default() };
        let text = |draw| answer(&every, "40 is 40", RequiredFormat::Text, draw).expect("applies").message.text();
        for draw in 0..20 {
            let edited = text(draw);
            let (left, right) = edited.split_once(" is ").expect("shape kept");
            assert_eq!(left, right);
            assert_ne!(left, "40");
        }
        assert!((0..20).any(|draw| text(draw) != text(0)));
    }

    #[test]
    fn content_parts_and_tool_calls() {
        let mut answer = reply("a 1").answers.remove(0);
        answer.message.parts.push(Part::Opaque("image 2".to_owned()));
        answer.message.parts.push(Part::Text("b 3".to_owned()));
        answer.message.tool_calls.push(call("f", "{\"n\": 4}"));
        let edit = CorruptNumber { which: Which::Last, how: None, by: Some(1.0) };
        edit.edit_answer(&mut answer, &context(&Conversation::default())).expect("applies");
        assert_eq!(answer.message.text(), "a 1\nb 4");
        assert_eq!(answer.message.tool_calls, [call("f", "{\"n\": 4}")]);
    }
}
