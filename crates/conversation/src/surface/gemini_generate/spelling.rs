//! Names of members. The API takes each in two spellings, `maxOutputTokens` and `max_output_tokens`, and answers in the first.

use std::borrow::Cow;

use crate::surface::splice::{Member, Node, member};

/// The other spelling of a name in camel case.
fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The member of that name, in either spelling.
pub(super) fn named<'a>(members: &[Member<'a>], camel: &str) -> Option<Node<'a>> {
    member(members, camel).or_else(|| member(members, &snake(camel)))
}

/// The same, where it says anything but `null`.
pub(super) fn present<'a>(members: &[Member<'a>], camel: &str) -> Option<Node<'a>> {
    named(members, camel).filter(|node| !node.is_null())
}

/// The name as an object spells it that has it, otherwise as `like` spells its own members.
pub(super) fn spelled<'c>(members: &[Member<'_>], camel: &'c str, like: &[Member<'_>]) -> Cow<'c, str> {
    let other = snake(camel);
    let is_snake = member(like, camel).is_none() && like.iter().any(|member| member.key.contains('_'));
    if member(members, camel).is_none() && (member(members, &other).is_some() || is_snake) {
        return Cow::Owned(other);
    }
    Cow::Borrowed(camel)
}

/// The name in camel case, however it is spelled.
pub(super) fn camel(name: &str) -> Cow<'_, str> {
    if !name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut is_upper = false;
    let mut camel = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter == '_' {
            is_upper = true;
        } else {
            camel.push(if is_upper { letter.to_ascii_uppercase() } else { letter });
            is_upper = false;
        }
    }
    Cow::Owned(camel)
}

/// The elements of a list, or the one that stands in its place.
pub(super) fn listed<'a>(node: &Node<'a>) -> Vec<Node<'a>> {
    if node.is_object() { vec![*node] } else { node.elements() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name() {
        for (one, other) in [("maxOutputTokens", "max_output_tokens"), ("topP", "top_p"), ("text", "text")] {
            assert_eq!((snake(one).as_str(), &*camel(other)), (other, one));
        }
    }
}
