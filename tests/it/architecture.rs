//! The arrows of ARCHITECTURE.md, checked over every path that the sources name: rooms see only rooms below them, and pure
//! rooms see nothing outside.

mod field_names;
mod files;
mod labels;
mod map;
mod names;
mod paths;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

pub use paths::walk;
use paths::{Named, Source, named, sources};

/// What a room may see of the rooms of its crate, a line a crate; what it sees of other crates, the compiler holds.
const ARROWS: &[&[(&str, &[&str])]] = &[
    &[("trajectory", &[]), ("surface", &["trajectory"]), ("equality", &["surface", "trajectory"])],
    &[("identity", &[])],
    &[("proof", &[]), ("score", &[])],
    &[("mode", &[]), ("manipulator", &["mode"]), ("fault", &[]), ("plan", &["manipulator", "mode", "fault"])],
    &[("recording", &[]), ("ruling", &["recording"]), ("verdict", &["recording"]), ("watch", &["recording"])],
    &[
        ("budget", &[]),
        ("monitor", &[]),
        ("proxy", &["budget", "monitor"]),
        ("replay", &["proxy"]),
        ("simulator", &["proxy"]),
    ],
    &[("launch", &[]), ("verify", &["launch"]), ("execution", &["launch", "verify"]), ("example", &[])],
    &[("dataset", &[]), ("foreign", &[])],
    &[("attribution", &[])],
    &[("capability", &[]), ("viewer", &["capability"])],
    &[("campaign", &[]), ("demo", &["campaign"])],
    &[("cli", &[])],
];

/// Each room, with what it may see of its crate.
fn rooms() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    ARROWS.iter().copied().flatten()
}

/// The pure rooms.
const PURE: &[&str] = &[
    "trajectory",
    "surface",
    "equality",
    "identity",
    "mode",
    "manipulator",
    "fault",
    "plan",
    "score",
    "proof",
    "verdict",
    "watch",
];

/// Other crates that pure rooms may name: what computes. A crate that is not here is no part of them.
const COMPUTES: &[&str] = &[
    "aho_corasick",
    "alloc",
    "base64",
    "blake3",
    "brotli",
    "bytes",
    "core",
    "flate2",
    "foldhash",
    "jiff",
    "memchr",
    "rand",
    "regex",
    "schemars",
    "serde",
    "serde_json",
    "simdutf8",
    "strsim",
    "thiserror",
    "toml",
    "twox_hash",
    "zstd",
];

/// What the standard library has that is not pure.
const OUTSIDE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::hash::RandomState",
    "std::collections::hash_map::RandomState",
];

/// Calls that ask a clock or a disk, whatever they are called on.
const ASKS: &[&str] = &[
    "now",
    "elapsed",
    "exists",
    "try_exists",
    "metadata",
    "symlink_metadata",
    "read_dir",
    "is_file",
    "is_dir",
    "is_symlink",
    "canonicalize",
    "read_link",
    "random",
];

fn crates() -> BTreeSet<String> {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let named = manifest["workspace"]["dependencies"].as_table().expect("a table").clone();
    let own = ["std", "core", "alloc"].map(str::to_owned);
    own.into_iter().chain(named.into_iter().map(|(name, _)| name.replace('-', "_"))).collect()
}

/// The sources of each crate: of the binary, and of those below it.
pub fn roots() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let below = fs::read_dir(root.join("crates")).expect("crates").map(|entry| entry.expect("a crate").path());
    let mut roots: Vec<PathBuf> = below.chain([root.to_owned()]).map(|place| place.join("src")).collect();
    roots.sort();
    roots
}

fn all() -> Vec<Source> {
    roots().iter().flat_map(|root| sources(&root.join("lib.rs"))).collect()
}

/// The room above its own that a name reaches into, or the whole crate.
fn arrow(room: &str, name: &Named) -> Option<String> {
    if name.method || name.path.first().is_none_or(|first| first != "crate") {
        return None;
    }
    let beside = ARROWS.iter().find(|of_crate| of_crate.iter().any(|(known, _)| *known == room))?;
    let below = beside.iter().find(|(known, _)| *known == room).map(|(_, below)| *below)?;
    let Some(to) = name.path.get(1) else { return Some("the whole crate".to_owned()) };
    let is_above = to != room && beside.iter().any(|(known, _)| known == to) && !below.contains(&to.as_str());
    (is_above || to == "*").then(|| to.clone())
}

/// What a name is that no pure room may hold.
fn impurity(name: &Named, crates: &BTreeSet<String>) -> Option<String> {
    let path = name.path.join("::");
    let last = name.path.last().map(String::as_str).unwrap_or_default();
    let first = name.path.first().map(String::as_str).unwrap_or_default();
    let outside = OUTSIDE.iter().any(|denied| path == *denied || path.starts_with(&format!("{denied}::")));
    let foreign =
        !name.method && first != "std" && first != "crate" && crates.contains(first) && !COMPUTES.contains(&first);
    let whole = !name.method
        && matches!(first, "std" | "core")
        && matches!(name.path.get(1).map(String::as_str), None | Some("*"));
    let clock = first != "crate" && ASKS.contains(&last);
    (outside || foreign || whole || clock).then_some(path)
}

