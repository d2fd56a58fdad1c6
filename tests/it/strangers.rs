//! A server with a token for each user, as a stranger and as another user would attack it.

use std::{fs, io::Write as _, path::Path, time::Duration};

use flate2::{Compression, write::GzEncoder};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    lab::{Client, Reply, chat, request},
    program::Served,
    run_ends,
    scripted::{Scripted, http},
    socket_peer::{self, create, open_at},
    tokens::{ask, send, serve, token},
};

const CHAT: &str = "/v1/chat/completions";
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// All files below a directory, as paths in it.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(dir).expect("below").to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// One request with the headers of a WebSocket.
async fn upgrade(served: &Served, path: &str, headers: &str) -> Reply {
    let mut client = Client::connect(served.address).await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{UPGRADE}{headers}\r\n");
    client.send(head.as_bytes()).await;
    assert!(client.read_until(b"\r\n\r\n").await);
    // An error of our own says how long it is.
    client.read_until(b"}").await;
    Reply::parse(&client.seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_counts_where_it_belongs_and_nowhere_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    for (path, headers) in [
        (format!("{CHAT}?token={alice}"), String::new()),
        (format!("{CHAT}?x-aegis-token={alice}"), String::new()),
        (format!("{CHAT}?/t/{alice}/"), String::new()),
        (CHAT.to_owned(), format!("Authorization: Bearer {alice}\r\n")),
        (CHAT.to_owned(), format!("Authorization: bEaReR {alice}\r\n")),
        (CHAT.to_owned(), format!("Cookie: x-aegis-token={alice}\r\n")),
        (CHAT.to_owned(), format!("x-api-key: {alice}\r\n")),
        (CHAT.to_owned(), format!("x-aegis-token: Bearer {alice}\r\n")),
        (CHAT.to_owned(), format!("x-aegis-token: {alice}, {bob}\r\n")),
        (CHAT.to_owned(), "x-aegis-token: alice\r\n".to_owned()),
        (format!("/r/mine/t/{alice}{CHAT}"), String::new()),
        (format!("//t/{alice}{CHAT}"), String::new()),
        (format!("/%74/{alice}{CHAT}"), String::new()),
        (format!("/T/{alice}{CHAT}"), String::new()),
        (format!("/t/%{:02x}{}{CHAT}", alice.as_bytes()[0], &alice[1..]), String::new()),
        ("/t/alice/v1/chat/completions".to_owned(), String::new()),
    ] {
        send(&served, "POST", &path, &headers, &chat("Hi?")).await.assert_own_error(401, "no_token");
        let refused = upgrade(&served, &path.replace(CHAT, "/v1/realtime"), &headers).await;
        assert_eq!(refused.status, 401, "{path} {headers}");
    }
    assert!(files(&dir.path().join("logs")).is_empty(), "nothing was opened for any of them");
    // Of two tokens the header's counts, and a right one in the path does not help a wrong one.
    let two = format!("x-aegis-token: {bob}\r\n");
    assert_eq!(send(&served, "POST", &format!("/t/{alice}/r/mine{CHAT}"), &two, &chat("Hi?")).await.status, 200);
    let wrong = "x-aegis-token: wrong\r\n";
    let path = format!("/t/{alice}/r/mine{CHAT}");
    send(&served, "POST", &path, wrong, &chat("Hi?")).await.assert_own_error(401, "no_token");
    assert!(files(&dir.path().join("logs")).iter().all(|file| file.starts_with("@bob/mine/")));
    // What stands before a token is looked at first, and tells nothing of it.
    for token in [alice.as_str(), "wrong"] {
        let headers = format!("x-aegis-token: {token}\r\nOrigin: http://evil.example\r\n");
        send(&served, "POST", CHAT, &headers, &chat("Hi?")).await.assert_own_error(403, "web_page");
    }
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_of_a_run_leads_into_anothers() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    assert_eq!(ask(&served, &alice, "/r/mine/a/solver", "Alice's?").await.status, 200);
    let alices = || {
        let logs = dir.path().join("logs/@alice");
        files(&logs).into_iter().map(|file| (fs::read(logs.join(&file)).expect("read"), file)).collect::<Vec<_>>()
    };
    let before = alices();
    let own = ["@alice", "alice", "../@alice/mine", "@alice/mine", "..", ".", "mine/../../@alice", "a\\b", "@bob"];
    let encoded = ["%40alice", "..%2f@alice%2fmine", "%2e%2e", "%2e%2e%2f%40alice", "%252e%252e", "mine%00", "%6dine"];
    for name in own.into_iter().chain(encoded) {
        for (path, headers) in [
            (format!("/t/{bob}/r/{name}/a/solver{CHAT}"), String::new()),
            (format!("/t/{bob}{CHAT}"), format!("x-aegis-run: {name}\r\n")),
        ] {
            let reply = send(&served, "POST", &path, &headers, &chat("Bob's?")).await;
            // `alice` is a name like any other, in the namespace of whoever uses it.
            let expected = if name == "alice" { 200..=200 } else { 400..=499 };
            assert!(expected.contains(&reply.status), "{path} {headers}: {}", reply.text());
        }
    }
    // The path counts before the header, and both are names of Bob's.
    let both = send(&served, "POST", &format!("/t/{bob}/r/one{CHAT}"), "x-aegis-run: mine\r\n", &chat("Bob's?")).await;
    assert_eq!(both.status, 200);
    assert_eq!(
        send(&served, "POST", &format!("/t/{bob}{CHAT}"), "x-aegis-run: mine\r\n", &chat("Bob's?")).await.status,
        200
    );
    // A WebSocket of Bob's in a run of Alice's name, too.
    let path = format!("/t/{bob}/r/mine/v1/realtime");
    assert_ne!(upgrade(&served, &path, "").await.status, 101);
    assert_eq!(before, alices());
    let runs: std::collections::BTreeSet<String> = files(&dir.path().join("logs"))
        .iter()
        .map(|file| file.split('/').take(2).collect::<Vec<_>>().join("/"))
        .collect();
    assert!(runs.iter().eq(["@alice/mine", "@bob/alice", "@bob/mine", "@bob/one"]), "{runs:?}");
    assert_eq!(served.stop().await, Some(0));
}

/// A request of the Responses API.
async fn respond(served: &Served, token: &str, below: &str, body: Value) -> Reply {
    send(served, "POST", &format!("/t/{token}{below}/v1/responses"), "", body.to_string().as_bytes()).await
}

/// No call beside those that make a response goes on from what another user was given.
async fn beside_responses(served: &Served, [alice, bob]: [&String; 2], named: [&Value; 3]) {
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens"] {
        for body in named {
            for below in ["", "/r/mine"] {
                let path = format!("/t/{bob}{below}{path}");
                let refused = send(served, "POST", &path, "", body.to_string().as_bytes()).await;
                refused.assert_own_error(404, "no_such_reply");
            }
        }
        for (token, body) in [(alice, named[0]), (bob, &json!({"model": "m", "input": "Hi"}))] {
            let path = format!("/t/{token}/r/mine{path}");
            let passed = send(served, "POST", &path, "", body.to_string().as_bytes()).await;
            assert_eq!(passed.header("x-aegis-error"), None, "{}", passed.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_upstream_keeps_for_one_is_given_to_no_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let first = respond(&served, &alice, "/r/mine", json!({"model": "m", "input": "What is 12 + 30?"})).await.json();
    let id = first["id"].as_str().expect("an id").to_owned();
    let more = json!({"model": "m", "input": "And 1 more?", "previous_response_id": id});
    let item = json!({"model": "m", "input": [{"type": "item_reference", "id": first["output"][0]["id"]}]});
    let thread = json!({"model": "m", "input": "Hi", "conversation": "conv_1"});
    for body in [&more, &item, &thread] {
        respond(&served, &bob, "/r/mine", body.clone()).await.assert_own_error(404, "no_such_reply");
        respond(&served, &bob, "", body.clone()).await.assert_own_error(404, "no_such_reply");
    }
    let fetch = async |served: &Served, token: &str, method: &str, path: &str| {
        send(served, method, &format!("/t/{token}{path}"), "", b"").await
    };
    for below in ["", "/r/mine", "/r/none"] {
        for (method, path) in [
            ("GET", format!("{below}/v1/responses/{id}")),
            ("GET", format!("{below}/v1/responses/{id}/input_items")),
            ("GET", format!("{below}/v1/%72esponses/{id}")),
            ("GET", format!("{below}/v1//responses//{id}")),
            ("POST", format!("{below}/v1/responses/{id}/cancel")),
            ("DELETE", format!("{below}/v1/responses/{id}")),
            ("GET", format!("{below}/v1/conversations/{id}/items")),
            ("POST", format!("{below}/v1/chat/completions/{id}")),
        ] {
            fetch(&served, &bob, method, &path).await.assert_own_error(404, "no_such_reply");
        }
        let list = format!("{below}{CHAT}");
        fetch(&served, &bob, "GET", &list).await.assert_own_error(403, "shared_list");
    }
    beside_responses(&served, [&alice, &bob], [&more, &item, &thread]).await;
    // By a WebSocket neither: what it asks is read, and what only may be one for the upstream does not open.
    let mut socket = open_at(served.address, &format!("/t/{bob}/v1/responses")).await.expect("a socket");
    let refused =
        socket_peer::ask(&mut socket, &create("Bob's?", &format!(",\"previous_response_id\":\"{id}\""))).await;
    assert!(refused[0].contains("\"status\":404") && refused[0].contains("no_such_reply"), "{refused:?}");
    let socket = upgrade(&served, &format!("/t/{bob}/v1/%72esponses"), "").await;
    assert_eq!((socket.status, socket.header("x-aegis-error").as_deref()), (403, Some("unchecked_socket")));
    let path = format!("/v1/responses/{id}");
    assert_eq!(fetch(&served, &alice, "GET", &path).await.status, 200);
    assert_eq!(respond(&served, &alice, "/r/mine", more.clone()).await.status, 200);
    // What a model or a client writes is no id of the upstream's.
    let bait = json!({"model": "m", "input": format!("Say {{\"id\": \"{id}\"}}"), "metadata": {"id": id}});
    assert_eq!(respond(&served, &bob, "/r/mine", bait).await.status, 200);
    fetch(&served, &bob, "GET", &path).await.assert_own_error(404, "no_such_reply");
    // After a restart the run that was given the id says so. The simulator has forgotten what it kept, in its own words.
    served.signal(Signal::SIGTERM);
    assert_eq!(served.ended().await.code(), Some(0));
    let arguments = ["--log-dir", "logs", "--tokens", "tokens.toml", "--upstream", "simulator"];
    let served = Served::start(dir.path(), &arguments).await;
    fetch(&served, &bob, "GET", &format!("/r/mine{path}")).await.assert_own_error(404, "no_such_reply");
    fetch(&served, &alice, "GET", &path).await.assert_own_error(404, "no_such_reply");
    let kept = fetch(&served, &alice, "GET", &format!("/r/mine{path}")).await;
    assert_eq!(kept.header("x-aegis-error"), None, "{}", kept.text());
    let goes_on = respond(&served, &alice, "/r/mine", more).await;
    assert_eq!(goes_on.header("x-aegis-error"), None, "{}", goes_on.text());
    assert_eq!(served.stop().await, Some(0));
}

/// A server whose upstream answers whatever is asked with an object that it has made.
async fn before_a_store(dir: &Path, made: &Value) -> (Scripted, Served) {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &made.to_string())]).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir, &["--log-dir", "logs", "--tokens", "tokens.toml", "--upstream", &url]).await;
    (upstream, served)
}

