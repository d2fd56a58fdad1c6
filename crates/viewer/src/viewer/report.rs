//! The page of a campaign in one file: its screen, and as many of its runs as there is room for.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    bundle::{self, Blocks, Bundle, BundleError, BundleExtent},
    library::ViewerLibrary,
    listing::{Listing, ListingPlace, report_of},
};

/// How much of a campaign goes into the file.
#[derive(Debug, Clone, Copy)]
struct ReportRoom {
    /// Most runs.
    runs: usize,
    /// Room for runs, packed, in bytes.
    bytes: usize,
    /// Most injected runs that the screen lists; `report.json` has all.
    cells: usize,
}

/// A report is sent about and opened often.
const ROOM: ReportRoom = ReportRoom { runs: 300, bytes: 6 << 20, cells: 10_000 };

/// The page of the campaign in a directory, opened at its screen. In it are its verified runs with their twins, then the
/// other injected runs, then clean runs and those that were made for proofs, as long as there is room; the page says how
/// many were left out and how to see them. Bodies as they are stored are left out always.
///
/// # Errors
/// The directory holds no report, or its figures alone are too long.
pub fn campaign_bundle(root: &Path) -> Result<Bundle, BundleError> {
    bundle_within(root, ROOM)
}

fn bundle_within(root: &Path, room: ReportRoom) -> Result<Bundle, BundleError> {
    let library = ViewerLibrary::new(vec![root.to_owned()]);
    let found = library.listing();
    let place = found.campaigns.iter().find(|place| place.dir == root).ok_or(BundleError::Nothing)?;
    let mut report = report_of(root).ok_or(BundleError::Nothing)?;
    let keys = in_order(&report, &found, root);
    cut(&mut report, room.cells);
    let listing = Listing { campaigns: vec![place.clone()], runs: found.runs.clone(), ..Listing::default() };
    let blocks = gather(&library, place, report, &keys, room);
    let start = format!("#/campaign/{}", place.key);
    blocks.page(&listing, &start, BundleExtent::WithoutRaw).ok_or(BundleError::TooLong(blocks.bytes))
}

/// Leaves out the injected runs behind the first, and says how many.
fn cut(report: &mut Value, most: usize) {
    let Some(fields) = report.as_object_mut() else { return };
    if let Some(decoys) = fields.get_mut("decoy_cells").and_then(Value::as_array_mut) {
        decoys.truncate(most);
    }
    let Some(cells) = fields.get_mut("cells").and_then(Value::as_array_mut) else { return };
    let more = cells.len().saturating_sub(most);
    cells.truncate(most);
    fields.insert("more_cells".to_owned(), more.into());
}

/// The keys of the runs, what is looked at first in front; a verified run has its twin behind it.
fn in_order(report: &Value, listing: &Listing, root: &Path) -> Vec<String> {
    let cells = report.get("cells").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_verified = |cell: &&Value| cell.get("class").and_then(Value::as_str) == Some("verified");
    let run = |cell: &Value| listing.run_named(cell.get("run")?.as_str()?, root);
    let mut keys: Vec<&str> = Vec::new();
    for row in cells.iter().filter(is_verified).filter_map(run) {
        keys.push(&row.key);
        let label = crate::recording::read_label(&row.dir).ok().flatten();
        let twin = label.and_then(|label| label.into_content().evidence).and_then(|evidence| evidence.twin);
        keys.extend(twin.and_then(|twin| listing.run_named(twin.as_str(), root)).map(|twin| twin.key.as_str()));
    }
    keys.extend(cells.iter().filter_map(run).map(|row| row.key.as_str()));
    keys.extend(listing.runs.iter().filter(|row| row.trial_of.is_none()).map(|row| row.key.as_str()));
    let mut known = std::collections::HashSet::new();
    keys.into_iter().filter(|key| known.insert(*key)).map(str::to_owned).collect()
}

/// The report and the runs, the first that has no room ending it.
fn gather(library: &ViewerLibrary, place: &ListingPlace, report: Value, keys: &[String], room: ReportRoom) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.add(Map::from_iter([(format!("campaign/{}", place.key), report)]));
    let most = blocks.bytes + room.bytes;
    for key in keys {
        let mut run = Blocks::default();
        bundle::run(library, key, false, &mut run);
        if blocks.bytes + run.bytes > most || blocks.runs.len() == room.runs {
            break;
        }
        blocks.append(run);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::viewer::{recorded, tests::unpacked};

    /// A campaign of three runs, of which the last is verified and the first was made for it.
    fn campaign() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for run in ["a", "b", "c"] {
            let recorder = recorded::recorder_of(&dir.path().join("logs"), run);
            let request = json!({"model": "m", "messages": [{"role": "user", "content": format!("words of {run}")}]});
            let reply = Bytes::from_static(b"{\"choices\":[]}");
            recorded::call(&recorder, 0, "solver", &Bytes::from(request.to_string()), &reply, None);
            recorder.seal().expect("seals");
        }
        let cells = json!([{"run": "b", "class": "benign"}, {"run": "c", "class": "verified"}]);
        let report = json!({"campaign": "c", "cells": cells});
        std::fs::write(dir.path().join("report.json"), report.to_string()).expect("written");
        dir
    }

    #[test]
    fn what_has_no_room_is_counted_and_what_is_proven_comes_first() {
        let dir = campaign();
        for (runs, bytes, cells, kept, left_out, more) in [
            (9, 1 << 20, 9, &["a", "b", "c"][..], 0, 0),
            (1, 1 << 20, 9, &["c"], 2, 0),
            (2, 1 << 20, 1, &["c", "b"], 1, 1),
            (9, 10, 9, &[], 3, 0),
        ] {
            let page = bundle_within(dir.path(), ReportRoom { runs, bytes, cells }).expect("a page");
            assert_eq!((page.runs, page.left_out), (kept.len(), left_out));
            let html = page.html.into_text();
            assert!(html.contains(&format!("\"left_out\":{left_out}")), "the page is told");
            let all = unpacked(&html);
            for run in ["a", "b", "c"] {
                assert_eq!(all.contains(&format!("words of {run}")), kept.contains(&run), "{run} of {kept:?}");
            }
            assert!(all.contains(&format!("\"more_cells\":{more}")), "{all}");
            assert!(!all.contains(&dir.path().display().to_string()), "no place of this machine");
        }
    }

    #[test]
    fn a_directory_without_a_report_has_no_page() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(matches!(campaign_bundle(dir.path()), Err(BundleError::Nothing)));
    }
}
