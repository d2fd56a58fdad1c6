//! Tests of [`super::ending`]: surface × whole and streamed × each way in which a call ends, most of them inside a 200. Bodies are
//! those of providers, cut to what decides.

use super::{
    Answer, AnthropicMessages, Message, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses, Reply, Role,
    Surface, ending,
};
use crate::trajectory::{CallEnding, CloseCause, RefusalKind};

const RATE: CallEnding = CallEnding::Refused(RefusalKind::Rate);
const TOO_LONG: CallEnding = CallEnding::Refused(RefusalKind::TooLong);
const CONTENT: CallEnding = CallEnding::Refused(RefusalKind::Content);
const OTHER: CallEnding = CallEnding::Refused(RefusalKind::Other);

/// An event of a stream.
pub(super) fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

pub(super) fn ending_of(surface: &dyn Surface, body: &str, streamed: bool) -> CallEnding {
    ending(Some(surface), CloseCause::Complete, Some(200), body.as_bytes(), streamed)
}

/// The beginning of a stream that says something, and the end of one that is answered.
pub(super) fn frames(surface: &dyn Surface) -> (String, String) {
    let message = Message::text_of(Role::Assistant, "It is 42.");
    let answer = Answer { index: 0, message, finish_reason: Some("stop".to_owned()) };
    let reply = Reply { answers: vec![answer], id: "r1".to_owned(), ..Reply::default() };
    let frames = surface.compose_stream(&reply, 0, false);
    let text = |frames: &[bytes::Bytes]| String::from_utf8(frames.concat()).expect("UTF-8");
    let (said, rest) = frames.split_at(frames.len() / 2 + 1);
    (text(said), text(rest))
}

