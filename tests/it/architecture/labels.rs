//! Labels have one maker and one writer.

use std::{collections::BTreeSet, fs, path::Path};

use syn::visit::{self, Visit};

use super::{
    all, crates,
    paths::{Source, for_tests, named},
};

/// What makes a label, and what names its files, with where that may be named besides `ruling`.
const GUARDED: &[(&str, &[&str])] = &[
    ("ruled", &[]),
    // A label is read back from its own file, and from that of a campaign's cell.
    ("read_back", &["crates/recording/src/recording/label.rs", "crates/campaign/src/campaign/ended.rs"]),
    // And told under the names and the outcome that became known later, when it is read.
    ("named_later", &["crates/recording/src/recording/amended.rs"]),
    ("with_outcome", &["crates/recording/src/recording/amended.rs"]),
    ("under_names_of", &["crates/recording/src/recording/renamed.rs"]),
    (
        "LABEL_FILE",
        &[
            "crates/recording/src/recording/label.rs",
            "crates/recording/src/recording/mod.rs",
            "crates/recording/src/recording/read.rs",
        ],
    ),
];

/// The files of a label; the first is named where it is read, and both where the schemas of all files are listed.
const FILES: &[(&str, &[&str])] = &[
    ("label.json", &["crates/recording/src/recording/label.rs", "src/cli/setup/schemas/files.rs"]),
    ("label.former.json", &["src/cli/setup/schemas/files.rs"]),
];

/// Labels are made and written by `ruling` alone. Their fields are private, they are not `Deserialize`, and what makes one and what
/// names its file has one name each.
#[test]
fn only_ruling_makes_and_writes_labels() {
    let crates = crates();
    let mut broken: Vec<String> = Vec::new();
    for source in all().iter().filter(|source| source.module.first().is_some_and(|room| room != "ruling")) {
        let lines = outside(source, &crates);
        broken.extend(lines.iter().map(|line| format!("{}:{line}", source.file.display())));
    }
    assert!(broken.is_empty(), "a label is made or written outside `ruling`:\n{}", broken.join("\n"));
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/conversation/src/trajectory/label.rs"))
            .expect("a source");
    let made = text.lines().filter(|line| ["Self(", "Label("].iter().any(|made| line.trim_start().starts_with(made)));
    assert_eq!(made.count(), 2, "`ruled` and `read_back` alone fill the private field");
    let before = text.split_once("pub struct Label(").expect("the type").0;
    let derived = before.rsplit_once("#[derive(").expect("its derives").1;
    assert!(!derived.contains("Deserialize"), "a label that serde makes has no maker");
}

/// The lines of a file that make a label or write its files.
fn outside(source: &Source, crates: &BTreeSet<String>) -> Vec<usize> {
    let is_in = |files: &[&str]| files.iter().any(|file| source.file.ends_with(file));
    let guards = |word: &str| GUARDED.iter().any(|(guarded, files)| *guarded == word && !is_in(files));
    let names = named(source, crates).into_iter().filter(|name| !name.tests);
    let mut lines: Vec<usize> =
        names.filter(|name| name.path.last().is_some_and(|last| guards(last))).map(|name| name.line).collect();
    if !source.tests {
        let mut texts = Texts::default();
        texts.visit_file(&source.syntax);
        let names_file = |text: &str| FILES.iter().any(|(file, files)| text.contains(file) && !is_in(files));
        lines.extend(texts.0.into_iter().filter(|(text, _)| names_file(text)).map(|(_, line)| line));
    }
    lines
}

/// The texts of a file that are no help and no documentation, with their lines.
#[derive(Default)]
struct Texts(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !matches!(item, syn::Item::Mod(item) if for_tests(&item.attrs)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.0.push((text.value(), text.span().start().line));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        // What a macro is given is not parsed.
        let words = called.tokens.to_string();
        let line = called.path.segments.first().map_or(0, |name| name.ident.span().start().line);
        self.0.push((words, line));
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

#[test]
fn the_guard_of_labels_sees_what_goes_round_it() {
    let crates = crates();
    let lines = |file: &str, text: &str| {
        let syntax = syn::parse_file(text).expect("Rust");
        let module = vec!["campaign".to_owned(), "emit".to_owned()];
        outside(&Source { file: file.into(), module, tests: false, syntax }, &crates)
    };
    for round in [
        "use crate::trajectory::Label; fn f(c: C) -> Label { Label::ruled(c) }",
        "use crate::trajectory::Label as L; fn f(c: C) { L::ruled(c) }",
        "type L = crate::trajectory::Label; fn f(c: Option<C>) { c.map(L::ruled) }",
        "fn f(c: C) { <crate::trajectory::Label>::ruled(c) }",
        "fn f(c: C) { vec![<Label>::ruled(c)] }",
        "fn f(c: C) { assert!(g(Label::ruled(c))) }",
        "fn f(c: C) { Label::read_back(c) }",
        "use crate::recording::LABEL_FILE;",
        "use crate::recording::LABEL_FILE as FILE;",
        "fn f(dir: &Path) { dir.join(crate::recording::LABEL_FILE) }",
        "fn f(dir: &Path) { std::fs::write(dir.join(\"label.json\"), b\"{}\") }",
        "const FILE: &str = \"logs/r/label.json\";",
        "fn f(dir: &Path) { dir.join(format!(\"{}/label.json\", 1)) }",
        "fn f(dir: &Path) { dir.join(\"label.former.json\") }",
    ] {
        assert!(lines("crates/campaign/src/campaign/emit.rs", round).contains(&1), "{round}");
    }
    for fine in [
        "/// Reads `label.json`.\nfn f(dir: &Path) { crate::recording::read_label(dir) }",
        "#[cfg(test)] mod tests { fn f(c: C) { Label::ruled(c) } }",
        "#[cfg(test)] mod tests { fn f(dir: &Path) { dir.join(\"label.json\") } }",
    ] {
        assert!(lines("crates/campaign/src/campaign/emit.rs", fine).is_empty(), "{fine}");
    }
    assert!(lines("crates/campaign/src/campaign/ended.rs", "fn f(c: C) { Label::read_back(c) }").is_empty());
}
