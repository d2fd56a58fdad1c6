//! The neutral view of a model call: what manipulators edit, identity reads and the simulator answers.
//!
//! It holds meaning only: no JSON paths, no bytes. Each element remembers where in the original it came from
//! (`Origin`), so that a surface can write an edited view back and touch nothing but what was edited.

use std::borrow::Cow;

use super::{AgentUtterance, LazyMessage, Message, Part, Role, SurfaceError, words::Origin};
use crate::trajectory::Usage;

/// A request: what a model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// The model's name.
    pub model: String,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// Whether the reply is asked for as a stream.
    pub stream: bool,
    /// Whether a stream is to end with a usage frame.
    pub stream_usage: bool,
    /// How many alternative answers are asked for; 1 when not said.
    pub choices: u32,
    /// The required shape of the answer.
    pub format: RequiredFormat,
    /// Whether the model must, may or must not call a tool.
    pub tool_choice: ToolChoice,
    /// Longest answer in tokens, if said.
    pub max_tokens: Option<u64>,
    /// Strings at which the answer stops.
    pub stop: Vec<String>,
    /// How answers are drawn.
    pub sampling: Sampling,
    /// Caller-defined `metadata` entries.
    pub metadata: Vec<(String, String)>,
    /// The `user` field.
    pub user: Option<String>,
    /// The reply, kept by the upstream, that this request goes on from.
    pub continues: Option<String>,
    /// The conversation, kept by the upstream, that this request belongs to.
    pub thread: Option<String>,
    /// Ids that earlier replies served and this request names: of tool calls and of items.
    pub quotes: Vec<String>,
    /// Ids of items that the upstream keeps and that this request only names, to be put in their places.
    pub refers: Vec<String>,
    /// Set where vectors are asked for instead of words.
    pub vectors: Option<Vectors>,
}

/// Vectors that are asked for: one for each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectors {
    /// Whether as base64 of little-endian 32-bit floats, not as a list of numbers.
    pub base64: bool,
    /// How many numbers each has.
    pub dimensions: usize,
}

/// How answers are drawn, as far as a request says it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sampling {
    /// The temperature.
    pub temperature: Option<f64>,
    /// The part of the probability mass that is sampled from.
    pub top_p: Option<f64>,
    /// The backend's seed.
    pub seed: Option<i64>,
}

/// What identity needs of a request, read in one pass without building the whole view.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outline<'a> {
    /// The model's name.
    pub model: Cow<'a, str>,
    /// The system and developer texts, in order.
    pub prompts: Vec<Cow<'a, str>>,
    /// The `name` of system and developer messages.
    pub names: Vec<Cow<'a, str>>,
    /// The names of the tools on offer.
    pub tools: Vec<Cow<'a, str>>,
    /// Caller-defined `metadata` entries.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The `user` field.
    pub user: Option<Cow<'a, str>>,
    /// The tools as they are written; only compared.
    pub tool_text: Cow<'a, str>,
    /// The name of the required answer's schema, or the kind of answer; empty for free text.
    pub format: Cow<'a, str>,
    /// Whether vectors are asked for instead of words.
    pub vectors: bool,
    /// Every message, oldest first, system and developer ones included.
    pub messages: Vec<LazyMessage<'a>>,
    /// The reply, kept by the upstream, that this request goes on from.
    pub continues: Option<Cow<'a, str>>,
    /// The conversation, kept by the upstream, that this request belongs to.
    pub thread: Option<Cow<'a, str>>,
    /// Ids that earlier replies served and this request names: of tool calls and of items.
    pub quotes: Vec<Cow<'a, str>>,
}

/// The shape that an answer must have.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RequiredFormat {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// The schema.
        schema: serde_json::Value,
    },
}

/// Whether tools are to be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool may be called.
    None,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it says it does.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
    /// Where it stood.
    pub origin: Origin,
}

/// A reply: one or more alternative answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// The reply's id.
    pub id: String,
    /// The model that answered.
    pub model: String,
    /// The alternatives, by index.
    pub answers: Vec<Answer>,
    /// Token counts, if said.
    pub usage: Option<Usage>,
    /// Ids of the items that it is made of, where the API numbers them; ids of tool calls stand with the calls.
    pub items: Vec<String>,
    /// The vectors that a reply without words is made of. Composed, never read.
    pub vectors: Vec<Vec<f32>>,
    /// Whether they are written as base64.
    pub base64: bool,
    /// Who says what in it, in order, where the upstream names agents; empty where it names none. Read, never edited.
    pub utterances: Vec<AgentUtterance>,
    /// The agent whose words alone `answers` are, where the view is [narrowed](Reply::of_speaker) to one.
    pub speaker: Option<String>,
}

