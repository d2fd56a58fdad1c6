//! The tools that the replies of a run called, by the ids of the calls. A request that goes on from a kept reply holds
//! the result of a call without the call itself: what tool it is of, only who served the call knows.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Conversation, Reply, Role};

/// Calls that are remembered; the oldest are forgotten.
const REMEMBERED: usize = 4096;

/// Tool calls that were served.
#[derive(Debug, Default)]
pub struct Served {
    tools: HashMap<String, String>,
    order: VecDeque<String>,
}

impl Served {
    /// Remembers the calls of a reply.
    pub fn learn(&mut self, reply: &Reply) {
        for call in reply.answers.iter().flat_map(|answer| &answer.message.tool_calls) {
            if call.id.is_empty() {
                continue;
            }
            match self.tools.get_mut(&call.id) {
                // Two tools under one id: nobody can tell whose result it is.
                Some(known) if *known != call.name => known.clear(),
                Some(_) => {}
                None => {
                    self.tools.insert(call.id.clone(), call.name.clone());
                    self.order.push_back(call.id.clone());
                }
            }
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.tools.remove(&oldest);
            }
        }
    }

    /// Names the tools of results whose calls the request does not hold.
    pub fn name_results(&self, asked: &mut Conversation) {
        if self.tools.is_empty() || !asked.messages.iter().any(|message| message.role == Role::Tool) {
            return;
        }
        let held: HashSet<String> =
            asked.messages.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone()).collect();
        for message in asked.messages.iter_mut().filter(|message| message.role == Role::Tool && message.name.is_none())
        {
            let answers = message.answers_call.as_ref().filter(|id| !held.contains(*id));
            message.name = answers.and_then(|id| self.tools.get(id)).filter(|name| !name.is_empty()).cloned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{Answer, Message, ToolCall};

    #[test]
    fn results_without_their_calls_are_named() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: format!("tool of {id}"), ..ToolCall::default() };
        let says = |calls: &[&str]| Message {
            tool_calls: calls.iter().map(|id| call(id)).collect(),
            ..Message::text_of(Role::Assistant, "")
        };
        let result = |id: &str, name: Option<&str>| Message {
            answers_call: Some(id.to_owned()),
            name: name.map(str::to_owned),
            ..Message::text_of(Role::Tool, "3")
        };
        let mut served = Served::default();
        let answer = Answer { index: 0, message: says(&["a", "b"]), finish_reason: None };
        served.learn(&Reply { answers: vec![answer], ..Reply::default() });
        let messages =
            vec![says(&["b"]), result("a", None), result("b", None), result("a", Some("own")), result("c", None)];
        let mut asked = Conversation { messages, ..Conversation::default() };
        served.name_results(&mut asked);
        let names: Vec<Option<&str>> = asked.messages[1..].iter().map(|message| message.name.as_deref()).collect();
        assert_eq!(names, [Some("tool of a"), None, Some("own"), None]);
    }
}
