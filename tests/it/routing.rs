//! Where a request goes: the upstream that the configuration names, never one that the request names. S2, S3 and
//! invariant 10, with model routes and TLS.

use std::sync::atomic::Ordering;

use crate::{
    lab::{Lab, Setup, chat, request},
    scripted::{Scripted, chat_reply, http},
};

async fn says(text: &str) -> Scripted {
    Scripted::always(vec![http("200 OK", "application/json", &chat_reply(text))]).await
}

fn for_model(model: &str) -> Vec<u8> {
    format!("{{\"model\":\"{model}\",\"messages\":[]}}").into_bytes()
}

/// S2.
#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_request_chooses_the_host() {
    let (upstream, decoy) = (says("upstream").await, says("decoy").await);
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let other = decoy.address;
    let chats = "/v1/chat/completions";
    let body = format!(
        "{{\"api_base\":\"http://{other}\",\"base_url\":\"http://{other}/v1\",\"model\":\"http://{other}/m\",\"user_config\":{{\"api_base\":\"http://{other}\"}},\"messages\":[]}}"
    );
    let plain = |path: &str| request("POST", path, &chat("x"), "");
    let headed = |header: String| request("POST", chats, &chat("x"), &header);
    let with_host = |host: String| {
        String::from_utf8(plain(chats))
            .expect("utf-8")
            .replace("Host: 127.0.0.1", &format!("Host: {host}"))
            .into_bytes()
    };
    for (name, bytes) in [
        ("fields of the body", request("POST", chats, body.as_bytes(), "")),
        ("an absolute target", plain(&format!("http://{other}{chats}"))),
        ("two slashes", plain(&format!("//{other}{chats}"))),
        ("an authority", plain(&format!("{other}{chats}"))),
        ("userinfo", plain(&format!("/@{other}{chats}"))),
        ("a run prefix and two slashes", plain(&format!("/r/x//{other}{chats}"))),
        ("a run prefix and userinfo", plain(&format!("/r/x/a/y/@{other}{chats}"))),
        ("dots", plain(&format!("/v1/../../{other}/chat/completions"))),
        ("a query", plain(&format!("{chats}?api_base=http://{other}&url=http://{other}"))),
        ("the host", with_host(other.to_string())),
        ("a forwarded host", headed(format!("X-Forwarded-Host: {other}\r\nForwarded: host={other}\r\n"))),
        (
            "rewriting headers",
            headed(format!("X-Original-URL: http://{other}/\r\nX-Rewrite-URL: http://{other}/\r\nX-Host: {other}\r\n")),
        ),
        ("a proxy header", headed(format!("Proxy-Connection: keep-alive\r\nVia: 1.1 {other}\r\n"))),
        (
            "an upstream header",
            headed(format!("x-aegis-upstream: http://{other}\r\nOpenAI-Base-URL: http://{other}\r\n")),
        ),
        ("CONNECT", format!("CONNECT {other} HTTP/1.1\r\nHost: {other}\r\n\r\n").into_bytes()),
        (
            "another protocol",
            headed(format!("Upgrade: TLS/1.0\r\nConnection: upgrade, host\r\nHTTP2-Settings: {other}\r\n")),
        ),
    ] {
        let mut client = lab.client().await;
        client.send(&bytes).await;
        assert!(client.read_until(b"\r\n\r\n").await, "{name}: an answer");
        assert!(!String::from_utf8_lossy(&client.seen).contains("decoy"), "{name}");
        assert_eq!(decoy.connections.load(Ordering::SeqCst), 0, "{name}: the decoy is dialled");
    }
    for head in upstream.heads() {
        assert!(head.to_lowercase().contains(&format!("host: {}\r\n", upstream.address)), "{head}");
    }
}

/// S4: a page that was made to resolve to this machine is not served.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_ours_is_refused() {
    let upstream = says("upstream").await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    for (host, status) in [
        ("127.0.0.1", 200),
        ("localhost:8484", 200),
        ("[::1]:8484", 200),
        ("host.docker.internal:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8484", 421),
        ("localhost.evil.example", 421),
        ("evil.example:127.0.0.1", 421),
    ] {
        let bytes = String::from_utf8(request("POST", "/v1/chat/completions", &chat("x"), "Connection: close\r\n"))
            .expect("utf-8");
        let raw = lab.raw(bytes.replace("Host: 127.0.0.1", &format!("Host: {host}")).as_bytes()).await;
        let reply = crate::lab::Reply::parse(&raw);
        assert_eq!(reply.status, status, "{host}: {}", reply.text());
    }
}

