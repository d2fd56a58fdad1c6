//! Every step is read and edited, whole and streamed.

use super::GeminiInteractions;
use crate::surface::{Answer, Conversation, Message, Role, Surface, ToolChoice, door, written};

const REQUEST: &str = r#"{"model":"gemini-3-flash-preview","system_instruction":"Be the worker.","stream":true,"previous_interaction_id":"v1_1",
"tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"}},{"type":"google_search"}],
"generation_config":{"temperature":0.5,"max_output_tokens":64,"stop_sequences":["END"],"tool_choice":"any"},
"input":[{"type":"user_input","content":[{"type":"text","text":"How high?"},{"type":"image","data":"AA==","mime_type":"image/png"}]},
{"type":"thought","signature":"c2ln"},
{"type":"model_output","content":[{"type":"text","text":"I look."}]},
{"type":"function_call","id":"c1","name":"look","arguments":{"what": "tower"}},
{"type":"function_result","call_id":"c1","name":"look","result":"324 m"},
{"type":"function_result","call_id":"c2","result":{"height": 12}},
{"type":"function_result","call_id":"c3","result":[{"type":"text","text":"none"}]},
{"type":"text","text":"Go on."}]}"#;

fn read(body: &str) -> Conversation {
    GeminiInteractions.read_request(body.as_bytes()).expect("a request")
}

