//! The workflows of the repository: each part of `.ci/run` is run for each change, each action is named by its hash.

use std::{collections::BTreeSet, fs, path::Path};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

#[test]
fn each_change_runs_all_parts() {
    let script = read(".ci/run");
    let parts = script.split("parts=(").nth(2).and_then(|rest| rest.split(')').next()).expect("the parts of .ci/run");
    let parts: BTreeSet<&str> = parts.split_whitespace().collect();
    assert!(parts.len() >= 9, "{parts:?}");
    let workflow = read(".github/workflows/ci.yml");
    let matrix = workflow.split("parts: [").nth(1).and_then(|rest| rest.split(']').next()).expect("a matrix");
    let run: BTreeSet<&str> = matrix.split([',', ' ']).filter(|part| !part.is_empty()).collect();
    assert_eq!(run, parts);
}

#[test]
fn actions_are_named_by_their_hash() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("action.yml")];
    let workflows = fs::read_dir(root.join(".github/workflows")).expect("workflows");
    files.extend(workflows.map(|entry| entry.expect("an entry").path()));
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        for used in text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")) {
            let hash = used.split('@').nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            let is_hash = hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_hash, "{}: {used}", path.display());
        }
    }
}

#[test]
fn a_release_has_its_section_of_the_changelog() {
    let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).expect("a manifest");
    let version = manifest["workspace"]["package"]["version"].as_str().expect("a version");
    let changelog = read("CHANGELOG.md");
    assert!(changelog.lines().any(|line| line.starts_with(&format!("## {version}"))), "CHANGELOG.md lacks {version}");
}
