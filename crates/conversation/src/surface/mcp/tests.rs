//! Messages as real servers and clients write them.

use super::*;
use crate::surface::{Part, answering, door, written};

const CALL: &str = r#"{"method":"tools/call","params":{"name":"add","arguments":{"a": 2,"b":3.50},"_meta":{"progressToken":7}},"jsonrpc":"2.0","id":7}"#;

fn result(result: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc": "2.0", "id": 7, "result": {result}}}"#))
}

fn texts(body: &Bytes, streamed: bool) -> Vec<String> {
    let read = door::reading(&Mcp, body, streamed).expect("a reply");
    assert!(read.unplaced.is_empty(), "{:?}", read.unplaced);
    let parts = &read.view.answers.first().expect("an answer").message.parts;
    parts.iter().filter_map(Part::as_text).map(str::to_owned).collect()
}

/// Replaces the text of a reply as an edit does: read, edited, written, read again.
fn edited(body: &Bytes, streamed: bool, new: &str) -> Result<String, String> {
    let before = door::reply(&Mcp, body, streamed).map_err(|error| error.to_string())?;
    let mut after = before.clone();
    after.answers.iter_mut().for_each(|answer| answer.message.set_text(new));
    let written = door::write_reply(&Mcp, body, streamed, &before, &after).map_err(|error| error.to_string())?;
    written::reply(&Mcp, &written, streamed, &before, &after)?;
    Ok(String::from_utf8(written.to_vec()).expect("UTF-8"))
}

#[test]
fn paths_and_messages() {
    for (method, path, expected) in [
        ("POST", "/mcp/calc", true),
        ("POST", "/mcp/calc/more", true),
        ("GET", "/mcp/calc", false),
        ("POST", "/mcp/", false),
        ("POST", "/mcp//", false),
        ("POST", "/v1/mcp/calc", false),
    ] {
        assert_eq!(Mcp.matches(method, path), expected, "{method} {path}");
    }
    assert_eq!(Mcp.called(CALL.as_bytes()).as_deref(), Some("add"));
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(Mcp.called(notice.as_bytes()), None);
    let about = Mcp.read_request(notice.as_bytes()).expect("a notice");
    assert_eq!(about.messages[0].parts, [Part::Opaque("notifications/cancelled 7".to_owned())]);
}

