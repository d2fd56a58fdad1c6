//! A whole response: reading it, and splicing an edited view into it.

use bytes::Bytes;

use super::{changes, item};
use crate::{
    surface::{
        Reply, SurfaceError,
        fields::{self, number, text, unreadable},
        splice::{Node, Splices, member},
    },
    trajectory::Usage,
};

const EXPECTED: &str = "a response";

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    read_response(&root).ok_or_else(|| unreadable(EXPECTED, "`output` is missing or is no list"))
}

/// Reads a response object.
pub(super) fn read_response(root: &Node<'_>) -> Option<Reply> {
    let members = root.members();
    let output = member(&members, "output").filter(Node::is_array)?;
    let items: Vec<_> = output.elements().iter().map(item::read).collect();
    Some(Reply {
        id: text(&members, "id"),
        model: text(&members, "model"),
        items: items.iter().filter_map(|item| item.id.clone()).collect(),
        answers: vec![item::answer(&items, item::finish(root))],
        utterances: item::utterances(&items),
        usage: member(&members, "usage").and_then(|node| usage(&node)),
        ..Reply::default()
    })
}

/// The id of a response that is still being made, as its status says.
pub(super) fn in_the_making(body: &[u8]) -> Option<String> {
    let root = Node::parse(body).ok()?;
    let members = root.members();
    let id = Some(text(&members, "id")).filter(|id| !id.is_empty());
    id.filter(|_| matches!(text(&members, "status").as_str(), "queued" | "in_progress"))
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    // A response in the background is fetched when it is made: this is not yet what the model says.
    if root.get("status").is_some_and(|status| matches!(status.raw(), "\"queued\"" | "\"in_progress\"")) {
        return Err(SurfaceError::NoPlace("the response is still being made, in the background".to_owned()));
    }
    let output = root.get("output").map(|output| output.elements()).unwrap_or_default();
    let items: Vec<_> = output.iter().map(item::read).collect();
    let (old, new) = before.only_answers(after)?;
    let mut splices = Splices::default();
    changes::compare(&items, old, new, before).write(source, &root, &items, &mut splices);
    Ok(splices.apply(body))
}

/// Token counts of a `usage` object.
pub(super) fn usage(node: &Node<'_>) -> Option<Usage> {
    let members = node.members();
    let (input, output) = (number(&members, "input_tokens"), number(&members, "output_tokens"));
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// Token counts without the rest: of a whole response, or of the event that ends a streamed one.
pub(super) fn usage_of(body: &[u8], streamed: bool) -> Option<Usage> {
    let of = |root: &Node<'_>| {
        let response = root.get("response").unwrap_or(*root);
        usage(&response.get("usage")?)
    };
    fields::last_counted(body, streamed, of)
}
