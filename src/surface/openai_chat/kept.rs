//! What the upstream keeps of a request whose completion it stores (`store = true`), and lists of it
//! (<https://platform.openai.com/docs/api-reference/chat/getMessages>). The completion itself is kept apart.

use serde_json::json;

use super::message as read;
use crate::surface::{
    Kept, Message, Part, SurfaceError,
    fields::{self, unreadable},
    splice::{Node, Splices, encode_string, member},
};

/// Where a list of messages holds the parts of a message that was sent in parts; its `content` is their text then.
const PARTS: &str = "content_parts";

/// The messages of a request, each as it is written.
pub(super) fn of(asked: &[u8]) -> Result<Kept, SurfaceError> {
    let root = Node::parse(asked).map_err(|detail| unreadable("a chat completion request", detail))?;
    let messages = root.get("messages").map(|messages| messages.elements()).unwrap_or_default();
    Ok(Kept { asked: messages.iter().map(|message| message.raw().to_owned()).collect(), replied: Vec::new() })
}

/// A message of a request, or of a list.
pub(super) fn message(piece: &str) -> Option<Message> {
    let node = Node::parse(piece.as_bytes()).ok()?;
    let mut message = read::read(&node, 0);
    let parts = node.get(PARTS).filter(|parts| !parts.elements().is_empty());
    message.parts = parts.map_or(message.parts, |parts| fields::parts(&parts));
    Some(message)
}

/// A message of a request as a list shows it.
pub(super) fn shown(piece: &str, instead_of: Option<&str>, digits: &str) -> String {
    let Ok(own) = Node::parse(piece.as_bytes()) else { return piece.to_owned() };
    let own = own.members();
    let anew = json!({"id": format!("chatcmpl-{digits}"), "name": null, PARTS: null}).to_string();
    let base = instead_of.unwrap_or(&anew);
    let Ok(place) = Node::parse(base.as_bytes()) else { return piece.to_owned() };
    let (members, mut splices) = (place.members(), Splices::default());
    let mut set = |key: &str, value: &str| fields::set(&place, &members, key, value, &mut splices);
    for own in own.iter().rev().filter(|own| own.key != "content") {
        set(&own.key, own.value.raw());
    }
    if let Some(content) = member(&own, "content") {
        let parts = Some(content).filter(Node::is_array);
        let texts = parts.map(|parts| fields::parts(&parts)).unwrap_or_default();
        let text: Vec<&str> = texts.iter().filter_map(Part::as_text).collect();
        set("content", &parts.map_or(content.raw().to_owned(), |_| encode_string(&text.join("\n"))));
        set(PARTS, parts.map_or("null", |parts| parts.raw()));
    }
    String::from_utf8_lossy(&splices.apply(base.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_over_the_one_in_its_place() {
        for (own, place, expected) in [
            (
                r#"{"role":"user","content":"é\u00e9"}"#,
                Some(r#"{"id":"c-0","role":"user","content":"x","name":null,"content_parts":null}"#),
                r#"{"id":"c-0","role":"user","content":"é\u00e9","name":null,"content_parts":null}"#,
            ),
            (
                r#"{"role":"user","name":"bo","content":[{"type":"text","text":"a"}]}"#,
                Some(r#"{"id":"c-1","role":"user","content":"x","name":null,"content_parts":null}"#),
                r#"{"id":"c-1","role":"user","content":"a","name":"bo","content_parts":[{"type":"text","text":"a"}]}"#,
            ),
            (
                r#"{"role":"user","content":"a"}"#,
                None,
                r#"{"role":"user","content":"a","content_parts":null,"id":"chatcmpl-7","name":null}"#,
            ),
        ] {
            let written = shown(own, place, "7");
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            assert_eq!(value(&written), value(expected), "{written}");
            assert!(place.is_none() || written == expected, "{written}");
            let (said, read) = (message(own).expect("read"), message(&written).expect("read"));
            assert_eq!((said.text(), said.role), (read.text(), read.role));
        }
    }
}