#[test]
fn a_call_is_read_and_its_arguments_are_edited_in_place() {
    let before = Mcp.read_request(CALL.as_bytes()).expect("a call");
    let call = &before.messages[0].tool_calls[0];
    assert_eq!((&*call.id, &*call.name, &*call.arguments), ("7", "add", r#"{"a": 2,"b":3.50}"#));
    let with = |arguments: &str, name: &str| {
        let mut after = before.clone();
        let call = &mut after.messages[0].tool_calls[0];
        (call.arguments, call.name) = (arguments.to_owned(), name.to_owned());
        let written = Mcp.write_request(CALL.as_bytes(), &before, &after).map_err(|error| error.to_string())?;
        written::request(&Mcp, CALL.as_bytes(), &written, &after)?;
        Ok::<_, String>(String::from_utf8(written.to_vec()).expect("UTF-8"))
    };
    assert_eq!(with(r#"{"a": 2,"b":4}"#, "add"), Ok(CALL.replace("3.50", "4")));
    assert!(with("[1]", "add").is_err_and(|why| why.contains("a JSON object")));
    assert!(with("{}", "sub").is_err_and(|why| why.contains("headers")));
    let bare = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"now"}}"#;
    assert_eq!(Mcp.read_request(bare.as_bytes()).expect("a call").messages[0].tool_calls[0].arguments, "{}");
}

#[test]
fn results_are_read_and_edited_in_text_and_in_structure() {
    for (body, read, new, expected) in [
        (
            r#"{"content":[{"type":"text","text":"5"}]}"#,
            vec!["5"],
            "6",
            Ok(r#"{"content":[{"type":"text","text":"6"}]}"#),
        ),
        (
            r#"{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5},"isError":false}"#,
            vec!["5"],
            "6",
            Ok(r#"{"content":[{"type":"text","text":"6"}],"structuredContent":{"result":6},"isError":false}"#),
        ),
        (
            r#"{"content":[{"type":"text","text":"five"}],"structuredContent":{"result":"five"}}"#,
            vec!["five"],
            "six",
            Ok(r#"{"content":[{"type":"text","text":"six"}],"structuredContent":{"result":"six"}}"#),
        ),
        (
            r#"{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5}}"#,
            vec!["5"],
            "none",
            Err("another type"),
        ),
        (
            r#"{"content":[{"type":"text","text":"{\"n\": 1}"}],"structuredContent":{"n":1}}"#,
            vec![r#"{"n": 1}"#],
            r#"{"n":2}"#,
            Ok(r#"{"content":[{"type":"text","text":"{\"n\":2}"}],"structuredContent":{"n":2}}"#),
        ),
        (
            r#"{"content":[{"type":"text","text":"{\n \"n\": 1\n}"}],"structuredContent":{"n":1}}"#,
            vec!["{\n \"n\": 1\n}"],
            "{\n \"n\": 2\n}",
            Ok(r#"{"content":[{"type":"text","text":"{\n \"n\": 2\n}"}],"structuredContent":{  "n": 2 }}"#),
        ),
        (
            r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"a plot"}]}"#,
            vec!["a plot"],
            "none",
            Ok(r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"none"}]}"#),
        ),
        (
            r#"{"contents":[{"uri":"file:///a","text":"hello"}]}"#,
            vec!["hello"],
            "x",
            Ok(r#"{"contents":[{"uri":"file:///a","text":"x"}]}"#),
        ),
        (r#"{"tools":[{"name":"add","inputSchema":{}}]}"#, vec![], "x", Err("no text")),
    ] {
        let whole = result(body);
        assert_eq!(texts(&whole, false), read, "{body}");
        let event = |body: &str| {
            let progress = r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1,"message":"half"},"jsonrpc":"2.0"}"#;
            let last = String::from_utf8(result(body).to_vec()).expect("UTF-8");
            Bytes::from(format!(
                ": hi\r\nevent: message\r\ndata: {progress}\r\n\r\nid: 3\r\nevent: message\r\ndata: {last}\r\n\r\n"
            ))
        };
        assert_eq!(texts(&event(body), true), read, "{body}");
        for streamed in [false, true] {
            let form = |body: &str| if streamed { event(body) } else { result(body) };
            match (edited(&form(body), streamed, new), expected) {
                (Ok(written), Ok(expected)) => assert_eq!(written.as_bytes(), &form(expected)[..], "{body}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{body}: {why}"),
                (written, _) => panic!("{body}: {written:?}"),
            }
        }
    }
}

#[test]
fn lists_that_are_said_twice_are_edited_in_both_places() {
    let body = result(
        r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"2"}],"structuredContent":{"result":[1,2]}}"#,
    );
    let before = Mcp.read_reply(&body).expect("a result");
    let mut after = before.clone();
    after.answers[0].message.parts[1] = Part::Text("9".to_owned());
    let written = Mcp.write_reply(&body, &before, &after).expect("written");
    let expected =
        r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"9"}],"structuredContent":{"result":[1,9]}}"#;
    assert_eq!(written, result(expected));
}

#[test]
fn how_a_call_ended() {
    use crate::{surface::ending, trajectory::CloseCause};
    let error = Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: x"}}"#);
    let failed = result(r#"{"content":[{"type":"text","text":"no such key"}],"isError":true}"#);
    for (status, body, is_answered, is_error) in [
        (200, result(r#"{"content":[{"type":"text","text":"5"}]}"#), true, false),
        (200, result(r#"{"tools":[]}"#), true, false),
        (200, failed, true, false),
        (200, error.clone(), false, true),
        (400, error, false, true),
        (202, Bytes::new(), true, false),
    ] {
        let ending = ending(Some(&Mcp), CloseCause::Complete, Some(status), &body, false);
        assert_eq!((ending.is_answered(), ending.is_error()), (is_answered, is_error), "{status} {body:?}: {ending:?}");
    }
}

#[test]
fn a_recorded_reply_answers_another_request_by_its_id() {
    let reply = result(r#"{"content":[{"type":"text","text":"id 7"}]}"#);
    let request = CALL.replace(r#""id":7}"#, r#""id":"c-9"}"#);
    let answered = answering(request.as_bytes(), &reply, false);
    assert_eq!(
        &answered[..],
        String::from_utf8(reply.to_vec()).expect("UTF-8").replace(r#""id": 7"#, r#""id": "c-9""#).as_bytes()
    );
    assert_eq!(answering(CALL.as_bytes(), &reply, false), reply);
    let stream = Bytes::from_static(
        b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":7,\"result\":{}}\n\n",
    );
    let expected =
        b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":\"c-9\",\"result\":{}}\n\n";
    assert_eq!(&answering(request.as_bytes(), &stream, true)[..], expected);
}
