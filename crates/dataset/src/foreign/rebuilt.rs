//! Requests of traces that hold one conversation and not each call's: what stood before the call, as its agent would see
//! it. That it was shown just that is not known, and the run says so.

use std::sync::Arc;

use super::{
    ForeignRequest,
    account::{CallAccount, TraceAccount},
};
use crate::surface::{Message, Role, Tool};

/// What is counted where a request is too much.
pub(super) const TOO_LONG: &str = "requests that are too long, alone or together";
/// Most messages that the requests of one run hold together: a few lines can name a message a million times.
const MESSAGES: usize = 20_000_000;

/// How many messages the requests of a run may still hold.
#[derive(Debug)]
pub(super) struct RequestRoom(usize);

impl Default for RequestRoom {
    fn default() -> Self {
        Self(MESSAGES)
    }
}

impl RequestRoom {
    /// Takes room for so many; says whether there was.
    pub(super) fn take(&mut self, messages: usize) -> bool {
        let left = self.0.checked_sub(messages);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// A conversation as it grows.
#[derive(Debug, Default)]
pub(super) struct RebuiltConversation {
    messages: Vec<RebuiltMessage>,
    /// What has no place of what was heard since the last call: it is of the request of the next.
    pub(super) unplaced: TraceAccount,
}

#[derive(Debug)]
struct RebuiltMessage {
    message: Arc<Message>,
    /// The same as another agent would hear it; what no agent said is the same for all.
    overheard: Arc<Message>,
    /// Who said it.
    by: Option<String>,
    /// Whom it is for; all, if nobody.
    to: Option<String>,
}

impl RebuiltConversation {
    /// Something that no agent said: a task, a prompt, a tool's result. `to`: for this agent alone.
    pub(super) fn add_input(&mut self, message: Message, to: Option<&str>) {
        let message = Arc::new(message);
        let overheard = Arc::clone(&message);
        self.messages.push(RebuiltMessage { message, overheard, by: None, to: to.map(str::to_owned) });
    }

    /// What an agent answered.
    pub(super) fn say(&mut self, message: Message, by: &str) {
        let overheard =
            Message { role: Role::User, name: Some(by.to_owned()), tool_calls: Vec::new(), ..message.clone() };
        let (message, overheard) = (Arc::new(message), Arc::new(overheard));
        self.messages.push(RebuiltMessage { message, overheard, by: Some(by.to_owned()), to: None });
    }

    /// The account of the next call.
    pub(super) fn account(&mut self) -> CallAccount {
        CallAccount { request: std::mem::take(&mut self.unplaced), ..CallAccount::default() }
    }

    /// What an agent's next call would be asked; `None` where there is no room for it.
    pub(super) fn request(
        &self,
        agent: &str,
        tools: &Arc<Vec<Tool>>,
        room: &mut RequestRoom,
    ) -> Option<ForeignRequest> {
        let heard = self.messages.iter().filter(|said| said.to.as_deref().is_none_or(|to| to == agent));
        let own = |said: &RebuiltMessage| match &said.by {
            Some(by) if by != agent => Arc::clone(&said.overheard),
            _ => Arc::clone(&said.message),
        };
        let fits = room.take(self.messages.len());
        fits.then(|| ForeignRequest { messages: heard.map(own).collect(), tools: Arc::clone(tools) })
    }
}
