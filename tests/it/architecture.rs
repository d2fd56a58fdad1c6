//! The arrows of ARCHITECTURE.md, checked over every path that the sources name: rooms see only rooms below them.

mod circles;
mod field_names;
mod files;
mod labels;
mod leaving;
mod map;
mod names;
mod parameters;
mod paths;
mod words;

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

/// The pure crates: they see no file, network, process, environment or clock. Their manifests name no crate that does, and clippy holds
/// the standard library's by a configuration of their own.
const PURE: &[&str] = &["conversation", "identity", "statistics", "injection"];

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

/// clippy reads the nearest configuration alone, so each pure crate has one of its own: that of the repository, and what is denied.
#[test]
fn pure_crates_have_one_configuration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |place: &Path| {
        let text = fs::read_to_string(place.join(".clippy.toml")).unwrap_or_else(|_| panic!("{}", place.display()));
        (text.parse::<toml::Table>().expect("TOML"), text)
    };
    let (whole, _) = read(root);
    let pure: Vec<_> = PURE.iter().map(|name| read(&root.join("crates").join(name))).collect();
    assert!(pure.windows(2).all(|two| two[0].1 == two[1].1), "the pure crates differ in what they deny");
    for (key, value) in &whole {
        let held = &pure[0].0[key];
        let holds = match (held.as_array(), value.as_array()) {
            (Some(held), Some(value)) => value.iter().all(|one| held.contains(one)),
            _ => held == value,
        };
        assert!(holds, "`{key}` of the repository's .clippy.toml is missing in the pure crates'");
    }
}

/// Ways of naming another room that an earlier check did not see.
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
    for fine in [
        "use super::FailureMode; use std::{fmt, time::Duration}; fn f() { super::x(); self::y(); Duration::ZERO }",
        "fn f() { crate::trajectory::g(serde_json::json!({})) }",
    ] {
        let seen = reading(fine);
        assert!(seen.iter().all(|name| arrow("trajectory", name).is_none()), "{fine}: {seen:?}");
    }
}
