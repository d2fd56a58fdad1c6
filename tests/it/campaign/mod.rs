//! Campaigns by the real program, before a backend that counts.

pub mod backend;
mod budget;
mod claims;
mod classes;
mod decoys;
mod defects;
mod kinds;
mod mode_facts;
mod narrow;
mod placebo;
mod proof;
mod reference;
mod resume;
mod rewriting;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::program::aegis;

/// Longest wait for a campaign: some run a hundred children.
const DEADLINE: Duration = Duration::from_mins(2);

/// A directory with a campaign file.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

/// The example systems, as campaign files name them.
pub const PIPELINE: &str = r#"
[[system]]
name = "pipeline"
command = ["{aegis}", "example", "pipeline", "--task", "{question}"]
config = "ROOT/examples/pipeline/aegis.toml"
timeout_s = 60
exit_codes = [0, 1]
"#;
pub const DEBATE: &str = r#"
[[system]]
name = "debate"
command = ["{aegis}", "example", "debate", "--task", "{question}"]
config = "ROOT/examples/debate/aegis.toml"
timeout_s = 60
exit_codes = [0, 1]
"#;

/// A campaign file of this text: `PIPELINE` and `DEBATE` stand for the example systems, `ROOT` for the project's directory.
pub fn filled(text: &str) -> String {
    let systems = text.replace("PIPELINE", PIPELINE.trim()).replace("DEBATE", DEBATE.trim());
    systems.replace("ROOT", env!("CARGO_MANIFEST_DIR"))
}

impl Bench {
    /// A campaign of this text after the usual head, [`filled`].
    pub fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let head = "seed = 7\nverify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }\n";
        fs::write(dir.path().join("c.toml"), filled(&format!("{head}{text}"))).expect("written");
        Self { dir }
    }

    /// Runs it: exit code, standard output, standard error.
    pub async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let arguments = [&["campaign", "c.toml", "--out", "out"], arguments].concat();
        let ended = tokio::time::timeout(DEADLINE, aegis(self.dir.path()).args(arguments).output());
        let output = ended.await.expect("within the deadline").expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    pub fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// `report.json`.
    pub fn report(&self) -> Value {
        json(&self.out().join("report.json"))
    }

    /// What the cells say, in the order of their names.
    pub fn cells(&self) -> Vec<Value> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.out().join("cells")).expect("cells").flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(|path| json(path)).collect()
    }

    /// The classes of the injected runs, each once.
    pub fn classes(&self) -> Vec<String> {
        let report = self.report();
        report["classes"].as_object().expect("classes").keys().cloned().collect()
    }
}

pub fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}

/// A count as reports write it.
pub fn figure(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a small count"))
}

/// The example tasks, the first so many.
pub fn tasks(first: usize) -> String {
    format!("tasks = {{ file = \"ROOT/examples/tasks.jsonl\", first = {first} }}\n")
}

/// Plans that ship, by name.
pub fn plans(names: &[&str], systems: &str) -> String {
    let plan = |name: &&str| format!("[[plan]]\nfile = \"ROOT/plans/{name}.toml\"\nsystems = [{systems}]\n");
    names.iter().map(plan).collect()
}
