//! Words that are told again: how it is seen that a text went into a later request.

use std::collections::BTreeSet;

/// Words that make a quotation. Fewer are said by chance.
const QUOTED_WORDS: usize = 5;

/// The quotations by which a text is known again: every run of five words; of a shorter text, all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedWords(Vec<String>);

impl QuotedWords {
    /// Those of a text.
    pub fn from_text(text: &str) -> Self {
        Self(quotations(text))
    }

    /// Those of a text that stand in none of its earlier forms.
    pub fn new_in<'a>(text: &str, earlier: impl IntoIterator<Item = &'a str>) -> Self {
        let old: BTreeSet<String> = earlier.into_iter().flat_map(quotations).collect();
        Self(quotations(text).into_iter().filter(|quotation| !old.contains(quotation)).collect())
    }

    /// At most so many of them, evenly apart: enough to know a long text by.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        let every = self.0.len().div_ceil(most.max(1)).max(1);
        Self(self.0.into_iter().step_by(every).collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How many of them stand in a text, wherever its lines break.
    pub fn quoted_in(&self, text: &str) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        let text = words(text).join(" ");
        self.0.iter().filter(|quotation| text.contains(quotation.as_str())).count()
    }
}

fn quotations(text: &str) -> Vec<String> {
    let words = words(text);
    if words.is_empty() {
        return Vec::new();
    }
    words.windows(QUOTED_WORDS.min(words.len())).map(|window| window.join(" ")).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_again_is_known() {
        let said = "Step 2: 96 - 12 = 94 (pencils left).";
        for (asked, found) in [
            ("Solution:\nStep 2: 96 - 12 =\n94 (pencils left). Check it.", 5),
            ("I think it is 12 = 94 (pencils left).", 1),
            ("ANSWER: 94", 0),
            ("", 0),
        ] {
            assert_eq!(QuotedWords::from_text(said).quoted_in(asked), found, "{asked}");
        }
        let edited = QuotedWords::new_in(said, ["Step 2: 96 - 12 = 84 (pencils left)."]);
        assert_eq!((edited.quoted_in("Step 2: 96 - 12 = 84"), edited.quoted_in(said)), (0, edited.count()));
        assert_eq!(QuotedWords::from_text(&"a b c d e f ".repeat(100)).at_most(16).count(), 16);
        assert_eq!(QuotedWords::from_text("").quoted_in("anything"), 0);
        assert_eq!(QuotedWords::from_text("ANSWER: 9").quoted_in("the ANSWER: 9"), 1);
    }
}
