//! The simulator as an upstream: bytes in, bytes out.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{Request, StatusCode};

use super::*;
use crate::{
    proxy::upstream::Upstream as _,
    simulator::Simulator,
    surface::{OpenaiChat, Surface as _},
};

async fn send(simulator: &Simulator, method: &str, path: &str, body: &str) -> (StatusCode, String, Bytes, usize) {
    let body = Either::Left(Full::new(Bytes::from(body.to_owned())));
    let request = Request::builder().method(method).uri(path).body(body).expect("a request");
    let response = simulator.send(request).await.expect("a reply");
    let (head, mut body) = response.into_parts();
    let kind = head.headers["content-type"].to_str().expect("text").to_owned();
    let (mut bytes, mut frames) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        bytes.extend_from_slice(frame.expect("a frame").data_ref().expect("data"));
        frames += 1;
    }
    (head.status, kind, Bytes::from(bytes), frames)
}

fn body(more: &Value) -> String {
    let mut body = json!({"model": "m", "messages": [
        {"role": "system", "content": "You solve."}, {"role": "user", "content": PENCILS},
    ]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body.to_string()
}

#[tokio::test]
async fn streamed_and_whole_replies_say_the_same() {
    let simulator = Simulator::new(0);
    for path in ["/v1/chat/completions", "/chat/completions", "/any/prefix/v1/chat/completions"] {
        let (status, kind, whole, _) = send(&simulator, "POST", path, &body(&json!({}))).await;
        assert_eq!((status, kind.as_str()), (StatusCode::OK, "application/json"));
        let (_, kind, stream, frames) = send(&simulator, "POST", path, &body(&json!({"stream": true}))).await;
        assert!(kind.starts_with("text/event-stream") && frames > 10, "{kind} {frames}");
        let (whole, stream) =
            (OpenaiChat.read_reply(&whole).expect("whole"), OpenaiChat.read_stream(&stream).expect("stream"));
        assert_eq!(whole.answers[0].message.text(), stream.answers[0].message.text());
        assert!(whole.answers[0].message.text().ends_with("ANSWER: 75"));
    }
    assert_eq!(simulator.unread(), 0);
}

#[tokio::test]
async fn equal_requests_get_equal_bytes() {
    for more in [json!({}), json!({"stream": true, "stream_options": {"include_usage": true}}), json!({"n": 2})] {
        let one = send(&Simulator::new(3), "POST", "/v1/chat/completions", &body(&more)).await;
        assert_eq!(one, send(&Simulator::new(3), "POST", "/v1/chat/completions", &body(&more)).await);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_or_counted() {
    let simulator = Simulator::new(0);
    let check = async |method: &str, path: &str, body: &str, expected: u16| {
        let (status, _, reply, _) = send(&simulator, method, path, body).await;
        assert_eq!(status.as_u16(), expected, "{method} {path} {body}");
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        assert!(expected == 200 || reply["error"]["message"].is_string(), "{reply}");
    };
    check("POST", "/v1/chat/completions", "{\"messages\":", 400).await;
    check("POST", "/v1/chat/completions", "[]", 400).await;
    check("POST", "/v1/embeddings", "{}", 400).await;
    check("POST", "/v1/images/generations", "{}", 404).await;
    check("GET", "/v1/chat/completions", "", 404).await;
    check("GET", "/v1/models", "", 200).await;
    assert_eq!(simulator.unread(), 0);
    check("POST", "/v1/chat/completions", r#"{"messages":[{"role":"user","content":"Hello"}]}"#, 200).await;
    assert_eq!(simulator.unread(), 1);
}

#[tokio::test]
async fn a_response_goes_on_from_the_one_before() {
    let simulator = Simulator::new(0);
    let ask = async |body: Value| {
        let (status, _, reply, _) = send(&simulator, "POST", "/v1/responses", &body.to_string()).await;
        (status.as_u16(), serde_json::from_slice::<Value>(&reply).expect("JSON"))
    };
    let tools = json!([{"type": "function", "name": "calculator", "description": "Evaluate an arithmetic expression such as 3 * (4 + 5).",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}]);
    let (_, first) = ask(json!({"instructions": "You solve.", "input": PENCILS, "tools": tools})).await;
    let call = &first["output"][0];
    assert_eq!(call["type"], "function_call", "{first}");
    let result = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "75"});
    // By the id of the response, or by those of its items.
    for body in [
        json!({"instructions": "You solve.", "input": [result], "tools": tools, "previous_response_id": first["id"]}),
        json!({"instructions": "You solve.", "tools": tools, "input": [{"role": "user", "content": PENCILS}, {"type": "item_reference", "id": call["id"]}, result]}),
    ] {
        let (status, second) = ask(body).await;
        assert_eq!(status, 200, "{second}");
        assert!(second["output"][0]["content"][0]["text"].as_str().is_some_and(|text| text.contains("75")), "{second}");
    }
    let (status, refused) = ask(json!({"input": "x", "previous_response_id": "resp_none"})).await;
    assert_eq!(
        (status, refused["error"]["message"].as_str()),
        (400, Some("Previous response with id 'resp_none' not found."))
    );
}
