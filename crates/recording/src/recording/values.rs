//! Values that are known to be secret, found in every form in which texts write them.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError, Input};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};

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

/// Shortest part of a value in base64 that is looked for: its ends depend on what stands beside it.
const BASE64_MIN: usize = 10;

/// A value as it is, in JSON, in a URL, and in base64 wherever it begins in what is encoded.
fn forms(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let in_json = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let in_url = value.bytes().fold(String::new(), |text, byte| match byte {
        b'-' | b'.' | b'_' | b'~' => text + &char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => text + &char::from(byte).to_string(),
        _ => text + &format!("%{byte:02X}"),
    });
    let mut forms = vec![value.to_owned(), in_json, in_url];
    forms.extend((0..3).flat_map(|before| in_base64(value, before)).filter(|form| form.len() >= BASE64_MIN));
    forms.retain(|form| !form.is_empty());
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// What is always the same of a value in base64, in both alphabets, where so many bytes of a group of three stand before it.
fn in_base64(value: &str, before: usize) -> [String; 2] {
    let text = [vec![0; before].as_slice(), value.as_bytes()].concat();
    // Of a group that holds a neighbour's bits, no character is sure.
    let first = if before == 0 { 0 } else { before + 1 };
    let last = text.len() / 3 * 4;
    [&STANDARD, &URL_SAFE].map(|alphabet| alphabet.encode(&text).get(first..last).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::Values;

    #[test]
    fn a_value_is_found_in_base64_wherever_it_begins() {
        let values = Values::new(["9f8e7d6c5b4a39281706"].into_iter()).expect("built").expect("some");
        for before in ["", "a", "ab", "abc", "key: "] {
            let text = format!("is {} so", STANDARD.encode(format!("{before}9f8e7d6c5b4a39281706, it is")));
            let mut spans = Vec::new();
            values.find(text.as_bytes(), 0, &mut spans);
            assert_eq!(spans.len(), 1, "{text}");
        }
    }

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
