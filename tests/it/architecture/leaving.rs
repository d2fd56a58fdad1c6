//! What is written leaves through one type: `Masked`, which only a redactor makes.

use super::{all, crates, named};

/// Ways to write a file or a stream that take any bytes.
const WRITES: &[&str] = &[
    "std::fs::write",
    "std::fs::File::create",
    "std::fs::File::create_new",
    "std::fs::File::options",
    "std::fs::OpenOptions",
    "std::io::stderr",
    "std::io::stdout",
    "tempfile::NamedTempFile",
    "tempfile::tempfile",
    "tempfile::tempfile_in",
];
/// The room that makes `Masked`, and files that may write otherwise, each with its reason.
const EXEMPT: &[(&str, &str)] = &[
    ("recording/", "masks what it writes, and makes the type"),
    ("cli/terminal.rs", "takes the type from every other verb"),
    ("cli/example.rs", "is a client of its own, and has no recording"),
    ("cli/mcp/console.rs", "passes messages between a client and its server, which are never altered"),
    ("cli/screen.rs", "asks what a stream is"),
    ("cli/output.rs", "takes the type, and puts it in place as users' programs would"),
    ("setup/doctor.rs", "tries whether a place can be written to, with nothing"),
    ("setup/token.rs", "changes the users' file of tokens, which holds what it is to hold"),
    ("formats/rows.rs", "takes the type; Parquet writes its own bytes"),
    ("task_sets/import.rs", "unpacks what a user gave into a place that goes away"),
    (
        "launch/mod.rs",
        "makes the file that a program's standard error goes to, which is masked when the program has ended",
    ),
    ("verify/command.rs", "gives the user's own check what it is to read, in a place that goes away"),
    ("shard/snapshot.rs", "keeps the campaign as its user wrote it, to be read again"),
    (
        "campaign/state.rs",
        "makes the file that a program's standard error goes to, and masks it when the program has ended",
    ),
];

#[test]
fn what_leaves_this_process_is_masked_by_its_type() {
    let crates = crates();
    let mut written = Vec::new();
    for source in all() {
        if EXEMPT.iter().any(|(file, _)| source.file.to_string_lossy().contains(file)) {
            continue;
        }
        for name in named(&source, &crates).iter().filter(|name| !name.tests && !name.method) {
            let path = name.path.join("::");
            let is_write = |write: &&str| path == **write || path.starts_with(&format!("{write}::"));
            if WRITES.iter().any(is_write) || path.ends_with("::create_private") {
                written.push(format!("{}:{}: {path}", source.file.display(), name.line));
            }
        }
    }
    assert!(written.is_empty(), "write these as `recording::MaskedFile` or `AppendedLines`:\n{}", written.join("\n"));
}
