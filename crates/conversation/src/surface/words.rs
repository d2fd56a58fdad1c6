//! A message of a conversation: who speaks, in which parts, with which calls of tools.

use std::borrow::Cow;

/// Where an element stood in the body it was read from; `None` for one that an edit made.
pub(super) type Origin = Option<usize>;

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The prompt that makes an agent what it is.
    System,
    /// The same, by its newer name.
    Developer,
    /// The caller, or another agent.
    User,
    /// The model, or another agent whose words are kept as such.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// A role that this crate does not know.
    Other,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name, where the API carries one.
    pub name: Option<String>,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// Tool calls that the message makes.
    pub tool_calls: Vec<ToolCall>,
    /// The id of the tool call that the message answers.
    pub answers_call: Option<String>,
    /// Where it stood.
    pub origin: Origin,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Something that is not text (an image, audio, a refusal): carried, never edited.
    Opaque(String),
}

/// A call of a tool, made by a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCall {
    /// The id that its result will name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON text as the model wrote it, valid or not.
    pub arguments: String,
    /// Where it stood.
    pub origin: Origin,
}

impl Message {
    /// A new message of one text, as an edit or the simulator makes it.
    pub fn text_of(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            parts: vec![Part::Text(text.into())],
            tool_calls: Vec::new(),
            answers_call: None,
            origin: None,
        }
    }

    /// The ids of the tool calls that it makes or answers.
    pub fn call_ids(&self) -> impl Iterator<Item = &String> {
        self.tool_calls.iter().map(|call| &call.id).chain(&self.answers_call)
    }

    /// All text parts, joined by line breaks.
    pub fn text(&self) -> String {
        self.text_to_read().into_owned()
    }

    /// The same, not copied where it is one part.
    pub fn text_to_read(&self) -> Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(Part::as_text);
        let first = Cow::Borrowed(texts.next().unwrap_or_default());
        texts.fold(first, |joined, text| joined + "\n" + text)
    }

    /// Replaces all text by one text: it goes into the first text part, the other text parts are emptied. A message
    /// without a text part gets one.
    pub fn set_text(&mut self, text: impl Into<String>) {
        let mut text = Some(text.into());
        for part in &mut self.parts {
            if let Part::Text(old) = part {
                *old = text.take().unwrap_or_default();
            }
        }
        if let Some(text) = text {
            self.parts.push(Part::Text(text));
        }
    }

    /// The text parts, to be edited in place.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Opaque(_) => None,
        })
    }
}

impl Part {
    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Part::Text(text) => Some(text),
            Part::Opaque(_) => None,
        }
    }
}
