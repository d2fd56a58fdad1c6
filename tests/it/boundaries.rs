//! What leaves a campaign without its keys, and what a recording of somebody else cannot do.

use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio};

use crate::{
    program::{AEGIS, aegis, verb},
    viewer::View,
};

/// A key by its shape, one by the name of its variable, and one that only the program's requests say.
const SHAPED: &str = "ghp_Qz7Wm3Xk9Rt2Yb5Nc8Vd1Lf4Jh6Gs0PaXy1";
const OF_VARIABLE: &str = "0a1b2c3d4e5f6a7b8c9d";
const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";

/// Every file below a directory that holds a text.
fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
            continue;
        }
        let bytes = fs::read(&path).expect("readable");
        let unpacked = zstd::decode_all(&bytes[..]).unwrap_or_default();
        if [bytes, unpacked].iter().any(|bytes| memchr::memmem::find(bytes, text.as_bytes()).is_some()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_keeps_no_key_that_its_program_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let task = format!(r#"{{"id":"t1","question":"{TASK}","answer":"84"}}"#);
    let campaign = r#"format = 1
name = "c"
seed = 7
upstream = "simulator"
tasks = { file = "tasks.jsonl" }
verify = { answer = "ANSWER: (.*)", checks = [{ exact = {} }] }
[[system]]
name = "talks"
command = ["sh", "-c", "echo \"ANSWER: 42 $ACME_API_KEY KEY\"; echo \"it was KEY\" >&2"]
[[plan]]
file = "plan.toml"
"#;
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    fs::write(dir.path().join("tasks.jsonl"), task).expect("written");
    fs::write(
        dir.path().join("campaign.toml"),
        campaign.replace("KEY\"", &format!("{SHAPED}\"")).replace("KEY\\\"", &format!("{SHAPED}\\\"")),
    )
    .expect("written");
    fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let mut command = aegis(dir.path());
    command.args(["campaign", "campaign.toml", "--out", "out"]).env("ACME_API_KEY", OF_VARIABLE);
    let done =
        crate::lab::within(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output()).await.expect("started");
    assert!(dir.path().join("out/cells").is_dir(), "{}", String::from_utf8_lossy(&done.stderr));
    for key in [SHAPED, OF_VARIABLE] {
        assert_eq!(holding(&dir.path().join("out"), key), Vec::<String>::new(), "{key}");
        let said = [done.stdout.as_slice(), &done.stderr].concat();
        assert!(memchr::memmem::find(&said, key.as_bytes()).is_none(), "{}", String::from_utf8_lossy(&said));
    }
}

/// A program that leaves a mark, and makes model calls.
fn program() -> String {
    format!("echo made >> marks; exec {AEGIS} example pipeline --task '{TASK}'")
}

/// A run of the simulator with a program, in a directory.
async fn recorded(dir: &Path) {
    let (code, _, talk) =
        verb(dir, &["run", "--upstream", "simulator", "--run", "r", "--", "sh", "-c", &program()]).await;
    assert_eq!(code, Some(0), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_somebody_else_recorded_is_not_executed() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let marks = || fs::read_to_string(dir.path().join("marks")).unwrap_or_default().lines().count();
    let (code, _, talk) = verb(dir.path(), &["replay", "logs/r", "--again"]).await;
    assert_eq!((code, marks()), (Some(0), 2), "{talk}");
    assert!(talk.starts_with("executes sh -c"), "it says what it executes first: {talk}");
    let path = dir.path().join("logs/r/run.json");
    let forged = fs::read_to_string(&path).expect("readable").replace("echo made >> marks", "echo pwned >> marks");
    fs::write(&path, forged).expect("written");
    for arguments in [&["replay", "logs/r", "--again"][..], &["fork", "logs/r", "--at", "0", "--keep", "--again"]] {
        let (code, _, talk) = verb(dir.path(), arguments).await;
        assert_eq!((code, marks()), (Some(2), 2), "{arguments:?}: {talk}");
        assert!(talk.contains("not recorded by you") && talk.contains("echo pwned"), "{talk}");
    }
    let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(shown.contains("echo pwned") && shown.contains("not recorded by you"), "{shown}");
    // The line that the refusal suggests works.
    let (code, _, talk) = verb(dir.path(), &["replay", "logs/r", "--", "sh", "-c", &program()]).await;
    assert_eq!((code, marks()), (Some(0), 3), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_pipes_in_a_recording_are_not_read() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let run = dir.path().join("logs/r");
    fs::write(dir.path().join("private.json"), r#"{"not_found": "a private text"}"#).expect("written");
    for name in ["trace.json", "attribution.jsonl"] {
        for target in [dir.path().join("private.json").as_path(), Path::new("/dev/zero")] {
            symlink(target, run.join(name)).expect("linked");
            for arguments in [&["show", "logs/r"][..], &["runs", "logs"], &["view", "logs", "--bundle", "page.html"]] {
                let (code, out, talk) = verb(dir.path(), arguments).await;
                assert_eq!(code, Some(0), "{arguments:?}: {talk}");
                assert!(!out.contains("a private text"), "{arguments:?}: {out}");
            }
            let page = fs::read_to_string(dir.path().join("page.html")).expect("readable");
            assert!(!page.contains("a private text"));
            fs::remove_file(dir.path().join("page.html")).expect("removed");
            fs::remove_file(run.join(name)).expect("removed");
        }
        nix::unistd::mkfifo(&run.join(name), nix::sys::stat::Mode::S_IRWXU).expect("made");
        let (code, _, talk) = verb(dir.path(), &["runs", "logs"]).await;
        assert_eq!(code, Some(0), "a pipe keeps nobody waiting: {talk}");
        fs::remove_file(run.join(name)).expect("removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_the_log_does_not_hold_is_said_to_differ() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let roster = "[[agent]]\nname = \"solver\"\nsystem_contains = \"You are the solver\"\n";
    fs::write(dir.path().join("aegis.toml"), roster).expect("written");
    let arguments = [
        "run",
        "--upstream",
        "simulator",
        "--run",
        "r",
        "--plan",
        "plan.toml",
        "--",
        AEGIS,
        "example",
        "pipeline",
        "--task",
        TASK,
    ];
    let (_, _, talk) = verb(dir.path(), &arguments).await;
    let path = dir.path().join("logs/r/label.json");
    let label = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {talk}"));
    let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(!shown.contains("differs"), "{shown}");
    for (from, to) in [("FM-2.6", "FM-1.1"), ("\"solver\"", "\"ada\""), ("\"delivered\": true", "\"delivered\":true")] {
        assert!(label.contains(from), "{label}");
        let forged = label.replace(from, to);
        fs::write(&path, &forged).expect("written");
        every_verb_says_of(dir.path(), "`label.json` differs from its hash").await;
        if to.starts_with("\"delivered") {
            continue;
        }
        // One that is without its hash, as earlier versions wrote them, is held to the log.
        let hash = forged.rfind(",\n  \"blake3\"").expect("a hash");
        fs::write(&path, format!("{}\n}}\n", &forged[..hash])).expect("written");
        every_verb_says_of(dir.path(), "`label.json` differs from the log").await;
        let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
        assert!(shown.contains("`label.json` is without a hash"), "{shown}");
    }
    let (_, _, talk) = verb(dir.path(), &["repair", "logs/r", "--seal"]).await;
    assert_eq!(fs::read_to_string(&path).expect("readable"), label, "it is derived from the log again: {talk}");
    let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(!shown.contains("differs"), "{shown}");
    for name in ["run.json", "seal.json"] {
        let path = dir.path().join("logs/r").join(name);
        let text = fs::read_to_string(&path).expect("readable");
        fs::write(&path, text.replacen("\"format\": 1", "\"format\":  1", 1)).expect("written");
        every_verb_says_of(dir.path(), &format!("`{name}` differs from its hash")).await;
        fs::write(&path, text).expect("written");
    }
}

/// Each verb that reads a label says why the one of the run does not hold, and no export has it.
async fn every_verb_says_of(dir: &Path, why: &str) {
    for arguments in [&["show", "logs/r"][..], &["repair", "logs/r"], &["lint", "logs/r"], &["runs", "logs"]] {
        let (code, out, talk) = verb(dir, arguments).await;
        // A row of runs has no room for the whole reason.
        let is_said = |why: &str| format!("{out}{talk}").contains(why);
        let says = is_said(why) || arguments[0] == "runs" && (is_said("refused") || is_said("differ"));
        assert!(says, "{arguments:?} {code:?}: {out}{talk}");
    }
    let view = View::of(dir, &["logs"]).await;
    let head = view.get("/api/run/r").await["head"].clone();
    assert!(head["no_label"].as_str().is_some_and(|said| said.contains("differs from")), "{head}");
    assert!(head.to_string().contains(why), "{head}");
    let (_, _, talk) = verb(dir, &["export", "logs", "--to", "whowhen", "--out", "exported"]).await;
    assert!(talk.contains("differs from"), "{talk}");
}
