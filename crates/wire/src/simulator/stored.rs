//! What the simulator keeps of its own replies, as services do: a request can go on from one by its id or by that of
//! the conversation it belongs to, and replies can be fetched.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::surface::{Conversation, Message, Part, Reply, Role, Surface};

/// Replies that are kept; the oldest are forgotten.
const KEPT: usize = 4096;
/// Conversations that are kept; further ones are not made.
const THREADS: usize = 4096;

/// The replies that can be gone on from.
#[derive(Debug, Default)]
pub(super) struct Stored {
    replies: HashMap<String, StoredReply>,
    /// What an item said, by its id.
    items: HashMap<String, Message>,
    order: VecDeque<(String, Vec<String>)>,
    /// What was said in a conversation, by its id.
    threads: HashMap<String, Vec<Message>>,
}

/// A reply that is kept.
#[derive(Debug)]
struct StoredReply {
    surface: &'static dyn Surface,
    reply: Reply,
    /// What was said up to and with it.
    messages: Vec<Message>,
    /// What it is while it is made in the background: one state further each time that somebody looks.
    unmade: &'static [&'static str],
}

/// A request that was answered, and its answer.
pub(super) struct AnsweredRequest<'a> {
    pub(super) surface: &'static dyn Surface,
    pub(super) body: &'a [u8],
    /// The request with all that it went on from.
    pub(super) conversation: &'a Conversation,
    pub(super) reply: &'a Reply,
    /// The same as it is served, whole.
    pub(super) served: &'a [u8],
}

impl Stored {
    /// The conversation with all that it goes on from and refers to.
    ///
    /// # Errors
    /// What is not known (any more), in the service's words.
    pub(super) fn complete(&self, conversation: Conversation) -> Result<Conversation, String> {
        let earlier = match (&conversation.continues, &conversation.thread) {
            (Some(id), _) => match self.replies.get(id) {
                Some(kept) => kept.messages.clone(),
                None => return Err(format!("Previous response with id '{id}' not found.")),
            },
            (None, Some(id)) => match self.threads.get(id) {
                Some(said) => said.clone(),
                None => return Err(format!("Conversation with id '{id}' not found.")),
            },
            (None, None) => Vec::new(),
        };
        let calls: HashSet<&String> =
            conversation.messages.iter().chain(&earlier).flat_map(|m| &m.tool_calls).map(|call| &call.id).collect();
        let known = conversation.quotes.iter().filter_map(|id| self.items.get(id));
        let mut referred = known.filter(|item| item.tool_calls.iter().all(|call| !calls.contains(&call.id)));
        let resolve = |message: &Message| match message.parts.as_slice() {
            [Part::Opaque(kind)] if kind == "item_reference" => referred.next().unwrap_or(message).clone(),
            _ => message.clone(),
        };
        let said: Vec<Message> = conversation.messages.iter().map(resolve).collect();
        // Its own prompt holds for a request alone; what was said before comes after it.
        let prompts = said.iter().take_while(|message| is_prompt(message)).count();
        let (prompts, new) = said.split_at(prompts);
        let messages = [prompts, &earlier, new].concat();
        Ok(Conversation { messages, ..conversation })
    }

    /// Keeps a reply, where its request wants that.
    pub(super) fn keep(&mut self, answered: &AnsweredRequest<'_>) {
        let AnsweredRequest { surface, body, conversation, served, .. } = *answered;
        if !surface.stores(body) {
            return;
        }
        let Ok(read) = surface.read_reply(served) else { return };
        // Whoever only warms it up is told nothing.
        let message = read.answers.first().map(|answer| &answer.message);
        let text = message.filter(|message| !message.parts.is_empty());
        let text = text.map(|message| Message { tool_calls: Vec::new(), ..message.clone() });
        let calls = message.iter().flat_map(|message| &message.tool_calls).map(|call| Message {
            parts: Vec::new(),
            tool_calls: vec![call.clone()],
            ..Message::text_of(Role::Assistant, String::new())
        });
        self.items.extend(read.items.iter().cloned().zip(text.into_iter().chain(calls)));
        let mut said: Vec<Message> = conversation.messages.iter().skip_while(|m| is_prompt(m)).cloned().collect();
        said.extend(message.cloned());
        if let Some(thread) = conversation.thread.as_ref().and_then(|id| self.threads.get_mut(id)) {
            thread.clone_from(&said);
        }
        let reply = answered.reply.clone();
        let in_background = surface.in_background(body) && !conversation.stream;
        let unmade = if in_background { &["queued", "in_progress"][..] } else { &[] };
        self.replies.insert(read.id.clone(), StoredReply { surface, reply, messages: said, unmade });
        self.order.push_back((read.id.clone(), read.items.clone()));
        if self.order.len() > KEPT
            && let Some((oldest, items)) = self.order.pop_front()
        {
            self.replies.remove(&oldest);
            self.items.retain(|id, _| !items.contains(id));
        }
    }

    /// A new conversation, if there is room for one.
    pub(super) fn new_thread(&mut self, created: u64) -> Option<Value> {
        let number = self.threads.len();
        if number >= THREADS {
            return None;
        }
        let digits: String = blake3::hash(&number.to_le_bytes()).to_hex().chars().take(24).collect();
        let id = format!("conv_{digits}");
        let object = json!({"id": id, "object": "conversation", "created_at": created, "metadata": {}});
        self.threads.insert(id, Vec::new());
        Some(object)
    }

    /// A look at a reply: as it is served, made or still being made, which it then is for less long.
    pub(super) fn look(&mut self, id: &str, created: u64) -> Option<Bytes> {
        let kept = self.replies.get_mut(id)?;
        let Some((status, next)) = kept.unmade.split_first() else {
            return Some(kept.surface.compose(&kept.reply, created));
        };
        kept.unmade = next;
        kept.surface.compose_unfinished(&kept.reply, created, status)
    }
}

fn is_prompt(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}
