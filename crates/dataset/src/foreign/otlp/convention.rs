//! What the ways of writing model calls as spans share: each is a file and a line of [`ALL`](super::conventions::ALL).

use std::sync::Arc;

use serde_json::Value;

use super::{
    super::{ForeignAgent, ForeignCall, ForeignRequest, account::CallAccount, held::TraceValue, messages},
    span::{SpanOf, TraceSpan},
};
use crate::surface::{Message, Role, Tool};

/// One way in which tracers write model calls.
pub(super) trait Convention: std::fmt::Debug + Sync {
    /// What the span is of; `None` where it says nothing in this convention.
    fn span_kind(&self, _span: &TraceSpan) -> Option<SpanOf> {
        None
    }
    /// The agent that the span is of, or names.
    fn agent(&self, _span: &TraceSpan) -> Option<ForeignAgent> {
        None
    }
    /// Reads a call's span into what is not known of the call yet.
    fn read(&self, _span: &TraceSpan, _call: &mut ForeignCall, _account: &mut CallAccount) {}
    /// What a span that is no call was given, where it says so.
    fn input_of_span(&self, _span: &TraceSpan) -> Option<Value> {
        None
    }
}

/// An agent's name, and where it stands.
pub(super) fn named(name: &str, what: &str, span: &TraceSpan) -> Option<ForeignAgent> {
    let name = name.trim();
    (!name.is_empty())
        .then(|| ForeignAgent { name: name.to_owned(), evidence: format!("{what} of the span `{}`", span.name) })
}

/// A request of messages, where there are any.
pub(super) fn request(asked: Vec<Message>, tools: Vec<Tool>) -> Option<ForeignRequest> {
    let messages: Vec<Arc<Message>> = asked.into_iter().map(Arc::new).collect();
    (!messages.is_empty()).then(|| ForeignRequest { messages, tools: Arc::new(tools) })
}

/// Fills in what a call was asked and answered from two values, where it is not known yet.
pub(super) fn fill(
    call: &mut ForeignCall,
    asked: Option<TraceValue<'_>>,
    answered: Option<TraceValue<'_>>,
    account: &mut CallAccount,
) {
    if let (None, Some(asked)) = (&call.request, asked) {
        let offered = messages::offered(asked.value);
        call.request = request(messages::messages(asked, Role::User, &mut account.request), offered);
    }
    if let (None, Some(answered)) = (&call.answer, answered) {
        call.answer = messages::answer(answered, &mut account.reply).map(|mut answer| {
            answer.finish_reason = answer.finish_reason.or_else(|| call.finish_reason.clone());
            answer
        });
    }
}
