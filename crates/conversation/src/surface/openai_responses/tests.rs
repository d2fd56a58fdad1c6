//! Whole and streamed responses say the same, before and after any edit.

use std::collections::HashMap;

use serde_json::Value;

use super::OpenaiResponses;
use crate::surface::{
    Answer, Conversation, Message, Outline, Reply, RequiredFormat, Role, Surface, ToolCall, ToolChoice,
};

const REQUEST: &str = r#"{"model":"gpt-5","instructions":"Be the worker.","stream":true,"previous_response_id":"resp_1","max_output_tokens":9,
"conversation":{"id":"conv_1"},"metadata":{"run":"a"},"tool_choice":{"type":"function","name":"look"},
"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},
"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"}},{"type":"web_search"}],
"input":[{"role":"developer","content":"Be short."},{"type":"message","role":"user","content":[{"type":"input_text","text":"How "},{"type":"input_image","image_url":"x"},{"type":"input_text","text":"high?"}]},
{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"a\":1}"},{"type":"reasoning","id":"rs_2","summary":[]},{"type":"custom_tool_call","call_id":"call_2","name":"run","input":"ls"},
{"type":"function_call_output","call_id":"call_1","output":"324 m"},{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"files"}]},
{"type":"item_reference","id":"msg_9"},{"role":"assistant","content":"First."},{"role":"assistant","content":"Second."}]}"#;

#[test]
fn every_item_of_a_request_is_read() {
    let read = OpenaiResponses.read_request(REQUEST.as_bytes()).expect("a request");
    let said: Vec<_> = read.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect();
    let text = |role, text: &str| (role, text.to_owned(), 0);
    assert_eq!(
        said,
        [
            text(Role::System, "Be the worker."),
            text(Role::Developer, "Be short."),
            text(Role::User, "How \nhigh?"),
            (Role::Assistant, "I look.".to_owned(), 2),
            text(Role::Tool, "324 m"),
            text(Role::Tool, "files"),
            text(Role::Other, ""),
            text(Role::Assistant, "First."),
            text(Role::Assistant, "Second."),
        ]
    );
    assert_eq!(read.messages[3].tool_calls[1].arguments, "ls");
    assert_eq!(read.messages[5].answers_call.as_deref(), Some("call_2"));
    assert_eq!((read.continues.as_deref(), read.thread.as_deref()), (Some("resp_1"), Some("conv_1")));
    assert_eq!(read.quotes, ["rs_1", "msg_1", "call_1", "fc_1", "rs_2", "call_2", "call_1", "call_2", "msg_9"]);
    assert_eq!(read.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look", "web_search"]);
    assert!(matches!(&read.format, RequiredFormat::JsonSchema { name, .. } if name == "n"));
    assert_eq!((read.tool_choice, read.max_tokens, read.stream), (ToolChoice::Named("look".to_owned()), Some(9), true));
}

#[test]
fn the_outline_is_what_the_whole_view_says() {
    for body in [
        REQUEST,
        r#"{"input":"Hello","model":"m","user":"u"}"#,
        r#"{"input":null,"previous_response_id":"resp_1"}"#,
        r#"{"input":"a","model":"m","model":"n"}"#,
    ] {
        let outline = OpenaiResponses.outline(body.as_bytes()).expect(body);
        let whole = OpenaiResponses.read_request(body.as_bytes()).expect(body);
        assert_eq!(outline, Outline::from(&whole), "{body}");
    }
}

#[test]
fn requests_that_are_none_are_refused() {
    for body in ["", "{}", "[]", r#"{"input":3}"#, r#"{"input":[]"#, r#"{"messages":[]}"#] {
        assert!(OpenaiResponses.read_request(body.as_bytes()).is_err(), "{body}");
        assert!(OpenaiResponses.outline(body.as_bytes()).is_err(), "{body}");
    }
}

/// A stream with reasoning, an annotated text with token probabilities, two function calls and a custom one.
const EVERYTHING: &[u8] = include_bytes!("fixtures/everything.sse");

fn datas(stream: &[u8]) -> Vec<(String, Value)> {
    let text = String::from_utf8(stream.to_vec()).expect("utf-8");
    let event = |block: &str| {
        let (head, data) = block.split_once("\ndata: ")?;
        Some((head.strip_prefix("event: ")?.to_owned(), serde_json::from_str(data).expect("JSON")))
    };
    text.split("\n\n").filter_map(event).collect()
}

/// What the API promises of every stream: types match, numbers have no gaps, and what is said in pieces is what is
/// said whole, when the text, the part, the item and the response are done.
fn check_promises(stream: &[u8]) {
    let mut events = datas(stream);
    let mut said: HashMap<String, String> = HashMap::new();
    let mut done: Vec<Value> = Vec::new();
    let mut added = Vec::new();
    for (number, (kind, event)) in events.iter().enumerate() {
        assert_eq!(event["type"], kind.as_str());
        assert_eq!(event["sequence_number"], number, "{kind}");
        let key = format!("{}/{}", event["item_id"].as_str().unwrap_or_default(), event["content_index"]);
        match kind.strip_prefix("response.").unwrap_or_default() {
            "output_item.added" => {
                assert_eq!(event["output_index"], added.len(), "items are numbered without gaps");
                added.push(event["item"]["id"].clone());
            }
            "output_text.delta" | "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                said.entry(key).or_default().push_str(event["delta"].as_str().expect("a delta"));
            }
            "output_text.done" => assert_eq!(event["text"], said[&key].as_str()),
            "function_call_arguments.done" => assert_eq!(event["arguments"], said[&key].as_str()),
            "custom_tool_call_input.done" => assert_eq!(event["input"], said[&key].as_str()),
            "content_part.done" => assert_eq!(event["part"]["text"], said[&key].as_str()),
            "output_item.done" => done.push(event["item"].clone()),
            _ => {}
        }
        if let Some(id) = event["item_id"].as_str() {
            assert_eq!(added[usize::try_from(event["output_index"].as_u64().expect("an index")).expect("small")], id);
        }
    }
    let (kind, last) = events.pop().expect("events");
    assert_eq!(kind, format!("response.{}", last["response"]["status"].as_str().expect("a status")));
    assert_eq!(last["response"]["output"], Value::from(done.clone()));
    assert_eq!(done.iter().map(|item| item["id"].clone()).collect::<Vec<_>>(), added);
    for item in done.iter().filter(|item| item["type"] == "function_call") {
        let key = format!("{}/null", item["id"].as_str().expect("an id"));
        assert_eq!(item["arguments"], said.get(&key).cloned().unwrap_or_default());
    }
}

