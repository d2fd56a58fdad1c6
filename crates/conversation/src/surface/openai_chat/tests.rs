//! Whole and streamed replies say the same, before and after any edit.

use proptest::prelude::*;

use super::OpenaiChat;
use crate::{
    surface::{Answer, Conversation, Message, Part, Reply, Role, Surface, ToolCall, sse},
    trajectory::Usage,
};

fn answer(index: u32, text: Option<&str>, calls: &[(&str, &str)]) -> Answer {
    let call = |(origin, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("call_{index}_{origin}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
        origin: Some(origin),
    };
    Answer {
        index,
        message: Message {
            parts: text.map(|text| Part::Text(text.to_owned())).into_iter().collect(),
            tool_calls: calls.iter().enumerate().map(call).collect(),
            origin: Some(0),
            ..Message::text_of(Role::Assistant, "")
        },
        finish_reason: Some(if calls.is_empty() { "stop" } else { "tool_calls" }.to_owned()),
    }
}

fn reply(answers: Vec<Answer>) -> Reply {
    let usage = Some(Usage { input: 3, output: 5 });
    Reply { id: "chatcmpl-1".to_owned(), model: "m".to_owned(), answers, usage, ..Reply::default() }
}

/// Edits the reply sent whole and the same reply streamed; both must read as the edited view.
fn check_edit(before: &Reply, edit: impl Fn(&mut Reply)) -> (String, String) {
    let whole = OpenaiChat.compose(before, 7);
    let stream = OpenaiChat.compose_stream(before, 7, true).concat();
    let read_whole = OpenaiChat.read_reply(&whole).expect("a whole reply");
    let read_stream = OpenaiChat.read_stream(&stream).expect("a stream");
    assert_eq!(read_whole, read_stream, "read alike");
    let mut after = read_whole.clone();
    edit(&mut after);
    let edited_whole = OpenaiChat.write_reply(&whole, &read_whole, &after).expect("written whole");
    let edited_stream = OpenaiChat.write_stream(&stream, &read_stream, &after).expect("written as stream");
    let from_whole = OpenaiChat.read_reply(&edited_whole).expect("still a reply");
    let from_stream = OpenaiChat.read_stream(&edited_stream).expect("still a stream");
    assert_eq!(from_whole, from_stream, "the edited stream says what the edited whole reply says");
    assert_eq!(sse::events(&edited_stream).len(), sse::events(&stream).len(), "no frame comes or goes");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("utf-8");
    (text(&edited_whole), text(&edited_stream))
}

#[test]
fn a_text_edit_touches_only_its_frames() {
    let (whole, stream) = check_edit(&reply(vec![answer(0, Some("The total is 12 apples."), &[])]), |after| {
        after.answers[0].message.set_text("The total is 13 apples.");
    });
    assert!(whole.contains("The total is 13 apples."));
    assert!(stream.contains(r#"{"content":" 13"}"#) && stream.contains(r#"{"content":" apples."}"#), "{stream}");
}

#[test]
fn each_choice_is_edited_by_itself() {
    let before = reply(vec![answer(0, Some("one two"), &[]), answer(1, Some("three"), &[])]);
    let (whole, _) = check_edit(&before, |after| after.answers[1].message.set_text("four"));
    assert!(whole.contains("one two") && whole.contains("four"));
}

#[test]
fn a_dropped_first_call_renumbers_the_second() {
    let before = reply(vec![answer(0, None, &[("a", "{}"), ("b", "{\"x\":1}")])]);
    let stream = OpenaiChat.compose_stream(&before, 7, false).concat();
    let read = OpenaiChat.read_stream(&stream).expect("a stream");
    let mut after = read.clone();
    after.answers[0].message.tool_calls.remove(0);
    let edited = OpenaiChat.write_stream(&stream, &read, &after).expect("written");
    let text = String::from_utf8(edited.to_vec()).expect("utf-8");
    assert!(!text.contains(r#""index":1"#) && text.contains(r#""name":"b""#), "{text}");
}

#[test]
fn odd_request_bytes_survive_an_edit_elsewhere() {
    let body = br#"{"temperature":1e5,"messages":[{"role":"system","content":"a\/b \u00e9"},{"content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"x"}}],"role":"user"}],"big":12345678901234567890123,"messages_":0}"#;
    let before = OpenaiChat.read_request(body).expect("a request");
    let mut after = before.clone();
    after.messages[1].set_text("ho");
    let edited = OpenaiChat.write_request(body, &before, &after).expect("written");
    let expected = String::from_utf8(body.to_vec()).expect("utf-8").replace("\"hi\"", "\"ho\"");
    assert_eq!(std::str::from_utf8(&edited), Ok(expected.as_str()));
    let outline = OpenaiChat.outline(body).expect("an outline");
    assert_eq!(outline.prompt(), "a/b é");
    assert_eq!(outline.first_user().as_deref(), Some("hi"));
}

#[test]
fn the_last_of_several_lists_of_messages_is_read_and_edited_and_what_is_no_message_has_no_words() {
    for (body, said) in [
        (r#"{"messages":[ 7, {"role":"user","content":"hi"} ,"x",[{"role":"user"}]],"n":1}"#, Some("|hi||")),
        (r#"{"messages":[{"role":"user","content":"old"}],"messages" : [{"content":"hi","role":"user"}]}"#, Some("hi")),
        (r#"{"messages":null,"model":"m","messages":[{"role":"user","content":"hi"}]}"#, Some("hi")),
        (r#"{"messages":[{"role":"user","content":"hi"}],"messages":null}"#, None),
        (r#"{"messages":[{"role":"user","content":"hi"}],"messages":{"0":"hi"}}"#, None),
    ] {
        let read = OpenaiChat.read_request(body.as_bytes());
        let texts = |read: &Conversation| read.messages.iter().map(Message::text).collect::<Vec<_>>().join("|");
        assert_eq!(read.as_ref().ok().map(texts).as_deref(), said, "{body}");
        let Ok(read) = read else { continue };
        let mut after = read.clone();
        let hi = after.messages.iter_mut().find(|message| message.text() == "hi").expect("it is said");
        hi.parts = vec![Part::Text("ho".to_owned())];
        let written = OpenaiChat.write_request(body.as_bytes(), &read, &after).expect("written");
        assert_eq!(String::from_utf8_lossy(&written), body.replace("hi", "ho"));
    }
}

#[test]
fn requests_that_are_none_are_refused() {
    for body in
        [&b""[..], b"{}", b"[]", b"{\"messages\":3}", b"{\"messages\":[]", b"\xff\xfe", b"\xef\xbb\xbf{}", b"NaN"]
    {
        assert!(OpenaiChat.read_request(body).is_err(), "{body:?}");
        assert!(OpenaiChat.outline(body).is_err(), "{body:?}");
    }
    let twice = br#"{"model":"a","messages":[],"model":"b"}"#;
    assert_eq!(OpenaiChat.outline(twice).expect("duplicate keys: the last counts").model, "b");
}

proptest! {
    #[test]
    fn any_text_edit_reads_back(before in "\\PC{0,40}", after in "\\PC{0,40}", call in proptest::option::of("[a-z]{1,5}")) {
        let calls: Vec<_> = call.iter().map(|name| (name.as_str(), r#"{"q": "some words here"}"#)).collect();
        let text = if before.is_empty() && !calls.is_empty() { None } else { Some(before.as_str()) };
        check_edit(&reply(vec![answer(0, text, &calls)]), |reply| {
            reply.answers[0].message.set_text(after.clone());
            if after.is_empty() && !calls.is_empty() { reply.answers[0].message.parts.clear(); }
        });
    }

    #[test]
    fn a_view_written_unedited_is_the_same_bytes(texts in prop::collection::vec("\\PC{0,30}", 0..5)) {
        let messages: Vec<_> = texts.iter().map(|t| serde_json::json!({"role": "user", "content": t})).collect();
        let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
        let view: Conversation = OpenaiChat.read_request(body.as_bytes()).expect("a request");
        let written = OpenaiChat.write_request(body.as_bytes(), &view, &view.clone()).expect("written");
        prop_assert_eq!(&written[..], body.as_bytes());
    }
}

#[test]
fn a_custom_tools_input_is_read_and_edited_in_a_stream() {
    let stream = concat!(
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"custom\",\"custom\":{\"name\":\"shell\",\"input\":\"\"}}]}}]}\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"custom\":{\"input\":\"ls -l\"}}]}}]}\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let before = OpenaiChat.read_stream(stream.as_bytes()).expect("a stream");
    let call = &before.answers[0].message.tool_calls[0];
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("shell", "ls -l"));
    let mut after = before.clone();
    after.answers[0].message.tool_calls[0].arguments = "ls -a".to_owned();
    let edited = OpenaiChat.write_stream(stream.as_bytes(), &before, &after).expect("a place");
    assert_eq!(std::str::from_utf8(&edited), Ok(stream.replace("ls -l", "ls -a").as_str()));
}

#[test]
fn a_tool_without_a_description_gets_one_and_a_choice_without_a_message_no_words() {
    for kind in ["function", "custom"] {
        let body = format!(r#"{{"model":"m","messages":[],"tools":[{{"type":"{kind}","{kind}":{{"name":"add"}}}}]}}"#);
        let before = OpenaiChat.read_request(body.as_bytes()).expect("a request");
        let mut after = before.clone();
        after.tools[0].description = "Adds.".to_owned();
        let written = OpenaiChat.write_request(body.as_bytes(), &before, &after).expect("written");
        let again = OpenaiChat.read_request(&written).expect("a request");
        assert_eq!(again.tools[0].description, "Adds.", "{kind}");
    }
    let silent = br#"{"choices":[{"message":null,"finish_reason":"stop"}]}"#;
    let before = OpenaiChat.read_reply(silent).expect("a reply");
    let mut after = before.clone();
    after.answers[0].message.set_text("42");
    OpenaiChat.write_reply(silent, &before, &after).expect_err("no place for words");
}

#[test]
fn frames_that_say_what_they_said_keep_what_describes_them() {
    let frame = |text: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":{{\"content\":[1]}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let body = [frame("It is "), frame("Paris"), frame(".")].concat();
    let before = OpenaiChat.read_stream(body.as_bytes()).expect("reads");
    let mut after = before.clone();
    after.answers[0].message.set_text("It is Rome.");
    let written = OpenaiChat.write_stream(body.as_bytes(), &before, &after).expect("writes");
    let edited = frame("Rome").replace("{\"content\":[1]}", "null");
    assert_eq!(String::from_utf8_lossy(&written), [frame("It is "), edited, frame(".")].concat());
}