#[test]
fn arrows_go_down_only() {
    let crates = crates();
    let (mut broken, mut used) = (Vec::new(), BTreeSet::new());
    for source in all() {
        let Some(room) = source.module.first() else { continue };
        assert!(
            rooms().any(|(known, _)| known == room),
            "{}: a room that ARCHITECTURE.md does not know",
            source.file.display()
        );
        for name in named(&source, &crates) {
            if let Some(to) = arrow(room, &name) {
                broken.push(format!("{}:{}: {room} → {to}", source.file.display(), name.line));
            } else if let Some(to) = name.path.get(1).filter(|_| name.path[0] == "crate" && !name.method) {
                used.insert((room.clone(), to.clone()));
            }
        }
    }
    assert!(broken.is_empty(), "arrows that go up:\n{}", broken.join("\n"));
    let named = rooms().flat_map(|(room, below)| below.iter().map(move |to| ((*room).to_owned(), (*to).to_owned())));
    let idle: Vec<_> = named.filter(|arrow| !used.contains(arrow)).collect();
    assert!(idle.is_empty(), "arrows that nothing uses: {idle:?}");
}

#[test]
fn pure_rooms_do_no_io() {
    let crates = crates();
    let mut impure = Vec::new();
    for source in all() {
        let Some(room) = source.module.first().filter(|room| PURE.contains(&room.as_str())) else { continue };
        for name in named(&source, &crates).iter().filter(|name| !name.tests) {
            let found = impurity(name, &crates);
            impure.extend(found.map(|what| format!("{}:{}: {room} uses {what}", source.file.display(), name.line)));
        }
    }
    assert!(impure.is_empty(), "IO in pure rooms:\n{}", impure.join("\n"));
}

/// What was once put into a pure room and seen by nobody, and what is like it.
#[test]
fn the_gates_see_what_goes_round_them() {
    let crates = crates();
    let reading = |text: &str| {
        let syntax = syn::parse_file(text).expect("Rust");
        let module = vec!["trajectory".to_owned(), "id".to_owned()];
        named(&Source { file: "id.rs".into(), module, tests: false, syntax }, &crates)
    };
    for up in [
        "use super::super::surface::Outline;",
        "fn f() { super::super::surface::f() }",
        "use crate::{surface::{Outline, x::Y}, trajectory};",
        "use crate as whole;",
        "use super::super::*;",
        "use super::super as root;",
        "mod deep { use super::super::super::equality; }",
        "fn f() { format!(\"{}\", crate::surface::g()) }",
        "#[cfg(test)] mod tests { fn g() { crate::surface::g() } }",
        "fn f() -> Box<dyn Fn(&crate::equality::Rules)> { todo() }",
        "macro_rules! m { () => { $crate::surface::run() } }",
    ] {
        assert!(reading(up).iter().any(|name| arrow("trajectory", name).is_some()), "{up}");
    }
    for impure in [
        "#[cfg(test)] mod tests { } fn f() { std::fs::read(\"x\"); }",
        "fn f() { jiff::Zoned::now() }",
        "use jiff::Zoned; fn f() { Zoned::now() }",
        "use std::{collections::BTreeMap, fs::File};",
        "use std::fs as disk;",
        "use std as s;",
        "use std::*;",
        "use std::time::Instant;",
        "fn f(path: &std::path::Path) -> bool { path.exists() }",
        "fn f(path: &P) { debug_assert!(path.is_file()) }",
        "fn f() { format!(\"{:?}\", std::env::args()) }",
        "fn f() { ::tokio::spawn(async {}) }",
        "use tokio::sync::mpsc;",
        "fn f() { tracing::info!(\"x\") }",
        "fn f(at: T) { at.elapsed() }",
    ] {
        let seen = reading(impure);
        assert!(seen.iter().any(|name| !name.tests && impurity(name, &crates).is_some()), "{impure}: {seen:?}");
    }
    for fine in [
        "use super::FailureMode; use std::{fmt, time::Duration}; fn f() { super::x(); self::y(); Duration::ZERO }",
        "#[cfg(test)] mod tests { fn f() { std::fs::read(\"x\"); } }",
        "#[test] fn f() { std::fs::read(\"x\"); }",
        "fn f() { crate::trajectory::g(serde_json::json!({})) }",
    ] {
        let seen = reading(fine);
        assert!(seen.iter().all(|name| arrow("trajectory", name).is_none()), "{fine}: {seen:?}");
        assert!(
            seen.iter().filter(|name| !name.tests).all(|name| impurity(name, &crates).is_none()),
            "{fine}: {seen:?}"
        );
    }
}
