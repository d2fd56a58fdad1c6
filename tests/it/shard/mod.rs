//! Campaigns in parts, by the real program: whatever the division, and whatever becomes of the parts, what is put together is
//! what one machine would have made.

mod bounds;
mod conclusions;
mod failures;
mod partitions;
mod revoked;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;

use crate::{
    campaign::{DEBATE, PIPELINE, backend::Backend, filled, json, plans, tasks},
    program::aegis,
};

/// Longest wait for one process.
const DEADLINE: Duration = Duration::from_mins(3);

/// The files that must be equal, byte for byte.
const DATA: [&str; 3] = ["dataset.jsonl", "benign.jsonl", "dataset.json"];

/// A directory with a campaign before a backend that counts.
struct ShardBench {
    dir: tempfile::TempDir,
    backend: Backend,
    upstream: String,
}

/// What a process came to.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl ShardBench {
    /// Two systems on so many tasks.
    async fn new(first: usize) -> Self {
        let plans =
            plans(&["corrupt-number", "end-early"], "\"pipeline\"") + &plans(&["corrupt-two-debaters"], "\"debate\"");
        let head =
            "seed = 7\nproof.repeatable = true\nverify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }\n";
        let text = filled(&format!("{head}{}{PIPELINE}{DEBATE}{plans}", tasks(first)));
        Self::of(&text, "").await
    }

    /// This campaign, before this upstream; before the backend if it is not named.
    async fn of(text: &str, upstream: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("c.toml"), text).expect("written");
        let backend = Backend::refusing(|_| None, Duration::from_millis(2)).await;
        let upstream = if upstream.is_empty() { backend.url.clone() } else { upstream.to_owned() };
        Self { dir, backend, upstream }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, out: &str, more: &[&str]) -> tokio::process::Command {
        let mut command = aegis(self.dir.path());
        command.args(["campaign", "c.toml", "--out", out, "--jobs", "2", "--upstream", &self.upstream]).args(more);
        command
    }

    /// `aegis campaign` into a directory.
    async fn campaign(&self, out: &str, more: &[&str]) -> Said {
        ended(self.command(out, more)).await
    }

    /// The same, killed as soon as the backend was asked so often more.
    async fn killed(&self, out: &str, more: &[&str], after: usize) {
        let mut command = self.command(out, more);
        let until = self.backend.calls() + after;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        while self.backend.calls() < until && child.try_wait().expect("waited").is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let _ = child.start_kill();
        child.wait().await.expect("waited");
    }

    /// `aegis shard merge`.
    async fn merge(&self, from: &[&str], into: &str, more: &[&str]) -> Said {
        let mut command = aegis(self.dir.path());
        command.args(["shard", "merge"]).args(from).args(["--out", into]).args(more);
        ended(command).await
    }

    /// What lies in a directory is, byte for byte, what lies in the other.
    fn assert_equal(&self, one: &str, other: &str) {
        self.assert_same_data(one, other);
        assert_eq!(names(&self.path(one).join("cells")), names(&self.path(other).join("cells")));
    }

    fn assert_same_data(&self, one: &str, other: &str) {
        for name in DATA {
            let read = |dir: &str| fs::read(self.path(dir).join(name)).unwrap_or_default();
            assert!(read(one) == read(other), "{one}/{name} and {other}/{name} differ");
        }
    }

    fn json(&self, name: &str) -> Value {
        json(&self.path(name))
    }
}

async fn ended(mut command: tokio::process::Command) -> Said {
    let output = tokio::time::timeout(DEADLINE, command.output()).await.expect("within the deadline").expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// The names in a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What journals say was paid, each call once: as settled, or at its bound. Read here by other code than the program's.
fn paid(journals: &[PathBuf]) -> (u64, u64) {
    let mut calls: BTreeMap<(String, u64), (bool, u64, u64)> = BTreeMap::new();
    for path in journals {
        let text = fs::read_to_string(path).unwrap_or_default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            for (kind, cost) in [("reserved", "most"), ("settled", "cost")] {
                let Some(call) = line.get(kind) else { continue };
                let key = (call["s"].as_str().expect("a source").to_owned(), call["n"].as_u64().expect("a number"));
                let tokens = ["input", "output"].map(|way| call[cost][way].as_u64().expect("tokens"));
                let entry = calls.entry(key).or_default();
                if !entry.0 {
                    *entry = (kind == "settled", call[cost]["calls"].as_u64().expect("calls"), tokens.iter().sum());
                }
            }
        }
    }
    calls.values().fold((0, 0), |sum, (_, calls, tokens)| (sum.0 + calls, sum.1 + tokens))
}

/// Copies a directory whole.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("copied");
        }
    }
}
