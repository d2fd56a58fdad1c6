//! The tables of shapes as `tests/shapes/SHAPES.md` holds them, and their counts as `docs/surfaces.md` does.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use aegis::surface;

use super::{
    Row,
    edits::Outcome,
    requests::{Asked, AskedRow},
    shapes::Shape,
    traces::{Traced, TracedRow},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Holds the cells that are wrong to those that are known to be.
pub fn assert_known(wrong: &[(String, String)], is_ours: impl Fn(&str) -> bool) {
    let known = not_yet();
    let new: Vec<_> = wrong.iter().filter(|(cell, _)| !known.contains(cell)).collect();
    let said: Vec<_> = new.iter().map(|(cell, why)| format!("{cell}\n    {why}")).collect();
    assert!(said.is_empty(), "{} cells are wrong:\n{}", said.len(), said.join("\n"));
    let right = |cell: &&String| is_ours(cell) && !wrong.iter().any(|(known, _)| known == *cell);
    let mended: Vec<_> = known.iter().filter(right).collect();
    assert!(mended.is_empty(), "these are right now, take them off `tests/shapes/not_yet.txt`:\n{mended:#?}");
}

/// Cells that are known to be wrong, one a line.
fn not_yet() -> BTreeSet<String> {
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
                edited(&row.edited),
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

fn edited(outcomes: &[Outcome]) -> String {
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Wrong(_))) {
        return "not yet".to_owned();
    }
    let delivered = outcomes.iter().filter(|outcome| **outcome == Outcome::Delivered).count();
    format!("{delivered} of {}", outcomes.len())
}

/// The table of requests.
pub fn request_table(asked: &[Asked], rows: &[AskedRow]) -> String {
    let mut page = format!(
        "\n### Requests: {} shapes\n\n| shape | who sends it | read | edited |\n|---|---|---|---|\n",
        asked.len()
    );
    for (asked, row) in asked.iter().zip(rows) {
        let read = asked.unplaced.as_ref().map_or_else(|| cell(&row.read, "yes"), |what| format!("partly: {what}"));
        let _ = writeln!(page, "| {} | {} | {read} | {} |", asked.name, asked.source, edited(&row.edited));
    }
    page
}

/// The table of spans.
pub fn trace_table(shapes: &[Traced], rows: &[TracedRow]) -> String {
    let mut page = format!(
        "\n### OTLP spans: {} shapes\n\n| convention | shape | who writes it | read | agent | ended | account |\n|---|---|---|---|---|---|---|\n",
        shapes.len()
    );
    for (shape, row) in shapes.iter().zip(rows) {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            shape.convention,
            shape.name,
            shape.source,
            cell(&row.read, "yes"),
            cell(&row.agent, if shape.agent.is_some() { "named" } else { "not named" }),
            cell(&row.ended, shape.ending.name()),
            shape.unplaced.as_ref().map_or_else(
                || cell(&row.account, "read"),
                |piece| cell(&row.account, &format!("partly read: {piece}"))
            ),
        );
    }
    page
}

/// How many shapes there are of each surface, and of how many a reader places only a part.
pub fn counts(shapes: &[Shape]) -> String {
    let mut page = "\n| surface | shapes | partly read |\n|---|--:|--:|\n".to_owned();
    for surface in surface::ALL {
        let those = || shapes.iter().filter(|shape| shape.surface().name() == surface.name());
        let partly = those().filter(|shape| shape.unplaced.is_some()).count();
        let _ = writeln!(page, "| `{}` | {} | {partly} |", surface.name(), those().count());
    }
    page
}

/// Holds a part of a page to its table; writes it where `AEGIS_WRITE_DOCS` is set.
pub fn assert_holds(page: &str, part: &str, table: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).expect("the page");
    let (begin, end) =
        (format!("<!-- {part}: made by the test `conformance` -->\n"), format!("<!-- end of {part} -->\n"));
    let (before, rest) = text.split_once(&begin).expect("where the table begins");
    let (held, after) = rest.split_once(&end).expect("where the table ends");
    if held == table {
        return;
    }
    assert!(
        std::env::var_os("AEGIS_WRITE_DOCS").is_some(),
        "{page} does not hold the table of {part}: run this test with AEGIS_WRITE_DOCS=1 and --test-threads=1 to write it"
    );
    fs::write(&path, [before, &begin, table, &end, after].concat()).expect("the page is written");
}
