//! What the simulator keeps of its own replies, as services do that let a request go on from one by its id.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::surface::{Conversation, Message, Part, Reply, Role};

/// Replies that are kept; the oldest are forgotten.
const KEPT: usize = 4096;

/// The replies that can be gone on from.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// What was said up to and with a reply, by the reply's id.
    replies: HashMap<String, Vec<Message>>,
    /// What an item said, by its id.
    items: HashMap<String, Message>,
    order: VecDeque<(String, Vec<String>)>,
}

impl Stored {
    /// The conversation with all that it goes on from and refers to.
    ///
    /// # Errors
    /// The id of a reply that is not known (any more).
    pub(super) fn complete(&self, conversation: Conversation) -> Result<Conversation, String> {
        let earlier = match &conversation.continues {
            Some(id) => self.replies.get(id).ok_or_else(|| id.clone())?.clone(),
            None => Vec::new(),
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

    /// Keeps a reply to a conversation that is complete. Replies of an API without items are not kept there either.
    pub(super) fn keep(&mut self, conversation: &Conversation, reply: &Reply) {
        let Some(answer) = reply.answers.first().filter(|_| !reply.items.is_empty()) else { return };
        let message = &answer.message;
        let text = (!message.parts.is_empty()).then(|| Message { tool_calls: Vec::new(), ..message.clone() });
        let calls = message.tool_calls.iter().map(|call| Message {
            parts: Vec::new(),
            tool_calls: vec![call.clone()],
            ..Message::text_of(Role::Assistant, String::new())
        });
        self.items.extend(reply.items.iter().cloned().zip(text.into_iter().chain(calls)));
        let mut said: Vec<Message> = conversation.messages.iter().skip_while(|m| is_prompt(m)).cloned().collect();
        said.push(message.clone());
        self.replies.insert(reply.id.clone(), said);
        self.order.push_back((reply.id.clone(), reply.items.clone()));
        if self.order.len() > KEPT
            && let Some((oldest, items)) = self.order.pop_front()
        {
            self.replies.remove(&oldest);
            self.items.retain(|id, _| !items.contains(id));
        }
    }
}

fn is_prompt(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}
