//! Splits a log into checked lines, and tells a torn end (recovered) from damage before the end (refused).

use std::path::Path;

use super::{
    RecordingError,
    line::{self, FORMAT, Line, LineError},
};

/// A log, line by line.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    /// The good lines; index = sequence number.
    pub(super) lines: Vec<Line<'a>>,
    /// How many bytes they take.
    pub(super) good: usize,
    /// What stands behind them: the rest of a write that a crash cut.
    pub(super) torn: &'a [u8],
}

/// Checks every line of a log.
///
/// # Errors
/// [`RecordingError::Corrupt`] when a bad line is followed by a good one, or a number is missing;
/// [`RecordingError::Future`] when a newer version wrote a line.
pub(super) fn scan<'a>(bytes: &'a [u8], path: &Path) -> Result<Scan<'a>, RecordingError> {
    let mut lines = Vec::new();
    let mut good = 0;
    for raw in bytes.split_inclusive(|byte| *byte == b'\n') {
        let why = match checked(raw, lines.len() as u64) {
            Ok(line) => {
                lines.push(line);
                good += raw.len();
                continue;
            }
            Err(LineError::Future(found)) => {
                return Err(RecordingError::Future { path: path.to_owned(), found, known: FORMAT });
            }
            Err(LineError::Damaged(why)) => why,
        };
        let rest = bytes.get(good + raw.len()..).unwrap_or_default();
        let in_sequence = raw.strip_suffix(b"\n").is_none_or(|line| line::parse(line).is_err());
        if in_sequence && salvage(rest).next().is_none() {
            break;
        }
        return Err(corrupt(path, lines.len() as u64 + 1, why));
    }
    let torn = bytes.get(good..).unwrap_or_default();
    Ok(Scan { lines, good, torn })
}

/// Every good line, whatever stands between.
pub(super) fn salvage(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|raw| line::parse(raw.strip_suffix(b"\n")?).ok())
}

/// The error of a damaged line, 1-based.
pub(super) fn corrupt(path: &Path, line: u64, why: impl Into<String>) -> RecordingError {
    RecordingError::Corrupt { path: path.to_owned(), line, why: why.into() }
}

fn checked(raw: &[u8], expected: u64) -> Result<Line<'_>, LineError> {
    let line = line::parse(raw.strip_suffix(b"\n").ok_or(LineError::Damaged("it has no end"))?)?;
    if line.seq == expected { Ok(line) } else { Err(LineError::Damaged("its number does not follow the line before")) }
}
