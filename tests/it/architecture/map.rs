//! What ARCHITECTURE.md says of itself: its rooms are the rooms, and "one place to add" is as few lines as it says.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{ARROWS, PURE, rooms};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn map() -> String {
    fs::read_to_string(root().join("src/ARCHITECTURE.md")).expect("the map")
}

/// The cells of the table's rows whose head begins with these words.
fn rows_of(map: &str, head: &str) -> Vec<Vec<String>> {
    let lines = map.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn the_map_lists_the_rooms_and_the_pure_ones() {
    let map = map();
    let listed: Vec<String> =
        rows_of(&map, "| room |").iter().map(|row| row[0].trim_matches(['[', '`', ']']).to_owned()).collect();
    let (mut sorted, mut known) = (listed.clone(), rooms().map(|(room, _)| (*room).to_owned()).collect::<Vec<_>>());
    sorted.sort();
    known.sort();
    assert_eq!(sorted, known, "the rooms of the map, and those that there are");
    assert!(map.contains("The first ten are pure"), "the map says which rooms are pure");
    let of_pure: BTreeSet<&str> = ARROWS.iter().take(PURE.len()).copied().flatten().map(|(room, _)| *room).collect();
    let first: BTreeSet<&str> = listed.iter().take(10).map(String::as_str).collect();
    assert_eq!(first, of_pure, "the rooms of the pure crates come first");
    let crates: Vec<String> = rows_of(&map, "| crate |").iter().map(|row| row[0].clone()).collect();
    for (name, row) in PURE.iter().zip(&crates) {
        assert!(row.contains(&format!("`crates/{name}`")), "{row}: the pure crates come first");
    }
}

/// The lines of code in a file that name a module, or the type that is called like it.
fn lines_of(text: &str, stem: &str) -> usize {
    let words = |line: &str| -> Vec<String> {
        line.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
    };
    let capital =
        |word: &str| word.char_indices().map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c }).collect();
    let kind: String = stem.split('_').map(capital).collect::<Vec<String>>().concat();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.filter(|line| words(line).iter().any(|word| word == stem || *word == kind)).count()
}

/// Whether a file of a list's room is one of its kind.
type IsOne<'a> = &'a dyn Fn(&str, &str) -> bool;

/// What one of a kind takes, by the leanest of those that are there: others may be named for reasons of their own.
fn least(file: &str, is_one: impl Fn(&str, &str) -> bool) -> (usize, String) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).expect("a list");
    let dir = path.parent().expect("a directory");
    let stems = fs::read_dir(dir).expect("a room").flatten().map(|entry| entry.path());
    let stems = stems.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let counted = stems.filter(|stem| is_one(&text, stem)).map(|stem| (lines_of(&text, &stem), stem));
    counted.min().expect("one of the kind")
}

#[test]
fn one_place_to_add_is_as_small_as_the_map_says() {
    let map = map();
    let rows = rows_of(&map, "| what | create |");
    let in_list = |text: &str, stem: &str| {
        let item = format!("{stem}::");
        text.lines().any(|line| line.starts_with("    ") && line.trim_start().starts_with(&item))
    };
    let exported = |text: &str, stem: &str| text.contains(&format!("\npub use {stem}::")) && stem.contains('_');
    let format = |text: &str, stem: &str| text.contains(&format!("    &{stem}::"));
    let verb = |text: &str, stem: &str| text.contains(&format!("({stem}::"));
    let kinds: [(&str, &str, IsOne<'_>); 6] = [
        ("manipulator", "crates/injection/src/manipulator/mod.rs", &in_list),
        ("fault", "crates/injection/src/fault/mod.rs", &in_list),
        ("surface", "crates/conversation/src/surface/mod.rs", &exported),
        ("checker", "crates/execution/src/verify/mod.rs", &in_list),
        ("export format", "crates/dataset/src/dataset/formats/mod.rs", &format),
        ("verb", "src/cli/mod.rs", &verb),
    ];
    for (kind, file, is_one) in kinds {
        let row = rows.iter().find(|row| row[0] == kind).unwrap_or_else(|| panic!("no row of the map is `{kind}`"));
        let (count, stem) = least(file, is_one);
        let word = ["no", "one", "two", "three", "four", "five"][count];
        let said = row[2].starts_with(&format!("{word} line")) && row[2].contains(&format!("`{file}`"));
        assert!(said, "{kind}: `{stem}` stands in {count} lines of {file}, and the map says: {}", row[2]);
    }
    for row in &rows {
        for named in row[1..3].iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            let fixed = named.split('<').next().expect("a beginning");
            let is_path = fixed.contains('/') && !fixed.contains("::");
            assert!(!is_path || root().join(fixed).exists(), "{}: there is no {named}", row[0]);
        }
    }
}

#[test]
fn the_readme_of_a_crate_names_its_rooms_and_places_that_are_there() {
    for place in super::roots().iter().filter(|place| **place != root().join("src")) {
        let dir = place.parent().expect("a crate");
        let page = fs::read_to_string(dir.join("README.md")).expect("a README");
        for entry in fs::read_dir(place).expect("sources").flatten().filter(|entry| entry.path().is_dir()) {
            let room = entry.file_name().to_string_lossy().into_owned();
            assert!(page.contains(&format!("`{room}`")), "{}: nothing is said of `{room}`", dir.display());
        }
        for named in page.split('`').skip(1).step_by(2).filter(|named| named.starts_with("src/")) {
            assert!(dir.join(named).exists(), "{}: there is no {named}", dir.display());
        }
    }
}
