//! Model APIs: the only place that knows their field names.
//!
//! A surface reads bodies into the neutral [`Conversation`] and [`Reply`], and writes edited views back as byte-exact splices of
//! the original. It never knows which manipulator ran, and never re-serialises a body. To add one: a directory here, three lines
//! below (`mod`, `pub use`, [`ALL`]), and the generated files that the map lists.

mod a2a;
pub mod account;
mod anthropic_messages;
mod blocks;
mod body_form;
pub mod conversation;
mod counts;
pub mod door;
mod elements;
mod error_body;
mod escape;
mod fields;
mod finish;
mod gemini_generate;
mod gemini_interactions;
mod logprobs;
mod lookup;
mod mcp;
mod negotiable;
pub mod octets;
mod openai_chat;
mod openai_completions;
mod openai_embeddings;
mod openai_responses;
mod parameters;
mod path_parameters;
mod pieces;
mod pointed;
mod reading;
mod request_edit;
mod rpc;
mod message;
mod provider_error;
pub mod scan;
pub mod schema;
mod served;
mod shape;
pub mod splice;
pub mod sse;
mod stored_items;
mod typed_events;
mod unread;
mod team;
mod utterance;
mod words;
pub mod written;

use std::time::Duration;

use bytes::Bytes;

use self::{
    account::{ReadAccount, StreamState},
    splice::Node,
};
use crate::trajectory::{CallEnding, Usage};
pub use crate::trajectory::{Unplaced, UnplacedKind};
pub use a2a::{A2a, CARD_FOLDER, is_card, readdressed_card};
pub use anthropic_messages::AnthropicMessages;
pub use conversation::{Answer, Conversation, Outline, Reply, RequiredFormat, Sampling, Tool, ToolChoice, Vectors};
pub use counts::recounted;
pub use error_body::ErrorBody;
pub use finish::stopped_short;
pub use gemini_generate::GeminiGenerate;
pub use gemini_interactions::GeminiInteractions;
pub use lookup::{ServerPath, fetched_from, for_path, is_of_server, model_api, named, server_api};
pub use mcp::{EditedArgument, Mcp, NAME as MCP, edited_arguments, mirrored};
pub use message::LazyMessage;
pub use negotiable::{ParameterChange, ParameterSetting, ParameterSettings};
pub use openai_chat::OpenaiChat;
pub use openai_completions::OpenaiCompletions;
pub use openai_embeddings::OpenaiEmbeddings;
pub use openai_responses::{OpenaiResponses, socket};
pub use path_parameters::{PathParameters, StreamForm};
pub use pointed::{MemberEdit, edit_member};
pub use reading::Reading;
pub use rpc::{answering, answering_as, asks_client};
pub use served::Served;
pub use shape::{Shape, ending, is_marked_over, shape, text_so_far};
pub use stored_items::StoredItems;
pub use team::{asks_for_team, is_of_team, is_root, may_name_agents, team_reply};
pub use unread::{
    UnreadCall, answers_unread, is_fetch, is_unread, request_key, unread_call, unread_usage, unread_what,
};
pub use utterance::AgentUtterance;
pub use words::{Message, Part, Role, ToolCall};

/// Every API of tools and peers that can be read and edited: what answers there is no model.
pub const SERVERS: &[&dyn Surface] = &[&Mcp, &A2a];

/// Every API of models that can be read and edited.
pub const ALL: &[&dyn Surface] = &[
    &OpenaiChat,
    &OpenaiResponses,
    &OpenaiCompletions,
    &AnthropicMessages,
    &GeminiGenerate,
    &GeminiInteractions,
    &OpenaiEmbeddings,
];

/// Why a body could not be read or an edit could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurfaceError {
    /// The body is not what the API asks for.
    #[error("the body is not {expected}: {detail}")]
    Unreadable {
        /// What was expected, for example `a chat completion request`.
        expected: &'static str,
        /// What is wrong, and at which byte if known.
        detail: String,
    },
    /// The edit has no place in this body.
    #[error("the edit has no place in the body: {0}")]
    NoPlace(String),
}

/// An API shape.
pub trait Surface: Sync + std::fmt::Debug {
    /// Its name in records, for example `openai_chat`.
    fn name(&self) -> &'static str;

    /// The path that its clients usually post to.
    fn path(&self) -> &'static str;

