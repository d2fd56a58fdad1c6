//! The JSON documents of a file: one, or one a line. A file of lines may be torn at its end, as a killed writer leaves it.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::error::{ForeignError, LONGEST};
use crate::surface::scan;

/// A file of fewer bytes takes little memory whatever it holds.
const SHORT: usize = 1 << 20;

/// What takes documents, each with the line it stands in, or why there is none.
pub(super) type EachDocument<'a> = dyn FnMut(Option<u64>, Result<&Value, String>) + 'a;

/// The bytes of a file.
///
/// # Errors
/// [`ForeignError::Read`] and [`ForeignError::TooLong`].
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ForeignError> {
    let unread = |source| ForeignError::Read { path: path.to_owned(), source };
    // A pipe or a device could wait for ever.
    if !fs::metadata(path).map_err(unread)?.is_file() {
        return Err(unread(io::Error::other("not a plain file")));
    }
    let file = File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err(ForeignError::TooLong { path: path.to_owned() });
    }
    Ok(bytes)
}

/// Reads one document, the elements of one list, or one a line. Where a document holds many records in a member of the name `records`,
/// it is told once for each, with that one alone in it: what is read of one record is all that is held.
pub(super) fn each(bytes: &[u8], records: Option<&str>, each: &mut EachDocument<'_>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // What is short is read as it will be, to say of it what is wrong; what is long is only looked over.
    let whole = match bytes.len() {
        ..SHORT => serde_json::from_slice::<Value>(bytes).map(drop),
        _ => serde_json::from_slice::<IgnoredAny>(bytes).map(drop),
    };
    let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let first = || lines().next().and_then(|line| serde_json::from_slice::<Value>(line).ok());
    match whole {
        Ok(()) if bytes.trim_ascii_start().starts_with(b"[") => {
            for element in scan::elements(bytes.trim_ascii_start()) {
                read_document(element, None, each);
            }
        }
        Ok(()) => match records.and_then(|records| split(bytes, records)) {
            Some(SplitDocument { mut document, list, records }) => {
                let mut seen = false;
                for record in scan::elements(list) {
                    seen = true;
                    match serde_json::from_slice(record) {
                        Ok(record) => {
                            document.insert(records.to_owned(), Value::Array(vec![record]));
                            let whole = Value::Object(std::mem::take(&mut document));
                            each(None, Ok(&whole));
                            if let Value::Object(whole) = whole {
                                document = whole;
                            }
                        }
                        Err(error) => each(None, Err(format!("no JSON: {error}"))),
                    }
                }
                if !seen {
                    document.insert(records.to_owned(), Value::Array(Vec::new()));
                    each(None, Ok(&Value::Object(document)));
                }
            }
            None => read_document(bytes, None, each),
        },
        Err(error) => {
            // A file of lines begins with a whole one; anything else is one broken document.
            if !first().is_some_and(|first| first.is_object()) {
                return each(None, Err(format!("no JSON: {error}")));
            }
            for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
                if !line.trim_ascii().is_empty() {
                    read_document(line, Some(number), each);
                }
            }
        }
    }
}

fn read_document(bytes: &[u8], line: Option<u64>, each: &mut EachDocument<'_>) {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(document) => each(line, Ok(&document)),
        Err(error) => each(line, Err(format!("no JSON: {error}"))),
    }
}

/// A document whose records are read one at a time.
struct SplitDocument<'b> {
    /// What it says beside them.
    document: Map<String, Value>,
    /// The list of them, as it is written.
    list: &'b [u8],
    /// The member that holds it.
    records: &'b str,
}

/// A document apart from its records; `None` where it holds no list of them.
fn split<'b>(bytes: &'b [u8], records: &'b str) -> Option<SplitDocument<'b>> {
    let (mut document, mut list) = (Map::new(), None);
    for (key, value) in scan::members(bytes.trim_ascii_start()) {
        let key = scan::text_of_key(key)?;
        if key == records {
            list = Some(value);
        } else {
            document.insert(key.into_owned(), serde_json::from_slice(value).ok()?);
        }
    }
    list.filter(|list| list.starts_with(b"[")).map(|list| SplitDocument { document, list, records })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_one_or_one_a_line_and_what_is_torn_is_told_by_its_line() {
        let read = |text: &str| {
            let mut told = Vec::new();
            each(text.as_bytes(), Some("records"), &mut |line, document| {
                told.push((line, document.map_or_else(|why| why, |document| document.to_string())));
            });
            told
        };
        assert_eq!(read("{\n \"a\": 1}\n"), [(None, "{\"a\":1}".to_owned())]);
        assert_eq!(read("\u{feff}[1, {}]"), [(None, "1".to_owned()), (None, "{}".to_owned())]);
        assert_eq!(read("{}\n\n{}\n"), [(Some(1), "{}".to_owned()), (Some(3), "{}".to_owned())]);
        assert_eq!(
            read("{\"a\":1,\"records\":[2, [3]],\"b\":4}"),
            ["{\"a\":1,\"b\":4,\"records\":[2]}", "{\"a\":1,\"b\":4,\"records\":[[3]]}"]
                .map(|document| (None, document.to_owned()))
        );
        assert_eq!(read("{\"records\":[]}"), [(None, "{\"records\":[]}".to_owned())]);
        assert_eq!(read("{\"records\":3}"), [(None, "{\"records\":3}".to_owned())]);
        let torn = read("{}\n{\"a\":");
        assert_eq!((torn.len(), torn[1].0), (2, Some(2)));
        assert!(torn[1].1.starts_with("no JSON: EOF"), "{torn:?}");
        for broken in ["", "{\n\"a\":", "PK\u{3}\u{4}", "{\"a\":1", &"[".repeat(4096)] {
            let told = read(broken);
            assert!(told.len() == 1 && told[0].0.is_none() && told[0].1.starts_with("no JSON"), "{told:?}");
        }
    }
}
