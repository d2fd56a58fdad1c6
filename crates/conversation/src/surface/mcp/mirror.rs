//! Headers that repeat arguments of a call (MCP 2026-07-28, `x-mcp-header`): servers refuse a call whose headers and body differ.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::surface::splice::{Member, Node};

/// How a value begins that a header cannot carry as it is.
const PACKED: &str = "=?base64?";

/// An argument of a call that an edit changed: a string as it is, anything else as its JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedArgument {
    /// Its name, without the objects that it stands in.
    name: String,
    before: String,
    after: String,
}

/// The arguments that differ between two bodies of one call.
pub fn edited_arguments(before: &[u8], after: &[u8]) -> Vec<EditedArgument> {
    fn arguments(body: &[u8]) -> Option<Node<'_>> {
        Node::parse(body).ok()?.get("params")?.get("arguments")
    }
    let mut edited = Vec::new();
    if let Some((before, after)) = arguments(before).zip(arguments(after)) {
        compare(&before, &after, &mut edited);
    }
    edited
}

fn compare(before: &Node<'_>, after: &Node<'_>, edited: &mut Vec<EditedArgument>) {
    for Member { key, value } in before.members() {
        let Some(new) = after.get(&key).filter(|new| new.raw() != value.raw()) else { continue };
        if value.is_object() && new.is_object() {
            compare(&value, &new, edited);
            continue;
        }
        let text = |node: &Node<'_>| node.string().map_or_else(|| node.raw().to_owned(), Into::into);
        edited.push(EditedArgument { name: key.into_owned(), before: text(&value), after: text(&new) });
    }
}

/// The new value of a header that repeats an edited argument. `name`: what the header calls it; of several arguments that had
/// its value, that of its name. `None` where it repeats none of them.
pub fn mirrored(edited: &[EditedArgument], name: &str, value: &str) -> Option<String> {
    let shown = decoded(value)?;
    let same = edited.iter().filter(|argument| argument.before == shown);
    same.max_by_key(|argument| argument.name.eq_ignore_ascii_case(name)).map(|argument| encoded(&argument.after))
}

fn decoded(value: &str) -> Option<String> {
    let Some(packed) = value.strip_prefix(PACKED).and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(packed).ok()?).ok()
}

fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && value.trim() == value;
    if is_plain && !value.starts_with(PACKED) {
        value.to_owned()
    } else {
        format!("{PACKED}{}?=", STANDARD.encode(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_follows_the_argument_that_it_repeats() {
        let body = |arguments: &str| format!(r#"{{"params":{{"arguments":{arguments}}}}}"#);
        let before = body(r#"{"region":"Köln","weight":3,"other":3,"inner":{"city":"a b"}}"#);
        let after = body(r#"{"region":"Århus","weight":4,"other":5,"inner":{"city":"c"}}"#);
        let edited = edited_arguments(before.as_bytes(), after.as_bytes());
        for (name, value, expected) in [
            ("region", "=?base64?S8O2bG4=?=", Some("=?base64?w4VyaHVz?=")),
            ("weight", "3", Some("4")),
            ("other", "3", Some("5")),
            ("town", "a b", Some("c")),
            ("region", "Bonn", None),
        ] {
            assert_eq!(mirrored(&edited, name, value).as_deref(), expected, "{name}");
        }
    }
}