#[test]
fn a_chat_completion_ends_by_its_finish_reason() {
    for (reason, expected) in [
        ("stop", CallEnding::Answered),
        ("length", CallEnding::Answered),
        ("tool_calls", CallEnding::Answered),
        ("function_call", CallEnding::Answered),
        ("eos_token", CallEnding::Answered),
        ("model_length", CallEnding::Answered),
        ("STOP", CallEnding::Answered),
        ("error", CallEnding::Failed),
        ("network_error", CallEnding::Failed),
        ("insufficient_system_resource", CallEnding::Failed),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", CallEnding::Failed),
        ("abort", CallEnding::Cut),
        ("content_filter", CONTENT),
        ("content_filter: SAFETY", CONTENT),
        ("SAFETY", CONTENT),
        ("sensitive", CONTENT),
        ("cancelled", CallEnding::Abandoned),
    ] {
        let choice = |inner: &str, reason: &str| {
            format!(r#"{{"id":"c","choices":[{{"index":0,{inner},"finish_reason":{reason}}}]}}"#)
        };
        let quoted = format!("\"{reason}\"");
        let chat = choice(r#""message":{"role":"assistant","content":"It is"}"#, &quoted);
        assert_eq!(ending_of(&OpenaiChat, &chat, false), expected, "{reason}");
        let completion = choice(r#""text":"It is""#, &quoted);
        assert_eq!(ending_of(&OpenaiCompletions, &completion, false), expected, "{reason}");
        let said = event(&choice(r#""delta":{"role":"assistant","content":"It is"}"#, "null"));
        let end = event(&choice(r#""delta":{}"#, &quoted));
        let usage = event(r#"{"id":"c","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#);
        for stream in [format!("{said}{end}"), format!("{said}{end}{usage}data: [DONE]\n\n")] {
            assert_eq!(ending_of(&OpenaiChat, &stream, true), expected, "{stream}");
        }
    }
    // What OpenRouter says in a choice, and of two alternatives one that is an answer.
    let inner = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error","error":{"code":429,"message":"slow down"}}]}"#;
    assert_eq!(ending_of(&OpenaiChat, inner, false), RATE);
    let two = r#"{"choices":[{"index":0,"message":{"content":""},"finish_reason":"content_filter"},{"index":1,"message":{"content":"42"},"finish_reason":"stop"}]}"#;
    assert_eq!(ending_of(&OpenaiChat, two, false), CallEnding::Answered);
}

#[test]
fn a_response_ends_by_its_status() {
    let response = |status: &str, more: &str| {
        format!(
            r#"{{"id":"r","object":"response","status":"{status}","output":[{{"type":"message","id":"m","role":"assistant","content":[{{"type":"output_text","text":"It is"}}]}}],"error":null{more}}}"#
        )
    };
    for (kind, status, more, expected) in [
        ("completed", "completed", "", CallEnding::Answered),
        ("incomplete", "incomplete", r#","incomplete_details":{"reason":"max_output_tokens"}"#, CallEnding::Answered),
        ("incomplete", "incomplete", r#","incomplete_details":{"reason":"content_filter"}"#, CONTENT),
        ("failed", "failed", r#","error":{"code":"server_error","message":"An error occurred"}"#, CallEnding::Failed),
        ("failed", "failed", r#","error":{"code":"rate_limit_exceeded","message":"x"}"#, RATE),
        ("failed", "failed", r#","error":{"code":"context_length_exceeded","message":"x"}"#, TOO_LONG),
        ("failed", "failed", r#","error":{"code":"invalid_prompt","message":"x"}"#, CONTENT),
        ("failed", "failed", "", CallEnding::Failed),
        ("cancelled", "cancelled", "", CallEnding::Abandoned),
    ] {
        let whole = response(status, more);
        assert_eq!(ending_of(&OpenaiResponses, &whole, false), expected, "{whole}");
        if kind == "cancelled" {
            continue;
        }
        let stream = format!(
            "{}event: response.{kind}\n{}",
            event(
                r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"error":null}}"#
            ),
            event(&format!(r#"{{"type":"response.{kind}","response":{whole}}}"#)),
        );
        assert_eq!(ending_of(&OpenaiResponses, &stream, true), expected, "{stream}");
    }
    assert_eq!(
        ending_of(&OpenaiResponses, &response("queued", ""), false),
        CallEnding::Answered,
        "it is still being made"
    );
    let error = event(
        r#"{"type":"error","code":"context_length_exceeded","message":"too long","param":null,"sequence_number":3}"#,
    );
    assert_eq!(ending_of(&OpenaiResponses, &format!("event: error\n{error}"), true), TOO_LONG);
}

/// Servers that imitate an API leave the word out and send the end marker all the same. A stream without either broke off.
#[test]
fn an_answer_without_a_word_for_its_end_is_whole_at_its_marker() {
    let chat = event(r#"{"id":"c","choices":[{"index":0,"delta":{"content":"It is 42."},"finish_reason":null}]}"#);
    let message = [
        event(r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#),
        event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
        event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is 42."}}"#),
        event(r#"{"type":"content_block_stop","index":0}"#),
    ]
    .concat();
    for (surface, said, marker) in [
        (&OpenaiChat as &dyn Surface, &chat, event("[DONE]")),
        (&OpenaiChat, &chat, event("\"[DONE]\"")),
        (&OpenaiChat, &chat, event(" [done] ")),
        (&OpenaiChat, &chat, "data: [DONE]".to_owned()),
        (&AnthropicMessages, &message, event(r#"{"type":"message_stop"}"#)),
        (&AnthropicMessages, &message, format!("event: message_stop\n{}", event(r#"{ "type" : "message_stop" }"#))),
        (&AnthropicMessages, &message, r#"data: {"type":"message_stop"}"#.to_owned()),
        (&AnthropicMessages, &message, event("[DONE]")),
    ] {
        let name = surface.name();
        assert_eq!(ending_of(surface, &format!("{said}{marker}"), true), CallEnding::Answered, "{name}: {marker}");
        assert_eq!(ending_of(surface, said, true), CallEnding::Cut, "{name} without a marker");
    }
}

#[test]
fn a_message_ends_by_its_stop_reason() {
    for (reason, expected) in [
        ("end_turn", CallEnding::Answered),
        ("max_tokens", CallEnding::Answered),
        ("tool_use", CallEnding::Answered),
        ("stop_sequence", CallEnding::Answered),
        ("pause_turn", CallEnding::Answered),
        ("model_context_window_exceeded", CallEnding::Answered),
        ("refusal", CONTENT),
        ("guardrail_intervened", CONTENT),
    ] {
        let whole = format!(
            r#"{{"id":"m","type":"message","role":"assistant","content":[{{"type":"text","text":"It"}}],"stop_reason":"{reason}"}}"#
        );
        assert_eq!(ending_of(&AnthropicMessages, &whole, false), expected, "{reason}");
        let stream = [
            event(
                r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"stop_reason":null}}"#,
            ),
            event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
            event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It"}}"#),
            event(&format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":2}}}}"#
            )),
            event(r#"{"type":"message_stop"}"#),
        ];
        assert_eq!(ending_of(&AnthropicMessages, &stream.concat(), true), expected, "{reason}");
    }
}

#[test]
fn what_is_no_reply_of_the_api_is_no_answer() {
    let surfaces: [&dyn Surface; 5] =
        [&OpenaiChat, &OpenaiCompletions, &OpenaiResponses, &AnthropicMessages, &OpenaiEmbeddings];
    for surface in surfaces {
        for (body, expected) in [
            ("", CallEnding::Failed),
            ("<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", CallEnding::Failed),
            ("upstream request timeout", CallEnding::Failed),
            ("Too Many Requests", RATE),
            ("\"Internal error\"", CallEnding::Failed),
            ("\"This model's maximum context length is 4096 tokens\"", TOO_LONG),
            ("{}", CallEnding::Failed),
            ("[]", CallEnding::Failed),
            ("{\"status\":\"ok\"}", CallEnding::Failed),
            ("{\"choices\":[{\"index\":0,\"mess", CallEnding::Cut),
            // What cannot be looked into, and JSON of servers that write NaN.
            ("\u{1f}\u{8b}\u{8}", CallEnding::Answered),
            (
                "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"a\"},\"logprobs\":NaN,\"finish_reason\":null}]}",
                CallEnding::Answered,
            ),
        ] {
            assert_eq!(ending_of(surface, body, false), expected, "{surface:?} {body}");
        }
        if surface.name() == "openai_embeddings" {
            continue;
        }
        let (said, rest) = frames(surface);
        assert_eq!(ending_of(surface, &format!("{said}{rest}"), true), CallEnding::Answered, "{surface:?}");
        assert_eq!(ending_of(surface, &format!(": ping\n\n{said}{rest}"), true), CallEnding::Answered, "{surface:?}");
        for (what, stream) in [
            ("nothing", String::new()),
            ("the beginning", said.clone()),
            ("a torn frame", format!("{said}data: {{\"choi")),
            ("a comment", ": ping\n\n".to_owned()),
        ] {
            let told = ending_of(surface, &stream, true);
            assert!(matches!(told, CallEnding::Cut | CallEnding::Failed), "{surface:?} {what}: {told:?}");
        }
    }
    let role = event(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#);
    for nothing in
        ["data: [DONE]\n\n".to_owned(), format!("{role}data: [DONE]\n\n"), ": ping\n\ndata: [DONE]\n\n".to_owned()]
    {
        assert_eq!(ending_of(&OpenaiChat, &nothing, true), CallEnding::Failed, "{nothing}");
        let left = ending(Some(&OpenaiResponses), CloseCause::ClientGone, Some(200), nothing.as_bytes(), true);
        assert_eq!(left, CallEnding::Failed, "the client left at the marker of {nothing}");
    }
    let said = event(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"42"}}]}"#);
    assert_eq!(
        ending_of(&OpenaiChat, &format!("{said}data: [DONE]\n\n"), true),
        CallEnding::Answered,
        "a server without finish reasons"
    );
}

#[test]
fn words_of_the_model_are_no_error() {
    let text = r#"{\"error\":{\"message\":\"maximum context length\"}} \"type\":\"error\""#;
    let chat = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"error":null}}"#
    );
    assert_eq!(ending_of(&OpenaiChat, &chat, false), CallEnding::Answered);
    let call = r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"report","input":{"error":{"message":"rate limit"},"type":"error"}}],"stop_reason":"tool_use"}"#;
    assert_eq!(ending_of(&AnthropicMessages, call, false), CallEnding::Answered);
    let tokens = r#"{"choices":[{"index":0,"message":{"content":"error"},"logprobs":{"content":[{"token":"error","logprob":-1}]},"finish_reason":"stop"}]}"#;
    assert_eq!(ending_of(&OpenaiChat, tokens, false), CallEnding::Answered);
    let stream = event(&format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":"stop"}}],"error":null}}"#
    ));
    assert_eq!(ending_of(&OpenaiChat, &stream, true), CallEnding::Answered);
    let empty =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"error":{}}"#;
    assert_eq!(ending_of(&OpenaiChat, empty, false), CallEnding::Answered, "an empty answer is one");
}

#[test]
fn what_the_proxy_did_itself_is_told_from_the_cause() {
    let body = r#"{"error":{"code":"context_length_exceeded"}}"#;
    for (cause, status, expected) in [
        (CloseCause::Injected, Some(200), CallEnding::Cut),
        (CloseCause::Refused, Some(400), OTHER),
        (CloseCause::Complete, None, CallEnding::Answered),
        (CloseCause::Complete, Some(101), CallEnding::Answered),
    ] {
        assert_eq!(ending(Some(&OpenaiChat), cause, status, body.as_bytes(), false), expected, "{cause:?}");
    }
    assert_eq!(
        ending(None, CloseCause::Complete, Some(200), body.as_bytes(), false),
        CallEnding::Answered,
        "of no surface"
    );
}

/// Servers that fail under way say so in their own words, on a line or in an event that is no JSON.
#[test]
fn an_error_that_is_no_json_ends_a_stream_as_well() {
    for surface in [&OpenaiChat as &dyn Surface, &OpenaiCompletions, &OpenaiResponses, &AnthropicMessages] {
        let (said, end) = frames(surface);
        for error in [
            "data: error: engine died\n\n",
            "data: Error\n\n",
            "event: error\ndata: engine died\n\n",
            "event: error\nid: 1\n\n",
            "error: {\"code\":500,\"message\":\"x\"}\n\n",
            "{\"error\":{\"message\":\"boom\"}}\n\n",
        ] {
            let stream = format!("{said}{error}{end}");
            assert_eq!(ending_of(surface, &stream, true), CallEnding::Failed, "{surface:?}: {error}");
        }
        for nothing in [": error\n\n", "data: errors\n\n", "event: ping\ndata: alive\n\n", "id: error\n\n"] {
            let stream = format!("{said}{nothing}{end}");
            assert_eq!(ending_of(surface, &stream, true), CallEnding::Answered, "{surface:?}: {nothing}");
        }
    }
}

#[test]
fn an_error_object_of_nothing_is_none() {
    for error in [r#"{"message":"","type":"","param":"","code":null}"#, r#"{"code":0,"message":""}"#, "{}", "\"\""] {
        let body = format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{{"content":"42"}},"finish_reason":"stop"}}],"error":{error}}}"#
        );
        assert_eq!(ending_of(&OpenaiChat, &body, false), CallEnding::Answered, "{error}");
    }
}

#[test]
fn a_whole_reply_that_breaks_off_behind_its_finish_reason_is_cut() {
    let whole = r#"{"id":"c","choices":[{"index":0,"message":{"content":"It is 42."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    let finish = whole.find("\"stop\"").expect("a finish reason") + 6;
    for end in finish..whole.len() {
        assert_eq!(ending_of(&OpenaiChat, &whole[..end], false), CallEnding::Cut, "{}", &whole[..end]);
    }
    assert_eq!(ending_of(&OpenaiChat, whole, false), CallEnding::Answered);
}
