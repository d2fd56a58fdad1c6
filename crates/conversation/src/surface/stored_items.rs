//! What an upstream keeps of the calls that it answered.

use bytes::Bytes;

use super::{
    SurfaceError,
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, member},
};

/// What an upstream keeps of an exchange: one piece of JSON for each thing said, as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredItems {
    /// By the request.
    pub request: Vec<String>,
    /// By the reply.
    pub reply: Vec<String>,
}

/// The request with these pieces before those of its `input`, in place of what it goes on from, which the member `continues` names.
/// `pieces_of`: those of an input that is no list of them; nothing where it is one.
pub(super) fn with_pieces(
    body: &[u8],
    expected: &'static str,
    continues: &str,
    pieces: &[String],
    pieces_of: impl Fn(&Node<'_>) -> Option<Vec<String>>,
) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, expected)?;
    let root = Node::parse(body).map_err(|detail| unreadable(expected, detail))?;
    let members = root.members();
    let mut splices = Splices::default();
    fields::remove_members(source, &root, &members, &[continues], &mut splices);
    let input = member(&members, "input").filter(|input| !input.is_null());
    let own = input.as_ref().map_or(Some(Vec::new()), pieces_of);
    if let (Some(list), None) = (&input, &own) {
        let retained = (0..list.elements().len()).map(|origin| Element::retained(origin, Splices::default()));
        let all: Vec<Element> = pieces.iter().map(Element::from_json).chain(retained).collect();
        elements::write(source, list, &all, &mut splices);
    } else {
        let all: Vec<&str> = pieces.iter().chain(own.iter().flatten()).map(String::as_str).collect();
        fields::set(&root, &members, "input", &format!("[{}]", all.join(",")), &mut splices);
    }
    Ok(splices.apply(body))
}
