//! The house stays tidy: short files, a doc for each, nothing half-done, nothing of one machine.

use std::{fs, path::Path};

use crate::architecture::{roots, walk};

/// Longest source file, in lines.
const LINES_MAX: usize = 400;

#[test]
fn every_file_is_one_room_and_says_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "crates", "tests", "examples", "benches"] {
        if root.join(dir).is_dir() {
            walk(&root.join(dir), &mut files);
        }
    }
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        let name = path.strip_prefix(root).expect("inside").display().to_string();
        let lines = text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{name}: {lines} lines, at most {LINES_MAX}"));
        }
        if !text.starts_with("//!") && !text.starts_with("#![doc") {
            wrong.push(format!("{name}: no module doc"));
        }
        let words = [
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("to", "do!("),
            concat!("db", "g!("),
            concat!("#[ig", "nore"),
        ];
        wrong.extend(words.iter().filter(|word| text.contains(**word)).map(|word| format!("{name}: holds {word}")));
        wrong.extend(
            text.lines()
                .enumerate()
                .filter(|(_, line)| line.ends_with([' ', '\t']))
                .map(|(i, _)| format!("{name}:{}: trailing blank", i + 1)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_have_names_of_the_field() {
    let mut files = Vec::new();
    for root in &roots() {
        walk(root, &mut files);
    }
    for path in files {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        for banned in ["util", "helper", "common", "manager", "misc"] {
            assert!(!stem.contains(banned), "{}: `{banned}` says nothing", path.display());
        }
    }
}
