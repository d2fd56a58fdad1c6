//! The values of strangers' files, one at a time: JSON, JSON lines, CSV and Parquet. Nothing is trusted; what is none stands
//! in its place with a word.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use parquet::{
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
};
use serde::{Deserializer as _, de};
use serde_json::{Map, Value};

/// Kinds of files that [`read`] reads, by the ends of their names.
pub(super) const KINDS: [&str; 3] = ["json", "jsonl", "parquet"];

/// A value of a file, or what stands in its place.
#[derive(Debug)]
pub(super) struct ValuePlace<'a> {
    /// The file.
    pub(super) file: &'a str,
    /// Its line, row or element, 1-based; `None` where the file is one value.
    pub(super) row: Option<u64>,
    /// The value, or why there is none.
    pub(super) value: Result<Value, String>,
}

/// What takes values, and says whether it wants more.
pub(super) type ValueVisitor<'a> = dyn FnMut(ValuePlace<'_>) -> bool + 'a;

/// The files of a path that are of these kinds, in a fixed order: numbers by value, so that `2.json` comes before
/// `10.json`. A path that is a file is taken whatever its name.
///
/// # Errors
/// The system's.
pub(super) fn files(path: &Path, kinds: &[&str]) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut dirs) = (Vec::new(), vec![path.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?.path();
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            let known = kinds.iter().any(|kind| name.strip_suffix(kind).is_some_and(|rest| rest.ends_with('.')));
            if entry.is_dir() {
                dirs.push(entry);
            } else if known && entry.is_file() {
                found.push(entry);
            }
        }
    }
    found.sort_by_cached_key(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (path.parent().map(Path::to_owned), stem.parse::<u64>().unwrap_or(u64::MAX), stem)
    });
    Ok(found)
}

/// What a file below a path is called in messages.
pub(super) fn named<'a>(file: &'a Path, path: &Path) -> std::borrow::Cow<'a, str> {
    let below = file.strip_prefix(path).ok().filter(|name| !name.as_os_str().is_empty());
    let name = below.or_else(|| file.file_name().map(Path::new));
    name.unwrap_or(file).to_string_lossy()
}

/// Reads JSON, JSON lines or Parquet; `name` is what the file is called.
///
/// # Errors
/// The system's; what the file holds is no error here.
pub(super) fn read(path: &Path, name: &str, each: &mut ValueVisitor<'_>) -> io::Result<()> {
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return table(path, name, each);
    }
    let mut file = BufReader::with_capacity(1 << 16, opened(path)?);
    let first = loop {
        let buffer = file.fill_buf()?;
        match buffer.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf)) {
            Some(at) => break buffer.get(at).copied(),
            None if buffer.is_empty() => break None,
            None => {
                let length = buffer.len();
                file.consume(length);
            }
        }
    };
    if first == Some(b'[') {
        skip_to(&mut file, b'[')?;
        let mut rows = serde_json::Deserializer::from_reader(file);
        let mut row = 0;
        let visited = rows.deserialize_seq(ValueRows {
            each: &mut |value| {
                row += 1;
                each(ValuePlace { file: name, row: Some(row), value: Ok(value) })
            },
        });
        if let Err(error) = visited {
            each(ValuePlace { file: name, row: Some(row + 1), value: Err(error.to_string()) });
        }
        return Ok(());
    }
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        let bytes = fs::read(path)?;
        if let Ok(value) = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)) {
            each(ValuePlace { file: name, row: None, value: Ok(value) });
            return Ok(());
        }
    }
    lines(file, name, each)
}

/// Reads a table as text: an object a record, its fields texts. Its first record names the columns; where `columns` are
/// given, only one that holds the first of them does, and any other file has these columns and no such record.
pub(super) fn read_csv(bytes: &[u8], name: &str, columns: &[&str], each: &mut ValueVisitor<'_>) {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut records = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut header: Option<Vec<String>> = None;
    for record in records.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let row = error.position().map(csv::Position::line);
                if !each(ValuePlace { file: name, row, value: Err(error.to_string()) }) {
                    break;
                }
                continue;
            }
        };
        let row = record.position().map(csv::Position::line);
        let Some(header) = &header else {
            let named = |record: &csv::StringRecord| record.iter().map(|field| field.trim().to_owned()).collect();
            let names =
                columns.first().is_none_or(|first| record.iter().any(|field| field.trim().eq_ignore_ascii_case(first)));
            header = Some(if names { named(&record) } else { columns.iter().map(|&name| name.to_owned()).collect() });
            if !names && !each(ValuePlace { file: name, row, value: fields(columns.iter().copied(), &record) }) {
                break;
            }
            continue;
        };
        if !each(ValuePlace { file: name, row, value: fields(header.iter().map(String::as_str), &record) }) {
            break;
        }
    }
}

/// A record under its columns.
fn fields<'a>(columns: impl ExactSizeIterator<Item = &'a str>, record: &csv::StringRecord) -> Result<Value, String> {
    if columns.len() != record.len() {
        return Err(format!("a record of {} fields under {} columns", record.len(), columns.len()));
    }
    let fields: Map<String, Value> =
        columns.zip(record.iter()).map(|(name, field)| (name.to_owned(), field.into())).collect();
    Ok(Value::Object(fields))
}

/// Opens a plain file: a pipe or a device could wait for ever.
fn opened(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("not a plain file")) }
}

/// One value a row of Parquet.
fn table(path: &Path, name: &str, each: &mut ValueVisitor<'_>) -> io::Result<()> {
    let file = opened(path)?;
    let unread = |error: ParquetError, row| ValuePlace { file: name, row, value: Err(error.to_string()) };
    let reader = match SerializedFileReader::new(file) {
        Ok(reader) => reader,
        Err(error) => {
            each(unread(error, None));
            return Ok(());
        }
    };
    let rows = match reader.get_row_iter(None) {
        Ok(rows) => rows,
        Err(error) => {
            each(unread(error, None));
            return Ok(());
        }
    };
    for (number, row) in rows.enumerate() {
        let number = Some(number as u64 + 1);
        let place = match row {
            Ok(row) => ValuePlace { file: name, row: number, value: Ok(row.to_json_value()) },
            Err(error) => unread(error, number),
        };
        let broken = place.value.is_err();
        if !each(place) || broken {
            break;
        }
    }
    Ok(())
}

/// One value a line.
fn lines(file: impl BufRead, name: &str, each: &mut ValueVisitor<'_>) -> io::Result<()> {
    for (number, line) in file.split(b'\n').enumerate() {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value = serde_json::from_slice(&line).map_err(|error| error.to_string());
        if !each(ValuePlace { file: name, row: Some(number as u64 + 1), value }) {
            break;
        }
    }
    Ok(())
}

/// Skips what stands before a byte, a byte order mark among it.
fn skip_to(file: &mut impl BufRead, byte: u8) -> io::Result<()> {
    loop {
        let buffer = file.fill_buf()?;
        match buffer.first() {
            Some(first) if *first != byte => file.consume(1),
            _ => return Ok(()),
        }
    }
}

/// The elements of an array, one at a time, so that a file of any size fits.
struct ValueRows<'a> {
    each: &'a mut dyn FnMut(Value) -> bool,
}

impl<'de> de::Visitor<'de> for ValueRows<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array of rows")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<Value>()? {
            if !(self.each)(row) {
                break;
            }
        }
        Ok(())
    }
}
