//! Rows of a report. Their number is not bounded, so they lie in a file without a name, a line each; memory holds the first.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek},
    path::Path,
};

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeSeq as _},
};
use serde_json::value::RawValue;

use crate::recording::{Masked, MaskedFile};

/// Most rows that are held in memory, and that a page lists; `report.json` has all.
pub(super) const LISTED: usize = 200;

/// Rows that are being added.
#[derive(Debug)]
pub(super) struct RowsWriter<T> {
    file: MaskedFile,
    first: Vec<T>,
    count: usize,
}

/// Rows of a report, all of them. In JSON they are a list, with a row a line.
#[derive(Debug, schemars::JsonSchema)]
#[schemars(with = "Vec<T>")]
pub struct ReportRows<T> {
    file: File,
    first: Vec<T>,
    count: usize,
}

impl<T: Serialize> RowsWriter<T> {
    /// Begins rows, whose file takes room in this directory as long as they are held.
    pub(super) fn begin(dir: &Path) -> io::Result<Self> {
        Ok(Self { file: MaskedFile::create_unnamed(dir)?, first: Vec::new(), count: 0 })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: T) -> io::Result<()> {
        self.file.write(&Masked::json_line(&row)?)?;
        self.count += 1;
        if self.first.len() < LISTED {
            self.first.push(row);
        }
        Ok(())
    }

    /// All of them.
    pub(super) fn finish(self) -> io::Result<ReportRows<T>> {
        Ok(ReportRows { file: self.file.finish()?, first: self.first, count: self.count })
    }
}

impl<T> ReportRows<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first, at most as many as a page lists.
    pub fn first(&self) -> &[T] {
        &self.first
    }

    /// All of them as JSON, one after another.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn texts(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let mut file = &self.file;
        file.rewind()?;
        Ok(BufReader::new(file).lines())
    }
}

impl<T> Serialize for ReportRows<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.count))?;
        for text in self.texts().map_err(S::Error::custom)? {
            let text = text.map_err(S::Error::custom)?;
            rows.serialize_element(&RawValue::from_string(text).map_err(S::Error::custom)?)?;
        }
        rows.end()
    }
}
