//! Arguments of a call that come in pieces (`partialArgs`, as Vertex AI streams them): each has a path into the arguments and a value.
//!
//! The parts of such a call follow one another; all but the last say `willContinue`.

use serde_json::{Map, Value};

use super::spelling::{named, present};
use crate::surface::{
    fields,
    splice::{Node, member},
};

/// Deepest place in arguments that a path may name.
const DEPTH_MAX: usize = 64;

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into a member of an object.
    Member(String),
    /// Into an element of a list.
    Element(usize),
}

/// What the pieces of a call make together.
#[derive(Debug)]
pub(super) struct PartialArguments {
    arguments: Value,
    /// Whether more parts of the call follow.
    is_open: bool,
}

impl PartialArguments {
    /// Those of a call that begins, where more of it follows or comes in pieces.
    pub(super) fn begun(call: &Node<'_>) -> Option<Self> {
        let members = call.members();
        let is_open = named(&members, "willContinue").is_some_and(|node| node.raw() == "true");
        if !is_open && pieces(call).is_empty() {
            return None;
        }
        let arguments = member(&members, "args").and_then(|args| args.value()).unwrap_or_else(|| Map::new().into());
        let mut partial = Self { arguments, is_open };
        partial.take(call);
        Some(partial)
    }

    /// Whether a part goes on with this call: it names no tool of its own.
    pub(super) fn goes_on_with(&self, call: &Node<'_>) -> bool {
        self.is_open && fields::text(&call.members(), "name").is_empty()
    }

    /// Takes in a part of the call.
    pub(super) fn take(&mut self, call: &Node<'_>) {
        self.is_open = named(&call.members(), "willContinue").is_some_and(|node| node.raw() == "true");
        for piece in pieces(call) {
            let place = steps(&piece).and_then(|steps| place(&mut self.arguments, &steps));
            match (place, value(&piece)) {
                (Some(Value::String(text)), Some(Value::String(more))) => text.push_str(&more),
                (Some(place), Some(value)) => *place = value,
                _ => {}
            }
        }
    }

    /// The arguments, as JSON.
    pub(super) fn json(&self) -> String {
        self.arguments.to_string()
    }
}

/// The pieces that a part has.
pub(super) fn pieces<'a>(call: &Node<'a>) -> Vec<Node<'a>> {
    present(&call.members(), "partialArgs").map(|pieces| pieces.elements()).unwrap_or_default()
}

/// What a piece says.
pub(super) fn value(piece: &Node<'_>) -> Option<Value> {
    let members = piece.members();
    let values = ["stringValue", "numberValue", "boolValue"].iter().find_map(|key| present(&members, key));
    let null = || named(&members, "nullValue").map(|_| Value::Null);
    values.and_then(|node| node.value()).or_else(null)
}

/// The path of a piece; `None` for one that cannot be followed.
pub(super) fn steps(piece: &Node<'_>) -> Option<Vec<PathStep>> {
    let path = named(&piece.members(), "jsonPath")?.string()?;
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() && steps.len() < DEPTH_MAX {
        let step;
        (step, rest) = if let Some(name) = rest.strip_prefix('.') {
            let (name, rest) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            (PathStep::Member(name.to_owned()), rest)
        } else {
            bracketed(rest.strip_prefix('[')?)?
        };
        steps.push(step);
    }
    (rest.is_empty() && !steps.is_empty() && !steps.contains(&PathStep::Member(String::new()))).then_some(steps)
}

/// The step within brackets, and what follows them.
fn bracketed(text: &str) -> Option<(PathStep, &str)> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) else {
        let (number, rest) = text.split_once(']')?;
        return Some((PathStep::Element(number.parse().ok()?), rest));
    };
    let mut name = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            letter if letter == quote => {
                return Some((PathStep::Member(name), text.get(at + 1..)?.strip_prefix(']')?));
            }
            letter => name.push(letter),
        }
    }
    None
}

/// The place of a path, made where it is new. Lists grow by one element at a time.
fn place<'v>(arguments: &'v mut Value, steps: &[PathStep]) -> Option<&'v mut Value> {
    steps.iter().try_fold(arguments, |holder, step| match step {
        PathStep::Member(name) => {
            if holder.is_null() {
                *holder = Map::new().into();
            }
            Some(holder.as_object_mut()?.entry(name.as_str()).or_insert(Value::Null))
        }
        PathStep::Element(number) => {
            if holder.is_null() {
                *holder = Vec::<Value>::new().into();
            }
            let list = holder.as_array_mut()?;
            if *number == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(*number)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_where_their_paths_lead() {
        let parts = [
            r#"{"name":"book","willContinue":true}"#,
            r#"{"partialArgs":[{"jsonPath":"$.city","stringValue":"Os","willContinue":true}],"willContinue":true}"#,
            r#"{"partial_args":[{"json_path":"$.city","string_value":"lo"},{"jsonPath":"$.days[0].count","numberValue":4}],"willContinue":true}"#,
            r#"{"partialArgs":[{"jsonPath":"$.days[1]['a.b']","boolValue":true},{"jsonPath":"$[\"it's\"]","nullValue":"NULL_VALUE"}],"willContinue":true}"#,
            r#"{"partialArgs":[{"jsonPath":"$.days[9]","stringValue":"far"},{"jsonPath":"city","stringValue":"no path"},{"jsonPath":"$.city.x","stringValue":"in a text"}]}"#,
        ];
        let calls: Vec<Node<'_>> = parts.iter().map(|part| Node::parse(part.as_bytes()).expect("JSON")).collect();
        let mut partial = PartialArguments::begun(&calls[0]).expect("a part");
        for call in &calls[1..] {
            assert!(partial.goes_on_with(call), "{}", call.raw());
            partial.take(call);
        }
        assert_eq!(partial.json(), r#"{"city":"Oslo","days":[{"count":4},{"a.b":true}],"it's":null}"#);
        assert!(!partial.goes_on_with(&calls[1]), "it has ended");
        let whole = Node::parse(br#"{"name":"book","args":{}}"#).expect("JSON");
        assert!(PartialArguments::begun(&whole).is_none());
    }
}
