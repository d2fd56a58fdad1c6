//! What the upstream keeps of a response and its request, said as the input of a later request.

use bytes::Bytes;
use serde_json::json;

use super::{
    item::{self, ItemKind},
    request, stream,
};
use crate::surface::{
    Kept, Message, SurfaceError,
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Member, Node, Splices, member},
};

/// The items of a request and of its reply, each as it is written.
pub(super) fn of(asked: &[u8], replied: &[u8], streamed: bool) -> Result<Kept, SurfaceError> {
    let root = Node::parse(asked).map_err(|detail| unreadable(request::EXPECTED, detail))?;
    let asked = root.get("input").map(|input| items(&input)).unwrap_or_default();
    let source = fields::source(replied, stream::EXPECTED)?;
    let response = if streamed {
        stream::take_apart(source)?.ended.map(|(_, response)| response)
    } else {
        Some(Node::parse(replied).map_err(|detail| unreadable("a response", detail))?)
    };
    let output = response.and_then(|response| response.get("output"));
    Ok(Kept { asked, replied: output.map(|output| items(&output)).unwrap_or_default() })
}

fn items(list: &Node<'_>) -> Vec<String> {
    match list.string() {
        Some(text) => vec![user(&text)],
        None => list.elements().iter().map(|item| item.raw().to_owned()).collect(),
    }
}

fn user(text: &str) -> String {
    json!({"role": "user", "content": text}).to_string()
}

/// An item as a message; nothing where it names another item, which the upstream keeps in its place.
pub(super) fn message(item: &str) -> Option<Message> {
    let item = item::read(&Node::parse(item.as_bytes()).ok()?);
    let names_other = matches!(&item.kind, ItemKind::Other(kind) if kind == "item_reference");
    (!names_other).then(|| item::message([item].iter(), 0))
}

/// An item of a request as a list of items shows it.
pub(super) fn shown(item: &str, instead_of: Option<&str>, digits: &str) -> String {
    let Ok(own) = Node::parse(item.as_bytes()) else { return item.to_owned() };
    let own = own.members();
    let kind = fields::string(&own, "type").unwrap_or_else(|| "message".to_owned());
    let prefix = match kind.as_str() {
        "message" => "msg",
        "function_call" | "function_call_output" => "fc",
        _ => "item",
    };
    let anew = json!({"id": format!("{prefix}_{digits}"), "type": kind, "status": "completed"}).to_string();
    let base = instead_of.unwrap_or(&anew);
    let Ok(place) = Node::parse(base.as_bytes()) else { return item.to_owned() };
    let (members, mut splices) = (place.members(), Splices::default());
    for member in own.iter().rev().filter(|member| member.key != "id" || instead_of.is_none()) {
        let text = member.value.string().filter(|_| member.key == "content");
        let value = text.map_or_else(|| member.value.raw().to_owned(), |text| said(&own, &text));
        fields::set(&place, &members, &member.key, &value, &mut splices);
    }
    String::from_utf8_lossy(&splices.apply(base.as_bytes())).into_owned()
}

/// A text as the content of a message: lists show it as a part.
fn said(message: &[Member<'_>], text: &str) -> String {
    let part = match fields::string(message, "role").as_deref() {
        Some("assistant") => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
        _ => json!({"type": "input_text", "text": text}),
    };
    json!([part]).to_string()
}

/// The request with these items before its own, in place of the response that it goes on from.
pub(super) fn retell(body: &[u8], told: &[String]) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, request::EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(request::EXPECTED, detail))?;
    let members = root.members();
    let mut splices = Splices::default();
    fields::remove_members(source, &root, &members, &["previous_response_id"], &mut splices);
    match member(&members, "input").filter(|input| !input.is_null()) {
        Some(list) if list.is_array() => {
            let own = (0..list.elements().len()).map(|origin| Element::kept(origin, Splices::default()));
            let all: Vec<Element> = told.iter().map(Element::made).chain(own).collect();
            elements::write(source, &list, &all, &mut splices);
        }
        own => {
            let own = own.and_then(|own| own.string()).map(|text| user(&text));
            let all: Vec<String> = told.iter().cloned().chain(own).collect();
            fields::set(&root, &members, "input", &format!("[{}]", all.join(",")), &mut splices);
        }
    }
    Ok(splices.apply(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Vec<String> {
        vec![user("a"), r#"{"type":"message","id":"msg_1","content":[]}"#.to_owned()]
    }

    #[test]
    fn a_request_tells_what_it_went_on_from() {
        for (body, expected) in [
            (
                r#"{"model":"m", "previous_response_id":"resp_1", "input":[ {"role":"user","content":"b"} ], "x":1.0}"#,
                r#"{"model":"m", "input":[ {"content":"a","role":"user"},{"type":"message","id":"msg_1","content":[]},{"role":"user","content":"b"} ], "x":1.0}"#,
            ),
            (
                r#"{"input":"b","previous_response_id":"resp_1"}"#,
                r#"{"input":[{"content":"a","role":"user"},{"type":"message","id":"msg_1","content":[]},{"content":"b","role":"user"}]}"#,
            ),
            (
                r#"{"previous_response_id":"resp_1","conversation":"conv_1"}"#,
                r#"{"input":[{"content":"a","role":"user"},{"type":"message","id":"msg_1","content":[]}],"conversation":"conv_1"}"#,
            ),
        ] {
            let written = retell(body.as_bytes(), &told()).expect("a place");
            let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
            assert_eq!(read(&written), read(expected.as_bytes()), "{}", String::from_utf8_lossy(&written));
            // Everything else keeps its bytes.
            assert_eq!(body.contains("\"x\":1.0"), written.ends_with(b"\"x\":1.0}"), "{body}");
        }
    }

    #[test]
    fn what_is_kept_is_what_was_written() {
        let asked = br#"{"input":[{"role":"user","content":"a\u00e9"}]}"#;
        let output = r#"[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","content":[]}]"#;
        let whole = format!(r#"{{"id":"resp_1","output":{output}}}"#);
        let event =
            format!("event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{whole}}}\n\n");
        for (reply, streamed) in [(&whole, false), (&event, true)] {
            let kept = of(asked, reply.as_bytes(), streamed).expect("kept");
            assert_eq!(kept.asked, [r#"{"role":"user","content":"a\u00e9"}"#], "{streamed}");
            assert_eq!(format!("[{}]", kept.replied.join(",")), output, "{streamed}");
        }
    }
}
