//! Lists of objects with edits inside them: what stays keeps its bytes, what is new is made.

use super::{
    Tool, fields,
    splice::{Node, Splices, encode_string},
    words::Origin,
};

/// An element of an edited list.
#[derive(Debug)]
pub(super) struct Element {
    origin: Origin,
    splices: Splices,
    made: String,
}

impl Element {
    /// The element that stood at this place, with edits inside it.
    pub(super) fn retained(origin: usize, splices: Splices) -> Self {
        Self { origin: Some(origin), splices, made: String::new() }
    }

    /// A new element, as JSON.
    pub(super) fn from_json(json: impl Into<String>) -> Self {
        Self { origin: None, splices: Splices::default(), made: json.into() }
    }
}

/// Writes an edited list into an array.
pub(super) fn write(source: &str, array: &Node<'_>, elements: &[Element], splices: &mut Splices) {
    let origins: Vec<_> = elements.iter().map(|element| element.origin).collect();
    let edit = |position: usize, _: usize, splices: &mut Splices| {
        if let Some(element) = elements.get(position) {
            splices.append(element.splices.clone());
        }
    };
    let make = |position: usize| elements.get(position).map(|element| element.made.clone()).unwrap_or_default();
    splices.write_array(source, &array.listed(), &origins, edit, make);
}

/// The elements of an edited list of tools. `inner` finds the object that holds name and description; `make` renders
/// a new tool.
pub(super) fn tools<'a>(
    nodes: &[Node<'a>],
    before: &[Tool],
    after: &[Tool],
    inner: impl Fn(&Node<'a>) -> Option<Node<'a>>,
    make: impl Fn(&Tool) -> serde_json::Value,
) -> Vec<Element> {
    let element = |tool: &Tool| {
        let place = tool.origin.and_then(|origin| Some((origin, before.get(origin)?, inner(nodes.get(origin)?)?)));
        let Some((origin, old, object)) = place else { return Element::from_json(make(tool).to_string()) };
        let (members, mut splices) = (object.members(), Splices::default());
        // The upstream's own tools take no words of ours.
        if fields::string(&members, "type").is_some_and(|kind| !matches!(kind.as_str(), "function" | "custom")) {
            return Element::retained(origin, splices);
        }
        for (key, old, new) in [("name", &old.name, &tool.name), ("description", &old.description, &tool.description)] {
            if old != new {
                fields::set(&object, &members, key, &encode_string(new), &mut splices);
            }
        }
        Element::retained(origin, splices)
    };
    after.iter().map(element).collect()
}
