//! Words that the glossary replaced stay out of pages and help. The help is read as the manual pages, which are written from it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A phrase that was replaced, and what is written instead.
const REPLACED: &[(&str, &str)] = &[
    ("null run", "control"),
    ("null arm", "control"),
    ("null execution", "control"),
    ("fuller reply", "reply with log-probabilities"),
    ("unmade", "an edit that could not be made"),
    ("heard", "observed, read"),
    ("told again", "repeated"),
    ("is told of", "gets"),
    ("gone on with", "continued"),
    ("what it says of", "what it reports"),
    ("is said of", "describes"),
    ("Said of", "a definition"),
    ("by its looks", "by a hash of its prompt and tools"),
    ("nobody's own run", "an execution of Aegis"),
];

/// The pages: the README, and all below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = files_below(root.join("docs"), "md");
    pages.push(root.join("README.md"));
    pages
}

/// The files of a kind in a folder and all below it.
fn files_below(folder: PathBuf, kind: &str) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == kind) {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn pages_and_help_use_the_words_of_the_glossary() {
    let mut pages = pages();
    assert!(pages.len() >= 35, "{pages:?}");
    let man = tempfile::tempdir().expect("a directory");
    let made = Command::new(env!("CARGO_BIN_EXE_aegis")).arg("man").arg(man.path()).output().expect("started");
    assert!(made.status.success(), "{made:?}");
    let help = files_below(man.path().to_owned(), "1");
    assert!(help.len() >= 35, "{help:?}");
    pages.extend(help);
    let mut found = Vec::new();
    for page in pages {
        for (number, line) in fs::read_to_string(&page).expect("readable").lines().enumerate() {
            for (replaced, instead) in REPLACED.iter().filter(|(replaced, _)| line.contains(replaced)) {
                found.push(format!("{}:{}: `{replaced}`; write: {instead}", page.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
