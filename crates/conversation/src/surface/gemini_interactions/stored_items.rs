//! What the upstream keeps of an interaction, said as the input of a later request.

use bytes::Bytes;

use super::{
    reply,
    request::{self, InteractionInput},
    step, stream,
};
use crate::surface::{
    Role, StoredItems, SurfaceError,
    fields::{self, unreadable},
    splice::Node,
    sse, stored_items,
};

/// The steps of a request and of its reply, each as it is written.
pub(super) fn stored_items(asked: &[u8], replied: &[u8], streamed: bool) -> Result<StoredItems, SurfaceError> {
    let root = Node::parse(asked).map_err(|detail| unreadable(request::EXPECTED, detail))?;
    let request = root.get("input").map(|input| steps(&input)).unwrap_or_default();
    let source = fields::source(replied, stream::EVENTS.expected)?;
    if streamed {
        let source = sse::single_lines(source);
        let reply = stream::whole_steps(&stream::EVENTS.take_apart(&source)?);
        return Ok(StoredItems { request, reply });
    }
    let root = Node::parse(replied).map_err(|detail| unreadable(reply::EXPECTED, detail))?;
    let list = reply::steps(&root.members()).map(|list| list.elements()).unwrap_or_default();
    Ok(StoredItems { request, reply: list.iter().map(|step| step.raw().to_owned()).collect() })
}

/// An input as steps.
fn steps(input: &Node<'_>) -> Vec<String> {
    match InteractionInput::read(input) {
        Some(InteractionInput::Text(node)) => {
            vec![step::output(Role::User, &node.string().unwrap_or_default()).to_string()]
        }
        Some(InteractionInput::Contents(nodes)) => {
            let contents: Vec<&str> = nodes.iter().map(Node::raw).collect();
            vec![format!("{{\"type\":\"user_input\",\"content\":[{}]}}", contents.join(","))]
        }
        Some(InteractionInput::Steps(nodes)) => nodes.iter().map(|node| node.raw().to_owned()).collect(),
        None => Vec::new(),
    }
}

/// The request with these steps before its own, in place of the interaction that it goes on from.
pub(super) fn retell(body: &[u8], told: &[String]) -> Result<Bytes, SurfaceError> {
    stored_items::with_pieces(body, request::EXPECTED, "previous_interaction_id", told, |input| {
        (!matches!(InteractionInput::read(input), Some(InteractionInput::Steps(_)))).then(|| steps(input))
    })
}
