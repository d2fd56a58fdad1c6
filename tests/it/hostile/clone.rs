//! A recording that somebody else has prepared, against each verb that reads one: nothing of the user's is read, run or sent.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
};

use nix::sys::stat::Mode;
use serde_json::{Value, json};

use crate::{
    lab::within,
    program::{AEGIS, aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

const PRIVATE: &str = "a-private-text-of-the-user";
const KEY: &str = "0a1b2c3d4e5f6a7b8c9d";
/// Memory of a whole process, program text and stacks included, in kilobytes: the text is a quarter of it.
const ADDRESSES: u32 = 600_000;
/// What lies in a run, or beside it.
const FILES: [&str; 10] = [
    "run.json",
    "seal.json",
    "log.jsonl",
    "label.json",
    "facts.jsonl",
    "identity.json",
    "cards.json",
    "kept.json",
    "trace.json",
    "attribution.jsonl",
];
/// What each verb is given: the run in the place of `RUN`, all of them in that of `LOGS`.
const OF_ONE: [&[&str]; 10] = [
    &["show", "RUN", "--all"],
    &["agents", "RUN"],
    &["repair", "RUN"],
    &["diff", "RUN", "RUN"],
    &["replay", "RUN", "--again"],
    &["fork", "RUN", "--at", "0", "--keep", "--again"],
    &["prove", "RUN", "--again"],
    &["trace", "RUN", "--again", "--redraw"],
    &["retry", "RUN", "--again"],
    &["export", "RUN", "--to", "har", "--out", "har.json"],
];
const OF_ALL: [&[&str]; 11] = [
    &["runs", "LOGS"],
    &["view", "LOGS", "--bundle", "page.html", "--overwrite"],
    &["export", "LOGS", "--to", "sft", "--out", "exported"],
    &["lint", "LOGS"],
    &["stats", "LOGS"],
    &["attribute", "LOGS", "--method", "rules"],
    &["trace", "LOGS", "--again", "--redraw"],
    &["retry", "LOGS", "--again"],
    &["annotations", "LOGS"],
    &["modes", "LOGS"],
    &["amend", "LOGS", "--outcome", "success", "--evidence", "x"],
];

/// A kind of what is no plain file.
type Trap = fn(&Path, &Path);
const TRAPS: [(&str, Trap); 4] = [
    ("link", |private, place| symlink(private, place).expect("linked")),
    ("device", |_, place| symlink("/dev/zero", place).expect("linked")),
    ("pipe", |_, place| nix::unistd::mkfifo(place, Mode::S_IRWXU).expect("made")),
    ("directory", |_, place| fs::create_dir(place).expect("made")),
];

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("readable").flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Runs of a stranger, each with one trap; each names a command and a server of theirs.
async fn prepared(dir: &Path, server: &Scripted) -> Vec<PathBuf> {
    let program = format!("exec {AEGIS} example pipeline --task 'What is 12 + 30?'");
    let arguments = ["run", "--upstream", "simulator", "--log-dir", "own", "--run", "r", "--", "sh", "-c", &program];
    let (code, _, talk) = verb(dir, &arguments).await;
    assert_eq!(code, Some(0), "{talk}");
    let path = dir.join("own/r/run.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("JSON");
    manifest["launched"]["command"] = json!(["sh", "-c", "echo pwned > pwned"]);
    manifest["outcome"] = json!({"verdict": "failure", "evidence": "x"});
    manifest["upstream"] = format!("http://{}", server.address).into();
    manifest.as_object_mut().expect("an object").remove("blake3");
    fs::write(&path, manifest.to_string()).expect("written");
    let private = dir.join("private.json");
    fs::write(&private, json!({"format": 1, "not_found": PRIVATE, "task": PRIVATE, "fact": PRIVATE}).to_string())
        .expect("written");
    let mut runs = Vec::new();
    for name in FILES {
        for (trap, set) in TRAPS {
            let run = dir.join(format!("logs/{trap}-{}", name.replace('.', "-")));
            copied(&dir.join("own/r"), &run);
            let _ = fs::remove_file(run.join(name));
            set(&private, &run.join(name));
            runs.push(run);
        }
    }
    symlink(dir.join("own"), dir.join("logs/linked")).expect("linked");
    fs::create_dir_all(dir.join("logs/annotations")).expect("made");
    symlink(&private, dir.join("logs/annotations/me.jsonl")).expect("linked");
    runs
}

/// What a verb says, in a process that may not grow.
async fn output_of(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let program = aegis(dir).as_std().get_program().to_owned();
    let mut command = tokio::process::Command::new("sh");
    let line = format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"");
    command.args(["-c", &line]).arg(program).args(arguments).current_dir(dir).stdin(Stdio::null());
    command.env("MALLOC_ARENA_MAX", "1").env("ACME_API_KEY", KEY).kill_on_drop(true);
    command.env("XDG_CONFIG_HOME", dir.join("config"));
    let done = within(command.output()).await.expect("started");
    (done.status.code(), format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_verb_reads_runs_or_sends_what_is_the_users() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("hi"))]).await;
    let runs = prepared(dir.path(), &server).await;
    let mut lines: Vec<Vec<String>> = Vec::new();
    for run in &runs {
        let run = run.to_string_lossy().into_owned();
        lines.extend(OF_ONE.iter().map(|line| line.iter().map(|word| word.replace("RUN", &run)).collect()));
    }
    lines.extend(OF_ALL.iter().map(|line| line.iter().map(|word| word.replace("LOGS", "logs")).collect()));
    let mut found = Vec::new();
    for line in &lines {
        let arguments: Vec<&str> = line.iter().map(String::as_str).collect();
        let (code, text) = output_of(dir.path(), &arguments).await;
        let ended = matches!(code, Some(0..=5)) && !text.contains("Usage: ");
        let says_why = code == Some(0) || text.contains("error") || text.contains("RESULT");
        if !ended || !says_why || text.contains(PRIVATE) || text.contains("memory allocation") {
            found.push(format!("{line:?} {code:?}: {}", text.chars().take(400).collect::<String>()));
        }
    }
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), lines.len(), found.join("\n"));
    assert!(!dir.path().join("pwned").exists(), "a recorded command was executed");
    assert_eq!(server.heads(), Vec::<String>::new(), "a recorded server was called");
    for made in ["page.html", "exported", "har.json"] {
        let path = dir.path().join(made);
        let files = if path.is_dir() {
            fs::read_dir(&path).expect("readable").flatten().map(|one| one.path()).collect()
        } else {
            vec![path]
        };
        let holds = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).contains(PRIVATE);
        assert!(!files.iter().any(holds), "{made}");
    }
    let private = fs::read_to_string(dir.path().join("private.json")).expect("readable");
    assert!(private.ends_with('}') && !private.contains('\n'), "nothing was written to what a link points at");
}