fn edited(change: impl Fn(&mut Answer)) -> String {
    let before = OpenaiResponses.read_stream(EVERYTHING).expect("a stream");
    let mut after = before.clone();
    change(&mut after.answers[0]);
    let written = OpenaiResponses.write_stream(EVERYTHING, &before, &after).expect("a place");
    check_promises(&written);
    let read = OpenaiResponses.read_stream(&written).expect("still a stream");
    // The same edit of the same response sent whole gives the response that ends the stream.
    let response = |stream: &[u8]| datas(stream).pop().expect("an end").1["response"].take();
    let whole = response(EVERYTHING).to_string();
    let read_whole = OpenaiResponses.read_reply(whole.as_bytes()).expect("a response");
    let after_whole = Reply { answers: after.answers.clone(), ..read_whole.clone() };
    let written_whole = OpenaiResponses.write_reply(whole.as_bytes(), &read_whole, &after_whole).expect("a place");
    let written_whole: Value = serde_json::from_slice(&written_whole).expect("JSON");
    assert_eq!(written_whole, response(&written));
    assert_eq!(read.answers[0].message.text(), after.answers[0].message.text());
    String::from_utf8(written.to_vec()).expect("utf-8")
}

#[test]
fn five_places_say_the_edited_text() {
    check_promises(EVERYTHING);
    let stream = edited(|answer| answer.message.set_text("The total is 13 apples."));
    assert_eq!(
        stream.matches("The total is 13 apples.").count(),
        5,
        "done, part, item, response and its text: {stream}"
    );
    assert!(
        !stream.contains("url_citation") && !stream.contains("logprob\""),
        "what pointed into the old text is gone"
    );
    assert!(
        stream.contains("gAAA==") && stream.contains("\"phase\": \"final_answer\"") && stream.contains(": keep-alive")
    );
    let old = String::from_utf8(EVERYTHING.to_vec()).expect("utf-8");
    let reasoning = |text: &str| text.split_once("event: response.output_text").map(|(head, _)| head.to_owned());
    assert_eq!(reasoning(&stream), reasoning(&old), "reasoning keeps its bytes");
}