impl Reply {
    /// The answer of this view and of another one, where an API has one only.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] where one has none.
    pub(super) fn only_answers<'v>(&'v self, other: &'v Self) -> Result<(&'v Answer, &'v Answer), SurfaceError> {
        let pair = self.answers.first().zip(other.answers.first());
        pair.ok_or_else(|| SurfaceError::NoPlace("the reply has no answer".to_owned()))
    }

    /// Whether it answers with nothing that a program can use: neither words nor calls of tools.
    pub fn is_empty(&self) -> bool {
        let is_blank = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
        let says_nothing =
            |answer: &Answer| answer.message.tool_calls.is_empty() && answer.message.parts.iter().all(is_blank);
        self.vectors.is_empty() && !self.answers.is_empty() && self.answers.iter().all(says_nothing)
    }
}

/// One alternative of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Its number among the alternatives, 0-based.
    pub index: u32,
    /// What the model said.
    pub message: Message,
    /// Why it stopped, in the API's own word; `None` when not said.
    pub finish_reason: Option<String>,
}

impl Answer {
    /// The model ended by itself.
    pub const STOPPED: &str = "stop";
    /// The answer was cut at its longest.
    pub const CUT: &str = "length";
    /// The model waits for its tools.
    pub const CALLS: &str = "tool_calls";
    /// The answer was filtered.
    pub const FILTERED: &str = "content_filter";
}

impl Conversation {
    /// Whether it goes on from anything that the upstream keeps.
    pub fn goes_on(&self) -> bool {
        self.continues.is_some() || self.thread.is_some() || !self.refers.is_empty()
    }

    /// All system and developer texts, joined by line breaks: what makes the agent what it is.
    pub fn prompt(&self) -> String {
        let prompts = self.messages.iter().filter(|m| matches!(m.role, Role::System | Role::Developer));
        prompts.map(Message::text).collect::<Vec<_>>().join("\n")
    }

    /// The first message of role user.
    pub fn first_user(&self) -> Option<&Message> {
        self.messages.iter().find(|m| m.role == Role::User)
    }
}

impl Outline<'_> {
    /// All system and developer texts, joined by line breaks.
    pub fn prompt(&self) -> Cow<'_, str> {
        match self.prompts.as_slice() {
            [only] => Cow::Borrowed(only),
            several => Cow::Owned(several.join("\n")),
        }
    }

    /// The text of the first user message.
    pub fn first_user(&self) -> Option<Cow<'_, str>> {
        self.messages.iter().find(|said| said.role == Role::User).map(LazyMessage::text)
    }

    /// The text of the last user message.
    pub fn last_user(&self) -> Option<Cow<'_, str>> {
        self.messages.iter().rev().find(|said| said.role == Role::User).map(LazyMessage::text)
    }
}

impl From<&Conversation> for Outline<'static> {
    fn from(conversation: &Conversation) -> Self {
        let owned = |text: &String| Cow::Owned(text.clone());
        let prompts = || conversation.messages.iter().filter(|m| matches!(m.role, Role::System | Role::Developer));
        Self {
            model: owned(&conversation.model),
            prompts: prompts().map(|message| Cow::Owned(message.text())).collect(),
            names: prompts().filter_map(|message| message.name.as_ref().map(owned)).collect(),
            tools: conversation.tools.iter().map(|tool| owned(&tool.name)).collect(),
            metadata: conversation.metadata.iter().map(|(key, value)| (owned(key), owned(value))).collect(),
            user: conversation.user.as_ref().map(owned),
            tool_text: Cow::Owned(tool_text(&conversation.tools)),
            format: match &conversation.format {
                RequiredFormat::Text => Cow::Borrowed(""),
                RequiredFormat::JsonObject => Cow::Borrowed("json_object"),
                RequiredFormat::JsonSchema { name, .. } => owned(name),
            },
            vectors: conversation.vectors.is_some(),
            messages: conversation.messages.iter().map(LazyMessage::from).collect(),
            continues: conversation.continues.as_ref().map(owned),
            thread: conversation.thread.as_ref().map(owned),
            quotes: conversation.quotes.iter().map(owned).collect(),
        }
    }
}

/// Names and schemas of tools in a row.
fn tool_text(tools: &[Tool]) -> String {
    tools.iter().fold(String::new(), |text, tool| text + &tool.name + &tool.parameters.to_string())
}
