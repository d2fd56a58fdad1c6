//! The JSON documents of a file: one, or one a line. A file of lines may be torn at its end, as a killed writer leaves it.

use std::{fs::File, io::Read, path::Path};

use serde_json::Value;

use super::ForeignError;

/// The longest file, in bytes: a document is read whole, and takes several times its length of memory.
pub(super) const LONGEST: u64 = 256 << 20;

/// What takes documents, each with the line it stands in, or why there is none.
pub(super) type EachDocument<'a> = dyn FnMut(Option<u64>, Result<Value, String>) + 'a;

/// The bytes of a file.
///
/// # Errors
/// [`ForeignError::Read`] and [`ForeignError::TooLong`].
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ForeignError> {
    let unread = |source| ForeignError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err(ForeignError::TooLong { path: path.to_owned() });
    }
    Ok(bytes)
}

/// Reads one document, or one a line.
pub(super) fn each(bytes: &[u8], each: &mut EachDocument<'_>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let whole = serde_json::from_slice::<Value>(bytes);
    let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let first = || lines().next().and_then(|line| serde_json::from_slice::<Value>(line).ok());
    match whole {
        Ok(Value::Array(documents)) => documents.into_iter().for_each(|document| each(None, Ok(document))),
        Ok(document) => each(None, Ok(document)),
        Err(error) => {
            // A file of lines begins with a whole one; anything else is one broken document.
            if !first().is_some_and(|first| first.is_object()) {
                return each(None, Err(format!("no JSON: {error}")));
            }
            for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
                if !line.trim_ascii().is_empty() {
                    let read = serde_json::from_slice(line);
                    each(Some(number), read.map_err(|error| format!("no JSON: {error}")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_one_or_one_a_line_and_what_is_torn_is_told_by_its_line() {
        let read = |text: &str| {
            let mut told = Vec::new();
            each(text.as_bytes(), &mut |line, document| {
                told.push((line, document.map_or_else(|why| why, |document| document.to_string())));
            });
            told
        };
        assert_eq!(read("{\n \"a\": 1}\n"), [(None, "{\"a\":1}".to_owned())]);
        assert_eq!(read("\u{feff}[1, {}]"), [(None, "1".to_owned()), (None, "{}".to_owned())]);
        assert_eq!(read("{}\n\n{}\n"), [(Some(1), "{}".to_owned()), (Some(3), "{}".to_owned())]);
        let torn = read("{}\n{\"a\":");
        assert_eq!((torn.len(), torn[1].0), (2, Some(2)));
        assert!(torn[1].1.starts_with("no JSON: EOF"), "{torn:?}");
        for broken in ["", "{\n\"a\":", "PK\u{3}\u{4}", "{\"a\":1", &"[".repeat(4096)] {
            let told = read(broken);
            assert!(told.len() == 1 && told[0].0.is_none() && told[0].1.starts_with("no JSON"), "{told:?}");
        }
    }
}
