//! A whole reply: reading it.

use super::block;
use crate::{
    surface::{
        Answer, Reply, Role, SurfaceError, blocks,
        fields::{number, string, text, unreadable},
        splice::{Member, Node, member},
        sse,
    },
    trajectory::Usage,
};

pub(super) const EXPECTED: &str = "a message";

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let content = member(&members, "content").filter(|content| content.is_array() || content.string().is_some());
    let content =
        content.ok_or_else(|| unreadable(EXPECTED, "`content` is missing or is neither a list nor a text"))?;
    let message = blocks::message(Role::Assistant, block::blocks(&content).iter(), 0);
    let mut reply = head(&members);
    let finish_reason = string(&members, "stop_reason").map(|reason| block::finish(&reason).to_owned());
    reply.answers = vec![Answer { index: 0, message, finish_reason }];
    Ok(reply)
}

/// What a message object says besides its content.
pub(super) fn head(members: &[Member<'_>]) -> Reply {
    Reply {
        id: text(members, "id"),
        model: text(members, "model"),
        usage: member(members, "usage").and_then(|node| usage(&node)),
        ..Reply::default()
    }
}

/// Token counts of a `usage` object. What was written to or read from the cache was input too.
pub(super) fn usage(node: &Node<'_>) -> Option<Usage> {
    let members = node.members();
    let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let input: Vec<u64> = input.iter().filter_map(|key| number(&members, key)).collect();
    let output = number(&members, "output_tokens");
    (!input.is_empty() || output.is_some())
        .then(|| Usage { input: input.iter().sum(), output: output.unwrap_or_default() })
}

/// Token counts without the rest: of a whole message, or of the events of a streamed one. The first event counts the
/// input, the last but one the output; some servers count the input there again.
pub(super) fn usage_of(body: &[u8], streamed: bool) -> Option<Usage> {
    if !streamed {
        return usage(&Node::parse(body).ok()?.get("usage")?);
    }
    let mut counted: Option<Usage> = None;
    for event in sse::events(body) {
        let data = event.data.first().and_then(|span| body.get(span.clone())).unwrap_or_default();
        let Ok(root) = Node::parse(data) else { continue };
        let holder = root.get("message").unwrap_or(root);
        if let Some(usage) = holder.get("usage").and_then(|node| usage(&node)) {
            counted = Some(later(counted, usage));
        }
    }
    counted
}

/// Counts of a later event over those of an earlier one: each counts all so far, or does not count the input at all.
pub(super) fn later(earlier: Option<Usage>, usage: Usage) -> Usage {
    let before = earlier.unwrap_or_default();
    Usage { input: usage.input.max(before.input), output: usage.output.max(before.output) }
}
