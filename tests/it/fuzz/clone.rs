//! A run that a stranger has prepared: one of its files is a link, a pipe, a device, a directory, or holds whatever they like. It is
//! read or refused in a moment, and nothing of the user's is in what is read.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use aegis::{recording, ruling};
use nix::sys::stat::Mode;

use super::{examples::recorded, targets::sum};

const PRIVATE: &str = "a-private-text-of-the-user";
/// How long a reader may take.
const MOMENT: Duration = Duration::from_secs(2);
pub const WORDS: &[&str] = &[
    "run.json ",
    "seal.json ",
    "log.jsonl ",
    "log.jsonl.zst ",
    "head.jsonl.zst ",
    "label.json ",
    "facts.jsonl ",
    "identity.json ",
    "cards.json ",
    "kept.json ",
    "trace.json ",
    "link\n",
    "device\n",
    "pipe\n",
    "directory\n",
    "bytes\n",
    "\"format\":1",
    "\"blake3\":\"",
    "\"log_bytes\":",
    "\"status\":\"verified\"",
    "\"fact\":\"outcome\"",
    "..",
];

/// A file and its form, then what it holds.
pub fn examples() -> Vec<Vec<u8>> {
    let of = |text: &str| text.as_bytes().to_vec();
    let forged = r#"{"format":1,"status":"verified","definition":"flip","seed":0,"outcome":"failure","errors":[]}"#;
    let fact = r#"{"format":1,"at":"2026-01-01T00:00:00Z","source":"amend","fact":"task","task":"t"}"#;
    let seal =
        r#"{"format":1,"records":4,"steps":2,"exchanges":2,"open":0,"agents":{},"log_bytes":9,"log_blake3":"0"}"#;
    let mut all = vec![
        of(&format!("label.json bytes\n{forged}")),
        of(&format!("facts.jsonl bytes\n{fact}\n")),
        of(&format!("seal.json bytes\n{seal}")),
    ];
    all.extend(["link", "device", "pipe", "directory"].map(|form| of(&format!("trace.json {form}\n"))));
    all.extend(["link", "pipe"].map(|form| of(&format!("log.jsonl {form}\n"))));
    all
}

pub fn check(input: &[u8]) -> u64 {
    let line = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let content = input.get(line.len() + 1..).unwrap_or_default();
    let Some((name, form)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' ')) else { return 0 };
    if !WORDS.iter().any(|word| word.strip_suffix(' ') == Some(name)) {
        return 0;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let run = dir.path().join("r0");
    fs::create_dir(&run).expect("made");
    fs::write(run.join("run.json"), &recorded().0).expect("written");
    fs::write(run.join("log.jsonl"), &recorded().1).expect("written");
    let private = dir.path().join("private");
    fs::write(&private, format!("{{\"format\":1,\"fact\":\"task\",\"task\":\"{PRIVATE}\"}}\n")).expect("written");
    let place = run.join(name);
    let _ = fs::remove_file(&place);
    match form {
        "link" => symlink(&private, &place).expect("linked"),
        "device" => symlink("/dev/zero", &place).expect("linked"),
        "pipe" => nix::unistd::mkfifo(&place, Mode::S_IRWXU).expect("made"),
        "directory" => fs::create_dir(&place).expect("made"),
        _ => fs::write(&place, content).expect("written"),
    }
    let start = Instant::now();
    let said = read(&run);
    assert!(start.elapsed() < MOMENT, "{name} {form}: {:?}", start.elapsed());
    assert!(!said.iter().any(|text| text.contains(PRIVATE)), "{name} {form}: {said:?}");
    sum(&(name, said.iter().map(|text| text.split(['`', ':']).next().map(str::to_owned)).collect::<Vec<_>>()))
}

/// What the readers of a run say of it.
fn read(run: &Path) -> Vec<String> {
    let recording = recording::read(run);
    let ruled = recording.as_ref().map(|recording| ruling::objection(recording).unwrap_or_default());
    vec![
        ruled.unwrap_or_else(ToString::to_string),
        recording.map_or_else(|error| error.to_string(), |read| read.notes.concat() + &format!("{:?}", read.facts)),
        recording::read_manifest(run).map_or_else(|error| error.to_string(), |read| format!("{:?}", read.task)),
        recording::read_label(run).map_or_else(|error| error.to_string(), |read| format!("{:?}", read.is_some())),
        recording::read_kept(run).map_or_else(|error| error.to_string(), |read| format!("{:?}", read.is_some())),
        recording::read_cards(run).map_or_else(|error| error.to_string(), |read| read.len().to_string()),
        recording::repair(run, None).map_or_else(|error| error.to_string(), |read| read.steps.to_string()),
    ]
}
