//! `drop_section`: a part of the answer is missing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, passage};
use crate::surface::Answer;
use crate::trajectory::{Pattern, Side};

/// Removes a section of the answer: one under a heading, else a paragraph, else a line.
///
/// In a JSON answer each long enough string is looked at. At least one section stays.
///
/// ```toml
/// [[injection]]
/// agent = "writer"
/// failure_mode = "FM-2.4"
/// when.call = 0
/// manipulator.drop_section = { matching = "(?i)limits" }
///
/// [[check]]
/// agent = "writer"
/// messages = ["user: Report."]
/// reply = "# Result\n42\n# Limits\nOnly for winter."
/// expect = "# Result\n42"
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropSection {
    /// Pattern of the section to remove, instead of `which`; the first match.
    pub matching: Option<Pattern>,
    /// Which section to remove.
    #[serde(default)]
    pub which: Section,
}

/// A section of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// The longest.
    #[default]
    Longest,
    /// The first.
    First,
    /// The last.
    Last,
}

impl Manipulator for DropSection {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let edited = passage::edit(answer, &context.conversation.format, |text| self.cut(text))?;
        if edited { Ok(()) } else { not_applicable("the answer has no such section beside others") }
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if self.matching.is_some() && self.which != Section::Longest {
            return Err("both `matching` and `which` are given: expected one of them".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        match (&self.matching, self.which) {
            (Some(pattern), _) => format!("takes out the first section of the answer that matches `{pattern}`"),
            (None, Section::Longest) => "takes out the longest section of the answer".to_owned(),
            (None, Section::First) => "takes out the first section of the answer".to_owned(),
            (None, Section::Last) => "takes out the last section of the answer".to_owned(),
        }
    }
}

impl DropSection {
    fn cut(&self, text: &str) -> Option<String> {
        let sections = passage::sections(text);
        let goes = match (&self.matching, self.which) {
            (Some(pattern), _) => sections.iter().position(|section| pattern.regex().is_match(section))?,
            (None, Section::First) => 0,
            (None, Section::Last) => sections.len().checked_sub(1)?,
            // Of equally long ones the first.
            (None, Section::Longest) => {
                let longest = sections.iter().map(|section| section.chars().count()).max()?;
                sections.iter().position(|section| section.chars().count() == longest)?
            }
        };
        let kept = sections.iter().enumerate().filter(|(at, _)| *at != goes).map(|(_, section)| *section);
        let kept = kept.collect::<String>().trim_end().to_owned();
        (!kept.trim().is_empty()).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::answer;
    use crate::surface::RequiredFormat;

    #[test]
    fn one_section_goes_and_others_stay() {
        let text = "Short.\n\nA longer paragraph, é.\n\nEnd.";
        for (which, matching, text, expected) in [
            (Section::Longest, None, text, Some("Short.\n\nEnd.")),
            (Section::First, None, text, Some("A longer paragraph, é.\n\nEnd.")),
            (Section::Last, None, text, Some("Short.\n\nA longer paragraph, é.")),
            (Section::Longest, Some("^End"), text, Some("Short.\n\nA longer paragraph, é.")),
            (Section::Longest, Some("nowhere"), text, None),
            (Section::Longest, None, "only one", None),
            (Section::Last, None, "", None),
        ] {
            let matching = matching.map(|text: &str| Pattern::new(text).expect("a pattern"));
            let edited = answer(&DropSection { matching, which }, text, RequiredFormat::Text, 0).ok();
            assert_eq!(edited.map(|answer| answer.message.text()).as_deref(), expected, "{text}");
        }
    }
}
