//! What the path of a request asks: some APIs name the model there, and say there whether the reply is to be a stream.

use std::borrow::Cow;

use super::{Conversation, Outline};

/// How a streamed reply comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamForm {
    /// As events.
    Events,
    /// As one JSON list that grows.
    List,
}

/// What a path asks; all that it leaves open stands in the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathParameters {
    /// The model.
    pub model: Option<String>,
    /// That the reply be a stream, and of which form.
    pub stream: Option<StreamForm>,
}

impl PathParameters {
    /// The request with what its path asks.
    pub(super) fn complete(self, mut asked: Conversation) -> Conversation {
        if let Some(model) = self.model {
            asked.model = model;
        }
        asked.stream |= self.stream.is_some();
        asked
    }

    /// The same of an outline.
    pub(super) fn complete_outline(self, mut outline: Outline<'_>) -> Outline<'_> {
        if let Some(model) = self.model {
            outline.model = Cow::Owned(model);
        }
        outline
    }
}