#[test]
fn items_come_and_go_and_the_numbers_close_up() {
    edited(|answer| {
        answer.message.tool_calls.remove(0);
    });
    edited(|answer| {
        answer.message.tool_calls.clear();
        answer.finish_reason = Some(Answer::STOPPED.to_owned());
    });
    edited(|answer| {
        answer.message.tool_calls[1].arguments = r#"{"b": 3}"#.to_owned();
        answer.message.tool_calls[2].arguments = "rm x".to_owned();
        answer.message.tool_calls[0].name = "mul".to_owned();
    });
    let twice = edited(|answer| {
        let again = ToolCall { id: "call_again".to_owned(), origin: None, ..answer.message.tool_calls[0].clone() };
        answer.message.tool_calls.push(again);
    });
    assert!(twice.contains("fc_again") && twice.contains("\"output_index\":5"));
    let cut = edited(|answer| {
        answer.message.set_text("The");
        answer.finish_reason = Some(Answer::CUT.to_owned());
    });
    assert!(cut.contains("event: response.incomplete\n") && cut.contains("max_output_tokens"));
}

#[test]
fn requests_are_edited_item_by_item() {
    let check = |change: &dyn Fn(&mut Conversation), expected: &[(&str, &str)]| {
        let before = OpenaiResponses.read_request(REQUEST.as_bytes()).expect("a request");
        let mut after = before.clone();
        change(&mut after);
        let written = OpenaiResponses.write_request(REQUEST.as_bytes(), &before, &after).expect("a place");
        let expected = expected.iter().fold(REQUEST.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        assert_eq!(std::str::from_utf8(&written), Ok(expected.as_str()));
        let read = OpenaiResponses.read_request(&written).expect("still a request");
        let plain =
            |c: &Conversation| c.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect::<Vec<_>>();
        assert_eq!(plain(&read), plain(&after));
    };
    check(&|_| {}, &[]);
    check(&|c| c.messages[0].set_text("Be idle."), &[("Be the worker.", "Be idle.")]);
    check(&|c| c.messages[4].set_text("12 m"), &[("324 m", "12 m")]);
    check(&|c| c.messages[5].set_text("none"), &[(r#""text":"files""#, r#""text":"none""#)]);
    check(&|c| c.messages[3].tool_calls[1].arguments = "pwd".to_owned(), &[(r#""input":"ls""#, r#""input":"pwd""#)]);
    check(&|c| c.messages[3].set_text("I run."), &[("I look.", "I run.")]);
    check(&|c| drop(c.messages.pop()), &[(r#",{"role":"assistant","content":"Second."}"#, "")]);
    check(
        &|c| c.messages.push(Message::text_of(Role::User, "Go on.")),
        &[(r#""Second."}]"#, r#""Second."},{"role":"user","content":"Go on."}]"#)],
    );
    check(
        &|c| drop(c.tools.remove(0)),
        &[(r#"{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"}},"#, "")],
    );
}

#[test]
fn a_text_becomes_a_list_where_two_messages_need_it() {
    let body = br#"{"input":"Hello","model":"m"}"#;
    let before = OpenaiResponses.read_request(body).expect("a request");
    let mut after = before.clone();
    after.messages[0].set_text("Bye");
    let written = OpenaiResponses.write_request(body, &before, &after).expect("a place");
    assert_eq!(&written[..], br#"{"input":"Bye","model":"m"}"#);
    after.messages.insert(0, Message::text_of(Role::System, "Be rude."));
    let written = OpenaiResponses.write_request(body, &before, &after).expect("a place");
    let expected = r#"{"input":[{"role":"system","content":"Be rude."},{"role":"user","content":"Bye"}],"model":"m"}"#;
    assert_eq!(std::str::from_utf8(&written), Ok(expected));
}
