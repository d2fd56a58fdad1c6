//! Values that are known to be secret, found in every form in which texts write them.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError, Input};

/// Known values, found in one pass.
#[derive(Debug)]
pub(super) struct Values(AhoCorasick);

impl Values {
    /// A search for these; `None` where there are none.
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a str>) -> Result<Option<Self>, BuildError> {
        let forms: Vec<String> = values.filter(|value| !value.is_empty()).flat_map(forms).collect();
        if forms.is_empty() { Ok(None) } else { AhoCorasick::new(forms).map(|found| Some(Self(found))) }
    }

    /// Adds where they stand, from there on.
    pub(super) fn find(&self, text: &[u8], from: usize, spans: &mut Vec<Range<usize>>) {
        let tail = || Input::new(text).range(from.min(text.len())..);
        // Most texts hold none, which can be told many bytes at a time; those that overlap cannot.
        if self.0.is_match(tail()) {
            spans.extend(self.0.find_overlapping_iter(tail()).map(|found| found.range()));
        }
    }
}

/// A value as it is, in JSON, and in a URL.
fn forms(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let in_json = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let in_url = value.bytes().fold(String::new(), |text, byte| match byte {
        b'-' | b'.' | b'_' | b'~' => text + &char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => text + &char::from(byte).to_string(),
        _ => text + &format!("%{byte:02X}"),
    });
    let mut forms = vec![value.to_owned(), in_json, in_url];
    forms.retain(|form| !form.is_empty());
    forms.sort_unstable();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::Values;

    #[test]
    fn a_value_is_found_as_texts_write_it() {
        let values = Values::new(["p\"w/1 é"].into_iter()).expect("built").expect("some");
        for text in ["the p\"w/1 é here", r#"{"a":"p\"w/1 é"}"#, "?x=p%22w%2F1%20%C3%A9&y"] {
            let mut spans = Vec::new();
            values.find(text.as_bytes(), 0, &mut spans);
            assert_eq!(spans.len(), 1, "{text}");
        }
        assert!(Values::new(std::iter::empty()).expect("built").is_none());
    }
}
