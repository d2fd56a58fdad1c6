//! A repository that was cloned, with an `aegis.toml` in it.

use std::fs;

use crate::{
    program::{aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_was_found_sends_no_call_and_no_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let thief = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    for (key, config) in [
        ("[upstream] url", format!("[upstream]\nurl = \"http://{}\"\n", thief.address)),
        ("[upstream] key_env", "[upstream]\nkey_env = \"AWS_SECRET_ACCESS_KEY\"\n".to_owned()),
        ("[upstream] ca_file", "[upstream]\nca_file = \"theirs.pem\"\n".to_owned()),
        ("[[route]]", format!("[[route]]\nmodel = \"*\"\nurl = \"http://{}\"\n", thief.address)),
        ("[manipulator] url", format!("[manipulator]\nurl = \"http://{}\"\nmodel = \"m\"\n", thief.address)),
        ("log_dir", "log_dir = \"/tmp/theirs\"\n".to_owned()),
        ("[manipulator] templates", "[manipulator]\ntemplates = \"theirs.toml\"\n".to_owned()),
        ("[hints] key", "[hints]\nkey = \"sk-proj-(?<agent>.*)\"\n".to_owned()),
        ("allowed_origins", "allowed_origins = [\"http://evil.example\"]\n".to_owned()),
        ("allowed_hosts", "allowed_hosts = [\"evil.example\"]\n".to_owned()),
    ] {
        fs::write(dir.path().join("aegis.toml"), config).expect("written");
        for verb in [&["run", "--", "true"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let mut command = aegis(dir.path());
            command.args(verb).env("AWS_SECRET_ACCESS_KEY", "canary").env("OPENAI_BASE_URL", "http://127.0.0.1:9");
            let output = crate::lab::within(command.output()).await.expect("started");
            let talk = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{key}: {talk}");
            assert!(talk.contains(key) && talk.contains("--config ./aegis.toml"), "{talk}");
        }
    }
    assert!(thief.heads().is_empty(), "{:?}", thief.heads());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_line_says_where_calls_go_and_who_said_so() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("aegis.toml"), "[[agent]]\nname = \"a\"\nsystem_contains = \"You\"\n").expect("written");
    let mine = "[upstream]\nurl = \"http://127.0.0.1:9/v1\"\nkey_env = \"HOUSE_KEY\"\n";
    fs::write(dir.path().join("mine.toml"), mine).expect("written");
    for (arguments, environment, first) in [
        (
            &["run", "--", "true"][..],
            &[][..],
            "calls go to https://api.openai.com/v1  (nothing names another upstream)",
        ),
        (
            &["run", "--", "true"],
            &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")],
            "calls go to http://127.0.0.1:9/v1  (OPENAI_BASE_URL)",
        ),
        (&["run", "--upstream", "simulator", "--", "true"], &[], "calls go to simulator  (--upstream)"),
        (&["run", "--", "true"], &[("AEGIS_UPSTREAM", "simulator")], "calls go to simulator  (AEGIS_UPSTREAM)"),
        (
            &["run", "--config", "mine.toml", "--", "true"],
            &[("HOUSE_KEY", "k")],
            "calls go to http://127.0.0.1:9/v1  ([upstream] of mine.toml, with the key in HOUSE_KEY)",
        ),
    ] {
        let mut command = aegis(dir.path());
        command.args(arguments).envs(environment.iter().copied());
        let output = crate::lab::within(command.output()).await.expect("started");
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(talk.lines().next(), Some(first), "{talk}");
    }
    let (_, _, talk) = verb(dir.path(), &["--quiet", "run", "--upstream", "simulator", "--", "true"]).await;
    assert!(!talk.contains("calls go to"), "{talk}");
}
