//! The arrows of ARCHITECTURE.md, checked over every `crate::` path: rooms see only rooms below them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What each room may see. Rooms above come first; a room always sees itself.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "demo",
            "campaign",
            "score",
            "proof",
            "example",
            "attribution",
            "replay",
            "dataset",
            "simulator",
            "launch",
            "verify",
            "proxy",
            "verdict",
            "recording",
            "plan",
            "identity",
            "manipulator",
            "fault",
            "equality",
            "surface",
            "trajectory",
        ],
    ),
    (
        "campaign",
        &[
            "dataset",
            "verify",
            "proof",
            "replay",
            "simulator",
            "launch",
            "proxy",
            "recording",
            "plan",
            "identity",
            "manipulator",
            "fault",
            "equality",
            "surface",
            "trajectory",
        ],
    ),
    ("demo", &["campaign", "plan"]),
    ("dataset", &["verify", "score", "proof", "recording", "manipulator", "equality", "surface", "trajectory"]),
    ("verify", &["launch", "proxy", "surface", "trajectory"]),
    ("example", &["surface"]),
    ("attribution", &["proof", "replay", "launch", "proxy", "recording", "plan", "equality", "surface", "trajectory"]),
    ("replay", &["proxy", "recording", "plan", "fault", "equality", "surface", "trajectory"]),
    ("simulator", &["proxy", "surface", "trajectory"]),
    ("launch", &["trajectory"]),
    ("proxy", &["recording", "plan", "identity", "manipulator", "fault", "surface", "trajectory"]),
    ("verdict", &["recording", "plan", "fault", "surface", "trajectory"]),
    ("recording", &["plan", "identity", "surface", "trajectory"]),
    ("plan", &["manipulator", "fault", "surface", "trajectory"]),
    ("identity", &["surface", "trajectory"]),
    ("manipulator", &["surface", "trajectory"]),
    ("score", &["trajectory"]),
    ("proof", &["trajectory"]),
    ("fault", &["surface", "trajectory"]),
    ("equality", &["surface", "trajectory"]),
    ("surface", &["trajectory"]),
    ("trajectory", &[]),
];

/// Words that no pure room may hold: IO, clocks, ambient randomness.
const IMPURE: &[&str] = &[
    "tokio::",
    "hyper::",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "rand::",
];

/// The pure rooms.
const PURE: &[&str] =
    &["trajectory", "surface", "equality", "identity", "manipulator", "fault", "plan", "score", "proof", "verdict"];

fn sources() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found
        .into_iter()
        .filter_map(|path| {
            let room = path.strip_prefix(&root).ok()?.components().next()?.as_os_str().to_str()?.to_owned();
            let text = fs::read_to_string(&path).expect("readable");
            Some((room, path, text))
        })
        .collect()
}

pub fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a line names after `crate::`, groups included.
fn named(text: &str) -> Vec<(usize, String)> {
    let pattern = regex::Regex::new(r"(?s)crate::(\{.*?\};|[a-z_]+)").expect("a pattern");
    let word = regex::Regex::new(r"(?:^\{|,)\s*([a-z_]+)(?:::|\s*[,}])").expect("a pattern");
    let mut rooms = Vec::new();
    for found in pattern.captures_iter(text) {
        let (whole, named) = (found.get(0).expect("a match"), found.get(1).expect("a group"));
        let line = text[..whole.start()].matches('\n').count() + 1;
        if !named.as_str().starts_with('{') {
            rooms.push((line, named.as_str().to_owned()));
            continue;
        }
        // Only the first level of a group names rooms.
        let mut depth = 0;
        let flat: String = named
            .as_str()
            .chars()
            .filter(|c| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth <= 1
            })
            .collect();
        rooms.extend(word.captures_iter(&flat).map(|word| (line, word[1].to_owned())));
    }
    rooms
}

#[test]
fn arrows_go_down_only() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut broken = Vec::new();
    for (room, path, text) in sources() {
        let Some(below) = allowed.get(room.as_str()) else {
            assert!(
                matches!(room.as_str(), "lib.rs" | "main.rs"),
                "{}: a room that ARCHITECTURE.md does not know",
                path.display()
            );
            continue;
        };
        for (line, named) in named(&text) {
            if named != room && allowed.contains_key(named.as_str()) && !below.contains(&named.as_str()) {
                broken.push(format!("{}:{line}: {room} → {named}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "arrows that go up:\n{}", broken.join("\n"));
}

#[test]
fn pure_rooms_do_no_io() {
    let mut impure = Vec::new();
    for (room, path, text) in sources().into_iter().filter(|(room, ..)| PURE.contains(&room.as_str())) {
        if path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests")) {
            continue;
        }
        for (number, line) in text.lines().enumerate().take_while(|(_, line)| !line.contains("#[cfg(test)]")) {
            let code = line.split("//").next().unwrap_or_default();
            impure.extend(
                IMPURE
                    .iter()
                    .filter(|word| code.contains(**word))
                    .map(|word| format!("{}:{}: {room} uses {word}", path.display(), number + 1)),
            );
        }
    }
    assert!(impure.is_empty(), "IO in pure rooms:\n{}", impure.join("\n"));
}

#[test]
fn field_names_of_apis_stay_in_surfaces() {
    let mut leaked = Vec::new();
    for (room, path, text) in
        sources().into_iter().filter(|(room, ..)| !matches!(room.as_str(), "surface" | "simulator"))
    {
        let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
        for field in ["\"choices\"", "\"tool_calls\"", "\"response_format\"", "\"delta\"", "\"prompt_tokens\""] {
            // Datasets of other people's formats are written in their words, which APIs share.
            let foreign = path.parent().is_some_and(|dir| dir.ends_with("dataset/formats"));
            if text[..tests].contains(field) && !path.to_string_lossy().contains("tests") && !foreign {
                leaked.push(format!("{}: {room} knows {field}", path.display()));
            }
        }
    }
    assert!(leaked.is_empty(), "{}", leaked.join("\n"));
}

#[test]
fn the_arrow_test_sees_groups() {
    let text = "use crate::{\n    plan::{Plan, x::Y},\n    proxy,\n};\nfn f() { crate::surface::g() }";
    let rooms: Vec<_> = named(text).into_iter().map(|(_, room)| room).collect();
    assert_eq!(rooms, ["plan", "proxy", "surface"]);
}
