//! Every block is read, whole and streamed.

use super::AnthropicMessages;
use crate::surface::{Answer, Conversation, Message, Outline, Role, Surface, SurfaceError, ToolCall, ToolChoice};

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

#[test]
fn requests_are_edited_block_by_block() {
    let check = |change: &dyn Fn(&mut Conversation), expected: &[(&str, &str)]| {
        let before = AnthropicMessages.read_request(REQUEST.as_bytes()).expect("a request");
        let mut after = before.clone();
        change(&mut after);
        let written = AnthropicMessages.write_request(REQUEST.as_bytes(), &before, &after).expect("a place");
        let expected = expected.iter().fold(REQUEST.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        assert_eq!(std::str::from_utf8(&written), Ok(expected.as_str()));
        let read = AnthropicMessages.read_request(&written).expect("still a request");
        let plain =
            |c: &Conversation| c.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect::<Vec<_>>();
        assert_eq!(plain(&read), plain(&after));
    };
    check(&|_| {}, &[]);
    check(&|c| c.messages[1].set_text("How low?"), &[("How high?", "How low?")]);
    check(&|c| c.messages[3].set_text("12 m"), &[("324 m", "12 m")]);
    check(&|c| c.messages[4].set_text("all"), &[(r#""text":"none""#, r#""text":"all""#)]);
    check(&|c| c.messages[2].tool_calls[0].arguments = r#"{"a":2}"#.to_owned(), &[(r#"{"a": 1}"#, r#"{"a":2}"#)]);
    check(
        &|c| {
            c.messages.truncate(5);
        },
        &[(r#",{"type":"text","text":"Go on."},{"type":"image","source":{}}"#, "")],
    );
    check(
        &|c| c.messages.push(Message::text_of(Role::User, "Now.")),
        &[(
            r#""source":{}}]}"#,
            "\"source\":{}}]},\n{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Now.\"}]}",
        )],
    );
    check(
        &|c| {
            c.messages[0].parts.pop();
            c.messages[0].set_text("Be idle.");
        },
        &[(
            r#"[{"type":"text","text":"Be the worker.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be short."}]"#,
            r#""Be idle.""#,
        )],
    );
}

#[test]
fn a_new_prompt_joins_the_one_prompt() {
    let prompt = |body: &str, text: &str| {
        let before = AnthropicMessages.read_request(body.as_bytes()).expect("a request");
        let mut after = before.clone();
        after.messages.insert(0, Message::text_of(Role::System, text));
        let written = AnthropicMessages.write_request(body.as_bytes(), &before, &after).expect("a place");
        String::from_utf8(written.to_vec()).expect("utf-8")
    };
    assert_eq!(prompt(r#"{"messages":[]}"#, "a"), r#"{"system":"a","messages":[]}"#);
    assert_eq!(prompt(r#"{"system":"b","messages":[]}"#, "a"), r#"{"system":"a\n\nb","messages":[]}"#);
}

const STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":20,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"It is 12.\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"EqQB\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\",\"citations\":[]}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"The total\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"cited_text\":\"x\"}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\" is 12.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"look\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": 1}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

#[test]
fn streams_are_edited_and_signed_thinking_is_not() {
    let before = AnthropicMessages.read_stream(STREAM.as_bytes()).expect("a stream");
    assert_eq!(before.answers[0].message.text(), "The total is 12.");
    assert_eq!(before.answers[0].message.tool_calls[0].arguments, r#"{"a": 1}"#);
    assert_eq!(before.usage, Some(crate::trajectory::Usage { input: 25, output: 15 }));
    let edited = |change: &dyn Fn(&mut Answer)| {
        let mut after = before.clone();
        change(&mut after.answers[0]);
        let written = AnthropicMessages.write_stream(STREAM.as_bytes(), &before, &after).expect("a place");
        let read = AnthropicMessages.read_stream(&written).expect("still a stream");
        let (read, after) = (&read.answers[0], &after.answers[0]);
        assert_eq!(
            (read.message.text(), read.message.tool_calls.len()),
            (after.message.text(), after.message.tool_calls.len())
        );
        assert_eq!(read.finish_reason, after.finish_reason);
        let written = String::from_utf8(written.to_vec()).expect("utf-8");
        let thinking = |text: &str| text.split_once("\"index\":1").map(|(head, _)| head.to_owned());
        assert_eq!(thinking(&written), thinking(STREAM), "signed thinking keeps its bytes");
        for event in written.split("\n\n").filter(|event| !event.is_empty()) {
            let (kind, data) =
                event.strip_prefix("event: ").and_then(|e| e.split_once("\ndata: ")).expect("both lines");
            let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
            assert_eq!(data["type"], kind);
        }
        written
    };
    let other = edited(&|answer| answer.message.set_text("The total is 13."));
    let citation = STREAM.split_inclusive("\n\n").find(|event| event.contains("citations_delta")).expect("a citation");
    assert_eq!(other, STREAM.replace(citation, "").replace("\" is 12.", "\" is 13."), "and the citation is gone");
    let dropped = edited(&|answer| {
        answer.message.tool_calls.clear();
        answer.finish_reason = Some(Answer::STOPPED.to_owned());
    });
    assert!(!dropped.contains("tool_use") && dropped.contains("\"stop_reason\":\"end_turn\""));
    let more = edited(&|answer| {
        answer.message.tool_calls.push(ToolCall {
            id: "toolu_2".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            origin: None,
        });
    });
    assert!(more.contains("\"index\":3"), "{more}");
    edited(&|answer| answer.message.tool_calls[0].arguments = r#"{"a": 2"#.to_owned());
}

#[test]
fn a_whole_message_holds_no_broken_arguments() {
    let body = br#"{"content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"}"#;
    let before = AnthropicMessages.read_reply(body).expect("a message");
    let mut after = before.clone();
    after.answers[0].message.tool_calls[0].arguments = "{".to_owned();
    let written = AnthropicMessages.write_reply(body, &before, &after);
    assert_eq!(written, Err(SurfaceError::NoPlace("the tool's arguments are no JSON".to_owned())));
}
