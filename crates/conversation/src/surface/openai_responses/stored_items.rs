//! What the upstream keeps of a response and its request, said as the input of a later request.

use bytes::Bytes;
use serde_json::json;

use super::{request, stream};
use crate::surface::{
    StoredItems, SurfaceError,
    fields::{self, unreadable},
    splice::Node,
    stored_items,
};

/// The items of a request and of its reply, each as it is written.
pub(super) fn stored_items(asked: &[u8], replied: &[u8], streamed: bool) -> Result<StoredItems, SurfaceError> {
    let root = Node::parse(asked).map_err(|detail| unreadable(request::EXPECTED, detail))?;
    let asked = root.get("input").map(|input| items(&input)).unwrap_or_default();
    let source = fields::source(replied, stream::EXPECTED)?;
    let response = if streamed {
        stream::take_apart(source)?.ended.map(|(_, response)| response)
    } else {
        Some(Node::parse(replied).map_err(|detail| unreadable("a response", detail))?)
    };
    let output = response.and_then(|response| response.get("output"));
    Ok(StoredItems { request: asked, reply: output.map(|output| items(&output)).unwrap_or_default() })
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

/// The request with these items before its own, in place of the response that it goes on from.
pub(super) fn retell(body: &[u8], told: &[String]) -> Result<Bytes, SurfaceError> {
    stored_items::with_pieces(body, request::EXPECTED, "previous_response_id", told, |input| {
        (!input.is_array()).then(|| input.string().map(|text| user(&text)).into_iter().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<String> {
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
            let written = retell(body.as_bytes(), &items()).expect("a place");
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
            let kept = stored_items(asked, reply.as_bytes(), streamed).expect("kept");
            assert_eq!(kept.request, [r#"{"role":"user","content":"a\u00e9"}"#], "{streamed}");
            assert_eq!(format!("[{}]", kept.reply.join(",")), output, "{streamed}");
        }
    }
}
