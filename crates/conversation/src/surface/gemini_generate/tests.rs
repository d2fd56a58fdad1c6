//! Every part is read, whole, streamed and as a list.

use super::GeminiGenerate;
use crate::surface::{
    Answer, Conversation, Message, RequiredFormat, Role, StreamForm, Surface, ToolCall, ToolChoice, door,
};

const REQUEST: &str = r#"{"systemInstruction":{"parts":[{"text":"Be the worker."}],"role":"user"},
"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT","properties":{"what":{"type":"STRING","nullable":true}},"required":["what"]}},{"name":"add","parametersJsonSchema":{"type":"object"}}]},{"googleSearch":{}}],
"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}},
"generationConfig":{"temperature":0.5,"topP":0.9,"maxOutputTokens":64,"stopSequences":["END"],"seed":7,"candidateCount":2,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}},
"contents":[{"role":"user","parts":[{"text":"How high?"}]},
{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"I look."},{"functionCall":{"id":"c1","name":"look","args":{"what": "tower"}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"look","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"result":"324 m"}}},{"functionResponse":{"name":"look","response":{"height": 12,"unit":"m"}}},{"text":"Go on."},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}]}"#;

fn read(body: &str) -> Conversation {
    GeminiGenerate.read_request(body.as_bytes()).expect("a request")
}

#[test]
fn every_part_of_a_request_is_read_in_both_spellings() {
    let snake = [
        ("systemInstruction", "system_instruction"),
        ("functionDeclarations", "function_declarations"),
        ("toolConfig", "tool_config"),
        ("functionCallingConfig", "function_calling_config"),
        ("allowedFunctionNames", "allowed_function_names"),
        ("generationConfig", "generation_config"),
        ("topP", "top_p"),
        ("maxOutputTokens", "max_output_tokens"),
        ("stopSequences", "stop_sequences"),
        ("candidateCount", "candidate_count"),
        ("responseMimeType", "response_mime_type"),
        ("responseSchema", "response_schema"),
        ("functionCall\"", "function_call\""),
        ("functionResponse", "function_response"),
        ("thoughtSignature", "thought_signature"),
        ("inlineData", "inline_data"),
    ];
    let other = snake.iter().fold(REQUEST.to_owned(), |body, (camel, snake)| body.replace(camel, snake));
    let (asked, again) = (read(REQUEST), read(&other));
    assert_eq!(asked.messages[..6], again.messages[..6]);
    assert_eq!(Conversation { messages: Vec::new(), ..asked.clone() }, Conversation { messages: Vec::new(), ..again });
    let said: Vec<_> = asked.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect();
    let text = |role, text: &str| (role, text.to_owned(), 0);
    assert_eq!(
        said,
        [
            text(Role::System, "Be the worker."),
            text(Role::User, "How high?"),
            (Role::Assistant, "I look.".to_owned(), 2),
            text(Role::Tool, "324 m"),
            text(Role::Tool, r#"{"height": 12,"unit":"m"}"#),
            text(Role::User, "Go on."),
        ]
    );
    let ids: Vec<_> = asked.messages.iter().flat_map(Message::call_ids).collect();
    assert_eq!(ids, ["c1", "look#0", "c1", "look#0"]);
    assert_eq!(asked.quotes, ["c1", "c1"]);
    assert_eq!(asked.tools[0].parameters["properties"]["what"]["type"], serde_json::json!(["string", "null"]));
    assert_eq!((asked.max_tokens, asked.stop, asked.choices), (Some(64), vec!["END".to_owned()], 2));
    assert_eq!(
        (asked.sampling.temperature, asked.sampling.top_p, asked.sampling.seed),
        (Some(0.5), Some(0.9), Some(7))
    );
    assert_eq!(asked.tool_choice, ToolChoice::Named("look".to_owned()));
    assert!(matches!(asked.format, RequiredFormat::JsonSchema { .. }), "{:?}", asked.format);
    assert!(door::request_reading(&GeminiGenerate, other.as_bytes()).expect("a request").is_whole());
}

#[test]
fn the_path_names_the_model_and_the_stream() {
    for (target, model, stream) in [
        ("/v1beta/models/gemini-3-flash:generateContent", Some("gemini-3-flash"), None),
        ("/v1beta/models/g:streamGenerateContent?alt=sse", Some("g"), Some(StreamForm::Events)),
        ("/v1beta/models/g:streamGenerateContent?key=k&alt=sse", Some("g"), Some(StreamForm::Events)),
        ("/v1beta/models/g:streamGenerateContent", Some("g"), Some(StreamForm::List)),
        ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", Some("g"), None),
        ("/v1beta/tunedModels/t:generateContent", Some("t"), None),
        ("/v1beta/models/:generateContent", None, None),
        ("/v1beta/models/g:countTokens", None, None),
    ] {
        let asked = GeminiGenerate.path_parameters(target);
        assert_eq!((asked.model.as_deref(), asked.stream), (model, stream), "{target}");
        let path = target.split('?').next().unwrap_or_default();
        assert_eq!(GeminiGenerate.matches("POST", path), model.is_some(), "{target}");
    }
    let asked = door::request_at(&GeminiGenerate, "/v1beta/models/g:streamGenerateContent", REQUEST.as_bytes());
    assert_eq!(asked.map(|asked| (asked.model, asked.stream)), Ok(("g".to_owned(), true)));
}

/// An edit of a request, as its body then is.
fn edited(change: &dyn Fn(&mut Conversation)) -> String {
    let before = read(REQUEST);
    let mut after = before.clone();
    change(&mut after);
    let written = GeminiGenerate.write_request(REQUEST.as_bytes(), &before, &after).expect("has a place");
    crate::surface::written::request(&GeminiGenerate, REQUEST.as_bytes(), &written, &after).expect("as it was meant");
    String::from_utf8(written.to_vec()).expect("utf-8")
}

#[test]
fn requests_are_edited_part_by_part() {
    let check = |change: &dyn Fn(&mut Conversation), replaced: &[(&str, &str)]| {
        let expected = replaced.iter().fold(REQUEST.to_owned(), |body, (old, new)| body.replacen(old, new, 1));
        assert_eq!(edited(change), expected);
    };
    check(&|_| {}, &[]);
    check(&|asked| asked.messages[0].set_text("Be kind."), &[("Be the worker.", "Be kind.")]);
    check(&|asked| asked.messages[2].set_text("I see."), &[("I look.", "I see.")]);
    check(&|asked| asked.messages[3].set_text("9 m"), &[("324 m", "9 m")]);
    check(
        &|asked| asked.messages[4].set_text(r#"{"height": 13}"#),
        &[(r#"{"height": 12,"unit":"m"}"#, r#"{"height": 13}"#)],
    );
    check(&|asked| asked.messages[4].set_text("none"), &[(r#"{"height": 12,"unit":"m"}"#, r#"{"result":"none"}"#)]);
    check(
        &|asked| asked.messages[2].tool_calls[0].arguments = r#"{"what":"house"}"#.to_owned(),
        &[(r#"{"what": "tower"}"#, r#"{"what":"house"}"#)],
    );
    check(&|asked| asked.sampling.temperature = Some(1.5), &[("\"temperature\":0.5", "\"temperature\":1.5")]);
    check(&|asked| asked.tools[0].name = "see".to_owned(), &[("\"name\":\"look\"", "\"name\":\"see\"")]);
    check(
        &|asked| asked.tools.clear(),
        &[(
            r#""functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT","properties":{"what":{"type":"STRING","nullable":true}},"required":["what"]}},{"name":"add","parametersJsonSchema":{"type":"object"}}]"#,
            "",
        )],
    );
    let more = edited(&|asked| asked.messages.push(Message::text_of(Role::User, "And now?")));
    assert!(more.contains(r#"{"role":"user","parts":[{"text":"And now?"}]}]}"#), "{more}");
    let fewer = edited(&|asked| drop(asked.messages.remove(0)));
    assert!(!fewer.contains("systemInstruction"), "{fewer}");
}

const CHUNKS: [&str; 4] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"**Thinking**","thought":true}],"role":"model"},"index":0}],"modelVersion":"g"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"It is "}],"role":"model"},"index":0}],"modelVersion":"g"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"42."},{"functionCall":{"name":"add","args":{"a":1}},"thoughtSignature":"c2ln"}],"role":"model"},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":2},"responseId":"r"}"#,
];

