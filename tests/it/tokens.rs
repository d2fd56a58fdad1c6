//! A server whose users have a token each: who is let in, and how the list of them changes while it runs.

use std::{fs, path::Path};

use nix::sys::signal::Signal;

use crate::{
    lab::{Client, Reply, chat, request, until},
    program::{Served, verb},
    scripted::{Scripted, chat_reply, http},
};

/// Makes a token for a user, as its operator does.
pub async fn token(dir: &Path, name: &str) -> String {
    let (code, out, talk) = verb(dir, &["token", name, "--file", "tokens.toml"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    out.lines().next().expect("a token").to_owned()
}

/// A server of these users, with an upstream that always says the same. Gives their tokens, too.
pub async fn serve<const N: usize>(dir: &Path, users: [&str; N], arguments: &[&str]) -> (Served, [String; N]) {
    let mut tokens = users.map(str::to_owned);
    for name in &mut tokens {
        *name = token(dir, name).await;
    }
    let arguments = [&["--log-dir", "logs", "--tokens", "tokens.toml"], arguments].concat();
    (Served::start(dir, &arguments).await, tokens)
}

/// One request on a connection of its own.
pub async fn send(served: &Served, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
    let mut client = Client::connect(served.address).await;
    client.send(&request(method, path, body, &format!("Connection: close\r\n{headers}"))).await;
    client.reply().await
}

/// One call with a token in its path.
pub async fn ask(served: &Served, token: &str, below: &str, text: &str) -> Reply {
    send(served, "POST", &format!("/t/{token}{below}/v1/chat/completions"), "", &chat(text)).await
}

/// Tells the server to read its files again, and waits until it says how that went.
pub async fn reload(served: &Served, says: &str) {
    let before = served.said().matches(says).count();
    served.signal(Signal::SIGHUP);
    until(says, || served.said().matches(says).count() > before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_is_let_in_by_a_token_that_goes_no_further() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    let url = format!("http://{}", upstream.address);
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", &url]).await;
    assert_ne!(alice, bob);
    let path = "/v1/chat/completions";
    for headers in ["", "x-aegis-token: wrong\r\n", "x-aegis-token: \r\n"] {
        send(&served, "POST", path, headers, &chat("hi")).await.assert_own_error(401, "no_token");
    }
    // What the file holds opens nothing.
    let file = fs::read_to_string(dir.path().join("tokens.toml")).expect("a file");
    let hash = file.lines().find_map(|line| line.strip_prefix("sha256 = ")).expect("a hash").trim_matches('"');
    let said = ask(&served, &alice[1..], "", "hi").await.text();
    assert!(said.contains("is wrong") && !said.contains(&alice[1..]), "{said}");
    assert!(send(&served, "POST", path, "", &chat("hi")).await.text().contains("asks for a token"));
    for wrong in [hash, &alice[1..], &alice.to_uppercase(), &format!("{alice}{bob}")] {
        ask(&served, wrong, "", "hi").await.assert_own_error(401, "no_token");
    }
    assert!(upstream.heads().is_empty());
    for token in [&alice, &bob] {
        assert_eq!(ask(&served, token, "", "hi").await.status, 200);
        assert_eq!(send(&served, "POST", path, &format!("x-aegis-token: {token}\r\n"), &chat("hi")).await.status, 200);
    }
    let heads = upstream.heads();
    assert_eq!(heads.len(), 4);
    let said = served.said();
    for token in [&alice, &bob] {
        assert!(!heads.iter().any(|head| head.contains(token.as_str())) && !file.contains(token.as_str()), "{said}");
        assert!(!said.contains(token.as_str()), "{said}");
    }
    assert!(said.contains("/t/<token>/v1"), "{said}");
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_takes_users_in_and_out_and_a_broken_file_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let file = dir.path().join("tokens.toml");
    let both = fs::read_to_string(&file).expect("a file");
    let carol = token(dir.path(), "carol").await;
    ask(&served, &carol, "/r/c", "Hello?").await.assert_own_error(401, "no_token");
    reload(&served, "reloaded  plan, certificates and 3 tokens").await;
    for token in [&alice, &bob, &carol] {
        assert_eq!(ask(&served, token, "/r/c", "Hello?").await.status, 200);
    }
    // A connection that is open is no way round it.
    let mut open = Client::connect(served.address).await;
    let path = format!("/t/{bob}/r/c/v1/chat/completions");
    open.post(&path, &chat("Hello?")).await;
    assert!(open.read_until(b"usage").await);
    let alone = both.split("\n\n").next().expect("an entry");
    fs::write(&file, alone).expect("written");
    reload(&served, "reloaded  plan, certificates and 1 token;").await;
    open.send(&request("POST", &path, &chat("Still?"), "Connection: close\r\n")).await;
    open.seen.clear();
    open.reply().await.assert_own_error(401, "no_token");
    ask(&served, &carol, "/r/c", "Hello?").await.assert_own_error(401, "no_token");
    assert_eq!(ask(&served, &alice, "/r/c", "Hello?").await.status, 200);
    for (text, says) in [
        ("[[token]]\nname = \"alice\"\nsha256 = \"short\"\n", "error: tokens.toml:3: the sha256 of `alice`"),
        ("[[token]]\nname = \"alice\"\nkey = 1\n", "error: tokens.toml:3: unknown field `key`"),
    ] {
        fs::write(&file, text).expect("written");
        reload(&served, &format!("not reloaded, all stays as it was: {says}")).await;
        assert_eq!(ask(&served, &alice, "/r/c", "Hello?").await.status, 200, "{says}");
    }
    fs::remove_file(&file).expect("removed");
    reload(&served, "not reloaded, all stays as it was: error: cannot read the tokens file `tokens.toml`").await;
    assert_eq!(ask(&served, &alice, "/r/c", "Hello?").await.status, 200);
    // Nobody is let in where no entry is left.
    fs::write(&file, "").expect("written");
    reload(&served, "reloaded  plan, certificates and 0 tokens").await;
    ask(&served, &alice, "/r/c", "Hello?").await.assert_own_error(401, "no_token");
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test]
async fn a_token_is_shown_once_and_a_user_has_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = token(dir.path(), "alice").await;
    let file = dir.path().join("tokens.toml");
    let text = fs::read_to_string(&file).expect("a file");
    let hash = text.lines().find_map(|line| line.strip_prefix("sha256 = ")).expect("a hash");
    assert!(aegis::proxy::Token::from_sha256(hash.trim_matches('"')).is_some_and(|token| token.is(&first)), "{text}");
    for (name, says) in [("Alice", "Alice has a token in tokens.toml"), ("a/b", "no name of a user")] {
        let (code, out, talk) = verb(dir.path(), &["token", name, "--file", "tokens.toml"]).await;
        assert!(code == Some(2) && out.is_empty() && talk.contains(says), "{out}{talk}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), text, "nothing was added");
    }
    let (code, out, _) = verb(dir.path(), &["token", "bob"]).await;
    assert!(code == Some(0) && out.contains("[[token]]\nname = \"bob\"\nsha256 = \""), "{out}");
    let (_, out, _) = verb(dir.path(), &["token", "bob", "--format", "json"]).await;
    let data: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let is_token = |shown: &str| shown.len() == 32 && shown.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(
        data["token"].as_str().is_some_and(is_token) && data["sha256"].is_string() && data["name"] == "bob",
        "{out}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_and_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (served, [alice, bob]) = serve(dir.path(), ["alice", "bob"], &["--upstream", "simulator"]).await;
    let (code, out, _) = verb(dir.path(), &["token", "alice", "--file", "tokens.toml", "--renew"]).await;
    assert_eq!(code, Some(0));
    let (code, data, _) =
        verb(dir.path(), &["token", "bob", "--file", "tokens.toml", "--remove", "--format", "json"]).await;
    assert!(code == Some(0) && data.contains("\"name\":\"bob\""), "{data}");
    for arguments in [&["--remove"][..], &["--file", "tokens.toml", "--remove"], &["--file", "other.toml", "--renew"]] {
        let (code, _, talk) = verb(dir.path(), &[&["token", "bob"], arguments].concat()).await;
        assert!(code == Some(2), "{talk}");
    }
    reload(&served, "reloaded  plan, certificates and 1 token;").await;
    assert_eq!(ask(&served, out.trim(), "/r/c", "Hello?").await.status, 200);
    for gone in [&alice, &bob] {
        ask(&served, gone, "/r/c", "Hello?").await.assert_own_error(401, "no_token");
    }
    assert_eq!(served.stop().await, Some(0));
}

#[tokio::test]
async fn a_server_has_users_or_one_token() {
    let dir = tempfile::tempdir().expect("a directory");
    token(dir.path(), "alice").await;
    fs::write(dir.path().join("own.toml"), "token_env = \"HOME\"\n[serve]\ntokens = \"tokens.toml\"\n")
        .expect("written");
    fs::write(dir.path().join("aegis.toml"), "[serve]\ntokens = \"tokens.toml\"\n").expect("written");
    let serve = ["serve", "--upstream", "simulator", "--listen", "127.0.0.1:0"];
    for (arguments, says) in [
        (&["--tokens", "tokens.toml", "--token", "x"][..], "cannot be used with"),
        (&["--tokens", "tokens.toml", "--no-token"], "cannot be used with"),
        (&["--config", "own.toml"], "use one of both"),
        (&["--config", "none.toml", "--tokens", "tokens.toml"], "none.toml"),
        (&["--tokens", "other.toml"], "[serve] tokens"),
    ] {
        let (code, out, talk) = verb(dir.path(), &[&serve[..], arguments].concat()).await;
        assert!(code == Some(2) && talk.contains(says), "{arguments:?}: {out}{talk}");
    }
    fs::remove_file(dir.path().join("aegis.toml")).expect("removed");
    let (code, _, talk) = verb(dir.path(), &[&serve[..], &["--tokens", "other.toml"]].concat()).await;
    assert!(code == Some(2) && talk.contains("aegis token NAME --file other.toml"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_names_the_file_and_users_need_no_other_token_beyond_this_machine() {
    let dir = tempfile::tempdir().expect("a directory");
    let alice = token(dir.path(), "alice").await;
    fs::write(dir.path().join("own.toml"), "[serve]\ntokens = \"tokens.toml\"\n").expect("written");
    let arguments = ["--config", "own.toml", "--upstream", "simulator", "--listen", "0.0.0.0:0", "--log-dir", "logs"];
    let mut served = Served::start_alone(crate::program::aegis(dir.path()), "serve", dir.path(), &arguments).await;
    served.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(ask(&served, &alice, "", "Hello?").await.status, 200);
    send(&served, "POST", "/v1/chat/completions", "", &chat("Hello?")).await.assert_own_error(401, "no_token");
    assert_eq!(served.stop().await, Some(0));
}