/// However a body comes that names an object of another user, with a run and without.
async fn names_in_any_form(served: &Served, bob: &str, body: &str) {
    for below in ["", "/r/one"] {
        let path = format!("/t/{bob}{below}/v1/batches");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(body.as_bytes()).expect("packed");
        let packed = packed.finish().expect("packed");
        let packed = send(served, "POST", &path, "content-encoding: gzip\r\n", &packed).await;
        packed.assert_own_error(404, "no_such_object");
        // One that cannot be unpacked may name anything.
        let headers = "content-type: application/json\r\ncontent-encoding: br\r\n";
        send(served, "POST", &path, headers, b"\x1b\x03\x00\xf8").await.assert_own_error(400, "unreadable_body");
        // Longer than what is held of a call that nobody reads, and in two pieces of which the second is late.
        let long = format!("{{\"pad\":\"{}\",{}", "x".repeat(2 << 20), &body[1..]);
        send(served, "POST", &path, "", long.as_bytes()).await.assert_own_error(404, "no_such_object");
        let mut late = Client::connect(served.address).await;
        let whole = request("POST", &path, body.as_bytes(), "Connection: close\r\n");
        let (first, second) = whole.split_at(whole.len() - 20);
        late.send(first).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        late.send(second).await;
        late.reply().await.assert_own_error(404, "no_such_object");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_one_are_no_files_of_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let [alice, bob] = [token(dir.path(), "alice").await, token(dir.path(), "bob").await];
    let made = json!({"id": "file-0123456789", "object": "file", "output_file_id": "file-output-of-it"});
    let (_upstream, served) = before_a_store(dir.path(), &made).await;
    let ask = async |served: &Served, token: &str, method: &str, below: &str, body: &Value| {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        send(served, method, &format!("/t/{token}{below}"), "", &body).await
    };
    // What is nobody's is everybody's, and looking at it makes it nobody's own.
    for token in [&alice, &bob] {
        assert_eq!(ask(&served, token, "GET", "/v1/files/file-0123456789", &Value::Null).await.status, 200);
    }
    assert_eq!(ask(&served, &alice, "POST", "/v1/files", &json!({"purpose": "batch"})).await.status, 200);
    assert_eq!(ask(&served, &alice, "GET", "/r/one/v1/batches/file-0123456789", &Value::Null).await.status, 200);
    let batch = |file: &str| json!({"input_file_id": file, "endpoint": "/v1/responses"});
    let respond = json!({"model": "m", "input": [{"role": "user", "content": [
        {"type": "input_file", "file_id": "file-0123456789"}]}]});
    let refused = async |served: &Served| {
        for (method, path, body) in [
            ("GET", "/v1/files/file-0123456789", Value::Null),
            ("GET", "/r/one/v1/files/file-0123456789/content", Value::Null),
            ("GET", "/v1/%66iles/file%2D0123456789", Value::Null),
            ("GET", "/v1/files/file-output-of-it/content", Value::Null),
            ("DELETE", "/v1/files/file-0123456789", Value::Null),
            ("POST", "/v1/batches/file-0123456789/cancel", Value::Null),
            ("POST", "/r/one/v1/batches", batch("file-0123456789")),
            ("POST", "/r/one/v1/responses", respond.clone()),
            ("POST", "/v1/batches", batch("file-0123456789")),
        ] {
            ask(served, &bob, method, path, &body).await.assert_own_error(404, "no_such_object");
        }
        names_in_any_form(served, &bob, &batch("file-0123456789").to_string()).await;
        // What the upstream answers there is no list.
        for path in ["/v1/files", "/v1/batches?limit=2", "/r/one/v1/vector_stores/"] {
            ask(served, &bob, "GET", path, &Value::Null).await.assert_own_error(403, "shared_list");
        }
        ask(served, &bob, "DELETE", "/v1/files", &Value::Null).await.assert_own_error(403, "shared_list");
        assert_eq!(ask(served, &bob, "GET", "/v1/files/file-of-nobody-here", &Value::Null).await.status, 200);
        assert_eq!(ask(served, &bob, "POST", "/r/one/v1/batches", &batch("file-of-nobody-here")).await.status, 200);
        for path in ["/v1/files/file-0123456789/content", "/v1/files/file-output-of-it"] {
            assert_eq!(ask(served, &alice, "GET", path, &Value::Null).await.status, 200);
        }
    };
    refused(&served).await;
    assert_eq!(served.stop().await, Some(0));
    // Another server knows it from a file, which holds no id.
    let text = fs::read_to_string(dir.path().join("logs/objects.txt")).expect("a file");
    assert!(text.starts_with("alice ") && !text.contains("file-"), "{text}");
    let (_upstream, served) = before_a_store(dir.path(), &json!({"id": "other"})).await;
    refused(&served).await;
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_holds_what_is_the_users() {
    let dir = tempfile::tempdir().expect("a directory");
    let [alice, bob] = [token(dir.path(), "alice").await, token(dir.path(), "bob").await];
    let page = |ids: &[&str], has_more: bool| {
        let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "bytes": 12_345_678_901_u64})).collect();
        json!({"object": "list", "data": data, "has_more": has_more, "last_id": ids.last(), "of_all": 7})
    };
    let pages = [
        json!({"id": "file-of-alice-1"}),
        page(&["file-of-carl-1", "file-of-carl-2"], true),
        page(&["file-of-carl-3", "file-of-alice-1"], true),
        page(&["file-of-alice-1"], false),
    ];
    let endless = std::iter::repeat_n(page(&["file-of-alice-1"], true), 20);
    let script = pages.into_iter().chain(endless).chain([json!({"id": "run_1", "thread_id": "thread_1"})]);
    let script = script.map(|body| vec![http("200 OK", "application/json", &body.to_string())]).collect();
    let upstream = Scripted::start(script).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--log-dir", "logs", "--tokens", "tokens.toml", "--upstream", &url];
    let served = Served::start(dir.path(), &arguments).await;
    let get = async |token: &str, path: &str| send(&served, "GET", &format!("/t/{token}{path}"), "", b"").await;
    assert_eq!(send(&served, "POST", &format!("/t/{alice}/v1/files"), "", b"{}").await.status, 200);
    // Of the first page nothing is Alice's: the next is fetched behind the upstream's own cursor.
    let list = get(&alice, "/v1/files?limit=2").await;
    assert_eq!(list.status, 200, "{}", list.text());
    let expected = json!({"object": "list", "data": [{"id": "file-of-alice-1", "bytes": 12_345_678_901_u64}],
        "has_more": true, "last_id": "file-of-alice-1"});
    assert_eq!(list.json(), expected);
    let asked = upstream.heads().pop().unwrap_or_default();
    assert!(asked.starts_with("GET /v1/files?limit=2&after=file-of-carl-2 "), "{asked}");
    // Bob has none, and is told so where the upstream's list ends; one without an end is refused.
    let none = json!({"object": "list", "data": [], "has_more": false, "last_id": null});
    assert_eq!(get(&bob, "/r/one/v1/files").await.json(), none);
    get(&bob, "/v1/files").await.assert_own_error(403, "shared_list");
    // A run that is made together with its thread: both are the user's.
    let made =
        send(&served, "POST", &format!("/t/{alice}/r/mine/v1/threads/runs"), "", b"{\"assistant_id\":\"a\"}").await;
    assert_eq!(made.status, 200, "{}", made.text());
    let messages = get(&alice, "/r/mine/v1/threads/thread_1/messages").await;
    assert_eq!(messages.status, 200, "{}", messages.text());
    get(&bob, "/r/mine/v1/threads/thread_1/messages").await.assert_own_error(404, "no_such_reply");
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token_and_the_control_listener_needs_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let alice = token(dir.path(), "alice").await;
    let served = run_ends::serve(dir.path(), &["--upstream", "simulator", "--tokens", "tokens.toml"]).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(send(&served, "GET", path, "", b"").await.json(), json!({"status": "ok"}));
    }
    // Nothing of the control listener is on the other one, and no page is on either.
    for path in ["/metrics", "/aegis/v1/runs", "/api/tree", "/"] {
        send(&served, "GET", path, "", b"").await.assert_own_error(401, "no_token");
        assert_ne!(send(&served, "GET", path, &format!("x-aegis-token: {alice}\r\n"), b"").await.status, 200, "{path}");
    }
    let control = async |path: &str, headers: &str| {
        let mut client = Client::connect(served.control.expect("a control listener")).await;
        client.send(&request("GET", path, b"", &format!("connection: close\r\n{headers}"))).await;
        client.reply().await.status
    };
    for path in ["/metrics", "/aegis/v1/runs", "/aegis/v1/runs/mine", "/aegis/v1/users/alice/runs"] {
        for headers in [
            String::new(),
            "authorization: Bearer\r\n".to_owned(),
            "authorization: Bearer \r\n".to_owned(),
            format!("authorization: bEaReR {alice}\r\n"),
            format!("authorization: Basic {alice}\r\n"),
            format!("authorization: {alice}\r\n"),
            format!("x-aegis-token: {alice}\r\n"),
        ] {
            assert_eq!(control(path, &headers).await, 401, "{path} {headers}");
        }
        assert_eq!(control(&format!("{path}?token={alice}"), "").await, 401);
    }
    let own = format!("authorization: Bearer {alice}\r\n");
    assert_eq!(control("/aegis/v1/runs", &own).await, 200);
    for (path, status) in [
        ("/metrics", 403),
        ("/aegis/v1/runs/..", 400),
        ("/aegis/v1/runs/%2e%2e", 400),
        ("/aegis/v1/runs/@bob", 400),
        ("/aegis/v1/runs/..%2f@bob%2fmine", 400),
        ("/aegis/v1/runs/../@bob/mine", 404),
        ("/aegis/v1/users/bob/runs", 404),
    ] {
        assert_eq!(control(path, &own).await, status, "{path}");
    }
    let page = format!("{own}Origin: http://evil.example\r\n");
    assert_eq!(control("/aegis/v1/runs", &page).await, 403);
    assert_eq!(served.stop().await, Some(0));
}
