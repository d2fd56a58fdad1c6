//! What the upstream keeps of an interaction, said as the input of a later request.

use bytes::Bytes;

use super::{
    reply,
    request::{self, InteractionInput},
    step, stream,
};
use crate::surface::{
    Role, StoredItems, SurfaceError,
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, member},
    sse,
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
    let source = fields::source(body, request::EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(request::EXPECTED, detail))?;
    let members = root.members();
    let mut splices = Splices::default();
    fields::remove_members(source, &root, &members, &["previous_interaction_id"], &mut splices);
    let input = member(&members, "input").filter(|input| !input.is_null());
    let form = input.as_ref().and_then(|input| Some((input, InteractionInput::read(input)?)));
    if let Some((list, InteractionInput::Steps(nodes))) = form {
        let own = (0..nodes.len()).map(|origin| Element::retained(origin, Splices::default()));
        let all: Vec<Element> = told.iter().map(Element::made).chain(own).collect();
        elements::write(source, list, &all, &mut splices);
    } else {
        let own = input.map(|input| steps(&input)).unwrap_or_default();
        let all: Vec<&str> = told.iter().chain(&own).map(String::as_str).collect();
        fields::set(&root, &members, "input", &format!("[{}]", all.join(",")), &mut splices);
    }
    Ok(splices.apply(body))
}
