//! Every command block of the README runs as it stands.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

/// What a reader has that a test has in another form: `cargo` builds the binary that is already here.
const SHIM: &str = r#"
cargo() {
  while [ "$1" != run ] && [ "$1" != test ]; do shift; done
  if [ "$1" = test ]; then return 0; fi
  while [ "$1" != -- ]; do shift; done
  shift
  aegis "$@"
}
set -eu
"#;

/// The blocks of commands of a page.
pub fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("address").port()
}

/// Runs the blocks of a page one after the other in a directory, with the binary on its path.
fn run_blocks(text: &str, dir: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["examples", "plans"] {
        symlink(root.join(name), dir.join(name)).expect("a link");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_aegis"));
    let path = format!("{}:{}", binary.parent().expect("a directory").display(), std::env::var("PATH").expect("PATH"));
    for block in blocks(text) {
        let script = format!("{SHIM}{}", block.replace("8484", &free_port().to_string()));
        let ran =
            Command::new("bash").arg("-c").arg(&script).current_dir(dir).env("PATH", &path).output().expect("bash");
        assert!(
            ran.status.success(),
            "{block}\n-- stdout\n{}\n-- stderr\n{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

#[test]
fn every_command_block_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md");
    assert!(readme.lines().count() <= 150, "the README is to stay under 150 lines");
    assert!(blocks(&readme).len() >= 4, "the README has its command blocks");
    let dir = tempfile::tempdir().expect("a directory");
    run_blocks(&readme, dir.path());
    let label = fs::read_to_string(dir.path().join("logs/second/label.json")).expect("the second run has a label");
    assert!(label.contains("\"solver\"") && label.contains("FM-2.6"), "{label}");
}

#[test]
fn the_pages_on_ci_on_installing_and_on_many_machines_run_too() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (page, leaves) in [
        ("ci.md", &["junit.xml", "report.html", "logs/first/first-broken-stream-2"][..]),
        ("scale.md", &["big/merged/dataset.jsonl", "big.sbatch", "big.py", "big.yaml", "big.hq.py"]),
        ("install.md", &["aegis.bash", "man1/aegis.1", "man1/aegis-test.1"]),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        run_blocks(&fs::read_to_string(docs.join(page)).expect("the page"), dir.path());
        for name in leaves {
            assert!(dir.path().join(name).exists(), "{page} leaves {name}");
        }
    }
}

/// What the README shows of the demo is what comes.
#[test]
fn the_demo_says_what_the_readme_quotes() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("README.md");
    let quoted = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a quoted demo");
    let dir = tempfile::tempdir().expect("a directory");
    let ran = Command::new(env!("CARGO_BIN_EXE_aegis")).arg("demo").current_dir(dir.path()).output().expect("it ran");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    for line in quoted.lines() {
        assert!(said.lines().any(|come| come.trim_end() == line), "`{line}` is not in:\n{said}");
    }
}
