//! The shape that an answer must keep: JSON stays JSON of its schema, and words are looked for only where they are
//! said, never in keys or escapes.

use serde_json::Value;

use super::json_text::{self, LeafKind};
use super::{ManipulatorError, not_applicable};
use crate::surface::{Answer, RequiredFormat, schema};

/// What a text is to an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextShape {
    /// Free text.
    Text,
    /// A JSON object or array: only its values may be edited.
    Json,
}

/// The shape of a text that is an answer in this format.
///
/// # Errors
/// [`ManipulatorError::NotApplicable`] when JSON was asked for and the text is none.
pub(super) fn shape(text: &str, format: &RequiredFormat) -> Result<TextShape, ManipulatorError> {
    match (json_text::leaves(text), format) {
        (Some(_), _) => Ok(TextShape::Json),
        (None, RequiredFormat::Text) => Ok(TextShape::Text),
        (None, _) => not_applicable("the answer is not the JSON that was asked for"),
    }
}

/// The text with everything that is not said blanked out, byte for byte: JSON keys, brackets, booleans and escapes.
pub(super) fn visible(text: &str, shape: TextShape) -> String {
    if shape == TextShape::Text {
        return text.to_owned();
    }
    let mut bytes = vec![b' '; text.len()];
    for leaf in json_text::leaves(text).unwrap_or_default().into_iter().filter(|leaf| leaf.kind != LeafKind::Boolean) {
        let (Some(from), Some(to)) = (text.as_bytes().get(leaf.range.clone()), bytes.get_mut(leaf.range)) else {
            continue;
        };
        to.copy_from_slice(from);
        if leaf.kind == LeafKind::String {
            blank_escapes(to);
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Checks that an edited answer still has the required shape.
///
/// # Errors
/// [`ManipulatorError::NotApplicable`] when its text changed and is not JSON of the schema.
pub(super) fn keep(before: &Answer, after: &Answer, format: &RequiredFormat) -> Result<(), ManipulatorError> {
    let text = after.message.text();
    if *format == RequiredFormat::Text || text == before.message.text() {
        return Ok(());
    }
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return not_applicable("the answer must be JSON, and the edited text would not be");
    };
    match format {
        RequiredFormat::JsonSchema { schema, name } => {
            let old = serde_json::from_str::<Value>(&before.message.text()).ok();
            match schema::misfit(schema, old.as_ref(), &value) {
                Some(why) => {
                    not_applicable(format!("the answer must fit the schema `{name}`, and the edited one: {why}"))
                }
                None => Ok(()),
            }
        }
        RequiredFormat::JsonObject if !value.is_object() => not_applicable("the answer must be a JSON object"),
        _ => Ok(()),
    }
}

/// `\u0041` becomes letters, so that digits beside it stay part of a word; `\n` a line break; other escapes blanks.
fn blank_escapes(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let escape = rest.get(at + 1).copied();
        let (length, with) = if escape == Some(b'u') { (6, b'x') } else { (2, b' ') };
        let end = (at + length).min(rest.len());
        let (done, tail) = rest.split_at_mut(end);
        if let Some(escaped) = done.get_mut(at..) {
            escaped.fill(with);
        }
        if escape == Some(b'n')
            && let Some(last) = done.last_mut()
        {
            *last = b'\n';
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::surface::{Message, Role};

    #[test]
    fn only_what_is_said_is_visible() {
        for (text, expected) in [
            ("plain 12", "plain 12"),
            (r#"{"a1":"é 2\n3","b":[4,true,null]}"#, "       é 2 \n3       4           "),
            (r#"["\u00e912"]"#, "  xxxxxx12  "),
            (r#"["\\n5"]"#, "    n5  "),
        ] {
            let shape = shape(text, &RequiredFormat::Text).expect("any");
            let seen = visible(text, shape);
            assert_eq!(seen.len(), text.len(), "{text}");
            assert_eq!(seen.replace(['\n'], "\n").trim(), expected.trim(), "{text}");
        }
    }

    #[test]
    fn a_required_shape_is_kept() {
        let answer =
            |text: &str| Answer { index: 0, message: Message::text_of(Role::Assistant, text), finish_reason: None };
        let schema = RequiredFormat::JsonSchema {
            name: "v".to_owned(),
            schema: json!({"properties": {"ok": {"type": "boolean"}}}),
        };
        for (after, format, kept) in [
            ("anything", &RequiredFormat::Text, true),
            ("{\"ok\": false}", &RequiredFormat::JsonObject, true),
            ("[1]", &RequiredFormat::JsonObject, false),
            ("{", &RequiredFormat::JsonObject, false),
            ("{\"ok\": 1}", &schema, false),
            ("{\"ok\": false}", &schema, true),
        ] {
            assert_eq!(keep(&answer("{\"ok\": true}"), &answer(after), format).is_ok(), kept, "{after}");
        }
    }
}
