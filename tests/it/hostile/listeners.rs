//! A proxy that other machines can reach.

use std::fs;

use crate::{
    lab::{Client, chat, request},
    program::{Served, aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_to_other_machines_unasked() {
    let dir = tempfile::tempdir().expect("a directory");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let (code, _, talk) = verb(dir.path(), &["serve", "--upstream", "simulator", "--listen", listen]).await;
        assert_eq!(code, Some(2), "{listen}: {talk}");
        assert!(talk.contains("AEGIS_TOKEN=") && talk.contains("--no-token"), "it says what to type: {talk}");
    }
    let config = "token_env = \"HOUSE_TOKEN\"\nlisten = \"0.0.0.0:0\"\n";
    fs::write(dir.path().join("mine.toml"), config).expect("written");
    let (code, _, talk) = verb(dir.path(), &["serve", "--upstream", "simulator", "--config", "mine.toml"]).await;
    assert!(code == Some(2) && talk.contains("`HOUSE_TOKEN` is not set"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_by_path_and_by_header_and_goes_no_further() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--listen", "0.0.0.0:0", "--log-dir", "logs", "--run", "r"];
    let environment = [("AEGIS_TOKEN", "open-sesame-0123".to_owned())];
    let mut command = aegis(dir.path());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let served = Served::start_alone(command, "serve", dir.path(), &arguments).await;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], served.address.port()));
    let ask = async |path: &str, headers: &str| {
        let mut client = Client::connect(address).await;
        client.send(&request("POST", path, &chat("hi"), &format!("Connection: close\r\n{headers}"))).await;
        client.reply().await
    };
    for (path, headers) in [
        ("/v1/chat/completions", ""),
        ("/t/open-sesame/v1/chat/completions", ""),
        ("/v1/chat/completions", "x-aegis-token: open-sesame\r\n"),
        ("/v1/chat/completions", "Authorization: Bearer open-sesame-0123\r\n"),
    ] {
        ask(path, headers).await.assert_own_error(401, "no_token");
    }
    assert!(upstream.heads().is_empty());
    assert_eq!(ask("/t/open-sesame-0123/v1/chat/completions", "").await.status, 200);
    assert_eq!(ask("/t/open-sesame-0123/r/other/a/b/v1/chat/completions", "").await.status, 200);
    assert_eq!(ask("/v1/chat/completions", "x-aegis-token: open-sesame-0123\r\n").await.status, 200);
    assert!(upstream.heads().iter().all(|head| !head.contains("open-sesame") && head.contains("POST /v1/chat/")));
    let said = served.said();
    assert!(said.contains("/t/<token>/v1") && !said.contains("open-sesame"), "{said}");
    assert_eq!(served.stop().await, Some(0));
    let (_, out, _) = verb(dir.path(), &["show", "logs/r", "--format", "json"]).await;
    assert!(!out.contains("open-sesame"), "{out}");
}