/// Redirects are the client's business: following one would carry its key elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let decoy = says("decoy").await;
    let location = format!("location: http://{}/v1/chat/completions\r\n", decoy.address);
    let upstream = Scripted::always(vec![crate::scripted::http_with("307 Temporary Redirect", &location, b"")]).await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let reply = lab.post_with("/v1/chat/completions", &chat("x"), "Authorization: Bearer sk-client\r\n").await;
    assert_eq!(reply.status, 307);
    assert_eq!(decoy.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_the_upstream_takes_the_place_of_v1() {
    for (base, path, expected) in [
        ("", "/r/a/v1/chat/completions?x=%2F&y", "/v1/chat/completions?x=%2F&y"),
        ("/openai/v1", "/r/a/a/b/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/openai/v1/", "/chat/completions?api-version=1", "/openai/v1/chat/completions?api-version=1"),
        ("/v1", "/a/b/v1/models", "/v1/models"),
        ("/base", "/openai/deployments/d/chat/completions", "/base/openai/deployments/d/chat/completions"),
    ] {
        let upstream = says("ok").await;
        let lab = Lab::before_url(&format!("http://{}{base}", upstream.address), Setup::default()).await;
        assert_eq!(lab.post(path, &chat("x")).await.status, 200, "{path}");
        let head = upstream.heads().pop().expect("a request");
        assert_eq!(head.split(' ').nth(1), Some(expected), "{base} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubled_version_is_answered_with_the_fix() {
    let upstream = says("ok").await;
    let lab = Lab::before(upstream.address, Setup::default()).await;
    let reply = lab.post("/r/run/v1/v1/chat/completions", &chat("x")).await;
    reply.assert_own_error(404, "doubled_v1");
    assert!(reply.text().contains("/r/run/v1"), "{}", reply.text());
    assert_eq!(upstream.count(), 0);
}

/// Invariant 10.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_selects_among_named_upstreams_and_keys_stay_apart() {
    let (default, keyed, open) = (says("default").await, says("keyed").await, says("open").await);
    let routes = vec![("^big-.*$", keyed.address, Some("route-key")), ("^small$", open.address, None)];
    let lab = Lab::before(default.address, Setup { routes, ..Setup::default() }).await;
    let headers = "Authorization: Bearer client-key\r\napi-key: client-key-2\r\nx-api-key: client-key-3\r\nCookie: c=client-key-4\r\n\
        x-goog-api-key: client-key-5\r\nOcp-Apim-Subscription-Key: client-key-6\r\nanthropic-api-key: client-key-7\r\n\
        X-Amz-Security-Token: client-key-8\r\nHelicone-Auth: Bearer client-key-9\r\nX-Vault-Token: client-key-10\r\n";
    for (model, text) in [("other", "default"), ("big-one", "keyed"), ("small", "open"), ("big", "default")] {
        let path = "/v1/chat/completions?key=client-key-11&v=1&api_key=client-key-12";
        let reply = lab.post_with(path, &for_model(model), headers).await;
        assert_eq!(reply.json()["choices"][0]["message"]["content"], text, "{model}");
    }
    let [to_default, to_keyed, to_open] = [&default, &keyed, &open].map(|upstream| upstream.heads()[0].to_lowercase());
    assert!(to_default.contains("authorization: bearer client-key\r\n"), "{to_default}");
    assert!(to_default.contains("?key=client-key-11&v=1&api_key=client-key-12 "), "{to_default}");
    assert!(to_keyed.contains("authorization: bearer route-key\r\n"), "{to_keyed}");
    assert!(to_keyed.contains("/chat/completions?v=1 "), "{to_keyed}");
    for head in [to_keyed, to_open] {
        assert!(!head.contains("client-key"), "the client's key went elsewhere: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upstreams_own_key_takes_the_place_of_the_clients() {
    let upstream = says("ok").await;
    let lab = Lab::before(upstream.address, Setup { key: Some("own-key"), ..Setup::default() }).await;
    let headers = "Authorization: Bearer client-key\r\napi-key: client-key\r\n";
    for (method, path) in [("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("POST", "/v1/embeddings")] {
        lab.raw(&request(method, path, b"{}", &format!("{headers}Connection: close\r\n"))).await;
        let head = upstream.heads().pop().expect("a request").to_lowercase();
        assert!(head.contains("authorization: bearer own-key\r\n") && !head.contains("client-key"), "{path}: {head}");
    }
}

/// A certificate for 127.0.0.1 that signs itself, as PEM, and a server that shows it.
pub fn certificate() -> (String, rustls::ServerConfig) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a server");
    (made.cert.pem(), config)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_over_tls_is_trusted_by_its_certificate_only() {
    let (pem, config) = certificate();
    let (stranger, _) = certificate();
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        Some(path)
    };
    let reply = vec![http("200 OK", "application/json", &chat_reply("over TLS"))];
    let upstream = Scripted::start_tls(vec![reply], config).await;
    let url = format!("https://{}/v1", upstream.address);
    let trusting = Lab::before_url(&url, Setup { ca_file: file("right.pem", &pem), ..Setup::default() }).await;
    for _ in 0..3 {
        let reply = trusting.post("/v1/chat/completions", &chat("x")).await;
        assert_eq!(reply.text(), chat_reply("over TLS"));
    }
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 1, "the connection is used again");
    let other = Lab::before_url(&url, Setup { ca_file: file("wrong.pem", &stranger), ..Setup::default() }).await;
    let reply = other.post("/v1/chat/completions", &chat("x")).await;
    reply.assert_own_error(502, "upstream_unreachable");
    assert!(reply.text().contains("certificate"), "{}", reply.text());
    assert_eq!(upstream.count(), 3, "no byte of a request reaches a stranger");
}
