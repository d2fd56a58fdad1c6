//! S1: a key that passes is in no file, no output and no message.

use std::{fs, path::Path, process::Stdio};

use serde_json::json;

use crate::{
    lab::{Client, request},
    program::{Served, aegis, verb},
    scripted::{Scripted, chat_stream, chunk, delta, http, http_with, last_chunk, stream_head},
};

/// Every file below a directory, unpacked, with its path.
pub fn everything(dir: &Path) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts.extend(everything(&path));
            continue;
        }
        let mut bytes = fs::read(&path).expect("readable");
        if path.extension().is_some_and(|extension| extension == "zst") {
            bytes = zstd::decode_all(&bytes[..]).expect("unpacked");
        }
        texts.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    texts
}

/// A value that must not be found; it names the place where it was put, so that a failure tells.
fn canary(place: &str) -> String {
    format!("canary{place}0123456789abcdef")
}

fn key(place: &str) -> String {
    format!("sk-{}", canary(place))
}

/// An upstream that says secrets: in headers, in a reply, in an error, in a stream.
async fn talkative() -> Scripted {
    let said = format!("use {} or Bearer {}", key("reply"), canary("bearerreply"));
    let error = json!({"error": {"message": format!("Incorrect API key provided: {}", key("error")), "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}});
    let secret_headers = format!(
        "content-type: application/json\r\nset-cookie: session={}\r\nx-odd: {}\r\n",
        canary("setcookie"),
        canary("replyheader")
    );
    let mut stream = vec![stream_head(), chunk(delta(&format!("take {}", key("stream"))))];
    stream.extend([chunk("data: [DONE]\n\n"), last_chunk()]);
    Scripted::start(vec![
        vec![http_with("200 OK", &secret_headers, crate::scripted::chat_reply(&said).as_bytes())],
        vec![http_with("401 Unauthorized", &secret_headers, error.to_string().as_bytes())],
        stream,
        chat_stream(&["plain"]),
    ])
    .await
}

/// A request that holds secrets wherever a request can.
fn laden(query: &str, body: &str) -> Vec<u8> {
    let headers = format!(
        "Authorization: Bearer sk-solver-{}\r\napi-key: {}\r\nX-Api-Key: {}\r\nCookie: c={}\r\nProxy-Authorization: Basic {}\r\nX-Private: {}\r\nConnection: close\r\n",
        canary("authorization"),
        canary("apikey"),
        canary("xapikey"),
        canary("cookie"),
        canary("proxyauth"),
        canary("private"),
    );
    request("POST", &format!("/v1/chat/completions{query}"), body.as_bytes(), &headers)
}

/// What every way of looking at the run says.
async fn looked_at(dir: &Path) -> Vec<(String, String)> {
    let mut outputs = Vec::new();
    for arguments in [
        &["show", "logs/r"][..],
        &["show", "logs/r", "--step", "0"],
        &["show", "logs/r", "--format", "json"],
        &["agents", "logs/r"],
        &["agents", "logs/r", "--format", "json"],
    ] {
        let (code, out, talk) = verb(dir, arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {talk}");
        assert!(!out.is_empty(), "{arguments:?}");
        outputs.push((arguments.join(" "), out + &talk));
    }
    outputs
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_at_rest_or_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = talkative().await;
    let config = format!(
        "[upstream]\nurl = \"http://{}\"\nkey_env = \"UPSTREAM_KEY\"\n[hints]\nkey = \"sk-(?<agent>[a-z]+)-.*\"\n",
        upstream.address
    );
    fs::write(dir.path().join("aegis.toml"), config).expect("written");
    let environment = [
        ("UPSTREAM_KEY", key("environment")),
        ("OPENAI_API_KEY", key("openaienv")),
        ("AEGIS_CONTROL_TOKEN", canary("token")),
    ];
    let arguments = ["--config", "aegis.toml", "--log-dir", "logs", "--run", "r", "-vv"];
    let served = Served::start_with(dir.path(), &arguments, &environment).await;
    let body = json!({"model": "m", "api_key": key("body"), "messages": [{"role": "system", "content": format!("Your key is {}.", key("prompt"))}]}).to_string();
    let queries = [
        format!("?api-key={}", canary("query")),
        format!("?token={}&sig={}", canary("querytoken"), canary("querysig")),
        String::new(),
        String::new(),
    ];
    for query in &queries {
        let mut client = Client::connect(served.address).await;
        client.send(&laden(query, &body)).await;
        let reply = client.reply().await;
        assert!(reply.status == 200 || reply.status == 401, "{}", reply.text());
    }
    // Redaction touches the record alone.
    assert!(upstream.bodies().iter().all(|sent| sent == body.as_bytes()), "what passes is not altered");
    assert!(upstream.heads()[0].contains(&key("environment")));
    // A bad hint is quoted in an error; a key must not be.
    let mut client = Client::connect(served.address).await;
    client
        .send(&request("GET", "/v1/models", b"", &format!("x-aegis-run: {}/..\r\nConnection: close\r\n", key("hint"))))
        .await;
    client.rest().await;
    let mut outputs = vec![("talk".to_owned(), served.said())];
    assert_eq!(served.stop().await, Some(0));
    outputs.extend(looked_at(dir.path()).await);
    let with_userinfo = format!("http://user:{}@127.0.0.1:1/v1", canary("userinfo"));
    let mut refused = aegis(dir.path());
    refused.args(["serve", "--listen", "127.0.0.1:0", "--upstream", &with_userinfo]).stdout(Stdio::piped());
    let refused = crate::lab::within(refused.output()).await.expect("started");
    assert_eq!(refused.status.code(), Some(2));
    outputs.push(("userinfo".to_owned(), String::from_utf8_lossy(&refused.stderr).into_owned()));
    outputs.extend(everything(&dir.path().join("logs")));
    let mut found = Vec::new();
    for (place, text) in &outputs {
        found.extend(
            text.match_indices("canary")
                .map(|(at, _)| format!("{place}: …{}", text[at..].chars().take(30).collect::<String>())),
        );
    }
    found.retain(|line| line.contains("0123456789"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Run files are the owner's alone.
#[tokio::test(flavor = "multi_thread")]
async fn run_files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start(dir.path(), &["--upstream", "simulator", "--log-dir", "logs", "--run", "r"]).await;
    let mut client = Client::connect(served.address).await;
    client.send(&request("POST", "/v1/chat/completions", &crate::lab::chat("hi"), "Connection: close\r\n")).await;
    assert_eq!(client.reply().await.status, 200);
    assert_eq!(served.stop_and_end(dir.path(), &["logs/r"]).await, Some(0));
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("logs/r")), 0o700);
    let files: Vec<_> =
        fs::read_dir(dir.path().join("logs/r")).expect("readable").flatten().map(|entry| entry.path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// A key of `key_env` stands where the client shows its own, and where it shows none, where the API that it calls expects one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_in_the_header_of_its_api() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", "{}")]).await;
    let url = format!("http://{}", upstream.address);
    let config = format!(
        "[upstream]\nurl = \"{url}\"\nkey_env = \"MAIN_KEY\"\n[[route]]\nmodel = \"claude*\"\nurl = \"{url}\"\nkey_env = \"ROUTE_KEY\"\n"
    );
    fs::write(dir.path().join("aegis.toml"), config).expect("written");
    let environment = [("MAIN_KEY", key("main")), ("ROUTE_KEY", key("route"))];
    let arguments = ["--config", "aegis.toml", "--log-dir", "logs", "--run", "r"];
    let served = Served::start_with(dir.path(), &arguments, &environment).await;
    let claude = "{\"model\":\"claude-x\",\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}";
    let gemini = "/v1beta/models/gemini-x:generateContent";
    let asked = "{\"contents\":[{\"parts\":[{\"text\":\"Hi\"}]}]}";
    for (path, body, shown, expected) in [
        ("/v1/messages", claude, "x-api-key: own\r\n", format!("x-api-key: {}", key("route"))),
        ("/v1/messages", claude, "", format!("x-api-key: {}", key("route"))),
        ("/v1/messages", claude, "authorization: Bearer own\r\n", format!("authorization: bearer {}", key("route"))),
        (gemini, asked, "x-goog-api-key: own\r\n", format!("x-goog-api-key: {}", key("main"))),
        (gemini, asked, "", format!("x-goog-api-key: {}", key("main"))),
        ("/v1/files", "{}", "x-api-key: own\r\n", format!("x-api-key: {}", key("main"))),
        ("/v1/chat/completions", "{\"messages\":[]}", "", format!("authorization: bearer {}", key("main"))),
    ] {
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, body.as_bytes(), &format!("connection: close\r\n{shown}"))).await;
        assert_eq!(client.reply().await.status, 200, "{path}");
        let head = upstream.heads().pop().expect("a request").to_lowercase();
        let keys = ["authorization:", "x-api-key:", "x-goog-api-key:", "api-key:"];
        let sent: Vec<&str> = head.lines().filter(|line| keys.iter().any(|name| line.starts_with(name))).collect();
        assert_eq!(sent, [expected.to_lowercase()], "{path} {shown}");
    }
    assert_eq!(served.stop().await, Some(0));
}
