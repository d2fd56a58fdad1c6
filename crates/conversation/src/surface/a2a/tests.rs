//! Messages of both versions as real peers write them.

use super::*;
use crate::surface::{Part, door, written};

fn texts(body: &Bytes, streamed: bool) -> Vec<String> {
    let read = door::reading(&A2a, body, streamed).expect("a reply");
    assert!(read.unplaced.is_empty(), "{:?}", read.unplaced);
    let parts = &read.view.answers.first().expect("an answer").message.parts;
    parts.iter().filter_map(Part::as_text).map(str::to_owned).collect()
}

#[test]
fn answers_are_read_and_edited_wherever_they_stand() {
    for (result, expected) in [
        (r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"sunny"},{"data":{"n":1}}]}}"#, "sunny"),
        (r#"{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"sunny"}]}"#, "sunny"),
        (
            r#"{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"sunny"}]}],"history":[{"role":"ROLE_USER","parts":[{"text":"How is it?"}]}]}}"#,
            "sunny",
        ),
        (
            r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING","message":{"parts":[{"text":"sunny"}]}}}}"#,
            "sunny",
        ),
        (
            r#"{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"sunny"}]}}"#,
            "sunny",
        ),
    ] {
        let whole = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        let stream = Bytes::from(format!("data: {}\n\n", String::from_utf8_lossy(&whole)));
        for (body, streamed) in [(&whole, false), (&stream, true)] {
            assert_eq!(texts(body, streamed), [expected], "{result}");
            let before = door::reply(&A2a, body, streamed).expect("a reply");
            let mut after = before.clone();
            after.answers[0].message.set_text("rainy");
            let edited = door::write_reply(&A2a, body, streamed, &before, &after).expect("written");
            written::reply(&A2a, &edited, streamed, &before, &after).expect("as it was meant");
            assert_eq!(String::from_utf8_lossy(&edited), String::from_utf8_lossy(body).replace("sunny", "rainy"));
        }
    }
}

#[test]
fn messages_are_read_and_edited() {
    for (method, part) in
        [("SendMessage", r#"{"text":"How is it?"}"#), ("message/stream", r#"{"kind":"text","text":"How is it?"}"#)]
    {
        let body = Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":"1","method":"{method}","params":{{"message":{{"messageId":"m1","parts":[{part}]}}}}}}"#
        ));
        let before = door::request(&A2a, &body).expect("a message");
        assert_eq!(before.messages[0].text(), "How is it?");
        let mut after = before.clone();
        after.messages[0].set_text("How was it?");
        let edited = door::write_request(&A2a, &body, &before, &after).expect("written");
        written::request(&A2a, &body, &edited, &after).expect("as it was meant");
        assert_eq!(String::from_utf8_lossy(&edited), String::from_utf8_lossy(&body).replace("How is", "How was"));
    }
    let asked =
        door::request(&A2a, br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1"}}"#).expect("reads");
    assert_eq!(asked.messages[0].parts, [Part::Opaque("GetTask t1".to_owned())]);
}

fn edited(body: &str, streamed: bool, find: &str, with: &str) -> String {
    let body = Bytes::from(body.to_owned());
    let before = door::reply(&A2a, &body, streamed).expect("a reply");
    let mut after = before.clone();
    after.answers[0].message.texts_mut().for_each(|text| *text = text.replace(find, with));
    let edited = door::write_reply(&A2a, &body, streamed, &before, &after).expect("written");
    written::reply(&A2a, &edited, streamed, &before, &after).expect("as it was meant");
    String::from_utf8(edited.to_vec()).expect("UTF-8")
}

#[test]
fn what_a_task_repeats_of_its_agent_is_edited_with_it() {
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_FAILED","message":{"role":"ROLE_AGENT","parts":[{"text":"The sky fell."}]}},"history":[{"role":"ROLE_USER","parts":[{"text":"The sky fell."}]},{"role":"ROLE_AGENT","parts":[{"text":"The sky fell."}]}]}}}"#;
    let user = r#"{"role":"ROLE_USER","parts":[{"text":"The sky fell."}]}"#;
    let expected = body.replace("sky", "roof").replace(&user.replace("sky", "roof"), user);
    let parts = door::reply(&A2a, body.as_bytes(), false).expect("a reply");
    let mut after = parts.clone();
    after.answers[0].message.set_text("The roof fell.");
    let written = A2a.write_reply(body.as_bytes(), &parts, &after).expect("written");
    assert_eq!(String::from_utf8_lossy(&written), expected);
}

#[test]
fn an_artifact_that_comes_in_pieces_is_one_text() {
    let event = |append: &str, text: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"artifactUpdate\":{{\"artifact\":{{\"artifactId\":\"a\",\"parts\":[{{\"text\":\"{text}\"}}]}}{append}}}}}}}\n\n"
        )
    };
    let on = ",\"append\":true";
    let stream = event("", "Rain in Berlin, ") + &event(on, "then sun in Köln, ") + &event(on, "then snow.");
    assert_eq!(texts(&Bytes::from(stream.clone()), true), ["Rain in Berlin, then sun in Köln, then snow."]);
    let written = edited(&stream, true, "Berlin, then sun", "Bern, and fog");
    assert_eq!(texts(&Bytes::from(written), true), ["Rain in Bern, and fog in Köln, then snow."]);
}