    /// The same, where they ask for a stream.
    fn path_for_stream(&self) -> &'static str {
        self.path()
    }

    /// What a path with its query asks, where the API lets it ask anything.
    fn path_parameters(&self, _target: &str) -> PathParameters {
        PathParameters::default()
    }

    /// Whether paths ask anything: two requests of one body may then differ in their paths.
    fn has_path_parameters(&self) -> bool {
        false
    }

    /// What stands before the name of a server in a path, where the API is one of tools or peers.
    fn mount(&self) -> Option<&'static str> {
        None
    }

    /// The tool that a message calls, where the API is one of tools.
    fn called(&self, _request: &[u8]) -> Option<String> {
        None
    }

    /// Whether a request to this path (query and our own prefix taken off) speaks this surface.
    fn matches(&self, method: &str, path: &str) -> bool;

    /// Reads what identity needs of a request.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when the body is not a request of this surface.
    fn outline<'a>(&self, body: &'a [u8]) -> Result<Outline<'a>, SurfaceError> {
        self.read_request(body).map(|conversation| Outline::from(&conversation))
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when the body is not a request of this surface.
    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError>;

    /// Writes the edited view into the body that `before` was read from.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] when the edit cannot be expressed.
    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError>;

    /// A request that asks nothing yet: what a new one is written into.
    fn blank_request(&self) -> &'static [u8];

    /// Reads a whole reply.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when the body is not a reply of this surface.
    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError>;

    /// Writes the edited view into a whole reply.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] when the edit cannot be expressed.
    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError>;

    /// Assembles a streamed reply into the view that the same reply sent whole would have.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when no frame is one of this surface.
    fn read_stream(&self, _body: &[u8]) -> Result<Reply, SurfaceError> {
        Err(fields::unreadable("a stream", "this API does not stream"))
    }

    /// Writes the edited view into a streamed reply: same frames, edited spans.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] when the edit cannot be expressed.
    fn write_stream(&self, _body: &[u8], _before: &Reply, _after: &Reply) -> Result<Bytes, SurfaceError> {
        Err(SurfaceError::NoPlace("this API does not stream".to_owned()))
    }

    /// Notes what of a request no reader places.
    fn account_for_request(&self, _root: &Node<'_>, _account: &mut ReadAccount) {}

    /// Notes what of a whole reply is read, and what no reader places.
    fn account_for_reply(&self, _root: &Node<'_>, _account: &mut ReadAccount) {}

    /// As [`account_for_reply`](Self::account_for_reply), of one event of a stream. `state`: what earlier ones opened.
    fn account_for_event(&self, _event: &Node<'_>, _state: &mut StreamState, _account: &mut ReadAccount) {}

    /// Token counts of a whole reply, or of the last chunk of a streamed one, read without building the view.
    fn usage(&self, body: &[u8], streamed: bool) -> Option<Usage> {
        openai_chat::usage_of(body, streamed)
    }

    /// The lines that may start the last frame of a stream (for example `data: [DONE]`), without their line end; at
    /// most [`sse::MARKERS_MAX`]. A client may leave as soon as it has read one of them.
    fn ends_of_stream(&self) -> &'static [&'static [u8]] {
        &[]
    }

    /// The last frame of a stream, where it says nothing but that; empty where it repeats what was said.
    fn last_frame(&self) -> &'static [u8] {
        b""
    }

    /// Composes a whole reply, as the simulator gives it. `created` is in seconds since 1970.
    fn compose(&self, reply: &Reply, created: u64) -> Bytes;

    /// Composes a streamed reply: one element a frame, the end marker included.
    fn compose_stream(&self, reply: &Reply, created: u64, _with_usage: bool) -> Vec<Bytes> {
        vec![self.compose(reply, created)]
    }

    /// The error body of this API.
    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        openai_chat::error_body(error)
    }

    /// The error as an event of a stream under way.
    fn error_frame(&self, error: &ErrorBody<'_>) -> Bytes {
        Bytes::from([b"data: ", &self.error_body(error)[..], b"\n\n"].concat())
    }

    /// What the provider says with an error status, and with a code of it.
    fn refusal(&self, status: u16, code: Option<&str>) -> ErrorBody<'static> {
        openai_chat::refusal(status, code)
    }

    /// The provider's headers about a limit on requests: how many, how many are left, and when they are back.
    fn limit_headers(&self, limit: u32, left: u32, reset: Duration) -> Vec<(&'static str, String)> {
        openai_chat::limit_headers(limit, left, reset)
    }

    /// Whether the upstream keeps the reply to this request, to be fetched or gone on from by its id.
    fn stores(&self, _asked: &[u8]) -> bool {
        false
    }

    /// Whether a request asks for a reply that is made in the background, to be fetched by its id.
    fn in_background(&self, _asked: &[u8]) -> bool {
        false
    }

    /// Whether a request asks for words at all: one that only warms its upstream up is answered by none.
    fn generates(&self, _asked: &[u8]) -> bool {
        true
    }

    /// The id of a reply that is still being made in the background.
    fn in_the_making(&self, _reply: &[u8]) -> Option<String> {
        None
    }

    /// A reply while it is made in the background, as the simulator gives it: `queued`, `in_progress`.
    fn compose_unfinished(&self, _reply: &Reply, _created: u64, _status: &str) -> Option<Bytes> {
        None
    }

    /// Whether a request to this path fetches something that the upstream keeps of this surface's replies.
    fn fetches(&self, _method: &str, _path: &str) -> bool {
        false
    }

    /// What a request and its reply add to what the upstream keeps of them, as a later request would say it.
    ///
    /// # Errors
    /// [`SurfaceError`] when they cannot be read, or the API keeps nothing.
    fn stored_items(&self, _asked: &[u8], _replied: &[u8], _streamed: bool) -> Result<StoredItems, SurfaceError> {
        Err(SurfaceError::NoPlace("this API keeps no conversation".to_owned()))
    }

    /// The request with these pieces before its own words, in place of the kept reply that it goes on from.
    ///
    /// # Errors
    /// [`SurfaceError`] when it cannot be read, or the API keeps nothing.
    fn retell(&self, _body: &[u8], _told: &[String]) -> Result<Bytes, SurfaceError> {
        Err(SurfaceError::NoPlace("this API keeps no conversation".to_owned()))
    }

    /// The request with a question for the log-probabilities of the reply's tokens; `None` where it asks itself, or cannot.
    fn ask_logprobs(&self, _body: &[u8]) -> Option<Bytes> {
        None
    }

    /// The JSON of a whole reply, or of one event of a stream, as it is where nobody asks for log-probabilities; `None` where
    /// it holds none.
    fn drop_logprobs(&self, _json: &[u8]) -> Option<Bytes> {
        None
    }

    /// The log-probabilities of the tokens of a reply, in order, as far as it tells them.
    fn logprobs(&self, _body: &[u8], _streamed: bool) -> Vec<f64> {
        Vec::new()
    }

    /// The members of which every reply, whole or an event of a stream, has one, and no error of this API has any.
    fn answer_members(&self) -> &'static [&'static str];

    /// The part of a reply, or of one event of a stream, that says an error; `None` where it says none.
    fn error_part<'a>(&self, json: &Node<'a>) -> Option<Node<'a>> {
        provider_error::find(json, self.answer_members())
    }

    /// How a call ended whose reply says this error. `status`: that of the reply, where it is one of an error.
    fn error_ending(&self, error: &Node<'_>, status: Option<u16>) -> CallEnding {
        provider_error::ending(error, status)
    }

    /// Whether one look tells that the model had finished, and why it stopped is a word for an answer. What one look cannot tell
    /// is read.
    fn is_plainly_finished(&self, _body: &[u8], _streamed: bool) -> bool {
        false
    }

    /// Whether the data of an event is the last that a stream of this API says. Gateways put the `[DONE]` of chat completions
    /// behind streams of other APIs too.
    fn is_end_marker(&self, data: &[u8]) -> bool {
        sse::is_done(data)
    }

    /// Whether an event of a stream is the whole answer, which its client leaves with at once.
    fn is_answer(&self, _event: &[u8]) -> bool {
        false
    }

    /// Whether this chunk of a stream says that the model had finished, whatever is missing after it.
    fn is_finished(&self, _chunk: &[u8]) -> bool {
        false
    }

    /// Takes out of a request by what name it is known to its two ends alone: two requests of other names may ask the same.
    fn drop_names(&self, _request: &mut serde_json::Value) {}

    /// The same reply, whole or streamed, as another model's.
    ///
    /// # Errors
    /// [`SurfaceError`] when it cannot be read, or names no model.
    fn write_model(&self, body: &[u8], streamed: bool, model: &str) -> Result<Bytes, SurfaceError> {
        fields::write_model(body, streamed, model)
    }
}

#[cfg(test)]
mod ending_tests;
#[cfg(test)]
mod unsure_tests;
#[cfg(test)]
mod provider_error_tests;
#[cfg(test)]
mod provider_tests;
#[cfg(test)]
mod tests;
