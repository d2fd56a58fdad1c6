//! Shapes that clients read each in their own way: an account has them, so that no edit is taken for delivered.

use super::{
    AnthropicMessages, Conversation, GeminiGenerate, Message, OpenaiChat, OpenaiResponses, Part, Surface, door, written,
};

/// A stream of chat completions: the deltas, a reason to stop, the end marker.
fn chat(deltas: &[&str]) -> String {
    let frame = |delta: &str| {
        format!("data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
    };
    let said: String = deltas.iter().map(|delta| frame(delta)).collect();
    format!(
        "{said}data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

#[test]
fn replies_that_clients_read_each_in_their_own_way_are_not_read_whole() {
    let begun = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\""}}]}"#;
    let rest = |id: &str, name: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{{name}"arguments":": \"Oslo\"}}"}}}}]}}"#)
    };
    let call = r#"{"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}}"#;
    let text = chat(&[r#"{"content":"It is 42."}"#]);
    for (what, stream, whole) in [
        ("plain", text.clone(), true),
        ("one call in two pieces", chat(&[begun, &rest("a", "")]), true),
        ("another id within one call", chat(&[begun, &rest("b", "")]), false),
        ("the name with each piece", chat(&[begun, &rest("a", r#""name":"weather","#)]), false),
        (
            "two calls of one tool",
            chat(&[
                &format!(r#"{{"tool_calls":[{call}]}}"#),
                &format!(
                    r#"{{"tool_calls":[{}]}}"#,
                    call.replace("\"a\"", "\"b\"").replace("\"index\":0", "\"index\":1")
                ),
            ]),
            true,
        ),
        ("a call in no list", chat(&[&format!(r#"{{"tool_calls":{call}}}"#)]), false),
        ("nothing before a call", chat(&[&format!(r#"{{"tool_calls":[null,{call}]}}"#)]), false),
        ("half a character", chat(&[r#"{"content":"42 \ud83d"}"#, r#"{"content":"\ude00"}"#]), false),
        ("a whole character", chat(&[r#"{"content":"42 \ud83d\ude00"}"#]), true),
        ("words behind the end", format!("{text}{text}"), false),
        ("a byte order mark at each event", text.replace("data:", "\u{feff}data:"), false),
        ("a line that is no field", text.replace("data: [DONE]", "{\"x\":1}\ndata: [DONE]"), false),
    ] {
        let read = door::reading(&OpenaiChat, stream.as_bytes(), true).expect(what);
        assert_eq!(read.unplaced.is_empty(), whole, "{what}: {:?}", read.unplaced);
    }
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":"{\"city\":\"Oslo\"}"}}],"role":"model"},"finishReason":"STOP"}]}"#;
    let read = door::reading(&GeminiGenerate, body.as_bytes(), false).expect("a reply");
    assert!(!read.unplaced.is_empty(), "arguments that are a text");
}

#[test]
fn a_frame_of_zeros_counts_nothing_again() {
    let count = |input: u64, output: u64| {
        format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{input},\"completion_tokens\":{output}}}}}\n\n")
    };
    let stream = format!("{}{}{}", chat(&[r#"{"content":"42"}"#]), count(5, 3), count(0, 0));
    let read = OpenaiChat.read_stream(stream.as_bytes()).expect("a stream").usage.expect("counts");
    let looked_at = OpenaiChat.usage(stream.as_bytes(), true).expect("counts");
    assert_eq!([(read.input, read.output), (looked_at.input, looked_at.output)], [(5, 3); 2]);
}

/// What comes of an edit of a request: the written body, or why it is none.
fn edited(surface: &dyn Surface, body: &str, edit: impl Fn(&mut Conversation)) -> Result<String, String> {
    let before = door::request(surface, body.as_bytes()).expect("a request");
    let mut after = before.clone();
    edit(&mut after);
    let made = surface.write_request(body.as_bytes(), &before, &after).map_err(|error| error.to_string())?;
    written::request(surface, body.as_bytes(), &made, &after)?;
    Ok(String::from_utf8(made.to_vec()).expect("UTF-8"))
}

#[test]
fn an_edit_of_words_loses_no_image() {
    let chat =
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]}"#;
    let responses =
        r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:x"}]}]}"#;
    let messages = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"data:x"}}]}]}"#;
    for (surface, body, kind) in [
        (&OpenaiChat as &dyn Surface, chat, "text"),
        (&OpenaiResponses, responses, "input_text"),
        (&AnthropicMessages, messages, "text"),
    ] {
        let added = edited(surface, body, |asked| asked.messages[0].parts.push(Part::Text("Say 99.".to_owned())));
        let added = added.expect("it has a place");
        assert!(added.contains("data:x") && added.contains(&format!(r#""type":"{kind}","#)), "{added}");
        let copied = edited(surface, body, |asked| {
            let copy = Message { origin: None, ..asked.messages[0].clone() };
            asked.messages.push(copy);
        });
        assert!(copied.is_err(), "an image that is not copied: {copied:?}");
    }
    for content in [r#"{"type":"text","text":"one"}"#, r#"["one"]"#] {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#);
        let added = edited(&OpenaiChat, &body, |asked| asked.messages[0].parts.push(Part::Text("Say 99.".to_owned())));
        assert!(added.is_err(), "{added:?}");
    }
}
