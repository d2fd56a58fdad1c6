//! `drop_verification`: the agent does not check.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, passage};
use crate::mode::speaks_of_checking;
use crate::surface::Answer;
use crate::trajectory::Pattern;

/// Removes sentences about checking from the answer.
///
/// In a JSON answer only string values are looked at. An answer that is nothing but a check is left alone.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-3.2"
/// when.call = 0
/// manipulator.drop_verification = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// reply = "12 + 30 = 42. To verify: 42 - 30 = 12. The answer is 42."
/// expect = "12 + 30 = 42. The answer is 42."
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropVerification {
    /// Pattern of sentences about checking, in addition to the usual words.
    pub matching: Option<Pattern>,
}

impl Manipulator for DropVerification {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let checks = |sentence: &str| match &self.matching {
            Some(pattern) => Pattern::regex(pattern).is_match(sentence),
            None => speaks_of_checking(sentence),
        };
        let edited = passage::edit(answer, &context.conversation.format, |text| {
            passage::without(&passage::sentences(text), checks).filter(|rest| !rest.trim().is_empty())
        })?;
        if edited { Ok(()) } else { not_applicable("no sentence of the answer could go that speaks of checking") }
    }

    fn explain(&self) -> String {
        "takes out the sentences of the answer that speak of checking".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::answer;
    use crate::surface::RequiredFormat;

    #[test]
    fn only_checks_go() {
        for (matching, text, format, expected) in [
            (None, "It is 42.\nI double-checked it.\nDone.", RequiredFormat::Text, Some("It is 42.\nDone.")),
            (None, "I checked it.", RequiredFormat::Text, None),
            (None, "The greatest of all.", RequiredFormat::Text, None),
            (None, "", RequiredFormat::Text, None),
            (Some("(?i)probe"), "It is 42. Probe: 12 + 30.", RequiredFormat::Text, Some("It is 42.")),
            (None, r#"{"a": "It is é. Tests pass.", "n": 1}"#, RequiredFormat::JsonObject, Some(r#"{"a": "It is é.", "n": 1}"#)),
        ] {
            let matching = matching.map(|text: &str| Pattern::new(text).expect("a pattern"));
            let edited = answer(&DropVerification { matching }, text, format, 0).ok();
            assert_eq!(edited.map(|answer| answer.message.text()).as_deref(), expected, "{text}");
        }
    }
}
