//! The nearest known name to a mistyped one, for error messages.

/// The candidate with the smallest edit distance to `word`, if it is near enough to be what was meant
/// (at most a third of the word's length, and at least one edit allowed).
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_meant() {
        let known = ["drop_history", "replace_text", "planner"];
        for (word, expected) in [
            ("drop_histry", Some("drop_history")),
            ("Planer", Some("planner")),
            ("replacetext", Some("replace_text")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn a_third_of_a_word_may_differ_and_one_character_always() {
        for (word, known, near) in [
            ("a", "b", true),
            ("ab", "cd", false),
            ("abcde", "abcxy", false),
            ("abcdef", "abcdxy", true),
            ("abcdef", "abcxyz", false),
        ] {
            assert_eq!(nearest(word, [known]), near.then_some(known), "{word} {known}");
        }
        assert_eq!(nearest("stop", ["step", "stop", "top"]), Some("stop"), "the nearest, not the first");
    }
}
