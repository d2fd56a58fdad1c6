//! A file of rows on its way to disk, hashed as it is written: JSON lines, or Parquet in row groups of bounded size.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use super::{
    schema::Type,
    shred::{Columns, Leaf, LeafValues, Misfit},
};
use crate::recording::{Masked, MaskedJson};
use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnWriter,
    errors::ParquetError,
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
};
use serde::Serialize;

/// Rows that are held before a row group is written, in bytes: a folder has some twenty such files open.
const GROUP: usize = 4 << 20;

/// A written file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FileHash {
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub blake3: String,
}

/// Why a row could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A value has no place in its column.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// Parquet cannot be written.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// A file that is hashed as it is written.
#[derive(Debug)]
pub(super) struct Hashed {
    file: BufWriter<File>,
    hash: Box<blake3::Hasher>,
    bytes: u64,
}

/// A file of rows.
#[derive(Debug)]
pub(super) enum Rows {
    /// One JSON object a line.
    Lines(Hashed),
    /// Parquet.
    Table(Box<ParquetTable>),
}

/// A Parquet file that is being written.
#[derive(Debug)]
pub(super) struct ParquetTable {
    file: SerializedFileWriter<Hashed>,
    columns: Columns,
}

impl Hashed {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        Ok(Self { file, hash: Box::default(), bytes: 0 })
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: &Masked) -> io::Result<()> {
        self.write_all(text.as_bytes())
    }

    pub(super) fn done(mut self) -> io::Result<FileHash> {
        self.file.flush()?;
        Ok(FileHash { bytes: self.bytes, blake3: self.hash.finalize().to_hex().to_string() })
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Rows {
    /// Begins a file; of Parquet where `columns` are given.
    pub(super) fn create(path: &Path, columns: Option<&Type>) -> Result<Self, RowError> {
        let file = Hashed::create(path)?;
        Ok(match columns {
            None => Self::Lines(file),
            Some(columns) => Self::Table(Box::new(ParquetTable::create(file, columns)?)),
        })
    }

    pub(super) fn push(&mut self, row: &MaskedJson) -> Result<(), RowError> {
        match self {
            Self::Lines(file) => {
                let mut line = row.text();
                line.push(&Masked::fixed(b"\n"));
                file.text(&line)?;
            }
            Self::Table(table) => {
                table.columns.push(row.value())?;
                if table.columns.bytes >= GROUP {
                    table.group()?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn done(self) -> Result<FileHash, RowError> {
        match self {
            Self::Lines(file) => Ok(file.done()?),
            Self::Table(mut table) => {
                table.group()?;
                Ok(table.file.into_inner()?.done()?)
            }
        }
    }
}

impl ParquetTable {
    fn create(file: Hashed, columns: &Type) -> Result<Self, RowError> {
        let properties = WriterProperties::builder()
            .set_created_by(format!("aegis {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        let (columns, schema) = Columns::from_type(columns)?;
        Ok(Self { file: SerializedFileWriter::new(file, schema, Arc::new(properties))?, columns })
    }

    /// Writes what is held as one row group.
    fn group(&mut self) -> Result<(), ParquetError> {
        if self.columns.bytes == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for leaf in &self.columns.leaves {
            let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("a column less".to_owned()))?;
            write(leaf, column.untyped())?;
            column.close()?;
        }
        group.close()?;
        self.columns.clear();
        Ok(())
    }
}

fn write(leaf: &Leaf, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
    let definitions = (leaf.deepest > 0).then_some(leaf.definitions.as_slice());
    let repetitions = (leaf.repeated > 0).then_some(leaf.repetitions.as_slice());
    let written = match (&leaf.values, column) {
        (LeafValues::Text(values) | LeafValues::Json(values), ColumnWriter::ByteArrayColumnWriter(column)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (LeafValues::Whole(values), ColumnWriter::Int64ColumnWriter(column)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (LeafValues::Number(values), ColumnWriter::DoubleColumnWriter(column)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (LeafValues::Flag(values), ColumnWriter::BoolColumnWriter(column)) => {
            column.write_batch(values, definitions, repetitions)
        }
        _ => Err(ParquetError::General("a column of another kind".to_owned())),
    };
    written.map(|_| ())
}
