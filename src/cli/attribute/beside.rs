//! What methods said of a recorded run, beside it, where `show`, `runs` and `view` find it.

use std::{io, path::Path};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::logs::Logs;
use crate::{
    attribution::{
        Attributed,
        methods::{self, COMBINED},
    },
    cli::{Global, escape},
    recording::{Masked, MaskedFile, RunFile},
    viewer::{ATTRIBUTION_FILE, same_question},
};

/// Keeps the rows of a recorded run beside it. A directory that takes nothing is somebody else's: the report is given all
/// the same.
pub(super) fn keep(logs: &Logs, rows: &[Vec<Attributed>], global: &Global) {
    let (Some(dir), [rows]) = (&logs.recorded, rows) else { return };
    let said = match write_rows(dir, rows) {
        Ok(()) => format!("kept beside the run: aegis view {} shows the methods side by side", dir.display()),
        Err(error) => format!("nothing was kept beside the run: `{}`: {error}", dir.join(ATTRIBUTION_FILE).display()),
    };
    if !global.quiet {
        talkln!("{}", escape(&said));
    }
}

/// A row, and what its method does: who opens the page need not know the methods by name.
fn row_json(row: &Attributed) -> serde_json::Result<Value> {
    let about = methods::method(&row.method).map(|method| method.description().to_owned());
    serde_json::to_value(AttributionRow { row, about })
}

/// A line of the file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct AttributionRow<'a> {
    #[serde(flatten)]
    row: &'a Attributed,
    /// What its method does.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
}

/// Rows of other methods and judges stay; what combines several is left out, since the next call can add to them.
fn write_rows(dir: &Path, rows: &[Attributed]) -> io::Result<()> {
    let path = dir.join(ATTRIBUTION_FILE);
    let former = match RunFile::text(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let new: Vec<Value> = rows.iter().filter(|row| row.method != COMBINED).map(row_json).collect::<Result<_, _>>()?;
    let stays = |row: &Value| !new.iter().any(|new| same_question(new, row));
    let former = former.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(stays);
    let mut text = Vec::new();
    for row in former.chain(new.iter().cloned()) {
        serde_json::to_writer(&mut text, &row)?;
        text.push(b'\n');
    }
    MaskedFile::replace(&path, &Masked::new(text))
}
