//! `replace_text`: a text becomes another, on either side.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::Deserialize;

use super::shape::{TextShape, shape};
use super::{Context, Manipulator, ManipulatorError, json_text, not_applicable, quoted};
use crate::surface::{Answer, Conversation, Message, Role};
use crate::trajectory::{Pattern, Side};

/// Replaces a text or pattern in messages of the request or in the answer.
///
/// Every occurrence is replaced. In a JSON answer only string values are looked at, and it stays JSON.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.1"
/// when.call = 0
/// side = "request"
/// manipulator.replace_text = { pattern = '(\d+) apples', with = "$1 pears", messages = "user" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: apples", "user: I have 3 apples."]
/// expect = ["system: apples", "user: I have 3 pears."]
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceText {
    /// Text to replace, verbatim.
    pub find: Option<String>,
    /// Regular expression to replace, instead of `find`.
    pub pattern: Option<Pattern>,
    /// Replacement. With `pattern`, `$1` or `$name` stands for a group and `$$` for a dollar sign.
    pub with: String,
    /// Which messages of the request.
    #[serde(default)]
    pub messages: Messages,
}

/// Which messages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Messages {
    /// All messages.
    #[default]
    All,
    /// System and developer prompts.
    System,
    /// Messages of role user.
    User,
    /// Messages of role assistant.
    Assistant,
    /// Tool results.
    Tool,
    /// The first message.
    First,
    /// The last message.
    Last,
}

