//! Paths that climb out of the place that the upstream's key belongs to.

use crate::{
    lab::{Lab, Reply, Setup, chat, request},
    scripted::{Scripted, chat_reply, http},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_key_stays_below_the_configured_path() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    let url = format!("http://{}/tenant-a/v1", upstream.address);
    let lab = Lab::before_url(&url, Setup { key: Some("sk-of-tenant-a"), ..Setup::default() }).await;
    for (method, path) in [
        ("POST", "/v1/../../tenant-b/v1/chat/completions"),
        ("POST", "/v1/%2e%2e/%2e%2e/tenant-b/v1/chat/completions"),
        ("POST", "/r/x/a/y/v1/..%2f..%2ftenant-b/chat/completions"),
        ("GET", "/v1/files/..%5c..%5ctenant-b"),
        ("GET", "/v1/%252e%252e/models"),
        ("GET", "/r/x1"),
        ("GET", "/r/x1/a/y"),
        ("GET", "/a/y/r/x1/v1/models"),
        ("DELETE", "/v1/files/../models/m"),
        ("OPTIONS", "*"),
    ] {
        let sent = request(method, path, &chat("x"), "Connection: close\r\n");
        Reply::parse(&lab.raw(&sent).await).assert_own_error(400, "refused_target");
    }
    assert!(upstream.heads().is_empty(), "{:?}", upstream.heads());
    assert!(!lab.logs.exists(), "no run was opened");
    let path = "/v1/models/org%2Fname..v1?after=../x";
    let sent = request("GET", path, b"", "Connection: close\r\n");
    assert_eq!(Reply::parse(&lab.raw(&sent).await).status, 200);
    assert!(upstream.heads()[0].starts_with("GET /tenant-a/v1/models/org%2Fname..v1?after=../x "), "as it came");
}
