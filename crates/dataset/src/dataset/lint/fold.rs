//! Texts as they look: characters that have no width are taken out, wide forms of ASCII are read as ASCII. What a reader
//! sees as one word must not pass for another only because of how it is encoded.

use std::borrow::Cow;

/// The text as it looks. ASCII is as it is.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_unseen(*c)).map(narrow).collect())
}

/// Zero-width characters, soft hyphens, marks of direction, variation selectors, tags.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// ASCII for its full-width form.
fn narrow(c: char) -> char {
    match c {
        '\u{3000}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => c,
    }
}