impl Manipulator for ReplaceText {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        let last = conversation.messages.len().saturating_sub(1);
        let (mut found, room) = (false, TextRoom::new());
        for (at, message) in conversation.messages.iter_mut().enumerate() {
            if self.messages.include(message, at, last) {
                for text in message.texts_mut() {
                    if let Some(new) = self.replaced(text, &room) {
                        found = true;
                        *text = new;
                    }
                }
            }
        }
        room.check()?;
        if found { Ok(()) } else { not_applicable(format!("{} is not in the request", self.wanted())) }
    }

    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let (mut found, room) = (false, TextRoom::new());
        for text in answer.message.texts_mut().filter(|text| !text.is_empty()) {
            let new = match shape(text, &context.conversation.format)? {
                TextShape::Text => self.replaced(text, &room),
                TextShape::Json => json_text::edit_strings(text, |text| self.replaced(text, &room)),
            };
            if let Some(new) = new {
                found = true;
                *text = new;
            }
        }
        room.check()?;
        if found { Ok(()) } else { not_applicable(format!("{} is not in the answer", self.wanted())) }
    }

    fn check(&self, side: Side) -> Result<(), String> {
        match (&self.find, &self.pattern) {
            (Some(_), Some(_)) => Err("both `find` and `pattern` are given: expected one of them".to_owned()),
            (None, None) => Err("expected `find` or `pattern`".to_owned()),
            (Some(find), None) if find.is_empty() => Err("`find` is empty: expected a text".to_owned()),
            (Some(find), None) if *find == self.with => Err("`find` and `with` are equal".to_owned()),
            _ if side == Side::Response && self.messages != Messages::All => {
                Err("`messages` chooses among the messages of a request: leave it out on the response side".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        format!("replaces {} by {}", self.wanted(), quoted(&self.with))
    }
}

impl ReplaceText {
    /// Replaces a literal everywhere.
    pub fn literal(find: impl Into<String>, with: impl Into<String>) -> Self {
        Self { find: Some(find.into()), pattern: None, with: with.into(), messages: Messages::All }
    }

    /// The text with every occurrence replaced, if there is one. `room` is what all texts together may still take.
    fn replaced(&self, text: &str, room: &TextRoom) -> Option<String> {
        let (mut new, mut end) = (String::new(), 0);
        let mut put = |from: usize, to: usize, expand: &dyn Fn(&mut String)| {
            new.push_str(text.get(end..from).unwrap_or_default());
            expand(&mut new);
            end = to;
            room.0.get() >= new.len()
        };
        let with = |to: &mut String| to.push_str(&self.with);
        let fits = match (&self.find, &self.pattern) {
            (Some(find), _) => text.match_indices(find).all(|(at, found)| put(at, at + found.len(), &with)),
            (None, Some(pattern)) => pattern.regex().captures_iter(text).all(|captures| {
                let whole = captures.get_match().range();
                put(whole.start, whole.end, &|to| captures.expand(&self.with, to))
            }),
            (None, None) => true,
        };
        if end == 0 && new.is_empty() {
            return None;
        }
        new.push_str(text.get(end..).unwrap_or_default());
        room.take(if fits { new.len() } else { usize::MAX });
        Some(new)
    }

    fn wanted(&self) -> String {
        match (&self.find, &self.pattern) {
            (Some(find), _) => quoted(find),
            (None, Some(pattern)) => format!("text like {}", quoted(&pattern.to_string())),
            (None, None) => "nothing".to_owned(),
        }
    }
}

/// How much the texts of one edit may become, in bytes.
struct TextRoom(Cell<usize>);

/// More than any model reads.
const GROWN_MAX: usize = 32 << 20;

impl TextRoom {
    fn new() -> Self {
        Self(Cell::new(GROWN_MAX))
    }

    fn take(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }

    fn check(&self) -> Result<(), ManipulatorError> {
        if self.0.get() > 0 {
            return Ok(());
        }
        not_applicable(format!("the edited text would be larger than {GROWN_MAX} bytes"))
    }
}

impl Messages {
    fn include(self, message: &Message, at: usize, last: usize) -> bool {
        match self {
            Messages::All => true,
            Messages::System => matches!(message.role, Role::System | Role::Developer),
            Messages::User => message.role == Role::User,
            Messages::Assistant => message.role == Role::Assistant,
            Messages::Tool => message.role == Role::Tool,
            Messages::First => at == 0,
            Messages::Last => at == last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::{answer, edit};
    use crate::surface::RequiredFormat;

    #[test]
    fn what_grows_without_measure_is_refused() {
        let text = format!("user: {}", "b".repeat(100_000));
        let with = "c".repeat(10_000);
        let literal = ReplaceText::literal("b", with.clone());
        let pattern = ReplaceText { find: None, pattern: Some(Pattern::new("b").expect("good")), ..literal.clone() };
        for replace in [literal, pattern] {
            let error = edit(&replace, &text, &[]).expect_err("a gigabyte");
            assert!(error.to_string().contains("larger than"), "{error}");
        }
    }

    #[test]
    fn replaces_in_the_chosen_messages() {
        for (messages, lines, expected) in [
            (Messages::All, "system: a b|user: b", Some("system: a é|user: é")),
            (Messages::User, "system: b|user: b", Some("system: b|user: é")),
            (Messages::Last, "user: b|assistant: b", Some("user: b|assistant: é")),
            (Messages::First, "user: b|assistant: b", Some("user: é|assistant: b")),
            (Messages::Tool, "user: b|tool: b", Some("user: b|tool: é")),
            (Messages::Assistant, "user: b", None),
            (Messages::All, "user: ", None),
            (Messages::All, "", None),
        ] {
            let replace = ReplaceText { messages, ..ReplaceText::literal("b", "é") };
            assert_eq!(edit(&replace, lines, &[]).ok().as_deref(), expected, "{lines} {messages:?}");
        }
    }

    #[test]
    fn answers_keep_their_json() {
        let quote = ReplaceText::literal("b", "\"\\");
        for (text, format, expected) in [
            ("a b", RequiredFormat::Text, Some("a \"\\")),
            (r#"{"b":"b","n":1e2}"#, RequiredFormat::JsonObject, Some(r#"{"b":"\"\\","n":1e2}"#)),
            (r#"{"b":"b"}"#, RequiredFormat::Text, Some(r#"{"b":"\"\\"}"#)),
            (r#"{"b":1}"#, RequiredFormat::JsonObject, None),
            ("b {", RequiredFormat::JsonObject, None),
            ("", RequiredFormat::Text, None),
        ] {
            let edited = answer(&quote, text, format, 0).ok().map(|answer| answer.message.text());
            assert_eq!(edited.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn templates_are_not_expressions() {
        let verbatim = ReplaceText::literal("x", "{{7*7}} $1");
        let edited = answer(&verbatim, "x", RequiredFormat::Text, 0).expect("applies");
        assert_eq!(edited.message.text(), "{{7*7}} $1");
        assert!(ReplaceText::literal("", "x").check(Side::Request).is_err());
        assert!(ReplaceText::literal("x", "x").check(Side::Request).is_err());
    }
}
