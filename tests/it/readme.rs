//! Every command block of the README runs as it stands.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use aegis::proxy::PROXY_CODES;

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
    assert!(readme.lines().count() <= 120, "the README is to stay under 120 lines");
    assert!(blocks(&readme).len() >= 4, "the README has its command blocks");
    let dir = tempfile::tempdir().expect("a directory");
    run_blocks(&readme, dir.path());
    let label = fs::read_to_string(dir.path().join("logs/second/label.json")).expect("the second run has a label");
    assert!(label.contains("\"solver\"") && label.contains("FM-2.6"), "{label}");
}

/// Pages whose commands other tests run, with more to say of them.
const HELD_ELSEWHERE: [&str; 4] = ["attribute.md", "dataset.md", "formats.md", "view.md"];

/// What must lie there when a page's commands have run.
const LEAVES: [(&str, &[&str]); 6] = [
    ("tutorials/author.md", &["rows/dataset.jsonl", "sft.jsonl", "rules.jsonl"]),
    ("ci.md", &["junit.xml", "report.html", "logs/first/first-broken-stream-2"]),
    ("install.md", &["aegis.bash", "man1/aegis.1", "man1/aegis-test.1"]),
    ("tutorials/researcher.md", &["first/dataset.jsonl", "demo-run/report.html", "sft-train.jsonl", "whowhen"]),
    ("tutorials/ci-engineer.md", &["junit.xml", "logs/polite"]),
    ("tutorials/debugger.md", &["runs.html", "logs/bad/trace.json", "logs/bad/label.json"]),
];

/// The pages of the documentation, by their paths below `docs`.
fn pages() -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut folders = vec![docs.clone()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(&docs).expect("below docs").to_string_lossy().into_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// Each block that is marked `sh` runs as it stands; what needs a key, a network or your own program is marked `console`.
#[test]
fn every_command_of_every_page_runs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut ran = 0;
    for page in pages().iter().filter(|page| !HELD_ELSEWHERE.contains(&page.as_str())) {
        let text = fs::read_to_string(docs.join(page)).expect("the page");
        if blocks(&text).is_empty() {
            continue;
        }
        let dir = tempfile::tempdir().expect("a directory");
        run_blocks(&text, dir.path());
        for name in LEAVES.iter().filter(|(of, _)| of == page).flat_map(|(_, names)| *names) {
            assert!(dir.path().join(name).exists(), "{page} leaves {name}");
        }
        ran += 1;
    }
    assert!(ran >= 7, "{ran} pages have commands");
}

/// What the pages quote of a program's output is what comes: blocks marked `text` behind the command that says it.
#[test]
fn the_tutorial_quotes_what_comes() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = fs::read_to_string(docs.join("tutorials/researcher.md")).expect("the page");
    let quoted = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a quoted campaign");
    let dir = tempfile::tempdir().expect("a directory");
    let typed = |words: &[&str]| {
        let ran =
            Command::new(env!("CARGO_BIN_EXE_aegis")).args(words).current_dir(dir.path()).output().expect("it ran");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    typed(&["init", "mine"]);
    let said = typed(&["campaign", "mine/campaign.toml", "--out", "first"]);
    for line in quoted.lines() {
        assert!(said.lines().any(|come| come.trim_end() == line), "`{line}` is not in:\n{said}");
    }
}

/// The reference is written from the code, and nobody has changed it by hand.
#[test]
fn the_reference_says_what_the_code_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    let dir = tempfile::tempdir().expect("a directory");
    let ran = Command::new(env!("CARGO_BIN_EXE_aegis")).arg("reference").arg(dir.path()).output().expect("it ran");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let mut written = 0;
    for entry in fs::read_dir(dir.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        let [made, kept] = [path.clone(), docs.join(name)].map(|path| fs::read_to_string(path).unwrap_or_default());
        assert!(made == kept, "{}: `cargo run -- reference docs/reference` writes it anew", name.display());
        written += 1;
    }
    assert_eq!(written, 8);
}

/// Codes of errors and variables that the code knows stand in the reference.
#[test]
fn the_reference_leaves_no_code_and_no_variable_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let (http, environment) = (read("docs/reference/http.md"), read("docs/reference/environment.md"));
    for (code, status) in PROXY_CODES {
        assert!(http.contains(&format!("| `{code}` | {status} |")), "docs/reference/http.md lacks `{code}` {status}");
    }
    let mut sources = Vec::new();
    for place in crate::architecture::roots() {
        crate::architecture::walk(&place, &mut sources);
    }
    for path in sources.iter().filter(|path| !path.to_string_lossy().contains("test")) {
        let text = fs::read_to_string(path).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for name in code.split("\"AEGIS_").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(
                environment.contains(&format!("`AEGIS_{name}`")),
                "{}: AEGIS_{name} is in no reference",
                path.display()
            );
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
