//! Texts as rules compare and quote them.

use twox_hash::XxHash3_64;

/// A hash of a text.
pub(super) fn hash(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}

/// A text by which equal words are equal: blanks joined, case folded.
pub(super) fn folded_words(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !bare.is_empty() {
            bare.push(' ');
        }
        bare.extend(word.chars().flat_map(char::to_lowercase));
    }
    bare
}

/// The first words of a text, to be quoted.
pub(super) fn first(text: &str) -> String {
    let words = text.split_whitespace().take(16).collect::<Vec<_>>().join(" ");
    words.chars().take(240).collect()
}
