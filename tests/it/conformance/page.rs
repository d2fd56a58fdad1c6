//! The table of shapes as `docs/surfaces.md` holds it.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use aegis::surface;

use super::{Row, edits::Outcome, shapes::Shape};

const BEGIN: &str = "<!-- shapes: made by the test `conformance` -->\n";
const END: &str = "<!-- end of shapes -->\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Cells that are known to be wrong, one a line.
pub fn not_yet() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("tests/shapes/not_yet.txt")).expect("a list");
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// The table, one a surface.
pub fn table(shapes: &[Shape], rows: &[Row]) -> String {
    let mut page = String::new();
    for surface in surface::ALL {
        let of = || shapes.iter().zip(rows).filter(|(shape, _)| shape.surface().name() == surface.name());
        let _ = writeln!(page, "\n### `{}`: {} shapes\n", surface.name(), of().count());
        let _ =
            writeln!(page, "| shape | who sends it | read | edited | ended | replayed |\n|---|---|---|---|---|---|");
        for (shape, row) in of() {
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {} |",
                shape.name,
                shape.source,
                shape.unplaced.as_ref().map_or_else(|| cell(&row.read, "yes"), |what| format!("partly: {what}")),
                edited(row),
                cell(&row.ended, shape.ending.name()),
                cell(&row.replayed, "yes"),
            );
        }
    }
    page
}

fn cell(cell: &Result<(), String>, word: &str) -> String {
    if cell.is_ok() { word.to_owned() } else { "not yet".to_owned() }
}

fn edited(row: &Row) -> String {
    if row.edited.iter().any(|outcome| matches!(outcome, Outcome::Wrong(_))) {
        return "not yet".to_owned();
    }
    let delivered = row.edited.iter().filter(|outcome| **outcome == Outcome::Delivered).count();
    format!("{delivered} of {}", row.edited.len())
}

/// Holds the page to the table; writes it where `AEGIS_WRITE_DOCS` is set.
pub fn assert_holds(table: &str) {
    let path = root().join("docs/surfaces.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (held, after) = rest.split_once(END).expect("where the table ends");
    if held == table {
        return;
    }
    assert!(
        std::env::var_os("AEGIS_WRITE_DOCS").is_some(),
        "docs/surfaces.md does not hold the table of shapes: run this test with AEGIS_WRITE_DOCS=1 to write it"
    );
    fs::write(&path, [before, BEGIN, table, END, after].concat()).expect("the page is written");
}
