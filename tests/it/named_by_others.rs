//! Ways to name what an upstream keeps of another user that hide the name, or that a reply made by the way.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    lab::Reply,
    program::Served,
    scripted::{Scripted, http},
    tokens::{send, serve, token},
};

const RESPONSES: &str = "/v1/responses";

async fn post(served: &Served, token: &str, path: &str, body: &[u8]) -> Reply {
    send(served, "POST", &format!("/t/{token}{path}"), "content-type: application/json\r\n", body).await
}

/// A server before an upstream that answers so, then always the last.
async fn before(dir: &Path, replies: &[Value]) -> (Scripted, Served) {
    let last = replies.last().into_iter().cycle().take(20);
    let script = replies.iter().chain(last).map(|reply| vec![http("200 OK", "application/json", &reply.to_string())]);
    let upstream = Scripted::start(script.collect()).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir, &["--log-dir", "logs", "--tokens", "tokens.toml", "--upstream", &url]).await;
    (upstream, served)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_without_content_is_a_name_whatever_its_type() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let first = post(&served, &alice, "/r/mine/v1/responses", b"{\"model\":\"m\",\"input\":\"Hi\"}").await.json();
    let id = &first["output"][0]["id"];
    for item in [
        json!({"type": "item_reference", "id": id}),
        json!({"id": id}),
        json!({"id": id, "type": null}),
        json!({"type": "message", "id": id, "status": "completed"}),
        json!({"type": "image_generation_call", "id": id, "result": null}),
        json!({"type": "reasoning", "id": id, "summary": []}),
    ] {
        let body = json!({"model": "m", "input": [item, {"role": "user", "content": "And?"}]}).to_string();
        for below in ["", "/r/one"] {
            let refused = post(&served, &bob, &format!("{below}{RESPONSES}"), body.as_bytes()).await;
            refused.assert_own_error(404, "no_such_reply");
        }
        let own = post(&served, &alice, "/r/mine/v1/responses", body.as_bytes()).await;
        assert_eq!(own.header("x-aegis-error"), None, "{body}: {}", own.text());
    }
    // Whole, it is the client's own, whatever it calls it.
    let whole = json!({"role": "assistant", "id": id, "content": [{"type": "output_text", "text": "Hi."}]});
    let body = json!({"model": "m", "input": [whole, {"role": "user", "content": "And?"}]}).to_string();
    assert_eq!(post(&served, &bob, "/r/one/v1/responses", body.as_bytes()).await.status, 200);
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_may_be_read_in_two_ways_goes_to_no_upstream_from_a_user() {
    let dir = tempfile::tempdir().expect("a directory");
    let alice = token(dir.path(), "alice").await;
    let (upstream, served) = before(dir.path(), &[json!({"id": "resp_1", "output": []})]).await;
    let named = "{\"model\":\"m\",\"input\":\"Hi\",\"previous_response_id\":\"resp_0\"}";
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for body in [
        named.replace("{\"model\"", "{\"previous_response_id\":null,\"model\"").into_bytes(),
        named.replace('}', ",\"previous_response_id\":null}").into_bytes(),
        format!("{named}junk").into_bytes(),
        format!("/**/{named}").into_bytes(),
        utf16(named),
        utf16(&format!("\u{feff}{named}")),
        [named.as_bytes(), b"\xff"].concat(),
    ] {
        for path in ["/v1/responses", "/r/one/v1/responses", "/v1/batches", "/r/one/v1/batches"] {
            post(&served, &alice, path, &body).await.assert_own_error(400, "unreadable_body");
        }
    }
    assert!(upstream.heads().is_empty(), "{:?}", upstream.heads());
    let plain = [b"\xef\xbb\xbf", named.replace(",\"previous_response_id\":\"resp_0\"", "").as_bytes()].concat();
    assert_eq!(post(&served, &alice, "/r/one/v1/responses", &plain).await.status, 200);
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reply_makes_by_the_way_is_its_users() {
    let dir = tempfile::tempdir().expect("a directory");
    let [alice, bob] = [token(dir.path(), "alice").await, token(dir.path(), "bob").await];
    let ran = json!({"id": "resp_1", "object": "response", "status": "completed", "output": [
        {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_0123456789"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Done.",
            "annotations": [{"type": "container_file_citation", "container_id": "cntr_0123456789",
                "file_id": "cfile_0123456789"}]}]}]});
    let spoken = json!({"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": null, "audio": {"id": "audio_0123456789", "data": ""}}}]});
    let (_upstream, served) = before(dir.path(), &[ran, spoken, json!({"id": "resp_2", "output": []})]).await;
    let made = post(&served, &alice, "/r/one/v1/responses", b"{\"model\":\"m\",\"input\":\"Plot it.\"}").await;
    assert_eq!(made.status, 200, "{}", made.text());
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Say it."}]}).to_string();
    assert_eq!(post(&served, &alice, "/r/one/v1/chat/completions", chat.as_bytes()).await.status, 200);
    let tools = json!([{"type": "code_interpreter", "container": "cntr_0123456789"}]);
    let audio = json!([{"role": "assistant", "audio": {"id": "audio_0123456789"}}, {"role": "user", "content": "So?"}]);
    for (method, path, body) in [
        ("GET", "/v1/containers/cntr_0123456789/files", Value::Null),
        ("GET", "/v1/containers/cntr_0123456789/files/cfile_0123456789/content", Value::Null),
        ("POST", RESPONSES, json!({"model": "m", "input": "x", "tools": tools})),
        ("POST", "/v1/chat/completions", json!({"model": "m", "messages": audio})),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        for below in ["", "/r/two"] {
            let path = format!("/t/{bob}{below}{path}");
            send(&served, method, &path, "", body.as_bytes()).await.assert_own_error(404, "no_such_object");
        }
        let own = send(&served, method, &format!("/t/{alice}{path}"), "", body.as_bytes()).await;
        assert_eq!(own.header("x-aegis-error"), None, "{path}: {}", own.text());
    }
    assert_eq!(served.stop().await, Some(0));
}
