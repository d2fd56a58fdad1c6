//! Secrets in places where nobody looks for them.

use std::{fs, path::Path};

use aegis::recording::{Redactor, Secrets, Settings};
use serde_json::json;

use crate::{
    lab::{Client, Lab, Setup, request},
    program::{AEGIS, Served, aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

/// A key without a shape, so that only who knows it can mask it.
const OWN: &str = "canaryOwn0123456789";
const THEIRS: &str = "canaryTheirs0123456789";
const DECLARED: &str = "canary-declared-words";

/// Every byte below a directory as text, unpacked where packed.
fn everything(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).expect("readable").flatten() {
        text += &entry.path().display().to_string();
        if entry.path().is_dir() {
            text += &everything(&entry.path());
            continue;
        }
        let bytes = fs::read(entry.path()).expect("readable");
        let plain = zstd::decode_all(bytes.as_slice()).unwrap_or(bytes);
        text += &String::from_utf8_lossy(&plain);
    }
    text
}

fn assert_clean(dir: &Path, secrets: &[&str]) {
    let text = everything(dir);
    for secret in secrets {
        let at = text.find(secret);
        assert_eq!(at.map(|at| text[at.saturating_sub(80)..].chars().take(160).collect::<String>()), None, "{secret}");
    }
}

/// What a run says of the keys in use, in every shape.
fn laden() -> String {
    let all = format!("{OWN} {THEIRS} {DECLARED} token=canaryNamed01 Cookie: sid=canaryCookie0123; b=canaryPair");
    let escaped = r#""\u0073k-canaryEscaped01 sk\u002dcanaryEscaped02""#;
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{all}"}},{{"role":"user","content":{escaped}}}]}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_in_use_are_masked_wherever_they_stand_and_pass_unaltered() {
    let dir = tempfile::tempdir().expect("a directory");
    let reply = chat_reply(&format!("you said {THEIRS} and {OWN}, {DECLARED}"));
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &reply)]).await;
    let config = format!(
        "[upstream]\nurl = \"http://{}\"\nkey_env = \"HOUSE_KEY\"\n[secrets]\nenv = [\"DECLARED\"]\npatterns = [\"acme-[0-9]+\"]\nkeep = [\"acme-0000\"]\n",
        upstream.address
    );
    fs::write(dir.path().join("mine.toml"), config).expect("written");
    let environment = [("HOUSE_KEY", OWN.to_owned()), ("DECLARED", DECLARED.to_owned())];
    let arguments = ["--config", "mine.toml", "--log-dir", "logs", "--run", "r"];
    let served = Served::start_with(dir.path(), &arguments, &environment).await;
    let body = laden().replace("token=", "acme-1234 acme-0000 token=");
    let ask = async |path: &str| {
        let headers = format!("Connection: close\r\nAuthorization: Bearer {THEIRS}\r\n");
        let mut client = Client::connect(served.address).await;
        client.send(&request("POST", path, body.as_bytes(), &headers)).await;
        client.reply().await
    };
    let answered = ask("/v1/chat/completions?jwt=canaryJwt&k=canaryK&%6bey=canaryEncoded").await;
    assert_eq!((answered.status, answered.text()), (200, reply.clone()), "what passes is not altered");
    assert_eq!(upstream.bodies(), [body.as_bytes().to_vec()], "what passes is not altered");
    // A key as the name of a run is refused, as that of an agent it is masked.
    let refused = ask("/r/sk-canaryRun0123456789/v1/chat/completions").await;
    refused.assert_own_error(400, "secret_name");
    assert!(!refused.text().contains("canary"), "{}", refused.text());
    assert_eq!(ask("/r/r/a/sk-canaryAgent0123456789/v1/chat/completions").await.status, 200);
    assert_eq!(served.stop().await, Some(0));
    assert_clean(&dir.path().join("logs"), &["canary", "acme-1234"]);
    assert!(everything(&dir.path().join("logs")).contains("acme-0000"), "what is to be kept is kept");
    // A masked log is a log: it is read, and answers the same program.
    let (code, _, talk) = verb(dir.path(), &["show", "logs/r"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let replayed = Served::start_replay(dir.path(), "logs/r").await;
    let mut client = Client::connect(replayed.address).await;
    client.send(&request("POST", "/v1/chat/completions", body.as_bytes(), "Connection: close\r\n")).await;
    let again = client.reply().await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.text().len(), reply.len());
    assert_eq!(replayed.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_cannot_be_used_are_said_before_anything_starts() {
    let dir = tempfile::tempdir().expect("a directory");
    for (config, said) in [
        ("[secrets]\npatterns = [\"(\"]\n", "[secrets] patterns: `(`"),
        ("[secrets]\nenv = [\"NO_SUCH\"]\n", "the variable `NO_SUCH` is not set"),
    ] {
        fs::write(dir.path().join("mine.toml"), config).expect("written");
        let arguments = ["run", "--config", "mine.toml", "--upstream", "simulator", "--", "true"];
        let (code, _, talk) = verb(dir.path(), &arguments).await;
        assert!(code == Some(2) && talk.contains(said), "{talk}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_campaigns_program_says_of_its_keys_is_masked() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let program = format!(
        "{AEGIS} example pipeline --task x >/dev/null 2>&1; echo \"bad key: sk-canaryStderr0123456789\" >&2; exit 3"
    );
    fs::write(dir.path().join("program.sh"), program).expect("written");
    fs::write(dir.path().join("tasks.jsonl"), "{\"id\":\"t\",\"question\":\"x\",\"answer\":\"1\"}\n").expect("written");
    let campaign = "upstream = \"simulator\"\ntasks.file = \"tasks.jsonl\"\nverify.checks = [{ exact = {} }]\n\
        [[system]]\nname = \"s\"\ncommand = [\"sh\", \"program.sh\"]\n[[plan]]\nfile = \"plan.toml\"\n";
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    fs::write(dir.path().join("plan.toml"), plan).expect("written");
    fs::write(dir.path().join("campaign.toml"), campaign).expect("written");
    let output = aegis(dir.path()).args(["campaign", "campaign.toml", "--out", "out"]).output();
    let output = crate::lab::within(output).await.expect("started");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = fs::read_dir(dir.path().join("out/output")).map(Iterator::count).unwrap_or_default();
    assert!(said > 0, "{talk}");
    assert!(!talk.contains("canary"), "{talk}");
    assert_clean(&dir.path().join("out"), &["canary"]);
    let mut open = Vec::new();
    let mut dirs = vec![dir.path().join("out")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("readable").flatten() {
            let mode = entry.metadata().expect("there").permissions().mode() & 0o077;
            open.extend((mode != 0).then(|| entry.path()));
            dirs.extend(entry.path().is_dir().then(|| entry.path()));
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// The worst texts for a search of keys pass while others are served.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_holds_nobody_up() {
    let reply = chat_reply(&"xAIza".repeat(40_000));
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &reply)]).await;
    let secrets = Secrets { values: vec![OWN.to_owned()], ..Secrets::default() };
    let settings = Settings { redactor: Redactor::new(&secrets).expect("compiles"), ..Settings::default() };
    let mut lab = Lab::before(upstream.address, Setup { settings, ..Setup::default() }).await;
    for unit in
        ["xAIza", "xoxb-", "github_pat_", "glpat-", "nvapi-", "eyJ-ghp_0123456789abcdef-", "Cookie: a=", "token:"]
    {
        let content = unit.repeat(200_000 / unit.len());
        let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]}).to_string();
        assert_eq!(lab.post("/v1/chat/completions", body.as_bytes()).await.status, 200, "{unit}");
    }
    assert_eq!(lab.sealed("r0").await.trajectory.steps.len(), 8);
}
