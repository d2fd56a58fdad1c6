//! One message of a request as identity reads it: decoded only where somebody looks.
//!
//! A growing conversation is mostly known already; reading all of it for each call would cost more than passing it on.

use std::{borrow::Cow, cell::OnceCell};

use twox_hash::XxHash3_64;

use super::{Message, Part, Role, ToolCall, fields, scan, splice::Node};

/// One message of a request.
#[derive(Debug, Clone)]
pub struct LazyMessage<'a> {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name, where the API carries one.
    pub name: Option<Cow<'a, str>>,
    /// The id of the tool call that the message answers.
    pub answers_call: Option<Cow<'a, str>>,
    content: LazyContent<'a>,
    /// Several rules compare messages by it: worked out once.
    mark: OnceCell<u64>,
}

impl PartialEq for LazyMessage<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role
            && self.name == other.name
            && self.answers_call == other.answers_call
            && self.content == other.content
    }
}

/// What a message holds: as it was written, or as it was read.
#[derive(Debug, Clone)]
enum LazyContent<'a> {
    Raw { text: Option<&'a [u8]>, calls: Option<&'a [u8]> },
    Read { text: String, calls: Vec<ToolCall> },
}

impl PartialEq for LazyContent<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() && self.calls() == other.calls()
    }
}

impl<'a> LazyMessage<'a> {
    /// A message whose content and tool calls are still JSON, in the shape of chat completions.
    pub(super) fn raw(
        role: Role,
        name: Option<Cow<'a, str>>,
        answers_call: Option<Cow<'a, str>>,
        text: Option<&'a [u8]>,
        calls: Option<&'a [u8]>,
    ) -> Self {
        Self { role, name, answers_call, content: LazyContent::Raw { text, calls }, mark: OnceCell::new() }
    }

    /// The text, parts joined by line breaks.
    pub fn text(&self) -> Cow<'_, str> {
        self.content.text()
    }

    /// The tool calls that the message makes.
    pub fn calls(&self) -> Cow<'_, [ToolCall]> {
        self.content.calls()
    }

    /// Whether the message makes tool calls.
    pub fn has_calls(&self) -> bool {
        match &self.content {
            LazyContent::Raw { calls, .. } => calls.is_some_and(|calls| calls.len() > 4),
            LazyContent::Read { calls, .. } => !calls.is_empty(),
        }
    }

    /// About how many bytes of text the message holds, without reading it.
    pub fn size(&self) -> usize {
        match &self.content {
            LazyContent::Raw { text, calls } => [text, calls].into_iter().flatten().map(|raw| raw.len()).sum(),
            LazyContent::Read { text, calls } => {
                text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>()
            }
        }
    }

    /// A 64-bit hash of role, name and content as they were written: equal for a message that comes again.
    pub fn mark(&self) -> u64 {
        *self.mark.get_or_init(|| {
            let add = |mark, part: &[u8]| XxHash3_64::oneshot_with_seed(mark, part);
            let kind = (self.role as u64) << 2;
            let mark = self.name.as_deref().map_or(kind, |name| add(kind | 1, name.as_bytes()));
            let mark = self.answers_call.as_deref().map_or(mark, |id| add(mark ^ 2, id.as_bytes()));
            match &self.content {
                LazyContent::Raw { text, calls } => {
                    [text, calls].into_iter().flatten().fold(mark, |mark, raw| add(mark, raw))
                }
                LazyContent::Read { text, calls } => {
                    let parts = calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments]);
                    parts.fold(add(mark, text.as_bytes()), |mark, part| add(mark, part.as_bytes()))
                }
            }
        })
    }
}

impl LazyContent<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            LazyContent::Raw { text: Some(raw), .. } => text_of(raw),
            LazyContent::Raw { text: None, .. } => Cow::Borrowed(""),
            LazyContent::Read { text, .. } => Cow::Borrowed(text),
        }
    }

    fn calls(&self) -> Cow<'_, [ToolCall]> {
        match self {
            LazyContent::Raw { calls, .. } => {
                let calls = calls.and_then(|raw| Node::parse(raw).ok());
                Cow::Owned(calls.map(|calls| fields::tool_calls(&calls)).unwrap_or_default())
            }
            LazyContent::Read { calls, .. } => Cow::Borrowed(calls),
        }
    }
}

impl From<&Message> for LazyMessage<'static> {
    fn from(message: &Message) -> Self {
        Self {
            role: message.role,
            name: message.name.clone().map(Cow::Owned),
            answers_call: message.answers_call.clone().map(Cow::Owned),
            content: LazyContent::Read { text: message.text(), calls: message.tool_calls.clone() },
            mark: OnceCell::new(),
        }
    }
}

/// The text of a message's content: a string, or the text parts of a list.
pub(super) fn text_of(content: &[u8]) -> Cow<'_, str> {
    scan::string(content).unwrap_or_else(|| {
        let parts = Node::parse(content).map(|node| fields::parts(&node)).unwrap_or_default();
        let texts: Vec<_> = parts.iter().filter_map(Part::as_text).collect();
        Cow::Owned(texts.join("\n"))
    })
}
