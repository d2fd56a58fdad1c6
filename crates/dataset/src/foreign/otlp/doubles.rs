//! Which spans of calls are around the span of the same call, as a framework's is around its SDK's, and which are calls of
//! their own that stay open while tools and other agents work.

use std::collections::HashMap;

use super::{
    super::{ForeignCall, ForeignRequest, account},
    span::{SpanOf, TraceSpan},
    span_tree::SpanTree,
};
use crate::surface::Message;

/// A span of a call, with what it says.
#[derive(Debug)]
pub(super) struct CallSpan<'a> {
    pub(super) span: &'a TraceSpan,
    pub(super) call: ForeignCall,
}

/// Leaves out spans that are around the span of the same call, and gives that span what it does not say itself. Says how
/// many it left out.
pub(super) fn without_doubles(tree: &SpanTree, mut calls: Vec<CallSpan<'_>>) -> (Vec<ForeignCall>, u64) {
    let places: HashMap<&str, usize> =
        calls.iter().enumerate().map(|(place, one)| (one.span.id.as_str(), place)).collect();
    // The calls right inside each, in order.
    let mut inside: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut is_own = vec![false; calls.len()];
    for (place, one) in calls.iter().enumerate() {
        let mut between = false;
        for above in tree.upwards(one.span).skip(1) {
            if let Some(outer) = places.get(above.id.as_str()) {
                if let Some(own) = is_own.get_mut(*outer) {
                    *own |= between;
                }
                inside.entry(*outer).or_default().push(place);
                break;
            }
            between |= matches!(above.span_kind, Some(SpanOf::Agent | SpanOf::Tool | SpanOf::Workflow));
        }
    }
    let mut is_double = vec![false; calls.len()];
    let depth = |place: usize| calls.get(place).map_or(0, |one| tree.upwards(one.span).count());
    let mut outers: Vec<usize> = inside.keys().copied().collect();
    outers.sort_by_cached_key(|outer| std::cmp::Reverse((depth(*outer), *outer)));
    for outer in outers {
        let inner = inside.get(&outer).cloned().unwrap_or_default();
        if is_own.get(outer).copied().unwrap_or_default() || !is_same(&calls, outer, &inner) {
            continue;
        }
        if let Some(double) = is_double.get_mut(outer) {
            *double = true;
        }
        let given = calls.get(outer).map(|one| one.call.clone());
        if let ([only], Some(given)) = (inner.as_slice(), given)
            && let Some(one) = calls.get_mut(*only)
        {
            complete(&mut one.call, given);
        }
    }
    let before = calls.len();
    let left: Vec<ForeignCall> =
        calls.into_iter().zip(is_double).filter(|(_, double)| !double).map(|(one, _)| one.call).collect();
    let doubles = (before - left.len()) as u64;
    (left, doubles)
}

/// Whether a call says nothing that a call inside does not say, by nobody else.
fn is_same(calls: &[CallSpan<'_>], outer: usize, inner: &[usize]) -> bool {
    let Some(outer) = calls.get(outer).map(|one| &one.call) else { return false };
    let inner: Vec<&ForeignCall> = inner.iter().filter_map(|place| Some(&calls.get(*place)?.call)).collect();
    let named = |call: &ForeignCall| call.agent.as_ref().map(|agent| agent.name.clone());
    let by_same =
        inner.iter().all(|call| named(outer).is_none() || named(call).is_none() || named(call) == named(outer));
    let said = outer.answer.as_ref().map(|answer| words(&answer.message));
    let told: Vec<Option<String>> =
        inner.iter().map(|call| call.answer.as_ref().map(|answer| words(&answer.message))).collect();
    by_same && (said.is_none() || told.iter().any(|told| told.is_none() || *told == said))
}

/// What a message says, blanks aside.
fn words(message: &Message) -> String {
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = serde_json::from_str::<serde_json::Value>(&call.arguments);
        format!(
            "{}({})",
            call.name,
            arguments.map_or_else(|_| call.arguments.clone(), |arguments| arguments.to_string())
        )
    });
    let text = message.text();
    text.split_whitespace().map(str::to_owned).chain(calls).collect::<Vec<_>>().join(" ")
}

/// Fills in what a call's own span does not say.
fn complete(call: &mut ForeignCall, given: ForeignCall) {
    let offered = |request: &ForeignRequest| !request.tools.is_empty();
    match (&mut call.request, given.request) {
        (None, request) => call.request = request,
        (Some(own), Some(request)) if !offered(own) && offered(&request) => own.tools = request.tools,
        _ => {}
    }
    call.answer = call.answer.take().or(given.answer).filter(|_| call.failure.is_none());
    call.unplaced = account::joined(std::mem::take(&mut call.unplaced), given.unplaced);
    call.agent = call.agent.take().or(given.agent);
    call.usage = call.usage.or(given.usage);
    call.finish_reason = call.finish_reason.take().or(given.finish_reason);
    call.reply_model = call.reply_model.take().or(given.reply_model);
    if call.model.is_empty() {
        call.model = given.model;
    }
    if call.reply_id.is_empty() {
        call.reply_id = given.reply_id;
    }
}
