//! Which runs a tracer was trained on, as far as what lies beside its prompt says.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The end of an export's manifest.
const MANIFEST: &str = ".manifest.json";

/// The files of rows of the export that a tracer is named by: of the whole export, also where one part of it is named.
pub(super) fn rows_of(tracer: &Path) -> BTreeSet<PathBuf> {
    let named = if tracer.extension().is_some_and(|kind| kind == "toml") {
        let text = fs::read_to_string(tracer).unwrap_or_default();
        let table = toml::from_str::<toml::Table>(&text).unwrap_or_default();
        let prompt = table.get("prompt").and_then(toml::Value::as_str);
        prompt.map(|prompt| tracer.parent().unwrap_or(Path::new("")).join(prompt))
    } else {
        Some(tracer.to_owned())
    };
    let Some(named) = named else { return BTreeSet::new() };
    let dir = named.parent().unwrap_or(Path::new("")).to_owned();
    let mut files = BTreeSet::from([named.clone()]);
    for manifest in manifests(&named, &dir) {
        let text = fs::read(&manifest).unwrap_or_default();
        let stated: Value = serde_json::from_slice(&text).unwrap_or_default();
        let listed: BTreeSet<PathBuf> = stated
            .get("files")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| dir.join(name))
            .collect();
        if named == manifest || listed.contains(&named) {
            files.extend(listed);
        }
    }
    // What a manifest names and is gone was another's to keep.
    let is_rows = |file: &PathBuf| file.extension().is_some_and(|kind| kind == "jsonl" || kind == "parquet");
    files.into_iter().filter(|file| is_rows(file) && file.is_file()).collect()
}

/// The manifest that is named, or those beside the rows that are.
fn manifests(named: &Path, dir: &Path) -> Vec<PathBuf> {
    if named.to_string_lossy().ends_with(MANIFEST) {
        return vec![named.to_owned()];
    }
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let beside = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = beside.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().ends_with(MANIFEST));
    names.map(|name| named.with_file_name(name)).collect()
}
