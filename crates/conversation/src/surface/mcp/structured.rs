//! The structured content of a result beside its texts: servers say the same twice, once for programs and once for models.

use serde_json::Value;

use super::request::no_place;
use crate::surface::{
    SurfaceError,
    splice::{Node, Splices, encode_string},
};

/// The member that servers put around what is no object.
const WRAPPER: &str = "result";

/// How the structured content repeats the texts.
#[derive(Debug)]
pub(super) enum Structured<'a> {
    /// The one text is its JSON.
    Whole(Node<'a>),
    /// Each text is one of these values: the value in the wrapper, or the elements of the list in it.
    Values(Vec<Node<'a>>),
    /// It says something of its own, and is read as a further text.
    Own(Node<'a>),
}

impl<'a> Structured<'a> {
    pub(super) fn read(content: Node<'a>, texts: &[String]) -> Self {
        if let [text] = texts
            && is_text_of(text, &content)
        {
            return Self::Whole(content);
        }
        let members = content.members();
        let wrapped = members.first().filter(|only| members.len() == 1 && only.key == WRAPPER).map(|only| only.value);
        match wrapped {
            Some(value) if matches!(texts, [text] if is_text_of(text, &value)) => Self::Values(vec![value]),
            Some(list) if is_said_by(&list.elements(), texts) => Self::Values(list.elements()),
            _ => Self::Own(content),
        }
    }

    /// Writes the edited texts into it. `texts`: all texts of the result, in order, as they are now.
    ///
    /// # Errors
    /// A text that its type has no place for: programs would read the old value.
    pub(super) fn write(&self, texts: &[&str], splices: &mut Splices) -> Result<(), SurfaceError> {
        match self {
            Self::Whole(content) | Self::Own(content) => {
                let Some(text) = texts.last() else { return Ok(()) };
                if is_text_of(text, content) {
                    return Ok(());
                }
                if !Node::parse(text.as_bytes()).is_ok_and(|value| value.is_object()) {
                    return Err(no_place(
                        "the structured content of the result is a JSON object, and the edit makes it none",
                    ));
                }
                splices.replace(content.span(), one_line(text));
            }
            Self::Values(values) => {
                for (value, text) in values.iter().zip(texts).filter(|(value, text)| !is_text_of(text, value)) {
                    splices.replace(value.span(), as_value(value, text)?);
                }
            }
        }
        Ok(())
    }
}

/// A text as a value of the kind that stood there.
fn as_value(old: &Node<'_>, text: &str) -> Result<String, SurfaceError> {
    if old.string().is_some() {
        return Ok(encode_string(text));
    }
    let kind = |node: &Node<'_>| node.value::<Value>().map(|value| std::mem::discriminant(&value));
    let new = Node::parse(text.as_bytes()).ok().filter(|new| kind(new).is_some() && kind(new) == kind(old));
    let new =
        new.ok_or_else(|| no_place("the structured content of the result has another type than the edited text"))?;
    Ok(one_line(new.raw()))
}

/// JSON on one line, as an event has it: line breaks stand between values only.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

fn is_said_by(values: &[Node<'_>], texts: &[String]) -> bool {
    !values.is_empty()
        && values.len() == texts.len()
        && values.iter().zip(texts).all(|(value, text)| is_text_of(text, value))
}

/// Whether a text says a value: in its own words, or as JSON.
fn is_text_of(text: &str, value: &Node<'_>) -> bool {
    if let Some(string) = value.string() {
        return string == text;
    }
    let parsed = serde_json::from_str::<Value>(text).ok();
    parsed.is_some() && parsed == value.value::<Value>()
}
