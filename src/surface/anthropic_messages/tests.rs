//! Every block is read, whole and streamed.

use super::AnthropicMessages;
use crate::surface::{Outline, Role, Surface, ToolChoice};

const REQUEST: &str = r#"{"model":"claude","max_tokens":64,"system":[{"type":"text","text":"Be the worker.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be short."}],
"metadata":{"user_id":"u1"},"stop_sequences":["END"],"tool_choice":{"type":"any"},"stream":true,
"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}}],
"messages":[{"role":"user","content":"How high?"},
{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"look","input":{"a": 1}},{"type":"tool_use","id":"toolu_2","name":"look","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"324 m"},{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"none"}]},{"type":"text","text":"Go on."},{"type":"image","source":{}}]}]}"#;

#[test]
fn every_block_of_a_request_is_read() {
    let read = AnthropicMessages.read_request(REQUEST.as_bytes()).expect("a request");
    let said: Vec<_> = read.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect();
    let text = |role, text: &str| (role, text.to_owned(), 0);
    assert_eq!(
        said,
        [
            text(Role::System, "Be the worker.\nBe short."),
            text(Role::User, "How high?"),
            (Role::Assistant, "I look.".to_owned(), 2),
            text(Role::Tool, "324 m"),
            text(Role::Tool, "none"),
            text(Role::User, "Go on."),
        ]
    );
    assert_eq!(read.messages[2].tool_calls[0].arguments, r#"{"a": 1}"#);
    assert_eq!(read.quotes, ["toolu_1", "toolu_2", "toolu_1", "toolu_2"]);
    assert_eq!((read.user.as_deref(), read.max_tokens, read.tool_choice), (Some("u1"), Some(64), ToolChoice::Required));
    assert!(read.messages.iter().enumerate().all(|(at, message)| message.origin == Some(at)));
}

#[test]
fn the_outline_is_what_the_whole_view_says() {
    let results = r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"y"}]}]}"#;
    for body in
        [REQUEST, results, r#"{"messages":[{"role":"user","content":"a"}],"model":"m","model":"n","system":"s"}"#]
    {
        let outline = AnthropicMessages.outline(body.as_bytes()).expect(body);
        let whole = AnthropicMessages.read_request(body.as_bytes()).expect(body);
        assert_eq!(outline, Outline::from(&whole), "{body}");
    }
}

#[test]
fn paths_of_other_apis_are_left_alone() {
    for (path, speaks) in [("/v1/messages", true), ("/anthropic/v1/messages", true), ("/v1/threads/t/messages", false)]
    {
        assert_eq!(AnthropicMessages.matches("POST", path), speaks, "{path}");
    }
}
