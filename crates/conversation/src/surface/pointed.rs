//! Edits of single members by their place, whatever they mean: for replies that are to break a client's expectations.

use bytes::Bytes;

use super::{
    SurfaceError, fields,
    splice::{Node, Splices, encode_string},
    sse,
};

/// What becomes of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberEdit {
    /// It goes.
    Drop,
    /// It gets another name.
    Rename(String),
    /// It gets this value, as JSON; where it is missing it is added.
    Set(String),
}

/// Edits the member at a JSON pointer (RFC 6901): of a whole reply, or of each frame of a stream that has its place.
///
/// # Errors
/// [`SurfaceError::NoPlace`] where there is no such member.
pub fn edit_member(body: &[u8], streamed: bool, pointer: &str, edit: &MemberEdit) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, "a reply")?;
    let whole = 0..source.len();
    let spans: Vec<_> =
        if streamed { sse::events(body).into_iter().flat_map(|event| event.data).collect() } else { vec![whole] };
    let mut splices = Splices::default();
    for root in spans.into_iter().filter_map(|span| Node::parse_at(source, span).ok()) {
        edit_in(source, &root, pointer, edit, &mut splices);
    }
    if splices.is_empty() {
        return Err(SurfaceError::NoPlace(format!("the reply has no `{pointer}`")));
    }
    Ok(splices.apply(body))
}

fn decoded(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

fn step<'a>(node: Node<'a>, segment: &str) -> Option<Node<'a>> {
    if node.is_array() {
        return node.elements().into_iter().nth(segment.parse().ok()?);
    }
    node.get(&decoded(segment))
}

fn edit_in(source: &str, root: &Node<'_>, pointer: &str, edit: &MemberEdit, splices: &mut Splices) {
    let Some((parents, key)) = pointer.rsplit_once('/') else { return };
    let holder = parents.split('/').skip(1).try_fold(*root, step).filter(Node::is_object);
    let Some(object) = holder else { return };
    let (key, members) = (decoded(key), object.members());
    let old = object.get(&key);
    match (edit, old) {
        (MemberEdit::Set(value), _) => fields::set(&object, &members, &key, value, splices),
        (MemberEdit::Rename(name), Some(old)) if members.len() == 1 => {
            splices.replace(object.span(), format!("{{{}:{}}}", encode_string(name), old.raw()));
        }
        (MemberEdit::Rename(name), Some(old)) => {
            fields::remove_members(source, &object, &members, &[&key], splices);
            splices.insert_member(&object, name, old.raw());
        }
        (MemberEdit::Drop, Some(_)) => fields::remove_members(source, &object, &members, &[&key], splices),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_go_change_and_are_renamed_and_nothing_else_moves() {
        let body = r#"{ "id":"x", "choices":[ {"message":{"content":"a\u00e9"},"n":1.0} ], "a/b":1 }"#;
        let set = |value: &str| MemberEdit::Set(value.to_owned());
        let rename = |name: &str| MemberEdit::Rename(name.to_owned());
        for (pointer, edit, expected) in [
            ("/id", MemberEdit::Drop, Some(r#"{ "choices":[ {"message":{"content":"a\u00e9"},"n":1.0} ], "a/b":1 }"#)),
            (
                "/choices/0/message",
                set("null"),
                Some(r#"{ "id":"x", "choices":[ {"message":null,"n":1.0} ], "a/b":1 }"#),
            ),
            (
                "/choices/0/message/content",
                rename("text"),
                Some(r#"{ "id":"x", "choices":[ {"message":{"text":"a\u00e9"},"n":1.0} ], "a/b":1 }"#),
            ),
            (
                "/choices/0/n",
                rename("m"),
                Some(r#"{ "id":"x", "choices":[ {"m":1.0,"message":{"content":"a\u00e9"}} ], "a/b":1 }"#),
            ),
            (
                "/a~1b",
                set("[]"),
                Some(r#"{ "id":"x", "choices":[ {"message":{"content":"a\u00e9"},"n":1.0} ], "a/b":[] }"#),
            ),
            (
                "/new",
                set("2"),
                Some(r#"{"new":2, "id":"x", "choices":[ {"message":{"content":"a\u00e9"},"n":1.0} ], "a/b":1 }"#),
            ),
            ("/choices/1/message", MemberEdit::Drop, None),
            ("/choices/0", MemberEdit::Drop, None),
            ("/none", rename("x"), None),
        ] {
            let written = edit_member(body.as_bytes(), false, pointer, &edit).ok();
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            let seen = written.map(|written| String::from_utf8(written.to_vec()).expect("utf-8"));
            assert_eq!(seen.as_deref().map(read), expected.map(read), "{pointer}: {seen:?}");
            assert!(
                seen.is_none_or(|seen| !seen.contains("1.0")
                    || seen.contains("\\u00e9")
                    || pointer.ends_with("message"))
            );
        }
        let stream = b"data: {\"id\":1,\"x\":2}\n\ndata: {\"y\":3}\n\ndata: [DONE]\n\n";
        let written = edit_member(stream, true, "/id", &MemberEdit::Drop).expect("a place");
        assert_eq!(&written[..], b"data: {\"x\":2}\n\ndata: {\"y\":3}\n\ndata: [DONE]\n\n");
    }
}
