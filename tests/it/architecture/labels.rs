//! Labels have one maker and one writer.

use std::fs;

use super::{
    all, crates,
    paths::{Named, named},
};

/// Labels are made and written by `ruling` alone. Their fields are private, and what makes one and what writes one has one name
/// each.
#[test]
fn only_ruling_makes_and_writes_labels() {
    let crates = crates();
    let mut broken: Vec<String> = Vec::new();
    for source in all().iter().filter(|source| source.module.first().is_some_and(|room| room != "ruling")) {
        let names = named(source, &crates);
        let makes = |name: &&Named| match name.path.last().map(String::as_str) {
            Some("ruled") => name.path.iter().any(|part| part == "Label" || part == "Self"),
            Some("write_label") => true,
            _ => false,
        };
        // Where the writer is defined, and handed on.
        let own = ["src/recording/mod.rs", "src/recording/manifest.rs"].iter().any(|own| source.file.ends_with(own));
        let found = names.iter().filter(|name| !name.tests && !source.tests).filter(makes).filter(|_| !own);
        broken.extend(found.map(|name| format!("{}:{}", source.file.display(), name.line)));
        let text = fs::read_to_string(&source.file).expect("a source");
        let lines = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| line.contains("\"label.former.json\"") || line.contains("\"label.json\"") && !own);
        if !source.tests {
            broken.extend(lines.map(|(_, line)| format!("{}:{line}", source.file.display())));
        }
    }
    assert!(broken.is_empty(), "a label is made or written outside `ruling`:\n{}", broken.join("\n"));
}
