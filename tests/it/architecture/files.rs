//! What lies below a run, a part or a campaign is opened in one place: `RunFile`.

use super::{all, crates, named};

/// Rooms that read what others may have put there.
const READERS: &[&str] = &["attribution", "campaign", "execution", "replay", "ruling", "viewer"];
/// Ways to open a file that follow links, wait for pipes and read without end.
const OPENS: &[&str] = &[
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::copy",
    "std::fs::File::open",
    "std::fs::File::options",
    "std::fs::OpenOptions",
];
/// Where a file is opened that the user named on the command line.
const NAMED_BY_USERS: &[&str] = &["campaign/definition.rs"];

#[test]
fn what_lies_below_a_run_is_opened_in_one_place() {
    let crates = crates();
    let mut opened = Vec::new();
    for source in all() {
        let of_reader = source.module.first().is_some_and(|room| READERS.contains(&room.as_str()));
        if !of_reader || NAMED_BY_USERS.iter().any(|file| source.file.ends_with(file)) {
            continue;
        }
        for name in named(&source, &crates).iter().filter(|name| !name.tests && !name.method) {
            let path = name.path.join("::");
            if OPENS.iter().any(|open| path == *open || path.starts_with(&format!("{open}::"))) {
                opened.push(format!("{}:{}: {path}", source.file.display(), name.line));
            }
        }
    }
    assert!(opened.is_empty(), "open these as `recording::RunFile`:\n{}", opened.join("\n"));
}
