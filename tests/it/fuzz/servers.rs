//! Messages to tools and peers, and a peer's card: inputs that make sense, and what must hold of a card.

use aegis::surface::{self, splice::Node};

/// Words of both protocols.
pub const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":",
    "\"method\":\"tools/call\"",
    "\"method\":\"message/send\"",
    "\"params\":{",
    "\"name\":",
    "\"arguments\":",
    "\"_meta\":{\"progressToken\":7}",
    "\"result\":{",
    "\"error\":{\"code\":-32603}",
    "\"content\":[",
    "\"structuredContent\":",
    "\"isError\":true",
    "\"type\":\"text\"",
    "\"kind\":\"text\"",
    "\"text\":",
    "\"parts\":[",
    "\"message\":{",
    "\"artifact\":{",
    "\"append\":true",
    "\"history\":[",
    "\"status\":{",
    "\"url\":\"http://127.0.0.1:9001/x\"",
    "null",
    "1e400",
    "\"\\ud800\"",
    "data: ",
    "event: message\n",
    "\n\n",
];

pub fn mcp() -> Vec<Vec<u8>> {
    let messages = [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a": 2,"b":3.5},"_meta":{"progressToken":7}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"sum\":5.5}"}],"structuredContent":{"sum":5.5},"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no such tool"}}"#,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":7,\"progress\":1}}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"5\"}]}}\n\n",
    ];
    messages.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub fn a2a() -> Vec<Vec<u8>> {
    let messages = [
        r#"{"jsonrpc":"2.0","id":"1","method":"message/send","params":{"message":{"messageId":"m1","role":"user","parts":[{"kind":"text","text":"How is it?"}]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"sunny"}]}],"history":[{"role":"ROLE_USER","parts":[{"text":"How is it?"}]}]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#,
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"kind\":\"text\",\"text\":\"sun\"}]}}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"append\":true,\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"kind\":\"text\",\"text\":\"ny\"}]}}}\n\n",
    ];
    messages.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub fn cards() -> Vec<Vec<u8>> {
    let card = r#"{"name":"w","url": "http://localhost:9001/","supportedInterfaces":[{"url":"http://127.0.0.1:9001/rpc?v=1"},{"url":"http://other:9001/"},{"url":"127.0.0.1:9002"}]}"#;
    let old = r#"{"url":"https://0.0.0.0:9001","additionalInterfaces":[{"url":"http://[::1]:9001/rpc","transport":"JSONRPC"}]}"#;
    let nested = r#"{"capabilities":{"extensions":[{"uri":"u","params":{"url":"http://127.0.0.1:9001"}}]},"url":7}"#;
    let named = r#"{"name":"w","provider":{"url":"http://127.0.0.1:90011/"},"url":"HTTP://127.0.0.1:9001"}"#;
    [card, old, nested, named].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// After one writing no address leads to the peer past the proxy, and the card is JSON still.
pub fn card(input: &[u8]) -> u64 {
    let (peer, ours) = ("http://127.0.0.1:9001", "http://h:1/r/r0/a2a/w");
    let Some(written) = surface::readdressed_card(input, peer, ours) else {
        return u64::from(Node::parse(input).is_ok());
    };
    assert!(Node::parse(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
    let again = surface::readdressed_card(&written, peer, ours);
    assert_eq!(again, None, "{}", String::from_utf8_lossy(&written));
    2
}