#[test]
fn every_step_of_a_request_is_read() {
    let asked = read(REQUEST);
    let said: Vec<_> = asked.messages.iter().map(|m| (m.role, m.text(), m.tool_calls.len())).collect();
    let text = |role, text: &str| (role, text.to_owned(), 0);
    assert_eq!(
        said,
        [
            text(Role::System, "Be the worker."),
            text(Role::User, "How high?"),
            text(Role::Assistant, ""),
            text(Role::Assistant, "I look."),
            (Role::Assistant, String::new(), 1),
            text(Role::Tool, "324 m"),
            text(Role::Tool, r#"{"height": 12}"#),
            text(Role::Tool, "none"),
            text(Role::User, "Go on."),
        ]
    );
    assert_eq!((asked.continues.as_deref(), asked.stream), (Some("v1_1"), true));
    assert_eq!((asked.max_tokens, asked.tool_choice, asked.tools.len()), (Some(64), ToolChoice::Required, 2));
    assert!(door::request_reading(&GeminiInteractions, REQUEST.as_bytes()).expect("a request").is_whole());
    for (body, words) in [
        (r#"{"model":"m","input":"Hello."}"#, "Hello."),
        (r#"{"model":"m","input":{"type":"text","text":"Hello."}}"#, "Hello."),
        (r#"{"model":"m","input":[{"type":"text","text":"Hello."},{"type":"text","text":"You."}]}"#, "Hello.\nYou."),
        (r#"{"agent":"m","input":[{"role":"user","content":"Hello."}]}"#, "Hello."),
    ] {
        let read = read(body);
        assert_eq!(
            (read.model.as_str(), read.messages.len(), read.messages[0].text().as_str()),
            ("m", 1, words),
            "{body}"
        );
    }
}

/// An edit of a request, as its body then is.
fn edited(body: &str, change: &dyn Fn(&mut Conversation)) -> String {
    let before = read(body);
    let mut after = before.clone();
    change(&mut after);
    let written = GeminiInteractions.write_request(body.as_bytes(), &before, &after).expect("has a place");
    written::request(&GeminiInteractions, body.as_bytes(), &written, &after).expect("as it was meant");
    String::from_utf8(written.to_vec()).expect("utf-8")
}

#[test]
fn requests_are_edited_step_by_step() {
    let check = |change: &dyn Fn(&mut Conversation), old: &str, new: &str| {
        assert_eq!(edited(REQUEST, change), REQUEST.replacen(old, new, 1));
    };
    check(&|_| {}, "", "");
    check(&|asked| asked.messages[0].set_text("Be kind."), "Be the worker.", "Be kind.");
    check(&|asked| asked.messages[1].set_text("How far?"), "How high?", "How far?");
    check(&|asked| asked.messages[3].set_text("I see."), "I look.", "I see.");
    check(&|asked| asked.messages[5].set_text("9 m"), "324 m", "9 m");
    check(&|asked| asked.messages[6].set_text("12 m"), r#"{"height": 12}"#, r#""12 m""#);
    check(&|asked| asked.messages[7].set_text("some"), r#""text":"none""#, r#""text":"some""#);
    check(&|asked| asked.messages[8].set_text("Stop."), "Go on.", "Stop.");
    check(
        &|asked| asked.messages[4].tool_calls[0].arguments = r#"{"what":"house"}"#.to_owned(),
        r#"{"what": "tower"}"#,
        r#"{"what":"house"}"#,
    );
    check(&|asked| asked.sampling.temperature = Some(1.5), "0.5", "1.5");
    check(
        &|asked| asked.tools[0].name = "see".to_owned(),
        r#""name":"look","description""#,
        r#""name":"see","description""#,
    );
    let next = |asked: &mut Conversation| asked.messages.push(Message::text_of(Role::User, "And now?"));
    for body in [REQUEST, r#"{"input":"Hello."}"#, r#"{"input":[{"type":"text","text":"Hello."}]}"#] {
        let more = edited(body, &next);
        assert!(more.contains(r#"{"type":"user_input","content":[{"type":"text","text":"And now?"}]}]"#), "{more}");
    }
}

const WHOLE: &str = r#"{"id":"v1_1","model":"m","status":"requires_action","steps":[{"type":"thought","signature":"c2ln"},{"type":"model_output","content":[{"type":"text","text":"It is 42."}]},{"type":"function_call","id":"c1","name":"add","arguments":{"a":1}}],"usage":{"total_input_tokens":5,"total_output_tokens":3,"total_thought_tokens":2}}"#;
const EVENTS: [&str; 10] = [
    r#"{"event_type":"interaction.created","interaction":{"id":"v1_1","model":"m","status":"in_progress"}}"#,
    r#"{"event_type":"step.start","index":0,"step":{"type":"thought"}}"#,
    r#"{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"c2ln"}}"#,
    r#"{"event_type":"step.start","index":1,"step":{"type":"model_output"}}"#,
    r#"{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"It is "}}"#,
    r#"{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"42."}}"#,
    r#"{"event_type":"step.start","index":2,"step":{"type":"function_call","id":"c1","name":"add","arguments":{}}}"#,
    r#"{"event_type":"step.delta","index":2,"delta":{"type":"arguments_delta","arguments":"{\"a\":1}"}}"#,
    r#"{"event_type":"interaction.status_update","interaction_id":"v1_1","status":"requires_action"}"#,
    r#"{"event_type":"interaction.completed","interaction":{"id":"v1_1","status":"requires_action","usage":{"total_input_tokens":5,"total_output_tokens":3,"total_thought_tokens":2}}}"#,
];

fn stream() -> String {
    EVENTS.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "event: done\ndata: [DONE]\n\n"
}

#[test]
fn a_reply_reads_alike_whole_and_streamed_and_is_edited_so() {
    let whole = door::reading(&GeminiInteractions, WHOLE.as_bytes(), false).expect("a reply");
    let streamed = door::reading(&GeminiInteractions, stream().as_bytes(), true).expect("a stream");
    assert_eq!(whole, streamed);
    assert!(whole.is_whole(), "{:?}", whole.unplaced);
    let answer = &whole.view.answers[0];
    assert_eq!((answer.message.text().as_str(), answer.finish_reason.as_deref()), ("It is 42.", Some(Answer::CALLS)));
    let mut after = whole.view.clone();
    after.answers[0].message.set_text("It is 57.");
    after.answers[0].message.tool_calls.clear();
    after.answers[0].finish_reason = Some(Answer::STOPPED.to_owned());
    for (body, streamed) in [(WHOLE.to_owned(), false), (stream(), true)] {
        let written =
            door::write_reply(&GeminiInteractions, &body.into(), streamed, &whole.view, &after).expect("a place");
        written::reply(&GeminiInteractions, &written, streamed, &whole.view, &after).expect("as meant");
        let written = String::from_utf8_lossy(&written).into_owned();
        assert!(!written.contains("add") && !written.contains("requires_action"), "{written}");
    }
}

#[test]
fn a_request_tells_what_it_went_on_from() {
    let kept = GeminiInteractions.stored_items(br#"{"input":"Hello."}"#, WHOLE.as_bytes(), false).expect("kept");
    let again = GeminiInteractions.stored_items(br#"{"input":"Hello."}"#, stream().as_bytes(), true).expect("kept");
    let values = |steps: &[String]| -> Vec<serde_json::Value> {
        steps.iter().map(|step| serde_json::from_str(step).expect("JSON")).collect()
    };
    assert_eq!(values(&kept.reply), values(&again.reply));
    let told = [kept.request, kept.reply].concat();
    let body = r#"{"model":"m","previous_interaction_id":"v1_1","input":"Go on."}"#;
    let written = GeminiInteractions.retell(body.as_bytes(), &told).expect("a place");
    let read = read(std::str::from_utf8(&written).expect("utf-8"));
    let said: Vec<_> = read.messages.iter().map(Message::text).collect();
    assert_eq!((said.join("|").as_str(), read.continues), ("Hello.||It is 42.||Go on.", None));
}
