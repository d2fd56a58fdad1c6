//! The hash that a file beside the log carries as its last member: whoever edits such a file by hand, or by an accident, is noticed.
//!
//! The log has the seal. What may change after the end is replaced whole, or appended to, and so each file, or each line, has a
//! hash of its own. It is no proof against somebody who makes the hash anew: what the log says is derived from the log.

/// The name of the member.
const NAME: &str = "\"blake3\":";
/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// Whether a text is as it was written, by its own hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnHash {
    /// It is.
    Fits,
    /// It has none: an earlier version wrote it.
    Missing,
    /// Something in it was edited since.
    Differs,
}

/// Adds its hash to an object, and gives it; another text stays as it is. `before`: the hash of the line before it, where there
/// is one.
pub(super) fn add(text: &mut Vec<u8>, before: &str) -> Option<String> {
    let members = text.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end().len();
    let space = if text.contains(&b'\n') { ["\n  ", " ", "\n"] } else { ["", "", ""] };
    text.truncate(members);
    let hash = hash(text, before);
    text.extend_from_slice(format!(",{}{NAME}{}\"{hash}\"{}}}", space[0], space[1], space[2]).as_bytes());
    Some(hash)
}

/// Whether a text fits its hash, and which that is; it is taken off.
pub(super) fn take(text: &mut Vec<u8>, before: &str) -> (OwnHash, Option<String>) {
    let found = || {
        let open = text.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end().strip_suffix(b"\"")?;
        let (rest, digits) = open.split_at_checked(open.len().checked_sub(DIGITS)?)?;
        let rest = rest.strip_suffix(b"\"")?.trim_ascii_end().strip_suffix(NAME.as_bytes())?;
        let members = rest.trim_ascii_end().strip_suffix(b",")?.trim_ascii_end();
        Some((members.len(), std::str::from_utf8(digits).ok()?.to_owned()))
    };
    let Some((members, stated)) = found() else { return (OwnHash::Missing, None) };
    text.truncate(members);
    let fits = hash(text, before) == stated;
    text.push(b'}');
    (if fits { OwnHash::Fits } else { OwnHash::Differs }, Some(stated))
}

fn hash(members: &[u8], before: &str) -> String {
    blake3::Hasher::new().update(before.as_bytes()).update(members).finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_noticed_and_a_text_without_a_hash_is_read() {
        for text in ["{\"a\":1}", "{\n  \"a\": 1\n}"] {
            let mut hashed = text.as_bytes().to_vec();
            add(&mut hashed, "");
            let value: serde_json::Value = serde_json::from_slice(&hashed).expect("JSON");
            assert!(value["a"] == 1 && value["blake3"].is_string(), "{value}");
            let mut edited = hashed.clone();
            edited[text.find('1').expect("a number")] = b'2';
            assert_eq!(take(&mut edited, "").0, OwnHash::Differs);
            assert_eq!(take(&mut hashed.clone(), "another line").0, OwnHash::Differs);
            assert_eq!(take(&mut hashed, "").0, OwnHash::Fits);
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&hashed).expect("JSON")["blake3"],
                serde_json::Value::Null
            );
            assert_eq!(take(&mut text.as_bytes().to_vec(), ""), (OwnHash::Missing, None));
        }
        let mut list = b"[1]\n".to_vec();
        add(&mut list, "");
        assert_eq!(list, b"[1]\n");
    }
}