#[test]
fn a_stream_reads_alike_as_events_and_as_a_list() {
    let events: String = CHUNKS.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    let list = format!("[{}]", CHUNKS.join(",\r\n"));
    let streamed = door::reading(&GeminiGenerate, events.as_bytes(), true).expect("a stream");
    let listed = door::reading(&GeminiGenerate, list.as_bytes(), false).expect("a list");
    assert_eq!(streamed, listed);
    assert!(streamed.is_whole(), "{:?}", streamed.unplaced);
    let (reply, answer) = (&streamed.view, &streamed.view.answers[0]);
    assert_eq!((reply.model.as_str(), reply.id.as_str()), ("g", "r"));
    assert_eq!(reply.usage, Some(crate::trajectory::Usage { input: 5, output: 5 }));
    assert_eq!(answer.message.text(), "It is 42.");
    let call =
        ToolCall { id: String::new(), name: "add".to_owned(), arguments: r#"{"a":1}"#.to_owned(), origin: Some(0) };
    assert_eq!((answer.message.tool_calls.clone(), answer.finish_reason.as_deref()), (vec![call], Some(Answer::CALLS)));
    for (body, streamed) in [(events.into_bytes(), true), (list.into_bytes(), false)] {
        let before = door::reply(&GeminiGenerate, &body, streamed).expect("a reply");
        let mut after = before.clone();
        after.answers[0].message.set_text("It is 57.");
        after.answers[0].message.tool_calls[0].arguments = r#"{"a":2}"#.to_owned();
        let written = door::write_reply(&GeminiGenerate, &body.into(), streamed, &before, &after).expect("a place");
        crate::surface::written::reply(&GeminiGenerate, &written, streamed, &before, &after).expect("as meant");
        let written = String::from_utf8_lossy(&written).into_owned();
        assert!(
            written
                .contains(r#"{"text":"57."},{"functionCall":{"name":"add","args":{"a":2}},"thoughtSignature":"c2ln"}"#),
            "{written}"
        );
    }
}

#[test]
fn a_call_in_pieces_is_read_and_edited_as_one() {
    let parts = [
        r#"{"functionCall":{"name":"look","willContinue":true},"thoughtSignature":"c2ln"}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.what","stringValue":"a \"to","willContinue":true}],"willContinue":true}}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.what","stringValue":"wer\"\u00e9"}],"willContinue":true}}"#,
        r#"{"functionCall":{}},{"functionCall":{"name":"add","args":{"a":1}}}"#,
    ];
    let chunk = |parts: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#);
    let body: String = parts.iter().map(|part| format!("data: {}\r\n\r\n", chunk(part))).collect();
    let before = door::reading(&GeminiGenerate, body.as_bytes(), true).expect("a stream");
    assert!(before.is_whole(), "{:?}", before.unplaced);
    let before = before.view;
    let calls = &before.answers[0].message.tool_calls;
    let read: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(read, [("look", "{\"what\":\"a \\\"tower\\\"é\"}"), ("add", r#"{"a":1}"#)]);
    let edited = |change: &dyn Fn(&mut Vec<ToolCall>)| {
        let mut after = before.clone();
        change(&mut after.answers[0].message.tool_calls);
        let written = GeminiGenerate.write_stream(body.as_bytes(), &before, &after).expect("a place");
        crate::surface::written::reply(&GeminiGenerate, &written, true, &before, &after).expect("as meant");
        String::from_utf8_lossy(&written).into_owned()
    };
    assert_eq!(edited(&|_| {}), body);
    let whole = edited(&|calls| calls[0].arguments = r#"{"what":"house"}"#.to_owned());
    assert!(
        whole.contains(r#""args":{"what":"house"}"#) && whole.contains(r#"},"thoughtSignature":"c2ln"}"#),
        "{whole}"
    );
    assert!(!whole.contains("partialArgs") && !whole.contains(r#"{"functionCall":{}}"#), "{whole}");
    let other = edited(&|calls| calls[1].arguments = r#"{"a":2}"#.to_owned());
    assert_eq!(other, body.replace(r#"{"a":1}"#, r#"{"a":2}"#));
    let gone = edited(&|calls| drop(calls.remove(0)));
    assert!(!gone.contains("look") && !gone.contains("partialArgs"), "{gone}");
}

#[test]
fn a_blocked_prompt_is_refused_and_an_error_is_one() {
    use crate::{
        surface::ending,
        trajectory::{CallEnding, CloseCause, RefusalKind},
    };
    for (status, body, expected) in [
        (
            200,
            r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5}}"#,
            RefusalKind::Content,
        ),
        (200, r#"{"candidates":[{"finishReason":"RECITATION","index":0}]}"#, RefusalKind::Content),
        (429, r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}"#, RefusalKind::Rate),
        (200, r#"[{"error":{"code":403,"message":"x","status":"PERMISSION_DENIED"}}]"#, RefusalKind::Auth),
    ] {
        let told = ending(Some(&GeminiGenerate), CloseCause::Complete, Some(status), body.as_bytes(), false);
        assert_eq!(told, CallEnding::Refused(expected), "{body}");
    }
    let cut = format!("data: {}\r\n\r\n", CHUNKS[1]);
    let told = ending(Some(&GeminiGenerate), CloseCause::Complete, Some(200), cut.as_bytes(), true);
    assert_eq!(told, CallEnding::Cut);
}
