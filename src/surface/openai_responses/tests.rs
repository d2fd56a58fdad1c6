//! Whole and streamed responses say the same, before and after any edit.

use super::OpenaiResponses;
use crate::surface::{Format, Outline, Role, Surface, ToolChoice};

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
    assert!(matches!(&read.format, Format::JsonSchema { name, .. } if name == "n"));
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
