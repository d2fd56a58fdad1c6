//! The rows of the data set that lies there already: what a later start leaves out of it is not lost without a word.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, BufReader},
    path::Path,
};

use serde::Deserialize;

use crate::{
    dataset::{BENIGN_FILE, FILE},
    recording::{RunFile, link_plain},
};

/// Where the earlier data set and its benign rows are kept: `dataset.earlier.jsonl`, then `dataset.earlier-2.jsonl`, and so on.
const KEPT: [(&str, &str); 2] = [(FILE, "dataset.earlier"), (BENIGN_FILE, "benign.earlier")];

/// The ids of rows that were written before and have not been written again.
#[derive(Debug, Default)]
pub(super) struct RowsBefore {
    all: usize,
    left: BTreeSet<String>,
}

#[derive(Deserialize)]
struct EarlierRow {
    id: String,
}

impl RowsBefore {
    /// Those of the data set in a directory; none where there is no data set. A line that is no row counts for nothing.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut left = BTreeSet::new();
        for (name, _) in KEPT {
            match RunFile::open(&root.join(name)) {
                Ok(file) => {
                    for line in BufReader::new(file).split(b'\n') {
                        left.extend(serde_json::from_slice::<EarlierRow>(&line?).map(|row| row.id));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { all: left.len(), left })
    }

    /// A row is written again.
    pub(super) fn mark_rewritten(&mut self, line: &[u8]) {
        if !self.left.is_empty()
            && let Ok(row) = serde_json::from_slice::<EarlierRow>(line)
        {
            self.left.remove(&row.id);
        }
    }

    /// Keeps the earlier data set beside the one that takes its place, if that is short of any of its rows, and says so.
    pub(super) fn keep(&self, root: &Path) -> io::Result<Option<String>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let number =
            (1..u32::MAX).find(|number| KEPT.iter().all(|(_, kept)| !root.join(numbered(kept, *number)).exists()));
        let number = number.unwrap_or(1);
        for (name, kept) in KEPT.into_iter().filter(|(name, _)| root.join(name).exists()) {
            link_plain(&root.join(name), &root.join(numbered(kept, number)))?;
        }
        let (gone, all, kept) = (self.left.len(), self.all, numbered(KEPT[0].1, number));
        Ok(Some(format!(
            "          {gone} of the {all} rows that lay there are not among these: the earlier set is kept as {kept}"
        )))
    }
}

/// The name of the kept file of that number, from 1.
fn numbered(kept: &str, number: u32) -> String {
    if number == 1 { format!("{kept}.jsonl") } else { format!("{kept}-{number}.jsonl") }
}
